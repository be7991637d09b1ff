//! Graphs as Graphviz text.
//!
//! Operations are boxes with their steps; edges are tensors with their sizes. The operations with the most live bytes
//! are filled. Inputs are ellipses. External inputs, such as parameters, are omitted, since they would hide the rest;
//! other external tensors are dashed. A dotted edge joins two operations that must keep their order because one of them
//! updates bytes that both use.

use std::fmt::Write;

use planlab_dsa::{Bytes, Step, printable_text};

use crate::{Dependencies, Graph, OpId, OrderError, TensorId, lower_graph};

/// The graph as text for `dot`, with the steps of `order`.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{Graph, Operation, Tensor, write_dot};
///
/// let mut graph = Graph::builder();
/// let x = graph.add_tensor(Tensor::new("x", Bytes::new(3 << 20)));
/// graph.add_operation(Operation::new("f").with_outputs([x]));
/// graph.add_operation(Operation::new("g").with_inputs([x]));
/// let graph = graph.build()?;
/// let text = write_dot(&graph, &graph.operation_order())?;
/// assert!(text.contains(r#"o0 -> o1 [label="x\n3.0 MiB"]"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_dot(graph: &Graph, order: &[OpId]) -> Result<String, OrderError> {
    let instance = lower_graph(graph, order)?.instance;
    let (curve, peak) = (instance.load_curve(), instance.load().bytes);
    let mut out = String::from("digraph graph_ {\n  rankdir=TB;\n  node [shape=box, fontsize=10];\n");
    out.push_str("  edge [fontsize=8];\n");
    for (step, &op) in (0..).zip(order) {
        let live = curve.load_at(Step::new(step));
        write_operation(&mut out, graph, op, step, live, live == peak && peak > Bytes::ZERO);
    }
    let inputs = (0..graph.tensors().len()).map(TensorId::from_index);
    for id in inputs.filter(|&id| graph.is_input(id) && !graph.tensors()[id.index()].external) {
        let _ = writeln!(out, "  t{id} [shape=ellipse, label={}];", quote_text(&tensor_label(graph, id)));
    }
    for op in graph.operation_order() {
        write_edges(&mut out, graph, op);
    }
    write_turns(&mut out, graph);
    out.push_str("}\n");
    Ok(out)
}

fn write_operation(out: &mut String, graph: &Graph, op: OpId, step: u32, live: Bytes, is_peak: bool) {
    let operation = &graph.operations()[op.index()];
    let name = if operation.name.is_empty() { String::new() } else { format!(" {}", operation.name) };
    let label = format!("{step}: {}{name}\n{} live", operation.op, size_text(live));
    let fill = if is_peak { ", style=filled, fillcolor=orange" } else { "" };
    let _ = writeln!(out, "  o{op} [label={}{fill}];", quote_text(&label));
}

/// Writes an edge for each tensor that an operation reads.
fn write_edges(out: &mut String, graph: &Graph, op: OpId) {
    for &id in &graph.operations()[op.index()].reads {
        let is_external = graph.tensors()[id.index()].external;
        let style = if is_external { ", style=dashed" } else { "" };
        let sources = graph.source_operations(id);
        let label = quote_text(&tensor_label(graph, id));
        if sources.is_empty() && !is_external {
            let _ = writeln!(out, "  t{id} -> o{op} [label={label}];");
        }
        for source in sources {
            let _ = writeln!(out, "  o{source} -> o{op} [label={label}{style}];");
        }
    }
}

/// Writes an edge for each dependency that is not visible as a tensor.
fn write_turns(out: &mut String, graph: &Graph) {
    let dependencies = Dependencies::from_tensors(graph);
    for op in graph.operation_order() {
        let reads = &graph.operations()[op.index()].reads;
        let mut makers: Vec<OpId> = reads.iter().flat_map(|&id| graph.source_operations(id)).collect();
        makers.sort_unstable();
        for before in dependencies.before(op).iter().filter(|before| makers.binary_search(before).is_err()) {
            let _ = writeln!(out, "  o{before} -> o{op} [style=dotted];");
        }
    }
}

fn tensor_label(graph: &Graph, id: TensorId) -> String {
    let tensor = &graph.tensors()[id.index()];
    let name = if tensor.name.is_empty() { format!("#{id}") } else { tensor.name.clone() };
    format!("{name}\n{}", size_text(tensor.bytes))
}

/// A size in the largest unit that gives at least 1.
fn size_text(bytes: Bytes) -> String {
    let bytes = bytes.get();
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|&(shift, _)| bytes >> shift > 0);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(shift, name)| {
            let tenths = (u128::from(bytes) * 10 + (1 << (shift - 1))) >> shift;
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        },
    )
}

/// A string with the quotes and escapes of Graphviz.
fn quote_text(text: &str) -> String {
    let escape = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        c => c.to_string(),
    };
    format!("\"{}\"", printable_text(text).chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operation, Tensor};

    #[test]
    fn a_graph_is_drawn_with_its_peak() {
        let mut graph = Graph::builder();
        let w = graph.add_tensor(Tensor::new("w", Bytes::new(100)).as_external());
        let x = graph.add_tensor(Tensor::new("x", Bytes::new(1536)));
        let y = graph.add_tensor(Tensor::new("", Bytes::new(1)).as_output());
        graph.add_operation(Operation::new("load").with_outputs([x]));
        graph.add_operation(Operation::new("conv").with_name("c\"1").with_inputs([x, w]).with_outputs([y]));
        graph.add_operation(Operation::new("update").with_inputs([w]).with_outputs([w]));
        let graph = graph.build().expect("valid");
        let expected = r#"digraph graph_ {
  rankdir=TB;
  node [shape=box, fontsize=10];
  edge [fontsize=8];
  o0 [label="0: load\n1.5 KiB live"];
  o1 [label="1: conv c\"1\n1.5 KiB live", style=filled, fillcolor=orange];
  o2 [label="2: update\n1 B live"];
  o0 -> o1 [label="x\n1.5 KiB"];
  o1 -> o2 [style=dotted];
}
"#;
        assert_eq!(write_dot(&graph, &graph.operation_order()).expect("valid"), expected);
    }

    #[test]
    fn a_name_cannot_turn_the_text_around() {
        assert_eq!(quote_text("a\u{202e}\"b\\\n"), r#""a\\u{202e}\"b\\\n""#);
    }

    #[test]
    fn sizes_have_units() {
        let text = [0, 1023, 1024, (1 << 20) - 1, 5 << 30].map(|bytes| size_text(Bytes::new(bytes)));
        assert_eq!(text, ["0 B", "1023 B", "1.0 KiB", "1024.0 KiB", "5.0 GiB"]);
    }
}
