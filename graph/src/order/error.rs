//! What is wrong with an order.

use planlab_dsa::{Bytes, InstanceError};

use crate::{OpId, TensorId};

/// Why an order cannot be run.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The order does not have every operation exactly once.
    #[error(
        "the order has {got} operations and the graph has {expected}; operation {op} is missing, unknown or repeated"
    )]
    NotAPermutation { expected: usize, got: usize, op: OpId },
    /// An operation comes before the one that makes its input.
    #[error("operation {op} comes before operation {maker}, which makes its input {tensor}")]
    Dependency { op: OpId, maker: OpId, tensor: TensorId },
    /// An operation comes before one that must run first: the other makes an input of it, or one of the two updates
    /// bytes that both use, or they run on one stream.
    #[error("operation {op} comes before operation {before}, which must run first")]
    TooEarly { op: OpId, before: OpId },
    /// The buffers do not form an instance.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// There are too many operations for the ancestor relation.
    #[error(transparent)]
    TooManyOperations(#[from] TooManyOperations),
    /// Too many buffers would have to be kept apart.
    #[error(
        "{pairs} pairs of buffers must be kept apart, more than the limit of {limit}; widening live ranges needs \
         no pairs"
    )]
    TooManyPairs { pairs: usize, limit: usize },
}

/// There are too many operations for their ancestor relation to fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ancestor relation of {operations} operations takes {bytes} bytes, more than the limit of {limit}"
)]
pub struct TooManyOperations {
    /// The number of operations.
    pub operations: usize,
    /// The bytes that their relation takes.
    pub bytes: u64,
    /// The most bytes that it may take.
    pub limit: Bytes,
}
