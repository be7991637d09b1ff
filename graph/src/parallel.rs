//! Buffers that may share memory whatever the order: for plans under which operations may run side by side.
//!
//! A plan for live ranges of one order is safe for that order alone. Here two buffers may share an address only if
//! every operation that uses the one is done before any that uses the other begins, in every legal order. The live
//! ranges of one order already keep apart what overlaps there; the rest is said in one of two ways:
//!
//! - [`Safety::KeepApart`]: exactly, by a pair for each two buffers that the order alone separates;
//! - [`Safety::Widened`]: by live ranges that end where the last such buffer begins. No pairs, so that every planner
//!   can plan it, but buffers in between are kept apart as well.
//!
//! ```text
//!   order     f -> g     and beside them     h -> i
//!   plain     a [==)  b [==)  c [==)  d [==)    a, b, c, d may all lie in one place
//!   pairs     a|c a|d b|c b|d                   a and b may, c and d may
//!   widened   a [================)              a ends where d begins; now b cannot lie under a
//! ```
//!
//! # Complexity
//!
//! O(buffers^2 * last uses) and the ancestor relation. At most one pair for two buffers.

use planlab_dsa::{Buffer, BufferId, InPlace, KeepApart, LiveRange, Step};

use crate::liveness::{Parts, in_place_buffers};
use crate::{Ancestors, Dependencies, Graph, Lowered, OpId, OrderError, Storage, lower};

/// How buffers that only the order separates are kept from sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// By pairs.
    KeepApart,
    /// By live ranges that overlap.
    Widened,
}

/// The placement problem of a graph in which only those buffers may share memory of which one is over before the
/// other begins, in every order that `dependencies` allow. Live ranges, ids and labels are those of `order`, as
/// [`lower`] has them.
///
/// An in-place permission stays if the output is made after all other uses of the input, in every order.
///
/// # Errors
///
/// As [`lower`], and if the order is not one that the dependencies allow.
///
/// # Panics
///
/// If the dependencies are those of another graph.
pub fn lower_for_all_orders(
    graph: &Graph,
    order: &[OpId],
    dependencies: &Dependencies,
    safety: Safety,
) -> Result<Lowered, OrderError> {
    dependencies.check(order)?;
    let lowered = lower(graph, order)?;
    let relation = Relation::new(graph, &lowered, dependencies);
    let mut parts = Parts {
        buffers: lowered.instance.buffers().to_vec(),
        in_place: relation.permissions(graph, &lowered),
        apart: Vec::new(),
    };
    match safety {
        Safety::KeepApart => {
            relation.for_each_unsafe(|first, second| parts.apart.push(KeepApart { first, second }));
        }
        Safety::Widened => widen(&relation, &mut parts),
    }
    Ok(lowered.with_instance(parts)?)
}

fn widen(relation: &Relation<'_>, parts: &mut Parts) {
    let mut ends: Vec<Step> = parts.buffers.iter().map(|buffer| buffer.live.end()).collect();
    relation.for_each_unsafe(|first, second| {
        let start = relation.buffers[second.index()].live.start();
        let end = &mut ends[first.index()];
        *end = Step::new(start.get() + 1).max(*end);
    });
    for (buffer, end) in parts.buffers.iter_mut().zip(ends) {
        buffer.live = LiveRange::new(buffer.live.start().get(), end.get()).expect("it only grows");
    }
    let Parts { buffers, in_place, .. } = parts;
    in_place.retain(|pair| {
        buffers[pair.input.index()].live.end().get() == buffers[pair.output.index()].live.start().get() + 1
    });
}

/// First and last uses of buffers, whatever the order.
struct Relation<'l> {
    buffers: &'l [Buffer],
    storages: &'l [Storage],
    ancestors: Ancestors,
    /// The users that may be the first; none for what is there from the start.
    first: Vec<Vec<OpId>>,
    /// The users that may be the last; `None` for what stays to the end.
    last: Vec<Option<Vec<OpId>>>,
}

impl<'l> Relation<'l> {
    fn new(graph: &Graph, lowered: &'l Lowered, dependencies: &Dependencies) -> Self {
        assert_eq!(graph.operations().len(), dependencies.operations(), "dependencies of another graph");
        let ancestors = Ancestors::of(dependencies);
        let count = lowered.instance.len();
        let (mut first, mut last) = (vec![Vec::new(); count], vec![None; count]);
        for (index, storage) in lowered.storages.iter().enumerate() {
            if !storage.from_start {
                first[index] = extremes(&storage.users, |one, other| ancestors.precedes(other, one));
            }
            if !storage.to_end {
                last[index] = Some(extremes(&storage.users, |one, other| ancestors.precedes(one, other)));
            }
        }
        for (op, workspace) in graph.order().into_iter().zip(&lowered.workspace_of) {
            if let Some(id) = workspace {
                first[id.index()] = vec![op];
                last[id.index()] = Some(vec![op]);
            }
        }
        Self { buffers: lowered.instance.buffers(), storages: &lowered.storages, ancestors, first, last }
    }

    /// Every two buffers of which the first ends before the second begins in the order of the live ranges, but
    /// not in every order; by the first's end, then its id, then the second's start.
    fn for_each_unsafe(&self, mut act: impl FnMut(BufferId, BufferId)) {
        let mut by_start: Vec<usize> = (0..self.buffers.len()).collect();
        by_start.sort_by_key(|&index| self.buffers[index].live.start());
        let mut by_end: Vec<usize> = (0..self.buffers.len()).collect();
        by_end.sort_by_key(|&index| self.buffers[index].live.end());
        let mut begun = 0;
        for &earlier in &by_end {
            let end = self.buffers[earlier].live.end();
            begun += by_start[begun..].partition_point(|&index| self.buffers[index].live.start() < end);
            for &later in &by_start[begun..] {
                if !self.is_over_before(earlier, later) {
                    act(BufferId::from_index(earlier), BufferId::from_index(later));
                }
            }
        }
    }

    fn is_over_before(&self, earlier: usize, later: usize) -> bool {
        let Some(last) = &self.last[earlier] else { return false };
        let first = &self.first[later];
        !first.is_empty()
            && last.iter().all(|&use_| first.iter().all(|&op| self.ancestors.precedes(use_, op)))
    }

    /// The permissions of the graph that hold in every order.
    fn permissions(&self, graph: &Graph, lowered: &Lowered) -> Vec<InPlace> {
        let mut permissions = Vec::new();
        for op in graph.order() {
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

/// The operations that no other one comes beyond.
fn extremes(users: &[OpId], is_beyond: impl Fn(OpId, OpId) -> bool) -> Vec<OpId> {
    let is_extreme = |&op: &OpId| !users.iter().any(|&other| is_beyond(op, other));
    users.iter().copied().filter(is_extreme).collect()
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;

    use super::*;
    use crate::{Operation, Tensor};

    /// f -> g and h -> i, the results joined by j.
    fn branches() -> Graph {
        let mut graph = Graph::builder();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| graph.tensor(Tensor::new(name, Bytes::new(8))));
        graph.operation(Operation::new("f").writes([a]));
        graph.operation(Operation::new("g").reads([a]).writes([b]).overwrites(a, b));
        graph.operation(Operation::new("h").writes([c]).with_workspace(Bytes::new(3)));
        graph.operation(Operation::new("i").reads([c]).writes([d]));
        graph.operation(Operation::new("j").reads([b, d]));
        graph.build().expect("valid")
    }

    fn lowered(graph: &Graph, safety: Safety) -> Lowered {
        lower_for_all_orders(graph, &graph.order(), &Dependencies::of(graph), safety).expect("valid")
    }

    #[test]
    fn what_only_the_order_separates_is_kept_apart() {
        let graph = branches();
        let pairs: Vec<(u32, u32)> = lowered(&graph, Safety::KeepApart)
            .instance
            .apart()
            .iter()
            .map(|pair| (pair.first.get(), pair.second.get()))
            .collect();
        // a ends at g; c, h's workspace and d begin beside it. The workspace ends before i begins in every order.
        assert_eq!(pairs, [(0, 2), (0, 3), (0, 4)]);
        let widened = lowered(&graph, Safety::Widened).instance;
        assert!(widened.apart().is_empty());
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
        let [x, y] = ["x", "y"].map(|name| graph.tensor(Tensor::new(name, Bytes::new(8))));
        graph.operation(Operation::new("make").writes([x]));
        graph.operation(Operation::new("look").reads([x]));
        graph.operation(Operation::new("relu").reads([x]).writes([y]).overwrites(x, y));
        let graph = graph.build().expect("valid");
        assert_eq!(lower(&graph, &graph.order()).expect("valid").instance.in_place(), [pair]);
        assert_eq!(lowered(&graph, Safety::KeepApart).instance.in_place(), []);
    }

    #[test]
    fn a_chain_has_no_pairs() {
        let mut graph = Graph::builder();
        let ids: Vec<_> = (0..6).map(|_| graph.tensor(Tensor::new("", Bytes::new(8)))).collect();
        for pair in ids.windows(2) {
            graph.operation(Operation::new("f").reads([pair[0]]).writes([pair[1]]));
        }
        let graph = graph.build().expect("valid");
        let plain = lower(&graph, &graph.order()).expect("valid").instance;
        assert_eq!(lowered(&graph, Safety::KeepApart).instance, plain);
        assert_eq!(lowered(&graph, Safety::Widened).instance, plain);
    }
}
