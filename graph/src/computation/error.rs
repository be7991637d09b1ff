//! The rules that a graph can break.

use super::parts::{OpId, TensorId};

/// Why tensors and operations do not form a graph.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A tensor without bytes.
    #[error("tensor {tensor} has 0 bytes")]
    ZeroBytes { tensor: TensorId },
    /// An operation uses a tensor that does not exist.
    #[error("operation {op} uses tensor {tensor}, but there are only {count} tensors")]
    UnknownTensor { op: OpId, tensor: TensorId, count: usize },
    /// An operation reads a tensor that is not made yet.
    #[error("operation {op} reads tensor {tensor} before operation {maker} makes it")]
    ReadBeforeWrite { op: OpId, tensor: TensorId, maker: OpId },
    /// An in-place pair that is not an input of the operation and an output that fits into it.
    #[error("operation {op} cannot write tensor {output} over tensor {input}: {reason}")]
    BadInPlace { op: OpId, input: TensorId, output: TensorId, reason: &'static str },
    /// A time that is negative, infinite or not a number.
    #[error("operation {op} takes {seconds} seconds; a time is finite and not negative")]
    BadTime { op: OpId, seconds: String },
    /// Two operations make one tensor.
    #[error(
        "operations {first} and {second} both write tensor {tensor} without reading it; only one operation may make \
         a tensor"
    )]
    TwoWriters { tensor: TensorId, first: OpId, second: OpId },
    /// Two operations make tensors that share bytes.
    #[error(
        "operation {second} writes tensor {tensor}, which shares bytes with tensor {other} that operation {first} \
         writes; it must read those bytes"
    )]
    OverlappingWriters { tensor: TensorId, other: TensorId, first: OpId, second: OpId },
    /// Operations that depend on each other in a circle, so that none can run first.
    #[error("operations wait for each other in a cycle: {}", cycle_text(operations))]
    Cycle { operations: Vec<OpId> },
    /// A tensor that cannot lie in its base.
    #[error("tensor {tensor} cannot lie in tensor {base}: {reason}")]
    BadAlias { tensor: TensorId, base: TensorId, reason: &'static str },
    /// The tensors together exceed 64 bits.
    #[error("tensor {tensor} brings the total size of the tensors above 2^64 - 1 bytes")]
    TotalOverflow { tensor: TensorId },
    /// The tensors and the workspaces together exceed 64 bits.
    #[error("the workspace of operation {op} brings the total size above 2^64 - 1 bytes")]
    WorkspaceOverflow { op: OpId },
    /// Too many pairs of operations depend on each other.
    #[error("more than {limit} pairs of operations depend on each other through tensors")]
    TooManyDependencies { limit: usize },
}

/// The operations of a cycle; the first is repeated at the end.
fn cycle_text(operations: &[OpId]) -> String {
    let names: Vec<String> = operations.iter().chain(operations.first()).map(ToString::to_string).collect();
    names.join(" -> ")
}
