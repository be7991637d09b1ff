//! Finds the operation that writes each byte of a storage that several tensors share.
//!
//! An operation writes the bytes of its outputs that it does not read. If it both reads and writes bytes, it only views
//! them again (a reshape writes a view of its input) or updates them. No byte has two writers.
//!
//! ```text
//!  joined   [===============)      read by h
//!  left     [=======)              made by f
//!  right            [=======)      made by g, as are the bytes 8..16
//! ```

use std::collections::BTreeMap;

use super::error::GraphError;
use super::layout::Layout;
use super::parts::{OpId, Operation, TensorId};
use super::spans::{Span, subtract_spans, unite_spans};

/// Bytes that an operation writes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Written {
    span: Span,
    op: OpId,
    /// A tensor that holds the bytes.
    tensor: TensorId,
}

/// The writers of all storages that contain more than one tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Writers {
    /// By root, sorted by the first byte; no two overlap.
    of: BTreeMap<TensorId, Vec<Written>>,
}

impl Writers {
    /// The writers, or [`GraphError::OverlappingWriters`].
    pub(crate) fn new(layout: &Layout, operations: &[Operation]) -> Result<Self, GraphError> {
        let mut of = BTreeMap::<TensorId, Vec<Written>>::new();
        for (index, operation) in operations.iter().enumerate() {
            for written in written_bytes(layout, OpId::from_index(index), operation) {
                of.entry(written.span.root).or_default().push(written);
            }
        }
        for all in of.values_mut() {
            all.sort_by_key(|written| (written.span, written.op));
            *all = join_written(all)?;
        }
        Ok(Self { of })
    }

    /// The operations that write bytes of a span, by first byte; an operation may occur several times.
    pub(crate) fn writers_of(&self, span: Span) -> impl Iterator<Item = OpId> + '_ {
        let all = self.of.get(&span.root).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|written| written.span.end <= span.start);
        all[from..].iter().take_while(move |written| written.span.start < span.end).map(|written| written.op)
    }
}

/// The bytes that an operation writes in shared storages.
fn written_bytes(layout: &Layout, op: OpId, operation: &Operation) -> Vec<Written> {
    let made: Vec<TensorId> = operation.made_tensors().filter(|&tensor| layout.is_shared(tensor)).collect();
    if made.is_empty() {
        return Vec::new();
    }
    let reads = operation.reads.iter().filter(|&&tensor| layout.is_shared(tensor));
    let read = unite_spans(reads.map(|&tensor| layout.span(tensor)).collect());
    let parts = made.into_iter().flat_map(|tensor| {
        let left = subtract_spans(layout.span(tensor), &read);
        left.into_iter().map(move |span| Written { span, op, tensor })
    });
    parts.collect()
}

/// Joins overlapping or adjacent bytes that one operation writes.
fn join_written(sorted: &[Written]) -> Result<Vec<Written>, GraphError> {
    let mut all: Vec<Written> = Vec::with_capacity(sorted.len());
    for &next in sorted {
        match all.last_mut() {
            Some(last) if last.op == next.op && next.span.start <= last.span.end => {
                last.span.end = last.span.end.max(next.span.end);
            }
            Some(last) if next.span.start < last.span.end => return Err(clash_error(*last, next)),
            _ => all.push(next),
        }
    }
    Ok(all)
}

fn clash_error(one: Written, other: Written) -> GraphError {
    let (first, second) = if one.op < other.op { (one, other) } else { (other, one) };
    let (tensor, other) = (second.tensor, first.tensor);
    GraphError::OverlappingWriters { tensor, other, first: first.op, second: second.op }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;

    use super::*;
    use crate::{Graph, GraphBuilder, Tensor};

    /// A root of 16 bytes, and tensors that lie in it.
    fn storage(parts: &[(u64, u64)]) -> (GraphBuilder, TensorId, Vec<TensorId>) {
        let mut graph = Graph::builder();
        let root = graph.add_tensor(Tensor::new("root", Bytes::new(16)));
        let part = |&(start, end): &(u64, u64)| {
            graph.add_tensor(Tensor::new("part", Bytes::new(end - start)).with_base(root, Bytes::new(start)))
        };
        let parts = parts.iter().map(part).collect();
        (graph, root, parts)
    }

    #[test]
    fn two_operations_that_write_the_same_bytes_are_refused() {
        let (mut graph, _, parts) = storage(&[(0, 9), (8, 16)]);
        let [first, second] =
            [0, 1].map(|part| graph.add_operation(Operation::new("f").with_outputs([parts[part]])));
        let [other, tensor] = [parts[0], parts[1]];
        let error = GraphError::OverlappingWriters { tensor, other, first, second };
        assert_eq!(graph.clone().build(), Err(error.clone()));
        assert_eq!(graph.build_in_any_order(), Err(error));

        let (mut graph, root, parts) = storage(&[(4, 8)]);
        let first = graph.add_operation(Operation::new("f").with_outputs([root]));
        let second = graph.add_operation(Operation::new("g").with_outputs([parts[0]]));
        let error = GraphError::OverlappingWriters { tensor: parts[0], other: root, first, second };
        assert_eq!(graph.build(), Err(error));
    }

    #[test]
    fn pieces_views_and_joined_pieces_are_not_two_writers() {
        let (mut graph, root, parts) = storage(&[(0, 8), (8, 16), (4, 12)]);
        let f = graph.add_operation(Operation::new("f").with_outputs([parts[0]]));
        let g = graph.add_operation(Operation::new("g").with_outputs([parts[1]]));
        graph.add_operation(Operation::new("concat").with_inputs([parts[0], parts[1]]).with_outputs([root]));
        graph.add_operation(Operation::new("slice").with_inputs([root]).with_outputs([parts[2]]));
        let graph = graph.build().expect("valid");
        assert_eq!(graph.writers.writers_of(graph.span(root)).collect::<Vec<_>>(), [f, g]);

        // One operation may write a tensor and its view.
        let (mut graph, root, parts) = storage(&[(0, 8)]);
        graph.add_operation(Operation::new("f").with_outputs([root, parts[0]]));
        assert!(graph.build().is_ok());
    }
}
