//! Reads the lab's own files: traces, and graphs, as they are or lowered to traces.

use std::io::Read;

use planlab_graph::{Graph, Schedule, placement_problem, read_jsonl};

use super::csv::table;
use super::csv::write::write_trace;
use super::input::unpacked::{BYTE_ORDER_MARK, Unpacked};
use super::{FormatError, InputLimits, ReadOptions, Trace};

/// Reads a graph (JSON Lines, see [`planlab_graph::read_jsonl`]). Errors name the file `file`.
///
/// # Errors
///
/// The first error, with its line.
pub fn read_graph_from(file: &str, input: impl Read, limits: InputLimits) -> Result<Graph, FormatError> {
    read_jsonl(file, &Unpacked::new(file, input)?.read_document(file, limits)?)
}

/// Reads a schedule (JSON Lines, see [`Schedule::read_jsonl`]); `None` if the file has no header of a schedule. Errors name
/// the file `file`.
///
/// # Errors
///
/// The first error, with its line.
pub fn read_schedule_from(
    file: &str,
    input: impl Read,
    limits: InputLimits,
) -> Result<Option<Schedule>, FormatError> {
    let mut input = Unpacked::new(file, input)?;
    let start = input.peek_start();
    if !Schedule::begins_file(start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start)) {
        return Ok(None);
    }
    Schedule::read_jsonl(file, &input.read_document(file, limits)?).map(Some)
}

/// The live ranges of a graph's operations in the file's order.
fn read_lowered(file: &str, input: Unpacked<'_>, options: &ReadOptions) -> Result<Trace, FormatError> {
    let graph = read_jsonl(file, &input.read_document(file, options.limits)?)?;
    let lowered = placement_problem(&graph, &graph.operation_order());
    let (instance, labels) = lowered.map_err(|error| FormatError::new(file, 1, error.to_string()))?;
    let trace = Trace::new(instance, labels);
    if options.alignment.is_some() || options.without_in_place {
        // Written and read again, so that sizes are rounded and permissions left out as in a trace file.
        return table::read(file, Unpacked::plain(&write_trace(&trace)[..]), options);
    }
    Ok(trace)
}

/// Reads a trace, or a graph as the trace that it lowers to.
pub(crate) fn read_own(
    file: &str,
    mut input: Unpacked<'_>,
    options: &ReadOptions,
) -> Result<Trace, FormatError> {
    if input.is_json() { read_lowered(file, input, options) } else { table::read(file, input, options) }
}

/// Whether a file that begins with these bytes is one of the lab's own, whatever its name says: a JSON object, or a table.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    text.trim_ascii_start().starts_with(b"{") || table::is_table(start)
}
