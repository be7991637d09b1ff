//! ONNX models: the buffers of a graph in the order of its nodes.
//!
//! Shapes are those that the file says (`value_info`, as ONNX's shape inference writes them), and else follow from the
//! inputs by the operators' rules; dynamic dimensions are given by name. Node order is execution order. Initializers,
//! constants and what follows from them alone are not planned, nor are inputs that are read as weights only (a model that was exported without its weights
//! has them there). Inside of branches and loops nothing is planned. The output of an operator that works element by
//! element may overwrite an input that ends there and is as large.
//!
//! # References
//!
//! 1. ONNX, `onnx/onnx.proto`: `ModelProto`, `GraphProto`, `TensorShapeProto`.
//! 2. ONNX, `docs/Operators.md`: the shapes of outputs.

mod in_place;
mod lives;
mod messages;
mod shapes;
#[cfg(test)]
mod testing;
mod views;
mod wrong;

use self::lives::{Lives, Storage};
use self::messages::{Graph, Model};
use self::shapes::Shapes;
use self::wrong::ModelFault;
use super::gather::{FoundBuffer, Rule, Tally, TraceGatherer};
use super::protobuf::{Bytes, WireValue, decode_message, first_field, message_place};
use super::{Dropped, Framework, Imported, Input, Reader};
use crate::formats::{FormatError, ReadOptions};

pub(crate) const READER: Reader = Reader {
    key: "onnx",
    title: "an ONNX model, in the order of its nodes",
    endings: &[".onnx"],
    has_lines: false,
    looks_like,
    read: read_onnx,
};

/// ONNX says nothing of alignment; its runtime gives every tensor a multiple of this.
const RULE: Rule = Rule { bytes: 256, rounds: false, why: "as in ONNX Runtime" };

/// The graph of a file, and in it the number of the nodes.
const GRAPH: (u64, usize) = (7, 0);
const NODE: u64 = 1;

/// A message whose field 1 is a small number, the version, and that has a graph (field 7) before long.
fn looks_like(start: &[u8]) -> bool {
    let Some(version) = first_field(start).filter(|field| field.number == 1) else { return false };
    let mut rest = match version.value {
        WireValue::Number(1..=99) => version.rest,
        _ => return false,
    };
    for _ in 0..16 {
        let Some(field) = first_field(rest) else { return false };
        match (field.number, field.value) {
            (7, WireValue::Bytes(graph)) => {
                let inner = first_field(graph).map(|field| field.number);
                return inner.is_some_and(|number| [1, 2, 5, 10, 11, 12, 13, 14, 15, 16].contains(&number));
            }
            (2..=4 | 6 | 8 | 14 | 20 | 25 | 26, WireValue::Bytes(_)) | (5, WireValue::Number(_)) => {
                rest = field.rest;
            }
            _ => return false,
        }
    }
    false
}

fn read_onnx(input: Input<'_>, options: &ReadOptions) -> Result<Imported, FormatError> {
    let file = input.file_name().to_owned();
    let bytes = Bytes::from(input.read_bytes()?);
    let model: Model = decode_message(&file, &bytes)?;
    let bad = |ModelFault { node, reason }: ModelFault| {
        let path: Vec<(u64, usize)> = [GRAPH].into_iter().chain(node.map(|node| (NODE, node))).collect();
        FormatError::at_byte(&file, message_place(&bytes, &path), reason)
    };
    let graph = model.graph.as_ref().ok_or_else(|| bad("there is no graph in it".to_owned().into()))?;
    let shapes = Shapes::from_graph(graph, &options.dims).map_err(bad)?;
    let lives = Lives::from_graph(graph, &shapes, model.operator_versions()).map_err(bad)?;
    let mut gather = TraceGatherer::new(&file, options);
    gather.align_as(RULE);
    gather.set_metadata("framework", "ONNX");
    model.producer.iter().for_each(|producer| gather.set_metadata("producer", producer.clone()));
    gather.set_metadata("clock", "nodes");
    for (name, value) in &options.dims {
        gather.set_metadata("dimension", format!("{name}={value}"));
    }
    let mut dropped = dropped_values(graph, &lives);
    let mut buffers = Vec::with_capacity(lives.storages.len());
    for storage in &lives.storages {
        let is_planned = !storage.is_weight();
        buffers.push(is_planned.then(|| gather.append_buffer(found_storage(graph, storage))).flatten());
    }
    for &(output, input) in &lives.permissions {
        if let Some((output, input)) = buffers[output].zip(buffers[input]) {
            gather.may_overwrite(output, input);
        }
    }
    let name = graph.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("graph");
    let part = gather.build_part(name, Framework::new("ONNX"), &mut dropped)?;
    Ok(Imported { parts: vec![part], dropped, ..Imported::default() })
}

fn found_storage(graph: &Graph, storage: &Storage<'_>) -> FoundBuffer {
    let category = match storage {
        Storage { node: None, .. } => "input",
        Storage { is_output: true, .. } => "output",
        _ => "activation",
    };
    FoundBuffer {
        name: storage.name.to_owned(),
        start: storage.start,
        end: storage.last + 1,
        size: storage.bytes,
        category: Some(category),
        op: storage.node.map(|number| format!("{number}:{}", graph.nodes[number].op_type)),
        ..FoundBuffer::default()
    }
}

/// What is not planned.
fn dropped_values(graph: &Graph, lives: &Lives<'_>) -> Vec<Dropped> {
    const OWN: &str = "they have memory of their own";
    const FOLDED: &str = "they are weights, computed once before the net runs";
    let mut weights = Tally::default();
    lives
        .storages
        .iter()
        .filter(|storage| storage.is_weight())
        .for_each(|storage| weights.add_bytes(storage.bytes));
    let mut dropped = Vec::new();
    dropped.extend(lives.initializers.as_dropped("initializers", OWN));
    dropped.extend(lives.constants.as_dropped("constants", OWN));
    dropped.extend(lives.folded.as_dropped("values that follow from constants", FOLDED));
    dropped.extend(weights.as_dropped("inputs that are read as weights only", OWN));
    let inner = graph.nodes.iter().flat_map(|node| &node.attributes);
    let inner: u64 =
        inner.map(|attribute| u64::from(attribute.g.is_some()) + attribute.graphs.len() as u64).sum();
    let views = "each is one buffer with what it shows, as large as the largest";
    dropped.extend(Dropped::from_count(lives.views, "views", views));
    dropped.extend(Dropped::from_count(lives.others, "values that are no tensors", "they have no shape"));
    dropped.extend(Dropped::from_count(inner, "graphs inside of nodes", "what they make is not planned"));
    dropped
}
