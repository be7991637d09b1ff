//! The formats, and how a file comes to its reader.

use std::io::Read;

use super::input::{Input, Reader};
use super::report::Imported;
use super::{executorch, ggml, glow, iopddl, onnx, tflite, torch, xla};
use crate::formats::csv::table::is_table;
use crate::formats::input::packing::without_packing;
use crate::formats::input::unpacked::Unpacked;
use crate::formats::{FormatError, ReadOptions, Trace, own};

/// Every format, in the order in which they are asked whether a file is theirs: what says least of itself comes last.
pub const READERS: [&Reader; 10] = [
    &torch::SNAPSHOT,
    &torch::PROFILER,
    &xla::HLO,
    &xla::TEXT,
    &onnx::READER,
    &tflite::READER,
    &executorch::READER,
    &iopddl::READER,
    &glow::READER,
    &ggml::READER,
];

/// The format with such a key.
#[must_use]
pub fn reader(key: &str) -> Option<&'static Reader> {
    READERS.into_iter().find(|reader| reader.key == key)
}

/// The format of a file of this name that begins with these bytes; `None` if no reader of
/// [`READERS`] knows it. A table of the lab belongs to no reader, whatever its cells say. The name counts only if the
/// content is not recognised, and is no graph of the lab's own.
#[must_use]
pub fn recognise(file: &str, start: &[u8]) -> Option<&'static Reader> {
    if is_table(start) {
        return None;
    }
    let name = without_packing(file);
    let is_called = |reader: &&Reader| reader.endings.iter().any(|ending| name.ends_with(ending));
    let known = READERS.into_iter().find(|reader| (reader.looks_like)(start));
    known.or_else(|| READERS.into_iter().find(is_called).filter(|_| !own::looks_like(start)))
}

fn run(
    reader: &Reader,
    file: &str,
    input: Unpacked<'_>,
    options: &ReadOptions,
) -> Result<Imported, FormatError> {
    let imported = (reader.read)(Input::new(file, input, options.limits), options);
    let imported = imported.and_then(|imported| imported.without_empty_parts(file));
    let imported = imported.map(|imported| Imported { has_lines: reader.has_lines, ..imported });
    // What is wrong with the whole of a file that has no lines is wrong at its first byte.
    imported.map_err(|error| match error.byte() {
        None if !reader.has_lines => FormatError::at_byte(error.file(), 0, error.reason()),
        _ => error,
    })
}

/// Reads a file that holds traces. `file` is what errors call it; without a format it is recognised by its content. One
/// of the lab's own has one part and a framework that says nothing.
///
/// # Errors
///
/// What is wrong, with the line or the byte.
pub fn read(
    file: &str,
    input: impl Read,
    format: Option<&Reader>,
    options: &ReadOptions,
) -> Result<Imported, FormatError> {
    let mut unpacked = Unpacked::new(file, input)?;
    match format.or_else(|| recognise(file, unpacked.peek_start())) {
        Some(reader) => run(reader, file, unpacked, options),
        None => Ok(Imported::from_trace("all", own::read_own(file, unpacked, options)?)),
    }
}

/// Reads a file whose format was recognised, and takes the one trace that is in it or that `options` name.
pub(crate) fn read_one(
    reader: &Reader,
    file: &str,
    input: Unpacked<'_>,
    options: &ReadOptions,
) -> Result<Trace, FormatError> {
    run(reader, file, input, options)?.single_trace(file, options)
}
