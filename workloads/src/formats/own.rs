//! Files of the lab's own: a trace or a graph.

use super::csv::table;
use super::input::unpacked::{BYTE_ORDER_MARK, Unpacked};
use super::{FormatError, ReadOptions, Trace, graph};

/// Reads a trace, or a graph as the trace that it lowers to.
pub(crate) fn read_own(
    file: &str,
    mut input: Unpacked<'_>,
    options: &ReadOptions,
) -> Result<Trace, FormatError> {
    if input.is_json() {
        graph::read_lowered(file, input, options)
    } else {
        table::read(file, input, options)
    }
}

/// Whether a file that begins with these bytes is one of the lab's own, whatever its name says: a JSON object, or a table.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    text.trim_ascii_start().starts_with(b"{") || table::is_table(start)
}
