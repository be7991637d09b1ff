//! Trace and plan files.
//!
//! One reader understands the lab's trace CSV in both of its shapes, `MiniMalloc`'s CSV and the
//! dialects of idealloc; the header says which it is. A file that begins with `{` is a graph (JSON Lines) and is read as
//! the trace that it lowers to; files of other tools are known by their content as well (see [`import`]). Bytes that begin like a zstd frame or
//! a gzip file are decompressed first, whatever the file is called; a name that ends in `.zst` or `.gz` promises such bytes. Inputs are read
//! line by line, within [`InputLimits`].
//!
//! ```
//! use planlab_workloads::formats::{read_trace, ReadOptions};
//!
//! let trace = read_trace("two.csv", b"id,lower,upper,size\na,0,2,64\nb,1,3,32\n", &ReadOptions::default())?;
//! assert_eq!(trace.instance.load().bytes.get(), 96);
//! let error = read_trace("bad.csv", b"id,lower,upper\na,0,2\n", &ReadOptions::default()).unwrap_err();
//! assert_eq!(error.to_string(), "bad.csv:1: missing column `size`; the header has `id`, `lower`, `upper`");
//! # Ok::<(), planlab_workloads::FormatError>(())
//! ```

mod csv;
mod error;
mod export;
mod flatbuffer;
pub mod import;
mod input;
mod names;
mod own;
mod read;
mod save;
#[cfg(test)]
pub(crate) mod testing;
mod trace;
mod unique;

pub use csv::plan::{PlanFile, Unmatched};
pub use csv::write::{write_idealloc, write_minimalloc, write_plan, write_trace};
pub use error::ExportError;
pub use export::{
    IntoModelError, with_offline_plan, write_c_header, write_offline_plan, write_perfetto, write_plan_json,
    write_requests, write_schedule_perfetto,
};
pub use input::limits::InputLimits;
pub use input::unpacked::{read_bytes, read_document};
pub use names::is_file_name;
pub use own::{read_graph_from, read_schedule_from};
pub use planlab_files::FormatError;
pub use read::{Document, check_input, read_trace, read_trace_from, recognise_document};
pub use save::{compress_zstd, save_file, write_file};
pub use trace::Trace;
pub use trace::options::{Dialect, ReadOptions};
