//! The recorded nets, embedded: allocation traces of real frameworks, with their origins.
//!
//! `data/MANIFEST.toml` lists every file. Keys are `<route>/<net>/<mode>/b<N>[/variant]`; the route names the
//! allocator. `chainer` is Chainer with `CuPy`'s pool, and `torch` is `PyTorch`'s CUDA caching allocator on device
//! calls that do nothing. `torch-cpu` is a CPU run under the profiler, `torch-fake` follows storages under fake
//! tensors, and `onnx` is a graph in its node order. The process that contains a trace of `torch` is `<key>/process`,
//! see [`crate::process`]. `planlab add-workload` adds a trace ([`add()`]).

mod add;
mod manifest;

pub use add::{AddError, Origin, add};
pub(crate) use manifest::embedded_files;
pub use manifest::{DataFile, Manifest, Recorded, data_file, manifest, recorded, stored_file, stored_files};
