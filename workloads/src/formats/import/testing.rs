//! What the tests of readers share.

use super::Imported;
use crate::formats::{FormatError, ReadOptions, Trace};

/// Imports a file of a known kind.
pub(crate) fn read(file: &str, bytes: impl AsRef<[u8]>) -> Result<Imported, FormatError> {
    super::read(file, bytes.as_ref(), None, &ReadOptions::default())
}

/// Name, live range and size of each buffer.
pub(crate) fn lives(trace: &Trace) -> Vec<(&str, (u32, u32), u64)> {
    let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    buffers.map(|(buffer, label)| (label.name.as_str(), buffer.live.into(), buffer.size.get())).collect()
}

/// The names of the parts.
pub(crate) fn parts(imported: &Imported) -> Vec<&str> {
    imported.parts.iter().map(|part| part.name.as_str()).collect()
}

/// What an import says that it left out.
pub(crate) fn told(imported: &Imported) -> Vec<String> {
    imported.dropped.iter().map(ToString::to_string).collect()
}
