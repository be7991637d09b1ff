//! Storages: each is a tensor together with the tensors inside it, and is live as a whole.

use planlab_dsa::Bytes;

use crate::{Graph, OpId, TensorId};

/// The memory of a tensor and of its aliases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The tensor that owns the storage.
    pub root: TensorId,
    /// Its size in bytes.
    pub bytes: Bytes,
    /// The operations that read or write any part of it, ascending. Empty only for an input that is also an output:
    /// such a storage is live throughout.
    pub users: Vec<OpId>,
    /// Whether it is live before the first operation, because a part of it is an input; otherwise its live range
    /// begins with the first user.
    pub from_start: bool,
    /// Whether it is live after the last operation, because a part of it is an output; otherwise its live range ends
    /// with the last user.
    pub to_end: bool,
}

impl Graph {
    /// The storages that take up memory while the graph runs, by the id of their root. Excludes storages of external
    /// tensors and unused ones, except for inputs that are also outputs of the graph.
    ///
    /// # Complexity
    ///
    /// O(tensors + (reads + writes) log).
    #[must_use]
    pub fn storages(&self) -> Vec<Storage> {
        let uses = uses(self);
        let roots = (0..self.tensors().len()).map(TensorId::from_index);
        let own =
            roots.filter(|&id| self.tensor_place(id).root == id && !self.tensors()[id.index()].external);
        own.filter_map(|root| find_storage(self, root, &uses)).collect()
    }

    /// The in-place pairs of an operation that can be hand-overs, as pairs of roots: each tensor fills its own storage.
    /// A tensor that is only a part of a storage is never handed over: others may lie beside it.
    pub fn hand_overs(&self, op: OpId) -> impl Iterator<Item = (TensorId, TensorId)> + '_ {
        let whole = |id: TensorId| {
            let root = self.tensor_place(id).root;
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

fn find_storage(graph: &Graph, root: TensorId, uses: &[Vec<OpId>]) -> Option<Storage> {
    let mut users: Vec<OpId> =
        graph.in_storage(root).flat_map(|id| uses[id.index()].iter().copied()).collect();
    users.sort_unstable();
    users.dedup();
    let is_output = |id: TensorId| graph.tensors()[id.index()].output;
    let is_needed = |id: TensorId| is_output(id) || !uses[id.index()].is_empty();
    let to_end = graph.in_storage(root).any(is_output);
    let from_start = graph.in_storage(root).any(|id| is_needed(id) && graph.is_input(id));
    // Without operations there is no step at which anything could be live.
    let is_live = !users.is_empty() || (from_start && to_end && !graph.operations().is_empty());
    let bytes = graph.tensors()[root.index()].bytes;
    is_live.then_some(Storage { root, bytes, users, from_start, to_end })
}

/// The operations that read or write each tensor, ascending.
fn uses(graph: &Graph) -> Vec<Vec<OpId>> {
    let mut uses: Vec<Vec<OpId>> = vec![Vec::new(); graph.tensors().len()];
    for (op, operation) in graph.operation_order().into_iter().zip(graph.operations()) {
        for tensor in operation.reads.iter().chain(&operation.writes) {
            if uses[tensor.index()].last() != Some(&op) {
                uses[tensor.index()].push(op);
            }
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operation, Tensor};

    #[test]
    fn a_storage_has_the_users_of_all_that_lie_in_it() {
        let mut graph = Graph::builder();
        let x = graph.add_tensor(Tensor::new("x", Bytes::new(8)));
        let view = graph.add_tensor(Tensor::new("view", Bytes::new(8)).with_base(x, Bytes::ZERO).as_output());
        graph.add_tensor(Tensor::new("unused", Bytes::new(8)));
        let y = graph.add_tensor(Tensor::new("y", Bytes::new(8)));
        let pieces = [0, 4]
            .map(|at| graph.add_tensor(Tensor::new("piece", Bytes::new(4)).with_base(y, Bytes::new(at))));
        let ops = [
            Operation::new("reshape").with_inputs([x]).with_outputs([view]),
            Operation::new("left").with_inputs([view]).with_outputs([pieces[0]]),
            Operation::new("right").with_inputs([view]).with_outputs([pieces[1]]),
            Operation::new("use").with_inputs([y]),
        ]
        .map(|operation| graph.add_operation(operation));
        let storages = graph.build().expect("valid").storages();
        let bytes = Bytes::new(8);
        let input = Storage { root: x, bytes, users: ops[..3].to_vec(), from_start: true, to_end: true };
        let joined = Storage { root: y, bytes, users: ops[1..].to_vec(), from_start: false, to_end: false };
        assert_eq!(storages, [input, joined]);
    }

    #[test]
    fn an_input_that_is_an_output_is_live_throughout_though_nobody_uses_it() {
        let mut graph = Graph::builder();
        let kept = graph.add_tensor(Tensor::new("kept", Bytes::new(8)).as_output());
        assert_eq!(graph.clone().build().expect("valid").storages(), []);
        graph.add_operation(Operation::new("f"));
        let graph = graph.build().expect("valid");
        let all = Storage { root: kept, bytes: Bytes::new(8), users: vec![], from_start: true, to_end: true };
        assert_eq!(graph.storages(), [all]);
        let (instance, _) = crate::placement_problem(&graph, &graph.operation_order()).expect("legal");
        assert_eq!(instance.load().bytes, Bytes::new(8));
        let safe = |safety| {
            let dependencies = crate::Dependencies::from_tensors(&graph);
            crate::lower_for_all_orders(&graph, &graph.operation_order(), &dependencies, safety)
                .expect("legal")
        };
        assert_eq!(safe(crate::Safety::KeepApart).instance, instance);
        assert_eq!(safe(crate::Safety::Widened).instance, instance);
    }
}
