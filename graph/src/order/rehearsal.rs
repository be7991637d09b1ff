//! Runs a plan in random legal orders of its graph, and finds buffers that overlap in memory.
//!
//! In each turn a random operation ends or, if fewer than a given number are running, a random ready operation begins.
//! With one operation at a time this is a random legal order. A buffer takes its place when the first operation that
//! uses it begins, and leaves it when the last one ends. An output that takes over the place of an input must not begin
//! while another operation still needs the input.
//!
//! Nothing here uses live ranges or pairs: it shares no code with the lowering that makes plans safe.
//!
//! # Complexity
//!
//! O(uses * log buffers) for each run.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use planlab_dsa::{BufferId, Bytes, Offset, Plan};
use rand::{Rng, RngExt};

use crate::{Dependencies, Graph, Lowered, OpId};

/// Two buffers that overlap, or a hand-over that comes too early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "operation {op}, the {}. to begin, places buffer {new} over buffer {old}: {reason}",
    order.len()
)]
pub struct Clash {
    /// The operations in the order in which they began, up to `op`.
    pub order: Vec<OpId>,
    /// The operation that begins or ends.
    pub op: OpId,
    /// The buffer that is placed.
    pub new: BufferId,
    /// The buffer that already lies there.
    pub old: BufferId,
    /// The reason.
    pub reason: &'static str,
}

/// A plan to run, and the operations that use its buffers.
///
/// ```
/// use planlab_dsa::{Bytes, Offset, Plan};
/// use planlab_graph::{Dependencies, Graph, Operation, Rehearsal, Tensor, lower_graph};
/// use rand::SeedableRng;
///
/// let mut graph = Graph::builder();
/// let [x, y, z] = ["x", "y", "z"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(64))));
/// graph.add_operation(Operation::new("f").with_outputs([x]));
/// graph.add_operation(Operation::new("g").with_inputs([x]).with_outputs([y]));
/// graph.add_operation(Operation::new("h").with_outputs([z]));
/// graph.add_operation(Operation::new("i").with_inputs([y, z]));
/// let graph = graph.build()?;
/// let (lowered, dependencies) = (lower_graph(&graph, &graph.operation_order())?, Dependencies::from_tensors(&graph));
/// // z lies where x was: fine in the graph's order, but h may run while x is still needed.
/// let plan = Plan::from_offsets([0, 64, 0].map(Offset::new));
/// let rehearsal = Rehearsal::new(&graph, &dependencies, &lowered, &plan);
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let one = std::num::NonZeroUsize::MIN;
/// assert!((0..100).any(|_| rehearsal.run_once(&mut rng, one).is_err()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rehearsal<'g> {
    dependencies: &'g Dependencies,
    offsets: &'g [Offset],
    bytes: Vec<Bytes>,
    /// The number of users of each buffer.
    uses: Vec<u32>,
    from_start: Vec<bool>,
    to_end: Vec<bool>,
    /// The buffers that each operation uses.
    buffers: Vec<Vec<BufferId>>,
    /// The buffer whose place each buffer takes over.
    takes_from: Vec<Option<BufferId>>,
}

impl<'g> Rehearsal<'g> {
    /// Prepares a plan for the instance of `lowered`.
    ///
    /// # Panics
    ///
    /// If the plan does not have one offset per buffer, or a part belongs to another graph.
    #[must_use]
    pub fn new(graph: &Graph, dependencies: &'g Dependencies, lowered: &Lowered, plan: &'g Plan) -> Self {
        let count = lowered.instance.len();
        assert_eq!(plan.offsets.len(), count, "an offset for each buffer");
        assert_eq!(graph.operations().len(), dependencies.operation_count(), "dependencies of another graph");
        let mut rehearsal = Self {
            dependencies,
            offsets: &plan.offsets,
            bytes: lowered.instance.buffers().iter().map(|buffer| buffer.size).collect(),
            uses: vec![1; count],
            from_start: vec![false; count],
            to_end: vec![false; count],
            buffers: vec![Vec::new(); graph.operations().len()],
            takes_from: vec![None; count],
        };
        for (index, storage) in lowered.storages.iter().enumerate() {
            rehearsal.uses[index] = u32::try_from(storage.users.len()).expect("fewer than operations");
            rehearsal.from_start[index] = storage.from_start;
            rehearsal.to_end[index] = storage.to_end;
            for op in &storage.users {
                rehearsal.buffers[op.index()].push(BufferId::from_index(index));
            }
        }
        for (op, workspace) in lowered.workspace_of.iter().enumerate() {
            rehearsal.buffers[op].extend(workspace);
        }
        for pair in &plan.in_place {
            rehearsal.takes_from[pair.output.index()] = Some(pair.input);
        }
        rehearsal
    }

    /// Runs the plan once, with at most `side_by_side` operations at a time; with 1, in a random legal order.
    pub fn run_once(&self, rng: &mut impl Rng, side_by_side: NonZeroUsize) -> Result<(), Clash> {
        let mut course = RehearsalCourse::new(self);
        for buffer in (0..self.bytes.len()).filter(|&buffer| self.from_start[buffer]) {
            course.place_buffer(BufferId::from_index(buffer), OpId::default())?;
        }
        let mut waiting = self.dependencies.dependency_counts();
        let ids = (0..waiting.len()).map(OpId::from_index);
        let mut ready: Vec<OpId> = ids.filter(|op| waiting[op.index()] == 0).collect();
        let mut running: Vec<OpId> = Vec::new();
        while !ready.is_empty() || !running.is_empty() {
            let may_begin = !ready.is_empty() && running.len() < side_by_side.get();
            if may_begin && (running.is_empty() || rng.random_bool(0.5)) {
                let op = ready.swap_remove(rng.random_range(0..ready.len()));
                course.begin_operation(op)?;
                running.push(op);
            } else {
                let op = running.swap_remove(rng.random_range(0..running.len()));
                course.end_operation(op)?;
                for &next in self.dependencies.after(op) {
                    waiting[next.index()] -= 1;
                    if waiting[next.index()] == 0 {
                        ready.push(next);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The state of a run.
struct RehearsalCourse<'r> {
    plan: &'r Rehearsal<'r>,
    /// The number of users of each buffer that have not ended yet.
    left: Vec<u32>,
    begun: Vec<bool>,
    /// The buffers in memory: end and id, by offset.
    there: BTreeMap<u64, (u64, BufferId)>,
    order: Vec<OpId>,
}

impl<'r> RehearsalCourse<'r> {
    fn new(plan: &'r Rehearsal<'r>) -> Self {
        let (left, begun) = (plan.uses.clone(), vec![false; plan.uses.len()]);
        Self { plan, left, begun, there: BTreeMap::new(), order: Vec::new() }
    }

    fn begin_operation(&mut self, op: OpId) -> Result<(), Clash> {
        self.order.push(op);
        for &buffer in &self.plan.buffers[op.index()] {
            if self.begun[buffer.index()] {
                continue;
            }
            match self.plan.takes_from[buffer.index()] {
                Some(from) => self.check_hand_over(from, buffer, op)?,
                None => self.place_buffer(buffer, op)?,
            }
        }
        Ok(())
    }

    /// The output lies inside the input until the operation ends; then only the output remains.
    fn check_hand_over(&mut self, from: BufferId, to: BufferId, op: OpId) -> Result<(), Clash> {
        let reads = self.plan.buffers[op.index()].contains(&from) && self.begun[from.index()];
        let is_alone = self.left[from.index()] == 1 && !self.plan.to_end[from.index()];
        let inside = self.first_address(from) <= self.first_address(to)
            && self.end_address(to) <= self.end_address(from);
        let reason = match (reads && is_alone, inside) {
            (true, true) => {
                self.begun[to.index()] = true;
                return Ok(());
            }
            (false, _) => "another operation still needs it",
            (true, false) => "it extends beyond the place that it takes over",
        };
        Err(self.describe_clash(op, to, from, reason))
    }

    fn place_buffer(&mut self, buffer: BufferId, op: OpId) -> Result<(), Clash> {
        self.begun[buffer.index()] = true;
        let (start, stop) = (self.first_address(buffer), self.end_address(buffer));
        let below = self.there.range(..=start).next_back().filter(|(_, (end, _))| *end > start);
        let above = || self.there.range(start..stop).next();
        if let Some((_, &(_, old))) = below.or_else(above) {
            return Err(self.describe_clash(op, buffer, old, "they share an address"));
        }
        self.there.insert(start, (stop, buffer));
        Ok(())
    }

    fn end_operation(&mut self, op: OpId) -> Result<(), Clash> {
        for &buffer in &self.plan.buffers[op.index()] {
            self.left[buffer.index()] -= 1;
            if self.left[buffer.index()] == 0 && !self.plan.to_end[buffer.index()] {
                self.remove_buffer(buffer);
            }
        }
        let handed = |buffer: &&BufferId| self.plan.takes_from[buffer.index()].is_some();
        for &buffer in self.plan.buffers[op.index()].iter().filter(handed) {
            let is_live = self.left[buffer.index()] > 0 || self.plan.to_end[buffer.index()];
            let is_there = self.there.get(&self.first_address(buffer)).is_some_and(|there| there.1 == buffer);
            if is_live && !is_there {
                self.place_buffer(buffer, op)?;
            }
        }
        Ok(())
    }

    fn remove_buffer(&mut self, buffer: BufferId) {
        let start = self.first_address(buffer);
        if self.there.get(&start).is_some_and(|there| there.1 == buffer) {
            self.there.remove(&start);
        }
    }

    fn first_address(&self, buffer: BufferId) -> u64 {
        self.plan.offsets[buffer.index()].get()
    }

    fn end_address(&self, buffer: BufferId) -> u64 {
        self.first_address(buffer).saturating_add(self.plan.bytes[buffer.index()].get())
    }

    fn describe_clash(&self, op: OpId, new: BufferId, old: BufferId, reason: &'static str) -> Clash {
        Clash { order: self.order.clone(), op, new, old, reason }
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::InPlace;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{Operation, Tensor, lower_graph};

    fn tries(graph: &Graph, offsets: &[u64], in_place: &[(u32, u32)], at_a_time: usize) -> usize {
        let (lowered, dependencies) =
            (lower_graph(graph, &graph.operation_order()).expect("valid"), Dependencies::from_tensors(graph));
        let pair = |&(a, b): &(u32, u32)| InPlace { input: BufferId::new(a), output: BufferId::new(b) };
        let plan = Plan {
            offsets: offsets.iter().copied().map(Offset::new).collect(),
            in_place: in_place.iter().map(pair).collect(),
        };
        let rehearsal = Rehearsal::new(graph, &dependencies, &lowered, &plan);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let at_a_time = NonZeroUsize::new(at_a_time).expect("more than 0");
        (0..100).filter(|_| rehearsal.run_once(&mut rng, at_a_time).is_err()).count()
    }

    fn tensors(graph: &mut crate::GraphBuilder, count: usize) -> Vec<crate::TensorId> {
        (0..count).map(|_| graph.add_tensor(Tensor::new("", Bytes::new(8)))).collect()
    }

    #[test]
    fn a_chain_survives_and_an_overlap_does_not() {
        let mut graph = Graph::builder();
        let t = tensors(&mut graph, 3);
        graph.add_operation(Operation::new("f").with_outputs([t[0]]));
        graph.add_operation(Operation::new("g").with_inputs([t[0]]).with_outputs([t[1]]));
        graph.add_operation(Operation::new("h").with_inputs([t[1]]).with_outputs([t[2]]));
        let graph = graph.build().expect("valid");
        assert_eq!(tries(&graph, &[0, 8, 0], &[], 4), 0);
        assert_eq!(tries(&graph, &[0, 7, 0], &[], 1), 100);
        assert_eq!(tries(&graph, &[0, 8, 9], &[], 1), 100);
    }

    #[test]
    fn what_runs_side_by_side_may_clash_where_no_order_does() {
        let mut graph = Graph::builder();
        graph.add_operation(Operation::new("f").with_workspace(Bytes::new(8)));
        graph.add_operation(Operation::new("g").with_workspace(Bytes::new(8)));
        let graph = graph.build().expect("valid");
        assert_eq!(tries(&graph, &[0, 0], &[], 1), 0);
        assert!(tries(&graph, &[0, 0], &[], 2) > 20);
        assert_eq!(tries(&graph, &[0, 8], &[], 2), 0);
    }

    #[test]
    fn a_hand_over_needs_the_last_reader() {
        let graph = |reads_again: bool| {
            let mut graph = Graph::builder();
            let t = tensors(&mut graph, 3);
            graph.add_operation(Operation::new("make").with_outputs([t[0]]));
            let reads = reads_again.then_some(t[0]);
            graph.add_operation(Operation::new("look").with_inputs(reads));
            graph.add_operation(Operation::new("relu").with_inputs([t[0]]).with_outputs([t[1]]));
            graph.add_operation(Operation::new("relu").with_inputs([t[1]]).with_outputs([t[2]]));
            graph.build().expect("valid")
        };
        let chain = [(0, 1), (1, 2)];
        assert_eq!(tries(&graph(false), &[0, 0, 0], &chain, 3), 0);
        assert_eq!(tries(&graph(false), &[0, 4, 4], &chain, 1), 100);
        let failed = tries(&graph(true), &[0, 0, 0], &chain, 1);
        assert!((20..80).contains(&failed), "{failed}");
    }
}
