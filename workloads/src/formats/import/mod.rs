//! Files of other tools that hold one trace or several, recognised by their content.
//!
//! A reader turns the file into [`Part`]s, each a trace with what the framework says of itself, and lists what it left
//! out. [`READERS`] is the only list of them: [`super::read_trace_from`], `planlab import` and `planlab explain` ask it.
//!
//! To add a format, write a file here with a `pub(crate) const READER: Reader` and add a line to [`READERS`]. A reader
//! fills a `TraceGatherer`, which checks sizes and lives, aligns and ranks.

mod executorch;
mod gather;
mod ggml;
mod glow;
mod input;
mod iopddl;
mod onnx;
mod pickle;
mod protobuf;
mod readers;
mod report;
#[cfg(test)]
mod testing;
mod tflite;
mod torch;
mod xla;

pub use input::{Input, Reader};
pub use onnx::{has_open_batch, read_training_net};
pub use readers::{READERS, read, reader, recognise};
pub use report::{Count, Dropped, Framework, Imported, OutOfMemory, Part, Segment, Stack};

pub(crate) use readers::read_one;
pub(crate) use tflite::{METADATA, TENSORS_KEY, VIEWS_KEY};
pub(crate) use torch::BEFORE as BEFORE_RECORDING;
