//! The dependencies between operations, and the orders in which a graph can run.
//!
//! An operation runs after those that make its inputs. An operation that updates a tensor (reads and writes it) keeps
//! its position among the operations that read or update the same bytes: after those before it in the order of the
//! graph, and before those after it. An order is legal if it respects these rules and, if streams count, the order
//! within each stream.

use rand::{Rng, RngExt};
use rustc_hash::FxHashMap;

use super::error::OrderError;
use crate::computation::{Neighbours, data_pairs};
use crate::{Graph, OpId};

/// The direct dependencies between the operations of a graph.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{Dependencies, Graph, Operation, Tensor};
///
/// let mut graph = Graph::builder();
/// let [x, y] = ["x", "y"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(64))));
/// let f = graph.add_operation(Operation::new("f").with_outputs([x]));
/// let g = graph.add_operation(Operation::new("g").with_outputs([y]));
/// let h = graph.add_operation(Operation::new("h").with_inputs([x, y]));
/// let dependencies = Dependencies::from_tensors(&graph.build()?);
/// assert_eq!(dependencies.before(h), [f, g]);
/// assert!(dependencies.check_order(&[g, f, h]).is_ok());
/// assert!(dependencies.check_order(&[g, h, f]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// All methods that take an id panic if there is no such operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependencies {
    before: Neighbours,
    after: Neighbours,
}

impl Dependencies {
    /// The dependencies through tensors; operations of one stream may be reordered.
    ///
    /// # Complexity
    ///
    /// O((reads + writes + pairs) log). A piece of a storage that is updated separately counts once for each operation
    /// that uses it. [`GraphError::TooManyDependencies`](crate::GraphError) limits both.
    #[must_use]
    pub fn from_tensors(graph: &Graph) -> Self {
        Self::from_pairs(graph.operations().len(), all_pairs(graph))
    }

    /// The dependencies through tensors and streams: operations of one stream keep the order of the graph.
    #[must_use]
    pub fn with_streams(graph: &Graph) -> Self {
        let mut pairs = all_pairs(graph);
        let mut last = FxHashMap::default();
        for (op, operation) in graph.operation_order().into_iter().zip(graph.operations()) {
            pairs.extend(last.insert(operation.stream, op).map(|before| (before, op)));
        }
        Self::from_pairs(graph.operations().len(), pairs)
    }

    fn from_pairs(count: usize, pairs: Vec<(OpId, OpId)>) -> Self {
        let after = Neighbours::new(count, pairs);
        Self { before: after.reversed(), after }
    }

    /// The number of operations.
    #[must_use]
    pub fn operation_count(&self) -> usize {
        self.after.pair_count()
    }

    /// The operations that one directly depends on, ascending.
    #[must_use]
    pub fn before(&self, op: OpId) -> &[OpId] {
        self.before.neighbours_of(op)
    }

    /// The operations that directly depend on one, ascending.
    #[must_use]
    pub fn after(&self, op: OpId) -> &[OpId] {
        self.after.neighbours_of(op)
    }

    /// The number of operations that each one directly depends on.
    #[must_use]
    pub fn dependency_counts(&self) -> Vec<u32> {
        self.after.in_degrees()
    }

    /// The dependencies with time reversed.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self { before: self.after.clone(), after: self.before.clone() }
    }

    /// Checks that an order contains every operation once, each after those that it depends on.
    ///
    /// # Errors
    ///
    /// [`OrderError::NotAPermutation`] and [`OrderError::TooEarly`].
    pub fn check_order(&self, order: &[OpId]) -> Result<(), OrderError> {
        let steps = positions(self.operation_count(), order)?;
        for &op in order {
            let late = self.before(op).iter().find(|before| steps[before.index()] > steps[op.index()]);
            if let Some(&before) = late {
                return Err(OrderError::TooEarly { op, before });
            }
        }
        Ok(())
    }

    /// A random [legal order](Self::order_by): each next operation is drawn uniformly from the ready ones. Orders are not
    /// equally likely.
    pub fn random_order(&self, rng: &mut impl Rng) -> Vec<OpId> {
        self.order_by(|ready| rng.random_range(0..ready))
    }

    /// A legal order: given the number of ready operations, `draw` says which of them comes next.
    ///
    /// # Complexity
    ///
    /// O(operations + dependencies).
    ///
    /// # Panics
    ///
    /// If `draw` returns no number below that of the ready ones.
    pub fn order_by(&self, mut draw: impl FnMut(usize) -> usize) -> Vec<OpId> {
        let mut waiting = self.dependency_counts();
        let ids = (0..self.operation_count()).map(OpId::from_index);
        let mut ready: Vec<OpId> = ids.filter(|op| waiting[op.index()] == 0).collect();
        let mut order = Vec::with_capacity(self.operation_count());
        while !ready.is_empty() {
            let op = ready.swap_remove(draw(ready.len()));
            order.push(op);
            for &next in self.after(op) {
                waiting[next.index()] -= 1;
                if waiting[next.index()] == 0 {
                    ready.push(next);
                }
            }
        }
        order
    }
}

/// The step of each operation in an order.
pub(crate) fn positions(expected: usize, order: &[OpId]) -> Result<Vec<u32>, OrderError> {
    let wrong = |op| OrderError::NotAPermutation { expected, got: order.len(), op };
    let mut steps = vec![None; expected];
    for (step, &op) in (0..).zip(order) {
        let slot = steps.get_mut(op.index()).ok_or_else(|| wrong(op))?;
        if slot.replace(step).is_some() {
            return Err(wrong(op));
        }
    }
    let all =
        steps.iter().enumerate().map(|(index, step)| step.ok_or_else(|| wrong(OpId::from_index(index))));
    all.collect()
}

fn all_pairs(graph: &Graph) -> Vec<(OpId, OpId)> {
    data_pairs(graph, usize::MAX).expect("without a limit")
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, Stream};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{Operation, Tensor};

    fn ids(numbers: &[usize]) -> Vec<OpId> {
        numbers.iter().copied().map(OpId::from_index).collect()
    }

    /// Two branches of two operations each, between a first and a last operation.
    fn diamond() -> Graph {
        let mut graph = Graph::builder();
        let [x, a, b, c, d] =
            ["x", "a", "b", "c", "d"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(1))));
        graph.add_operation(Operation::new("0").with_outputs([x]));
        graph.add_operation(Operation::new("1").with_inputs([x]).with_outputs([a]));
        graph.add_operation(Operation::new("2").with_inputs([a]).with_outputs([b]).on_stream(Stream::new(1)));
        graph.add_operation(Operation::new("3").with_inputs([x]).with_outputs([c]));
        graph.add_operation(Operation::new("4").with_inputs([c]).with_outputs([d]).on_stream(Stream::new(1)));
        graph.add_operation(Operation::new("5").with_inputs([b, d]));
        graph.build().expect("valid")
    }

    #[test]
    fn random_orders_are_legal_and_reach_every_order() {
        let graph = diamond();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for (dependencies, orders) in
            [(Dependencies::from_tensors(&graph), 6), (Dependencies::with_streams(&graph), 2)]
        {
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..200 {
                let order = dependencies.random_order(&mut rng);
                assert_eq!(dependencies.check_order(&order), Ok(()));
                seen.insert(order);
            }
            assert_eq!(seen.len(), orders);
        }
    }

    #[test]
    fn an_illegal_order_is_refused_with_the_pair() {
        let dependencies = Dependencies::from_tensors(&diamond());
        let (op, before) = (OpId::from_index(4), OpId::from_index(3));
        assert_eq!(
            dependencies.check_order(&ids(&[0, 1, 2, 4, 3, 5])),
            Err(OrderError::TooEarly { op, before })
        );
        assert!(matches!(dependencies.check_order(&ids(&[0, 1])), Err(OrderError::NotAPermutation { .. })));
    }

    #[test]
    fn an_update_comes_after_the_readers_before_it_and_before_those_after_it() {
        let mut graph = Graph::builder();
        let [w, g] = ["w", "g"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(8))));
        let half = graph.add_tensor(Tensor::new("half", Bytes::new(4)).with_base(w, Bytes::new(4)));
        let other = graph.add_tensor(Tensor::new("other", Bytes::new(4)).with_base(w, Bytes::ZERO));
        graph.add_operation(Operation::new("read").with_inputs([w]));
        graph.add_operation(Operation::new("read").with_inputs([other]));
        graph.add_operation(Operation::new("make").with_outputs([g]));
        graph.add_operation(Operation::new("update").with_inputs([half, g]).with_outputs([half]));
        graph.add_operation(Operation::new("update").with_inputs([half]).with_outputs([half]));
        graph.add_operation(Operation::new("read").with_inputs([w]));
        graph.add_operation(Operation::new("read").with_inputs([other]));
        let dependencies = Dependencies::from_tensors(&graph.build().expect("valid"));
        let before: Vec<Vec<OpId>> =
            (0..7).map(|op| dependencies.before(OpId::from_index(op)).to_vec()).collect();
        assert_eq!(before, [&[][..], &[], &[], &[0, 2], &[3], &[4], &[]].map(ids));
    }
}
