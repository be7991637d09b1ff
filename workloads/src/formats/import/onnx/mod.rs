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

mod gradients;
mod in_place;
mod lives;
mod messages;
mod model;
mod needs;
mod shapes;
#[cfg(test)]
mod testing;
mod training;
mod views;

pub use training::{has_open_batch, read_training_net};

use self::lives::{Lives, Storage};
use self::messages::Graph;
use self::model::DecodedModel;
use super::gather::{FoundBuffer, Rule, Tally, TraceGatherer};
use super::protobuf::{WireValue, first_field};
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
    let decoded = DecodedModel::from_input(input)?;
    let graph = decoded.graph()?;
    let (_, lives) = decoded.follow_graph(&options.dims)?;
    let mut gather = TraceGatherer::new(decoded.file_name(), options);
    gather.align_as(RULE);
    gather.set_metadata("framework", "ONNX");
    decoded.model.producer.iter().for_each(|producer| gather.set_metadata("producer", producer.clone()));
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
    let read_as_weights = lives.storages.iter().filter(|storage| storage.is_weight());
    read_as_weights.for_each(|storage| weights.add_bytes(storage.bytes));
    let mut dropped = Vec::new();
    dropped.extend(lives.initializers.as_dropped("initializers", OWN));
    dropped.extend(lives.constants.as_dropped("constants", OWN));
    dropped.extend(lives.folded.as_dropped("values that follow from constants", FOLDED));
    dropped.extend(weights.as_dropped("inputs that are read as weights only", OWN));
    let inner = graph.nodes.iter().flat_map(|node| node.inner_graphs()).count() as u64;
    let views = "each is one buffer with what it shows, as large as the largest";
    dropped.extend(Dropped::from_count(lives.views, "views", views));
    dropped.extend(Dropped::from_count(lives.others, "values that are no tensors", "they have no shape"));
    dropped.extend(Dropped::from_count(inner, "graphs inside of nodes", "what they make is not planned"));
    dropped
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::messages::{Dim, Model, Shape, TensorType, Type, ValueInfo};
    use super::testing::{graph, node};
    use super::*;
    use crate::formats::import::read;

    /// A model that adds its input to itself.
    fn adding(dims: Vec<Dim>) -> Vec<u8> {
        let value = |name: &str, shape| {
            let tensor = TensorType { elem_type: 1, shape };
            ValueInfo { name: name.to_owned(), of: Some(Type { tensor: Some(tensor) }) }
        };
        let (input, output) = (value("x", Some(Shape { dims })), value("y", None));
        let graph = graph(vec![node("Add", &["x", "x"], &["y"])], vec![input], vec![output]);
        Model { ir_version: Some(9), graph: Some(graph), ..Model::default() }.encode_to_vec()
    }

    #[test]
    fn dynamic_dimensions_are_named_and_can_be_given() {
        let known = |value: i64| Dim { value: Some(value), param: None };
        let named = |name: &str| Dim { value: None, param: Some(name.to_owned()) };
        let imported = |model: &[u8], dims: &[(&str, u64)]| {
            let dims = dims.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
            read("m.onnx", model, None, &ReadOptions { dims, ..ReadOptions::default() })
        };
        let instance = |model: &[u8], dims: &[(&str, u64)]| {
            let parts = imported(model, dims).expect("fixed").parts;
            assert_eq!(parts.len(), 1);
            parts[0].trace.instance.clone()
        };
        let model = adding(vec![known(4), named("batch"), named("")]);
        for (dims, reason) in [
            (&[][..], "dynamic dimensions: `batch`, `x[2]`; fix each, as in --dim 'batch=1'"),
            (&[("batch", 3)][..], "dynamic dimensions: `x[2]`; fix each, as in --dim 'x[2]=1'"),
            (&[("bach", 3)][..], "there is no dimension `bach` in it; it has `batch`, `x[2]`"),
        ] {
            let error = imported(&model, dims).expect_err("dynamic").to_string();
            assert_eq!(error, format!("m.onnx: byte 4: {reason}"));
        }
        let fixed = instance(&model, &[("batch", 3), ("x[2]", 5)]);
        assert_eq!(fixed.buffers().iter().map(|buffer| buffer.size.get()).collect::<Vec<_>>(), [240, 240]);
        assert_eq!(instance(&adding(vec![known(2)]), &[]).load().bytes.get(), 8);
    }
}
