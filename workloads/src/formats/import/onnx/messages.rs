//! The fields of ONNX's messages that say what memory is for; their numbers are those of `onnx.proto`.

use prost::Message;

use crate::formats::import::protobuf::{Holds, Known, Layout, layouts};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Model {
    #[prost(int64, optional, tag = "1")]
    pub(super) ir_version: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) producer: Option<String>,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub(super) operator_sets: Vec<OperatorSet>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorSet {
    #[prost(string, optional, tag = "1")]
    pub(super) domain: Option<String>,
    #[prost(int64, optional, tag = "2")]
    pub(super) version: Option<i64>,
}

/// The versions that a model follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Versions {
    /// Of the file's format.
    pub(super) format: i64,
    /// Of ONNX's own operators.
    pub(super) operators: i64,
}

impl Model {
    /// The versions; a file that does not say has the first operators.
    pub(super) fn versions(&self) -> Versions {
        let own = self.operator_sets.iter().filter(|set| is_own(set.domain.as_deref()));
        let operators = own.filter_map(|set| set.version).max().unwrap_or(1);
        Versions { format: self.ir_version.unwrap_or(1), operators }
    }
}

impl Versions {
    /// Whether a run may be given another value for an initializer that is also an input. Older files list every
    /// initializer there.
    pub(super) const fn has_defaults(self) -> bool {
        self.format >= 4
    }
}

/// Whether a domain is that of ONNX's own operators.
pub(super) fn is_own(domain: Option<&str>) -> bool {
    matches!(domain, None | Some("" | "ai.onnx"))
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub(super) nodes: Vec<Node>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializers: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub(super) inputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(super) outputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "13")]
    pub(super) value_info: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "15")]
    pub(super) sparse_initializers: Vec<SparseTensor>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub(super) inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) outputs: Vec<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) name: Option<String>,
    #[prost(string, tag = "4")]
    pub(super) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) attributes: Vec<Attribute>,
    #[prost(string, optional, tag = "7")]
    pub(super) domain: Option<String>,
}

impl Node {
    /// The whole number that an attribute says.
    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.attributes.iter().find(|attribute| attribute.name == name)?.i
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int64, optional, tag = "3")]
    pub(super) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(super) s: Option<prost::bytes::Bytes>,
    #[prost(message, optional, boxed, tag = "5")]
    pub(super) t: Option<Box<Tensor>>,
    #[prost(message, optional, boxed, tag = "6")]
    pub(super) g: Option<Box<Graph>>,
    #[prost(float, repeated, tag = "7")]
    pub(super) floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub(super) ints: Vec<i64>,
    #[prost(message, repeated, tag = "11")]
    pub(super) graphs: Vec<Graph>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, optional, tag = "2")]
    pub(super) data_type: Option<i32>,
    #[prost(float, repeated, tag = "4")]
    pub(super) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(super) int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub(super) int64_data: Vec<i64>,
    #[prost(string, optional, tag = "8")]
    pub(super) name: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(super) raw_data: Option<prost::bytes::Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SparseTensor {
    #[prost(message, optional, tag = "1")]
    pub(super) values: Option<Tensor>,
    #[prost(int64, repeated, tag = "3")]
    pub(super) dims: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) of: Option<Type>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Type {
    /// None for sequences, maps and optional values.
    #[prost(message, optional, tag = "1")]
    pub(super) tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorType {
    #[prost(int32, tag = "1")]
    pub(super) elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Shape {
    #[prost(message, repeated, tag = "1")]
    pub(super) dims: Vec<Dim>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Dim {
    #[prost(int64, optional, tag = "1")]
    pub(super) value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) param: Option<String>,
}

impl Known for Model {
    const LAYOUT: &'static Layout = &MODEL;
}

layouts! {
    MODEL(Model): 2 Text, 7 Message(GRAPH), 8 Message(OPERATOR_SET);
    OPERATOR_SET(OperatorSet): 1 Text;
    GRAPH(Graph): 1 Message(NODE), 2 Text, 5 Message(TENSOR), 11 Message(VALUE_INFO), 12 Message(VALUE_INFO),
        13 Message(VALUE_INFO), 15 Message(SPARSE_TENSOR);
    NODE(Node): 1 Text, 2 Text, 3 Text, 4 Text, 5 Message(ATTRIBUTE), 7 Text;
    ATTRIBUTE(Attribute): 1 Text, 5 Message(TENSOR), 6 Message(GRAPH), 7 Floats, 8 Numbers, 11 Message(GRAPH);
    TENSOR(Tensor): 1 Numbers, 4 Floats, 5 Numbers, 7 Numbers, 8 Text;
    SPARSE_TENSOR(SparseTensor): 1 Message(TENSOR), 3 Numbers;
    VALUE_INFO(ValueInfo): 1 Text, 2 Message(TYPE);
    TYPE(): 1 Message(TENSOR_TYPE);
    TENSOR_TYPE(): 2 Message(SHAPE);
    SHAPE(): 1 Message(DIM);
    DIM(Dim): 2 Text;
}
