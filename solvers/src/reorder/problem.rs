//! Which operations use which storages, and what is live after a set of operations.
//!
//! The live bytes depend on the set of operations that have run, and not on their order. All searches rely on that.

use planlab_dsa::Stop;
use planlab_graph::{Ancestors, Dependencies, Graph, OpId, Storage};

use super::watch::Watch;

/// Whether an output counts at its first step if it may take the place of an input that no later operation needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandOvers {
    /// It counts: [`planlab_dsa::Instance::load_without_in_place`]. For planners that hand nothing over.
    #[default]
    Counted,
    /// It does not: [`planlab_dsa::Instance::load`]. For planners that use in-place permissions.
    Relaxed,
}

/// Operations, storages and dependencies.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) dependencies: Dependencies,
    pub(super) stores: Vec<Storage>,
    /// The storages that each operation uses, ascending.
    pub(super) uses: Vec<Vec<u32>>,
    workspaces: Vec<u64>,
    /// For each operation the input and output storages of the permissions that count.
    hand_overs: Vec<Vec<(u32, u32)>>,
}

impl Problem {
    pub(super) fn new(graph: &Graph, dependencies: &Dependencies, hand_overs: HandOvers) -> Self {
        assert_eq!(graph.operations().len(), dependencies.operation_count(), "dependencies of another graph");
        let mut store_of = vec![None; graph.tensors().len()];
        let mut uses = vec![Vec::new(); graph.operations().len()];
        let stores = graph.storages();
        for (index, storage) in (0_u32..).zip(&stores) {
            store_of[storage.root.index()] = Some(index);
            storage.users.iter().for_each(|op| uses[op.index()].push(index));
        }
        let pairs = |op: OpId| {
            let stores = |(input, output): (planlab_graph::TensorId, planlab_graph::TensorId)| {
                Some((store_of[input.index()]?, store_of[output.index()]?))
            };
            match hand_overs {
                HandOvers::Counted => Vec::new(),
                HandOvers::Relaxed => graph.hand_overs(op).filter_map(stores).collect(),
            }
        };
        Self {
            dependencies: dependencies.clone(),
            workspaces: graph.operations().iter().map(|operation| operation.workspace.get()).collect(),
            hand_overs: graph.operation_order().into_iter().map(pairs).collect(),
            stores,
            uses,
        }
    }

    pub(super) fn operation_count(&self) -> usize {
        self.dependencies.operation_count()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = OpId> + use<> {
        (0..self.operation_count()).map(OpId::from_index)
    }

    /// The problem with time reversed: an order has the same load as its reverse here. Hand-overs are dropped, since
    /// they have no mirror image.
    pub(super) fn reversed(&self) -> Self {
        let mut reversed = self.clone();
        reversed.dependencies = self.dependencies.reversed();
        for store in &mut reversed.stores {
            std::mem::swap(&mut store.from_start, &mut store.to_end);
        }
        reversed.hand_overs.iter_mut().for_each(Vec::clear);
        reversed
    }

    pub(super) fn load_of(&self, order: &[OpId]) -> u64 {
        self.peak_of(order).0
    }

    /// The most bytes live at one operation of an order, and the number of operations at which they are live.
    pub(super) fn peak_of(&self, order: &[OpId]) -> (u64, usize) {
        let curve = self.load_curve(order);
        let load = curve.iter().copied().max().unwrap_or(0);
        (load, curve.into_iter().filter(|&live| live == load).count())
    }

    /// The bytes live at each operation of an order.
    pub(super) fn load_curve(&self, order: &[OpId]) -> Vec<u64> {
        let mut memory = Memory::new(self);
        let at = |&op: &OpId| {
            let during = memory.live_during(self, op);
            memory.run_operation(self, op);
            during
        };
        order.iter().map(at).collect()
    }

    /// A bound on the load of all orders: the most bytes that are live at one operation in every order. A storage
    /// counts if, in every order, some operation up to this one uses it, and so does some operation from this one on.
    /// Without the time or the memory for that, the most that one operation needs for itself.
    pub(super) fn load_bound(&self, watch: &mut Watch<'_>) -> (u64, Result<(), Stop>) {
        let mut bound = self.own_needs();
        let Some(turns) = self.reachable_turns() else { return (bound, Ok(())) };
        for op in self.ids() {
            let users = self.stores.iter().map(|store| 1 + store.users.len()).sum();
            if let Err(stop) = watch.tick(users) {
                return (bound, Err(stop));
            }
            bound = bound.max(self.bytes_at(op, &turns));
        }
        (bound, Ok(()))
    }

    /// The most that one operation needs, together with what is live throughout.
    fn own_needs(&self) -> u64 {
        let is_throughout = |store: &Storage| store.from_start && store.to_end;
        let throughout = self.stores.iter().filter(|store| is_throughout(store));
        let throughout: u64 = throughout.map(|store| store.bytes.get()).sum();
        let at = |op: OpId| {
            let uses = self.uses[op.index()].iter().map(|&index| &self.stores[index as usize]);
            let own: u64 = uses.filter(|store| !is_throughout(store)).map(|store| store.bytes.get()).sum();
            throughout + own + self.workspaces[op.index()] - self.most_saved(op)
        };
        self.ids().map(at).max().unwrap_or(0)
    }

    /// The most that hand-overs can save at an operation.
    fn most_saved(&self, op: OpId) -> u64 {
        let mut outputs: Vec<u32> = self.hand_overs[op.index()].iter().map(|pair| pair.1).collect();
        outputs.sort_unstable();
        outputs.dedup();
        outputs.iter().map(|&output| self.stores[output as usize].bytes.get()).sum()
    }

    /// The bytes that are live at an operation in every order.
    fn bytes_at(&self, op: OpId, turns: &Turns) -> u64 {
        let is_live = |store: &&Storage| {
            (store.from_start || store.users.iter().any(|&user| turns.is_done(user, op)))
                && (store.to_end || store.users.iter().any(|&user| turns.is_done(op, user)))
        };
        let live: u64 = self.stores.iter().filter(is_live).map(|store| store.bytes.get()).sum();
        live + self.workspaces[op.index()] - self.most_saved(op)
    }

    /// `None`: the relation takes too much memory.
    fn reachable_turns(&self) -> Option<Turns> {
        let order = self.topological_order();
        let mut turn = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, op)| turn[op.index()] = at);
        let before = |at: usize| self.dependencies.before(order[at]).iter().map(|other| turn[other.index()]);
        let ancestors = Ancestors::of_rows(order.len(), before, Ancestors::MEMORY).ok()?;
        Some(Turns { turn, ancestors })
    }

    pub(super) fn topological_order(&self) -> Vec<OpId> {
        let mut waiting = self.dependencies.dependency_counts();
        let mut order: Vec<OpId> = self.ids().filter(|op| waiting[op.index()] == 0).collect();
        let mut next = 0;
        while let Some(&op) = order.get(next) {
            next += 1;
            for &other in self.dependencies.after(op) {
                waiting[other.index()] -= 1;
                if waiting[other.index()] == 0 {
                    order.push(other);
                }
            }
        }
        order
    }
}

/// The ancestor relation, and the row of each operation in it.
struct Turns {
    turn: Vec<usize>,
    ancestors: Ancestors,
}

impl Turns {
    /// Whether the first runs before the second in every order, or is the same.
    fn is_done(&self, first: OpId, then: OpId) -> bool {
        let at = |op: OpId| OpId::from_index(self.turn[op.index()]);
        first == then || self.ancestors.precedes(at(first), at(then))
    }
}

fn count_users(store: &Storage) -> u32 {
    u32::try_from(store.users.len()).expect("a graph has fewer than 2^32 operations")
}

/// The live storages after some operations.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// The number of users of each storage that have not run.
    pub(super) left: Vec<u32>,
    live: u64,
}

impl Memory {
    /// Before the first operation.
    pub(super) fn new(problem: &Problem) -> Self {
        let from_start = problem.stores.iter().filter(|store| store.from_start);
        Self {
            left: problem.stores.iter().map(count_users).collect(),
            live: from_start.map(|store| store.bytes.get()).sum(),
        }
    }

    fn is_begun(&self, store: &Storage, index: u32) -> bool {
        store.from_start || self.left[index as usize] < count_users(store)
    }

    /// The bytes of the storages that begin with an operation, and of those that end with it.
    fn change_at(&self, problem: &Problem, op: OpId) -> (u64, u64) {
        let (mut begun, mut ended) = (0, 0);
        for &index in &problem.uses[op.index()] {
            let store = &problem.stores[index as usize];
            if !self.is_begun(store, index) {
                begun += store.bytes.get();
            }
            if self.left[index as usize] == 1 && !store.to_end {
                ended += store.bytes.get();
            }
        }
        (begun, ended)
    }

    /// The change of the live bytes after an operation.
    pub(super) fn growth_after(&self, problem: &Problem, op: OpId) -> i128 {
        let (begun, ended) = self.change_at(problem, op);
        i128::from(begun) - i128::from(ended)
    }

    /// The bytes that an operation needs while it runs, beyond those that are live before it.
    pub(super) fn needed_during(&self, problem: &Problem, op: OpId) -> u64 {
        let mut outputs: Vec<u32> = Vec::new();
        for &(input, output) in &problem.hand_overs[op.index()] {
            let is_last = self.left[input as usize] == 1 && !problem.stores[input as usize].to_end;
            let is_first = !self.is_begun(&problem.stores[output as usize], output);
            if is_last && is_first && !outputs.contains(&output) {
                outputs.push(output);
            }
        }
        let saved: u64 = outputs.iter().map(|&output| problem.stores[output as usize].bytes.get()).sum();
        self.change_at(problem, op).0 + problem.workspaces[op.index()] - saved
    }

    /// The bytes live while an operation runs.
    pub(super) fn live_during(&self, problem: &Problem, op: OpId) -> u64 {
        self.live + self.needed_during(problem, op)
    }

    pub(super) fn run_operation(&mut self, problem: &Problem, op: OpId) {
        let (begun, ended) = self.change_at(problem, op);
        self.live = self.live + begun - ended;
        problem.uses[op.index()].iter().for_each(|&store| self.left[store as usize] -= 1);
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::lower_graph;

    use super::*;
    use crate::reorder::testing::random_graph;

    #[test]
    fn loads_are_those_of_the_instance_and_no_less_than_the_bound() {
        use rand::SeedableRng;
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(11);
        for count in (1..60).chain(1..60) {
            let graph = random_graph(&mut rng, count);
            let dependencies = Dependencies::from_tensors(&graph);
            let order = dependencies.random_order(&mut rng);
            let instance = lower_graph(&graph, &order).expect("legal").instance;
            let of = |hand_overs| Problem::new(&graph, &dependencies, hand_overs);
            let (counted, relaxed) = (of(HandOvers::Counted), of(HandOvers::Relaxed));
            assert_eq!(counted.load_of(&order), instance.load_without_in_place().bytes.get());
            assert_eq!(relaxed.load_of(&order), instance.load().bytes.get());
            let budget = planlab_dsa::Budget::default();
            let bound = |problem: &Problem| problem.load_bound(&mut Watch::new(&budget)).0;
            assert!(counted.own_needs() <= bound(&counted) && bound(&counted) <= counted.load_of(&order));
            assert!(relaxed.own_needs() <= bound(&relaxed) && bound(&relaxed) <= relaxed.load_of(&order));
            let backwards: Vec<OpId> = order.iter().rev().copied().collect();
            assert_eq!(counted.reversed().load_of(&backwards), counted.load_of(&order));
            assert_eq!(bound(&counted.reversed()), bound(&counted));
        }
    }
}
