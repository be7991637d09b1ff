//! Storages: tensors with those that lie in them, as one thing that is live or not.

use planlab_dsa::Bytes;

use crate::order::uses;
use crate::{Graph, OpId, TensorId};

/// What takes up memory while a graph runs, workspaces aside: a tensor with its aliases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The tensor that has the storage.
    pub root: TensorId,
    /// Its size in bytes.
    pub bytes: Bytes,
    /// The operations that read or write any part of it, ascending; at least one.
    pub users: Vec<OpId>,
    /// Whether it is there before the first operation; else it begins with the first of its users that runs.
    pub from_start: bool,
    /// Whether it stays after the last operation; else it ends with the last of its users that runs.
    pub to_end: bool,
}

impl Graph {
    /// The storages that some operation uses and that the caller does not keep, by the id of their root.
    ///
    /// # Complexity
    ///
    /// O(tensors + (reads + writes) log).
    #[must_use]
    pub fn storages(&self) -> Vec<Storage> {
        let uses = uses(self);
        let roots = (0..self.tensors().len()).map(TensorId::from_index);
        let own = roots.filter(|&id| self.place(id).root == id && !self.tensors()[id.index()].external);
        own.filter_map(|root| storage(self, root, &uses)).collect()
    }
}

impl Graph {
    /// The in-place pairs of an operation, by the roots of the storages, that could be hand-overs: both parts are all
    /// of a storage, each of its own. A part of one is never handed over: others may lie beside it.
    ///
    /// # Panics
    ///
    /// If there is no such operation.
    pub fn hand_overs(&self, op: OpId) -> impl Iterator<Item = (TensorId, TensorId)> + '_ {
        let whole = |id: TensorId| {
            let root = self.place(id).root;
            let bytes = |id: TensorId| self.tensors()[id.index()].bytes;
            (bytes(id) == bytes(root)).then_some(root)
        };
        let pairs = self.operations()[op.index()].in_place.iter();
        pairs.filter_map(move |&(input, output)| {
            let pair = (whole(input)?, whole(output)?);
            (pair.0 != pair.1).then_some(pair)
        })
    }
}

fn storage(graph: &Graph, root: TensorId, uses: &[Vec<OpId>]) -> Option<Storage> {
    let mut users: Vec<OpId> =
        graph.in_storage(root).flat_map(|id| uses[id.index()].iter().copied()).collect();
    users.sort_unstable();
    users.dedup();
    let to_end = graph.in_storage(root).any(|id| graph.tensors()[id.index()].output);
    let from_start = graph.sources(root).is_empty();
    let bytes = graph.tensors()[root.index()].bytes;
    (!users.is_empty()).then_some(Storage { root, bytes, users, from_start, to_end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operation, Tensor};

    #[test]
    fn a_storage_has_the_users_of_all_that_lie_in_it() {
        let mut graph = Graph::builder();
        let x = graph.tensor(Tensor::new("x", Bytes::new(8)));
        let view = graph.tensor(Tensor::new("view", Bytes::new(8)).within(x, Bytes::ZERO).as_output());
        graph.tensor(Tensor::new("unused", Bytes::new(8)));
        let y = graph.tensor(Tensor::new("y", Bytes::new(8)));
        let pieces =
            [0, 4].map(|at| graph.tensor(Tensor::new("piece", Bytes::new(4)).within(y, Bytes::new(at))));
        let ops = [
            Operation::new("reshape").reads([x]).writes([view]),
            Operation::new("left").reads([view]).writes([pieces[0]]),
            Operation::new("right").reads([view]).writes([pieces[1]]),
            Operation::new("use").reads([y]),
        ]
        .map(|operation| graph.operation(operation));
        let storages = graph.build().expect("valid").storages();
        let bytes = Bytes::new(8);
        let input = Storage { root: x, bytes, users: ops[..3].to_vec(), from_start: true, to_end: true };
        let joined = Storage { root: y, bytes, users: ops[1..].to_vec(), from_start: false, to_end: false };
        assert_eq!(storages, [input, joined]);
    }
}
