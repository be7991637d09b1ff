//! Graph files: read as graphs, or as the traces that they lower to.

use std::io::Read;

use planlab_graph::{Graph, liveness, read_jsonl};

use super::text::Unpacked;
use super::{FormatError, InputLimits, ReadOptions, Trace, read_trace, write_trace};

/// Reads a graph (JSON Lines, see [`planlab_graph::read_jsonl`]). `file` is what errors call it.
///
/// # Errors
///
/// The first thing that is wrong, with its line.
pub fn read_graph_from(file: &str, input: impl Read, limits: InputLimits) -> Result<Graph, FormatError> {
    read_jsonl(file, &Unpacked::new(file, input)?.document(file, limits)?)
}

/// The live ranges of a graph's operations in the file's order.
pub(super) fn read_lowered(
    file: &str,
    input: Unpacked<'_>,
    options: &ReadOptions,
) -> Result<Trace, FormatError> {
    let graph = read_jsonl(file, &input.document(file, options.limits)?)?;
    let lowered = liveness(&graph, &graph.order());
    let (instance, labels) = lowered.map_err(|error| FormatError::new(file, 1, error.to_string()))?;
    let trace = Trace::new(instance, labels);
    match options.alignment {
        // Through the text, to round sizes as a trace file would.
        Some(_) => read_trace(file, &write_trace(&trace), options),
        None => Ok(trace),
    }
}
