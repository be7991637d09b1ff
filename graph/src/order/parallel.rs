//! Instances whose plans are safe in every legal order, so that operations may run in parallel.
//!
//! A plan for the live ranges of one order is safe only for that order. Here two buffers may share an address only if,
//! in every legal order, all operations that use the first end before any that uses the second begins. The live ranges
//! of the order keep apart buffers that overlap in it. There are two ways to keep the other unsafe pairs apart:
//!
//! - [`Safety::KeepApart`]: exactly, with one pair for any two buffers that only the order separates;
//! - [`Safety::Widened`]: with live ranges that extend to the start of the last such buffer. Every planner can plan the
//!   instance, since it has no pairs, but buffers in between are kept apart as well.
//!
//! ```text
//!   order     f -> g     in parallel with    h -> i
//!   plain     a [==)  b [==)  c [==)  d [==)    a, b, c, d may all share one place
//!   pairs     a|c a|d b|c b|d                   a and b may share one, c and d may share one
//!   widened   a [================)              a ends where d begins, so that b cannot share its place either
//! ```
//!
//! # Complexity
//!
//! O(buffers * operations / 64), plus the ancestor relation. With pairs, also one step for each buffer between the end
//! of a buffer and the last one that it may overlap. The memory of the relation and the number of pairs are limited.

use planlab_dsa::{Buffer, BufferId, InPlace, KeepApart, LiveRange, Step};

use super::liveness::{Parts, in_place_buffers};
use crate::{Ancestors, Dependencies, Graph, Lowered, OpId, OrderError, Storage, lower_graph};

/// How to keep apart buffers that only the order separates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// With pairs.
    KeepApart,
    /// With longer live ranges.
    Widened,
}

/// The most pairs of buffers that are kept apart.
const PAIRS: usize = 1 << 24;

/// The placement problem of a graph. Two buffers may share memory only if one ends before the other begins in every
/// order that `dependencies` allow. Live ranges, ids and labels are those of `order`, like in [`lower_graph`].
///
/// An in-place permission remains if the output is made after all other uses of the input in every order.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{Dependencies, Graph, Operation, Safety, lower_for_all_orders};
///
/// let mut graph = Graph::builder();
/// (0..3).for_each(|_| _ = graph.add_operation(Operation::new("f").with_workspace(Bytes::new(8))));
/// let graph = graph.build()?;
/// let lowered = lower_for_all_orders(&graph, &graph.operation_order(), &Dependencies::from_tensors(&graph), Safety::Widened)?;
/// assert_eq!(lowered.instance.load().bytes, Bytes::new(24));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Like [`lower_graph`]; [`OrderError::TooEarly`] if the dependencies do not allow the order;
/// [`OrderError::TooManyOperations`] past [`Ancestors::MEMORY`], and [`OrderError::TooManyPairs`] past 2^24.
pub fn lower_for_all_orders(
    graph: &Graph,
    order: &[OpId],
    dependencies: &Dependencies,
    safety: Safety,
) -> Result<Lowered, OrderError> {
    dependencies.check_order(order)?;
    let lowered = lower_graph(graph, order)?;
    let ancestors = Ancestors::from_dependencies(dependencies, Ancestors::MEMORY)?;
    let relation = Relation::new(graph, &lowered, ancestors);
    let mut parts = Parts {
        buffers: lowered.instance.buffers().to_vec(),
        in_place: relation.in_place_permissions(graph, &lowered),
        apart: Vec::new(),
    };
    match safety {
        Safety::KeepApart => parts.apart = relation.keep_apart_pairs(PAIRS)?,
        Safety::Widened => widen_parts(&relation, &mut parts),
    }
    Ok(lowered.with_instance(parts)?)
}

fn widen_parts(relation: &Relation<'_>, parts: &mut Parts) {
    let mut ends: Vec<Step> = parts.buffers.iter().map(|buffer| buffer.live.end()).collect();
    relation.for_each_ended(|earlier, later| {
        // The last unsafe one decides.
        if let Some(&last) = later.last() {
            let start = relation.buffers[last].live.start();
            ends[earlier] = Step::new(start.get() + 1).max(ends[earlier]);
        }
    });
    for (buffer, end) in parts.buffers.iter_mut().zip(ends) {
        buffer.live = LiveRange::new(buffer.live.start().get(), end.get()).expect("it only grows");
    }
    let Parts { buffers, in_place, .. } = parts;
    in_place.retain(|pair| {
        buffers[pair.input.index()].live.end().get() == buffers[pair.output.index()].live.start().get() + 1
    });
}

/// The first and last users of buffers in any order.
struct Relation<'l> {
    buffers: &'l [Buffer],
    storages: &'l [Storage],
    ancestors: Ancestors,
    /// The users that may run first; empty if the buffer is live from the start.
    first: Vec<Vec<OpId>>,
    /// The users that may run last; `None` if the buffer stays to the end.
    last: Vec<Option<Vec<OpId>>>,
}

impl<'l> Relation<'l> {
    fn new(graph: &Graph, lowered: &'l Lowered, ancestors: Ancestors) -> Self {
        let count = lowered.instance.len();
        let (mut first, mut last) = (vec![Vec::new(); count], vec![None; count]);
        for (index, storage) in lowered.storages.iter().enumerate() {
            if !storage.from_start {
                first[index] = ancestors.first_of(&storage.users);
            }
            if !storage.to_end {
                last[index] = Some(ancestors.last_of(&storage.users));
            }
        }
        for (op, workspace) in graph.operation_order().into_iter().zip(&lowered.workspace_of) {
            if let Some(id) = workspace {
                first[id.index()] = vec![op];
                last[id.index()] = Some(vec![op]);
            }
        }
        Self { buffers: lowered.instance.buffers(), storages: &lowered.storages, ancestors, first, last }
    }

    /// Visits the buffers by end and id. For each, it lists the buffers that begin at its end or later in the order of
    /// the live ranges, by start. The list ends with the last buffer that it may overlap in another order.
    fn for_each_ended(&self, mut act: impl FnMut(usize, &[usize])) {
        let mut by_start: Vec<usize> = (0..self.buffers.len()).collect();
        by_start.sort_by_key(|&index| self.buffers[index].live.start());
        let mut by_end: Vec<usize> = (0..self.buffers.len()).collect();
        by_end.sort_by_key(|&index| self.buffers[index].live.end());
        let safe_from = self.safe_from(&by_start);
        let mut begun = 0;
        for &earlier in &by_end {
            let end = self.buffers[earlier].live.end();
            begun += by_start[begun..].partition_point(|&index| self.buffers[index].live.start() < end);
            let unsafe_before = self.last[earlier].as_ref().map_or(by_start.len(), |last| {
                last.iter().map(|op| safe_from[op.index()]).max().unwrap_or(0)
            });
            act(earlier, &by_start[begun..unsafe_before.max(begun)]);
        }
    }

    /// For each operation, the first position in a list of buffers from which on all buffers begin after the operation
    /// in every order. The buffer before that position does not.
    ///
    /// # Complexity
    ///
    /// O(first users * operations / 64).
    fn safe_from(&self, list: &[usize]) -> Vec<usize> {
        let operations = self.ancestors.operation_count();
        let mut safe_from = vec![0; operations];
        // The operations that precede all buffers from the current position on.
        let mut before_all = vec![u64::MAX; operations.div_ceil(64)];
        for (place, &buffer) in list.iter().enumerate().rev() {
            for &first in &self.first[buffer] {
                for (index, (word, row)) in
                    before_all.iter_mut().zip(self.ancestors.ancestor_row(first)).enumerate()
                {
                    let mut lost = *word & !row;
                    *word &= row;
                    while lost != 0 {
                        if let Some(cut) = safe_from.get_mut(index * 64 + lost.trailing_zeros() as usize) {
                            *cut = place + 1;
                        }
                        lost &= lost - 1;
                    }
                }
            }
        }
        safe_from
    }

    /// All pairs of buffers that do not overlap in the order of the live ranges, but may in another.
    fn keep_apart_pairs(&self, limit: usize) -> Result<Vec<KeepApart>, OrderError> {
        let (mut kept, mut pairs) = (Vec::new(), 0);
        self.for_each_ended(|earlier, all| {
            for &later in all.iter().filter(|&&later| !self.is_over_before(earlier, later)) {
                pairs += 1;
                if pairs <= limit {
                    let [first, second] = [earlier, later].map(BufferId::from_index);
                    kept.push(KeepApart { first, second });
                }
            }
        });
        if pairs > limit { Err(OrderError::TooManyPairs { pairs, limit }) } else { Ok(kept) }
    }

    fn is_over_before(&self, earlier: usize, later: usize) -> bool {
        let Some(last) = &self.last[earlier] else { return false };
        let first = &self.first[later];
        !first.is_empty()
            && last.iter().all(|&use_| first.iter().all(|&op| self.ancestors.precedes(use_, op)))
    }

    /// The permissions that hold in every order.
    fn in_place_permissions(&self, graph: &Graph, lowered: &Lowered) -> Vec<InPlace> {
        let mut permissions = Vec::new();
        for op in graph.operation_order() {
            for (input, output) in in_place_buffers(graph, op, &lowered.buffer_of) {
                let pair = InPlace { input, output };
                let is_alone = |storage: &Storage| {
                    storage.users.iter().all(|&other| other == op || self.ancestors.precedes(other, op))
                };
                let is_permitted = lowered.instance.in_place().binary_search(&pair).is_ok();
                if is_permitted
                    && is_alone(&self.storages[input.index()])
                    && self.first[output.index()] == [op]
                {
                    permissions.push(pair);
                }
            }
        }
        permissions
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;
    use rand::{RngExt as _, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{Operation, Tensor};

    /// f -> g and h -> i, the results joined by j.
    fn branches() -> Graph {
        let mut graph = Graph::builder();
        let [a, b, c, d] =
            ["a", "b", "c", "d"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(8))));
        graph.add_operation(Operation::new("f").with_outputs([a]));
        graph.add_operation(Operation::new("g").with_inputs([a]).with_outputs([b]).with_in_place(a, b));
        graph.add_operation(Operation::new("h").with_outputs([c]).with_workspace(Bytes::new(3)));
        graph.add_operation(Operation::new("i").with_inputs([c]).with_outputs([d]));
        graph.add_operation(Operation::new("j").with_inputs([b, d]));
        graph.build().expect("valid")
    }

    fn lowered(graph: &Graph, safety: Safety) -> Lowered {
        lower_for_all_orders(graph, &graph.operation_order(), &Dependencies::from_tensors(graph), safety)
            .expect("valid")
    }

    #[test]
    fn what_only_the_order_separates_is_kept_apart() {
        let graph = branches();
        let pairs: Vec<(u32, u32)> = lowered(&graph, Safety::KeepApart)
            .instance
            .keep_apart_pairs()
            .iter()
            .map(|pair| (pair.first.get(), pair.second.get()))
            .collect();
        // a ends at g; c, h's workspace and d begin beside it. The workspace ends before i begins in every order.
        assert_eq!(pairs, [(0, 2), (0, 3), (0, 4)]);
        let widened = lowered(&graph, Safety::Widened).instance;
        assert!(widened.keep_apart_pairs().is_empty());
        let lives: Vec<(u32, u32)> = widened.buffers().iter().map(|buffer| buffer.live.into()).collect();
        assert_eq!(lives, [(0, 4), (1, 5), (2, 4), (3, 5), (2, 3)]);
    }

    #[test]
    fn a_permission_stays_where_no_order_breaks_it() {
        let graph = branches();
        let pair = InPlace { input: BufferId::new(0), output: BufferId::new(1) };
        assert_eq!(lowered(&graph, Safety::KeepApart).instance.in_place(), [pair]);
        // Widened, a lives longer.
        assert_eq!(lowered(&graph, Safety::Widened).instance.in_place(), []);

        let mut graph = Graph::builder();
        let [x, y] = ["x", "y"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(8))));
        graph.add_operation(Operation::new("make").with_outputs([x]));
        graph.add_operation(Operation::new("look").with_inputs([x]));
        graph.add_operation(Operation::new("relu").with_inputs([x]).with_outputs([y]).with_in_place(x, y));
        let graph = graph.build().expect("valid");
        assert_eq!(lower_graph(&graph, &graph.operation_order()).expect("valid").instance.in_place(), [pair]);
        assert_eq!(lowered(&graph, Safety::KeepApart).instance.in_place(), []);
    }

    /// The cut in the list of later buffers omits no buffer that may overlap.
    #[test]
    fn pairs_are_those_of_the_definition() {
        let mut rng = ChaCha8Rng::seed_from_u64(29);
        for count in 1..80 {
            let mut graph = Graph::builder();
            let ids: Vec<_> = (0..count).map(|_| graph.add_tensor(Tensor::new("", Bytes::new(8)))).collect();
            for at in 0..count {
                let reads: Vec<_> =
                    ids[..at].iter().copied().filter(|_| rng.random_bool(3.0 / (at + 3) as f64)).collect();
                graph.add_operation(Operation::new("f").with_inputs(reads).with_outputs([ids[at]]));
            }
            let graph = graph.build().expect("valid");
            let plain = lower_graph(&graph, &graph.operation_order()).expect("valid");
            let ancestors =
                Ancestors::from_dependencies(&Dependencies::from_tensors(&graph), Ancestors::MEMORY)
                    .expect("small");
            let relation = Relation::new(&graph, &plain, ancestors);
            let buffers = plain.instance.buffers();
            let mut expected = 0;
            for (earlier, later) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))) {
                let is_after = buffers[later].live.start() >= buffers[earlier].live.end();
                expected += usize::from(is_after && !relation.is_over_before(earlier, later));
            }
            assert_eq!(lowered(&graph, Safety::KeepApart).instance.keep_apart_pairs().len(), expected);
            if let Some(limit) = expected.checked_sub(1) {
                assert_eq!(
                    relation.keep_apart_pairs(limit),
                    Err(OrderError::TooManyPairs { pairs: expected, limit })
                );
            }
        }
    }

    #[test]
    fn a_chain_has_no_pairs() {
        let mut graph = Graph::builder();
        let ids: Vec<_> = (0..6).map(|_| graph.add_tensor(Tensor::new("", Bytes::new(8)))).collect();
        for pair in ids.windows(2) {
            graph.add_operation(Operation::new("f").with_inputs([pair[0]]).with_outputs([pair[1]]));
        }
        let graph = graph.build().expect("valid");
        let plain = lower_graph(&graph, &graph.operation_order()).expect("valid").instance;
        assert_eq!(lowered(&graph, Safety::KeepApart).instance, plain);
        assert_eq!(lowered(&graph, Safety::Widened).instance, plain);
    }
}
