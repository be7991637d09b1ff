//! The fields of ONNX's messages that say what memory is for; their numbers are those of `onnx.proto`.

use prost::Message;

use crate::formats::import::protobuf::{DecodableMessage, Holds, Layout, layouts};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Model {
    #[prost(int64, optional, tag = "1")]
    pub(crate) ir_version: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) producer: Option<String>,
    #[prost(message, optional, tag = "7")]
    pub(crate) graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) operator_sets: Vec<OperatorSet>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OperatorSet {
    #[prost(string, optional, tag = "1")]
    pub(crate) domain: Option<String>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) version: Option<i64>,
}

/// The versions that a model follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Versions {
    /// Of the file's format.
    pub(crate) format: i64,
    /// Of ONNX's own operators.
    pub(crate) operators: i64,
}

impl Model {
    /// The versions; a file that does not say has the first operators.
    pub(crate) fn operator_versions(&self) -> Versions {
        let own = self.operator_sets.iter().filter(|set| is_own(set.domain.as_deref()));
        let operators = own.filter_map(|set| set.version).max().unwrap_or(1);
        Versions { format: self.ir_version.unwrap_or(1), operators }
    }
}

impl Versions {
    /// Whether a run may be given another value for an initializer that is also an input. Older files list every
    /// initializer there.
    pub(crate) const fn has_defaults(self) -> bool {
        self.format >= 4
    }
}

/// Whether a domain is that of ONNX's own operators.
pub(crate) fn is_own(domain: Option<&str>) -> bool {
    matches!(domain, None | Some("" | "ai.onnx"))
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub(crate) nodes: Vec<Node>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) initializers: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) inputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) outputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) value_info: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "15")]
    pub(crate) sparse_initializers: Vec<SparseTensor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub(crate) inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) outputs: Vec<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) name: Option<String>,
    #[prost(string, tag = "4")]
    pub(crate) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) attributes: Vec<Attribute>,
    #[prost(string, optional, tag = "7")]
    pub(crate) domain: Option<String>,
}

impl Node {
    /// The whole number that an attribute says.
    pub(crate) fn int_attribute(&self, name: &str) -> Option<i64> {
        self.attributes.iter().find(|attribute| attribute.name == name)?.i
    }

    /// The text that an attribute says, in bytes.
    pub(crate) fn text_attribute(&self, name: &str) -> Option<&[u8]> {
        self.attributes.iter().find(|attribute| attribute.name == name)?.s.as_deref()
    }

    /// The branches and the bodies of loops in it.
    pub(crate) fn inner_graphs(&self) -> impl Iterator<Item = &Graph> {
        let attributes = self.attributes.iter();
        attributes.flat_map(|attribute| attribute.g.as_deref().into_iter().chain(&attribute.graphs))
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Attribute {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int64, optional, tag = "3")]
    pub(crate) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(crate) s: Option<prost::bytes::Bytes>,
    #[prost(message, optional, boxed, tag = "5")]
    pub(crate) t: Option<Box<Tensor>>,
    #[prost(message, optional, boxed, tag = "6")]
    pub(crate) g: Option<Box<Graph>>,
    #[prost(float, repeated, tag = "7")]
    pub(crate) floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub(crate) ints: Vec<i64>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) graphs: Vec<Graph>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) dims: Vec<i64>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) data_type: Option<i32>,
    #[prost(float, repeated, tag = "4")]
    pub(crate) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(crate) int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub(crate) int64_data: Vec<i64>,
    #[prost(string, optional, tag = "8")]
    pub(crate) name: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(crate) raw_data: Option<prost::bytes::Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SparseTensor {
    #[prost(message, optional, tag = "1")]
    pub(crate) values: Option<Tensor>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) dims: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) of: Option<Type>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Type {
    /// None for sequences, maps and optional values.
    #[prost(message, optional, tag = "1")]
    pub(crate) tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorType {
    #[prost(int32, tag = "1")]
    pub(crate) elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Shape {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dims: Vec<Dim>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Dim {
    #[prost(int64, optional, tag = "1")]
    pub(crate) value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) param: Option<String>,
}

impl DecodableMessage for Model {
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
