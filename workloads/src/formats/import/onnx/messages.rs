//! The fields of ONNX's messages that say what memory is for; their numbers are those of `onnx.proto`.

use prost::Message;

use crate::formats::import::protobuf::{Holds, Known, Layout};

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
    const LAYOUT: &'static Layout = &Layout {
        size: size_of::<Self>(),
        fields: &[(2, Holds::Text), (7, Holds::Message(&GRAPH)), (8, Holds::Message(&OPERATOR_SET))],
    };
}

static OPERATOR_SET: Layout = Layout { size: size_of::<OperatorSet>(), fields: &[(1, Holds::Text)] };

static GRAPH: Layout = Layout {
    size: size_of::<Graph>(),
    fields: &[
        (1, Holds::Message(&NODE)),
        (2, Holds::Text),
        (5, Holds::Message(&TENSOR)),
        (11, Holds::Message(&VALUE_INFO)),
        (12, Holds::Message(&VALUE_INFO)),
        (13, Holds::Message(&VALUE_INFO)),
        (15, Holds::Message(&SPARSE_TENSOR)),
    ],
};
static NODE: Layout = Layout {
    size: size_of::<Node>(),
    fields: &[
        (1, Holds::Text),
        (2, Holds::Text),
        (3, Holds::Text),
        (4, Holds::Text),
        (5, Holds::Message(&ATTRIBUTE)),
        (7, Holds::Text),
    ],
};
static ATTRIBUTE: Layout = Layout {
    size: size_of::<Attribute>(),
    fields: &[
        (1, Holds::Text),
        (5, Holds::Message(&TENSOR)),
        (6, Holds::Message(&GRAPH)),
        (7, Holds::Floats),
        (8, Holds::Numbers),
        (11, Holds::Message(&GRAPH)),
    ],
};
static TENSOR: Layout = Layout {
    size: size_of::<Tensor>(),
    fields: &[
        (1, Holds::Numbers),
        (4, Holds::Floats),
        (5, Holds::Numbers),
        (7, Holds::Numbers),
        (8, Holds::Text),
    ],
};
static SPARSE_TENSOR: Layout =
    Layout { size: size_of::<SparseTensor>(), fields: &[(1, Holds::Message(&TENSOR)), (3, Holds::Numbers)] };
static VALUE_INFO: Layout =
    Layout { size: size_of::<ValueInfo>(), fields: &[(1, Holds::Text), (2, Holds::Message(&TYPE))] };
static TYPE: Layout = Layout { size: 0, fields: &[(1, Holds::Message(&TENSOR_TYPE))] };
static TENSOR_TYPE: Layout = Layout { size: 0, fields: &[(2, Holds::Message(&SHAPE))] };
static SHAPE: Layout = Layout { size: 0, fields: &[(1, Holds::Message(&DIM))] };
static DIM: Layout = Layout { size: size_of::<Dim>(), fields: &[(2, Holds::Text)] };
