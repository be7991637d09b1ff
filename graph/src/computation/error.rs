//! The rules that a graph can break.

use super::parts::{OpId, TensorId};

/// Why tensors and operations do not form a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A tensor without bytes.
    #[error("tensor {tensor} has 0 bytes")]
    ZeroBytes {
        /// The tensor.
        tensor: TensorId,
    },
    /// An operation uses a tensor that does not exist.
    #[error("operation {op} uses tensor {tensor}, but there are only {count} tensors")]
    UnknownTensor {
        /// The operation.
        op: OpId,
        /// The tensor that it uses.
        tensor: TensorId,
        /// The number of tensors.
        count: usize,
    },
    /// An operation reads a tensor that is not made yet.
    #[error("operation {op} reads tensor {tensor} before operation {maker} makes it")]
    ReadBeforeWrite {
        /// The operation.
        op: OpId,
        /// The tensor.
        tensor: TensorId,
        /// The operation that makes it.
        maker: OpId,
    },
    /// An in-place pair that is not an input of the operation and an output that fits into it.
    #[error("operation {op} cannot write tensor {output} over tensor {input}: {reason}")]
    BadInPlace {
        /// The operation.
        op: OpId,
        /// The tensor to overwrite.
        input: TensorId,
        /// The tensor to write.
        output: TensorId,
        /// The reason.
        reason: &'static str,
    },
    /// A time that is negative, infinite or not a number.
    #[error("operation {op} takes {seconds} seconds; a time is finite and not negative")]
    BadTime {
        /// The operation.
        op: OpId,
        /// The time, as text.
        seconds: String,
    },
    /// Two operations make one tensor.
    #[error(
        "operations {first} and {second} both write tensor {tensor} without reading it; only one operation may make \
         a tensor"
    )]
    TwoWriters {
        /// The tensor.
        tensor: TensorId,
        /// The operation that makes it first.
        first: OpId,
        /// The one that makes it again.
        second: OpId,
    },
    /// Two operations make tensors that share bytes.
    #[error(
        "operation {second} writes tensor {tensor}, which shares bytes with tensor {other} that operation {first} \
         writes; it must read those bytes"
    )]
    OverlappingWriters {
        /// The tensor that the second operation makes.
        tensor: TensorId,
        /// The tensor that the first operation makes.
        other: TensorId,
        /// The operation that was added first.
        first: OpId,
        /// The operation that was added later.
        second: OpId,
    },
    /// Operations that depend on each other in a circle, so that none can run first.
    #[error("operations wait for each other in a cycle: {}", chain(operations))]
    Cycle {
        /// The operations; the next one depends on each, and the first on the last.
        operations: Vec<OpId>,
    },
    /// A tensor that cannot lie in its base.
    #[error("tensor {tensor} cannot lie in tensor {base}: {reason}")]
    BadAlias {
        /// The tensor.
        tensor: TensorId,
        /// Its base.
        base: TensorId,
        /// The reason.
        reason: &'static str,
    },
    /// The tensors together exceed 64 bits.
    #[error("tensor {tensor} brings the total size of the tensors above 2^64 - 1 bytes")]
    TotalOverflow {
        /// The tensor at which the sum exceeds 64 bits.
        tensor: TensorId,
    },
    /// The tensors and the workspaces together exceed 64 bits.
    #[error("the workspace of operation {op} brings the total size above 2^64 - 1 bytes")]
    WorkspaceOverflow {
        /// The operation at which the sum exceeds 64 bits.
        op: OpId,
    },
    /// Too many pairs of operations depend on each other.
    #[error("more than {limit} pairs of operations depend on each other through tensors")]
    TooManyDependencies {
        /// The most pairs that a graph may have.
        limit: usize,
    },
}

/// The operations of a cycle; the first is repeated at the end.
fn chain(operations: &[OpId]) -> String {
    let names: Vec<String> = operations.iter().chain(operations.first()).map(ToString::to_string).collect();
    names.join(" -> ")
}
