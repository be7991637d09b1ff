//! The parts of a net in training: feature maps, functions and their costs.

use planlab_dsa::Bytes;
use serde::{Deserialize, Serialize};

use crate::computation::id;

/// Up to here every whole number is exact as a floating-point number.
pub(crate) const EXACT: u64 = 1 << 53;

id! {
    /// A feature map: its index in [`TrainingNet::maps`](crate::TrainingNet::maps).
    MapId
}
id! {
    /// A function: its index in [`TrainingNet::functions`](crate::TrainingNet::functions), which is its position in the
    /// forward pass.
    FunctionId
}

/// A tensor of the forward pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureMap {
    /// Its name.
    pub name: String,
    /// Its size in bytes, above 0.
    pub bytes: Bytes,
}

/// The kinds of functions that schedulers and the validator distinguish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FunctionKind {
    /// A convolution.
    Convolution,
    /// A matrix product with weights.
    FullyConnected,
    /// A sum: the gradient of each input *is* the gradient of the output, so the backward pass does nothing.
    Add,
    /// Any other function.
    #[default]
    Other,
}

/// The cost of one pass of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "struct RawWork")]
pub struct Work {
    /// Floating-point operations; a multiplication and an addition count as two.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
    /// Kernels launched.
    #[serde(default = "one")]
    pub launches: u32,
}

const fn one() -> u32 {
    1
}

/// A function of the forward pass, with its backward pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: FunctionKind,
    /// The maps that it reads, in the order of its arguments.
    pub inputs: Vec<MapId>,
    /// The map that it makes.
    pub output: MapId,
    /// The maps that its backward pass reads in addition to the gradient of its output.
    pub needs: Vec<MapId>,
    /// The cost of the forward pass.
    pub forward: Work,
    /// The cost of the backward pass.
    pub backward: Work,
}

/// The window that a convolution moves over its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its extent along each spatial axis.
    pub extents: Vec<u64>,
    /// Its stride along each spatial axis.
    pub strides: Vec<u64>,
    /// The number of its positions in one image.
    pub positions: u64,
}
