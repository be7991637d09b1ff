//! Reads graph files, as graphs or lowered to traces.

use std::io::Read;

use planlab_graph::{Graph, placement_problem, read_jsonl};

use super::csv::table;
use super::csv::write::write_trace;
use super::input::unpacked::Unpacked;
use super::{FormatError, InputLimits, ReadOptions, Trace};

/// Reads a graph (JSON Lines, see [`planlab_graph::read_jsonl`]). Errors name the file `file`.
///
/// # Errors
///
/// The first error, with its line.
pub fn read_graph_from(file: &str, input: impl Read, limits: InputLimits) -> Result<Graph, FormatError> {
    read_jsonl(file, &Unpacked::new(file, input)?.read_document(file, limits)?)
}

/// The live ranges of a graph's operations in the file's order.
pub(crate) fn read_lowered(
    file: &str,
    input: Unpacked<'_>,
    options: &ReadOptions,
) -> Result<Trace, FormatError> {
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
