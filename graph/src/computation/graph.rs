//! A valid computation graph.

use planlab_dsa::Bytes;

use super::layout::{Layout, Place};
use super::parts::{OpId, Operation, Tensor, TensorId};
use super::spans::Span;
use super::writers::Writers;

/// A valid computation graph: operations in an order in which they can run.
///
/// An operation makes the tensors that it writes but does not read; an operation that updates a tensor (a parameter,
/// say) does not make it. A tensor has at most one maker, and a byte at most one writer. A tensor that no operation
/// makes is an input: it exists from the start.
///
/// # Panics
///
/// All methods that take an id panic if the graph has no such tensor or operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) makers: Vec<Option<OpId>>,
    pub(crate) layout: Layout,
    /// The maker of each tensor, or else that of its closest base that has one.
    pub(crate) sources: Vec<Option<OpId>>,
    pub(crate) writers: Writers,
}

impl Graph {
    /// The tensors, by id.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The operations, by id.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operation that makes a tensor; `None` if no operation does.
    #[must_use]
    pub fn maker_of(&self, tensor: TensorId) -> Option<OpId> {
        self.makers[tensor.index()]
    }

    /// The operations in the order of the graph.
    #[must_use]
    pub fn operation_order(&self) -> Vec<OpId> {
        (0..self.operations.len()).map(OpId::from_index).collect()
    }

    /// The place of a tensor.
    #[must_use]
    pub fn tensor_place(&self, tensor: TensorId) -> Place {
        let Span { root, start, .. } = self.span(tensor);
        Place { root, offset: Bytes::new(start) }
    }

    /// The tensors in the storage of a root: the root, then the others in ascending order.
    pub fn in_storage(&self, root: TensorId) -> impl Iterator<Item = TensorId> + '_ {
        std::iter::once(root).chain(self.layout.parts(root).iter().copied())
    }

    /// The bytes of a tensor in its storage.
    pub(crate) fn span(&self, tensor: TensorId) -> Span {
        self.layout.span(tensor)
    }

    /// The operations that must have run before a tensor can be read, in ascending order: its maker; else the maker
    /// of its closest base that has one; else the operations that write bytes of it. Empty for an input.
    #[must_use]
    pub fn source_operations(&self, tensor: TensorId) -> Vec<OpId> {
        if let Some(maker) = self.sources[tensor.index()] {
            return vec![maker];
        }
        let mut writers: Vec<OpId> = self.writers.writers_of(self.span(tensor)).collect();
        writers.sort_unstable();
        writers.dedup();
        writers
    }

    /// Whether a tensor exists from the start: it has no sources.
    #[must_use]
    pub fn is_input(&self, tensor: TensorId) -> bool {
        self.sources[tensor.index()].is_none() && self.writers.writers_of(self.span(tensor)).next().is_none()
    }

    pub(crate) fn into_parts(self) -> (Vec<Tensor>, Vec<Operation>) {
        (self.tensors, self.operations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::computation::builder::tests::two;

    #[test]
    fn an_alias_of_an_alias_lies_in_the_root() {
        let view = |bytes, base, offset| {
            Tensor::new("view", Bytes::new(bytes)).with_base(TensorId::from_index(base), Bytes::new(offset))
        };
        let (mut graph, _, large) = two();
        let half = graph.add_tensor(view(4, 1, 4));
        let quarter = graph.add_tensor(view(2, 2, 1));
        let graph = graph.build().expect("valid");
        assert_eq!(graph.tensor_place(quarter), Place { root: large, offset: Bytes::new(5) });
        assert_eq!(graph.in_storage(large).collect::<Vec<_>>(), [large, half, quarter]);
    }

    #[test]
    fn a_tensor_is_there_after_its_maker_its_bases_or_those_of_its_pieces() {
        let (mut graph, small, large) = two();
        let pieces = [0, 4]
            .map(|at| graph.add_tensor(Tensor::new("", Bytes::new(4)).with_base(large, Bytes::new(at))));
        let shown = graph.add_tensor(Tensor::new("", Bytes::new(4)).with_base(small, Bytes::ZERO));
        let view = graph.add_operation(Operation::new("view").with_inputs([small]).with_outputs([shown]));
        let f = graph.add_operation(Operation::new("f").with_inputs([shown]).with_outputs([pieces[0]]));
        let g = graph.add_operation(Operation::new("g").with_inputs([pieces[0]]).with_outputs([pieces[1]]));
        graph.add_operation(Operation::new("h").with_inputs([large]));
        let graph = graph.build().expect("valid");
        assert_eq!(graph.source_operations(large), [f, g]);
        assert_eq!(graph.source_operations(pieces[1]), [g]);
        assert_eq!(graph.source_operations(small), []);
        assert_eq!(graph.source_operations(shown), [view]);
    }

    /// A cache with one half that exists from the start and another that is written.
    #[test]
    fn a_piece_that_nobody_writes_is_an_input() {
        let (mut graph, _, cache) = two();
        let piece = |at| Tensor::new("", Bytes::new(4)).with_base(cache, Bytes::new(at));
        let [past, new] = [0, 4].map(|at| graph.add_tensor(piece(at)));
        graph.add_operation(Operation::new("look").with_inputs([past]));
        let f = graph.add_operation(Operation::new("f").with_outputs([new]));
        graph.add_operation(Operation::new("attend").with_inputs([cache]));
        let graph = graph.build().expect("valid");
        assert_eq!((graph.source_operations(past), graph.source_operations(cache)), (vec![], vec![f]));
        assert!(graph.is_input(past) && !graph.is_input(new) && !graph.is_input(cache));
        assert!(graph.storages()[0].from_start);
    }
}
