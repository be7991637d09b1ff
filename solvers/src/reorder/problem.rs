//! A graph as numbers: which operations use which storages, and what is live once a set of them is done.
//!
//! What is live depends on the set of operations that are done alone, not on their order. All searches here rest on
//! that.

use planlab_graph::{Ancestors, Dependencies, Graph, OpId};

use super::HandOvers;

/// What takes up memory.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) bytes: u64,
    pub(super) users: Vec<u32>,
    from_start: bool,
    to_end: bool,
}

/// Operations, storages, and what must come before what.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) before: Vec<Vec<u32>>,
    pub(super) after: Vec<Vec<u32>>,
    pub(super) stores: Vec<Store>,
    /// The storages that each operation uses, ascending.
    pub(super) uses: Vec<Vec<u32>>,
    workspaces: Vec<u64>,
    /// Input and output storage of the permissions that count.
    hand_overs: Vec<Vec<(u32, u32)>>,
}

fn short(index: usize) -> u32 {
    u32::try_from(index).expect("a graph has fewer than 2^32 parts")
}

impl Problem {
    pub(super) fn new(graph: &Graph, dependencies: &Dependencies, hand_overs: HandOvers) -> Self {
        let ops = || (0..graph.operations().len()).map(OpId::from_index);
        let list = |ids: &[OpId]| ids.iter().map(|op| short(op.index())).collect::<Vec<u32>>();
        let mut store_of = vec![None; graph.tensors().len()];
        let mut uses = vec![Vec::new(); graph.operations().len()];
        let mut stores = Vec::new();
        for storage in graph.storages() {
            store_of[storage.root.index()] = Some(short(stores.len()));
            storage.users.iter().for_each(|op| uses[op.index()].push(short(stores.len())));
            let (bytes, users) = (storage.bytes.get(), list(&storage.users));
            stores.push(Store { bytes, users, from_start: storage.from_start, to_end: storage.to_end });
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
            before: ops().map(|op| list(dependencies.before(op))).collect(),
            after: ops().map(|op| list(dependencies.after(op))).collect(),
            workspaces: graph.operations().iter().map(|operation| operation.workspace.get()).collect(),
            hand_overs: ops().map(pairs).collect(),
            stores,
            uses,
        }
    }

    pub(super) fn operations(&self) -> usize {
        self.before.len()
    }

    /// The same run backwards: of an order and its reverse the loads are the same. Hand-overs are dropped, as
    /// they have no mirror image.
    pub(super) fn reversed(&self) -> Self {
        let mut reversed = self.clone();
        std::mem::swap(&mut reversed.before, &mut reversed.after);
        for store in &mut reversed.stores {
            std::mem::swap(&mut store.from_start, &mut store.to_end);
        }
        reversed.hand_overs.iter_mut().for_each(Vec::clear);
        reversed
    }

    /// The most bytes live at one operation of an order.
    pub(super) fn load(&self, order: &[u32]) -> u64 {
        self.peak(order).0
    }

    /// The most bytes live at one operation of an order, and at how many they are.
    pub(super) fn peak(&self, order: &[u32]) -> (u64, u32) {
        let mut memory = Memory::new(self);
        let mut peak = (0, 0);
        for &op in order {
            let during = memory.during(self, op);
            memory.run(self, op);
            match during.cmp(&peak.0) {
                std::cmp::Ordering::Greater => peak = (during, 1),
                std::cmp::Ordering::Equal => peak.1 += 1,
                std::cmp::Ordering::Less => {}
            }
        }
        peak
    }

    /// The bytes live at each operation of an order.
    pub(super) fn curve(&self, order: &[u32]) -> Vec<u64> {
        let mut memory = Memory::new(self);
        let at = |&op: &u32| {
            let during = memory.during(self, op);
            memory.run(self, op);
            during
        };
        order.iter().map(at).collect()
    }

    /// The most bytes that are live at one operation whatever the order: of storages that operations use before it,
    /// or it, in every order, and again after it, or there.
    pub(super) fn bound(&self) -> u64 {
        let before = |op: usize| self.before[op].iter().map(|&other| other as usize);
        let numbered = self.topological();
        let mut turn = vec![0; numbered.len()];
        numbered.iter().enumerate().for_each(|(at, &op)| turn[op as usize] = at);
        let ancestors = Ancestors::of_rows(numbered.len(), |at| {
            before(numbered[at] as usize).map(|other| turn[other]).collect::<Vec<_>>().into_iter()
        });
        let at = |op: u32| OpId::from_index(turn[op as usize]);
        let is_done = |first: u32, then: u32| first == then || ancestors.precedes(at(first), at(then));
        let is_live = |store: &&Store, op: u32| {
            (store.from_start || store.users.iter().any(|&user| is_done(user, op)))
                && (store.to_end || store.users.iter().any(|&user| is_done(op, user)))
        };
        let bytes_at = |op: u32| {
            let live: u64 =
                self.stores.iter().filter(|store| is_live(store, op)).map(|store| store.bytes).sum();
            let mut outputs: Vec<u32> = self.hand_overs[op as usize].iter().map(|pair| pair.1).collect();
            outputs.sort_unstable();
            outputs.dedup();
            let saved: u64 = outputs.iter().map(|&output| self.stores[output as usize].bytes).sum();
            live + self.workspaces[op as usize] - saved
        };
        (0..short(self.operations())).map(bytes_at).max().unwrap_or(0)
    }

    fn topological(&self) -> Vec<u32> {
        let mut waiting = self.waiting();
        let mut order: Vec<u32> = (0..short(waiting.len())).filter(|&op| waiting[op as usize] == 0).collect();
        let mut next = 0;
        while let Some(&op) = order.get(next) {
            next += 1;
            for &other in &self.after[op as usize] {
                waiting[other as usize] -= 1;
                if waiting[other as usize] == 0 {
                    order.push(other);
                }
            }
        }
        order
    }

    /// How many operations each one waits for.
    pub(super) fn waiting(&self) -> Vec<usize> {
        self.before.iter().map(Vec::len).collect()
    }
}

/// What is live once some operations are done.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// The users of each storage that are not done.
    pub(super) left: Vec<u32>,
    live: u64,
}

impl Memory {
    /// Before the first operation.
    pub(super) fn new(problem: &Problem) -> Self {
        let from_start = problem.stores.iter().filter(|store| store.from_start);
        Self {
            left: problem.stores.iter().map(|store| short(store.users.len())).collect(),
            live: from_start.map(|store| store.bytes).sum(),
        }
    }

    fn is_begun(&self, store: &Store, index: u32) -> bool {
        store.from_start || (self.left[index as usize] as usize) < store.users.len()
    }

    /// What an operation begins, and what ends with it, in bytes.
    fn change(&self, problem: &Problem, op: u32) -> (u64, u64) {
        let (mut begun, mut ended) = (0, 0);
        for &index in &problem.uses[op as usize] {
            let store = &problem.stores[index as usize];
            if !self.is_begun(store, index) {
                begun += store.bytes;
            }
            if self.left[index as usize] == 1 && !store.to_end {
                ended += store.bytes;
            }
        }
        (begun, ended)
    }

    /// By how much memory grows when an operation is done.
    pub(super) fn growth(&self, problem: &Problem, op: u32) -> i128 {
        let (begun, ended) = self.change(problem, op);
        i128::from(begun) - i128::from(ended)
    }

    /// What an operation needs, while it runs, beyond what is live before it.
    pub(super) fn needs(&self, problem: &Problem, op: u32) -> u64 {
        let mut outputs: Vec<u32> = Vec::new();
        for &(input, output) in &problem.hand_overs[op as usize] {
            let is_last = self.left[input as usize] == 1 && !problem.stores[input as usize].to_end;
            let is_first = !self.is_begun(&problem.stores[output as usize], output);
            if is_last && is_first && !outputs.contains(&output) {
                outputs.push(output);
            }
        }
        let saved: u64 = outputs.iter().map(|&output| problem.stores[output as usize].bytes).sum();
        self.change(problem, op).0 + problem.workspaces[op as usize] - saved
    }

    /// The bytes live while an operation runs.
    pub(super) fn during(&self, problem: &Problem, op: u32) -> u64 {
        self.live + self.needs(problem, op)
    }

    /// Does an operation.
    pub(super) fn run(&mut self, problem: &Problem, op: u32) {
        let (begun, ended) = self.change(problem, op);
        self.live = self.live + begun - ended;
        problem.uses[op as usize].iter().for_each(|&store| self.left[store as usize] -= 1);
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::lower;

    use super::super::testing::random_graph;
    use super::*;

    #[test]
    fn loads_are_those_of_the_instance_and_no_less_than_the_bound() {
        use rand::SeedableRng;
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(11);
        for count in (1..60).chain(1..60) {
            let graph = random_graph(&mut rng, count);
            let dependencies = Dependencies::of(&graph);
            let order = dependencies.random_order(&mut rng);
            let instance = lower(&graph, &order).expect("legal").instance;
            let numbers = super::super::numbers(&order);
            let of = |hand_overs| Problem::new(&graph, &dependencies, hand_overs);
            let (counted, relaxed) = (of(HandOvers::Counted), of(HandOvers::Relaxed));
            assert_eq!(counted.load(&numbers), instance.load().bytes.get());
            assert_eq!(relaxed.load(&numbers), instance.relaxed_load().bytes.get());
            assert!(counted.bound() <= counted.load(&numbers));
            assert!(relaxed.bound() <= relaxed.load(&numbers));
            let backwards: Vec<u32> = numbers.iter().rev().copied().collect();
            assert_eq!(counted.reversed().load(&backwards), counted.load(&numbers));
            assert_eq!(counted.reversed().bound(), counted.bound());
        }
    }
}
