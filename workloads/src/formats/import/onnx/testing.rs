//! What the tests of ONNX share.

use super::messages::{Dim, Graph, Node, Shape, TensorType, Type, ValueInfo};

pub(crate) fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> Node {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Node { op_type: op.to_owned(), inputs: owned(inputs), outputs: owned(outputs), ..Node::default() }
}

/// A tensor of 32-bit numbers.
pub(crate) fn floats(name: &str, dims: &[i64]) -> ValueInfo {
    let dims = dims.iter().map(|&dim| Dim { value: Some(dim), param: None }).collect();
    let tensor = TensorType { elem_type: 1, shape: Some(Shape { dims }) };
    ValueInfo { name: name.to_owned(), of: Some(Type { tensor: Some(tensor) }) }
}

pub(crate) fn graph(nodes: Vec<Node>, inputs: Vec<ValueInfo>, outputs: Vec<ValueInfo>) -> Graph {
    Graph { nodes, inputs, outputs, ..Graph::default() }
}
