//! Tests the exact search against a plain dynamic programme over sets of operations, which shares no code with it.

use planlab_dsa::{Budget, Bytes};
use planlab_graph::{Dependencies, Graph, OpId};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

use super::testing::{load_of, random_graph_on};
use super::{BestOrder, ExactOrder, Greedy, HandOvers, Orders};

/// A storage with a bit for each operation that uses it.
struct Storage {
    bytes: u64,
    users: u32,
    from_start: bool,
    to_end: bool,
}

/// The storages of a graph of up to 32 operations.
struct Reference<'g> {
    graph: &'g Graph,
    storages: Vec<Storage>,
    /// The storage of each tensor; `None` for tensors of the caller.
    storage_of: Vec<Option<usize>>,
}

impl<'g> Reference<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut storages = Vec::new();
        let mut storage_of = vec![None; graph.tensors().len()];
        let ids = || (0..graph.tensors().len()).map(planlab_graph::TensorId::from_index);
        for root in ids().filter(|&id| graph.tensors()[id.index()].alias.is_none()) {
            let tensor = &graph.tensors()[root.index()];
            let parts: Vec<_> = ids().filter(|&id| graph.tensor_place(id).root == root).collect();
            let is_part = |id: &planlab_graph::TensorId| parts.contains(id);
            let mut users = 0;
            let mut is_written = false;
            for (op, operation) in graph.operations().iter().enumerate() {
                users |= u32::from(operation.reads.iter().chain(&operation.writes).any(is_part)) << op;
                // An operation that also reads the storage shows or updates what is there.
                let reads = operation.reads.iter().any(is_part);
                is_written |= operation.writes.iter().any(is_part) && !reads;
            }
            if tensor.external || users == 0 {
                continue;
            }
            let to_end = parts.iter().any(|id| graph.tensors()[id.index()].output);
            parts.iter().for_each(|id| storage_of[id.index()] = Some(storages.len()));
            let (bytes, from_start) = (tensor.bytes.get(), !is_written);
            storages.push(Storage { bytes, users, from_start, to_end });
        }
        Self { graph, storages, storage_of }
    }

    /// The bytes live while an operation runs after the others of a set.
    fn live_during(&self, done: u32, op: usize, hand_overs: HandOvers) -> u64 {
        let now = done | 1 << op;
        let is_live = |storage: &&Storage| {
            (storage.from_start || storage.users & now != 0) && (storage.to_end || storage.users & !done != 0)
        };
        let live: u64 = self.storages.iter().filter(is_live).map(|storage| storage.bytes).sum();
        let saved = if hand_overs == HandOvers::Relaxed { self.bytes_saved(done, op) } else { 0 };
        live + self.graph.operations()[op].workspace.get() - saved
    }

    /// The bytes of outputs in the place of an input that no other operation still needs.
    fn bytes_saved(&self, done: u32, op: usize) -> u64 {
        let mut outputs: Vec<usize> = Vec::new();
        for &(input, output) in &self.graph.operations()[op].in_place {
            let tensors = [input, output].map(|id| &self.graph.tensors()[id.index()]);
            let [Some(from), Some(to)] = [input, output].map(|id| self.storage_of[id.index()]) else {
                continue;
            };
            let is_whole = self.storages[from].bytes == tensors[0].bytes.get()
                && self.storages[to].bytes == tensors[1].bytes.get();
            let is_last = self.storages[from].users & !done == 1 << op && !self.storages[from].to_end;
            let is_first = self.storages[to].users & done == 0 && !self.storages[to].from_start;
            if is_whole && from != to && is_last && is_first && !outputs.contains(&to) {
                outputs.push(to);
            }
        }
        outputs.into_iter().map(|output| self.storages[output].bytes).sum()
    }

    /// The lowest load of all legal orders, and the number of sets that can run first.
    fn best_load(&self, dependencies: &Dependencies, hand_overs: HandOvers) -> (Bytes, usize) {
        let count = self.graph.operations().len();
        let needs = |op: usize| {
            let before = dependencies.before(OpId::from_index(op)).iter();
            before.fold(0_u32, |all, other| all | 1 << other.index())
        };
        let needs: Vec<u32> = (0..count).map(needs).collect();
        let mut layer = FxHashMap::from_iter([(0_u32, 0_u64)]);
        let mut sets = 1;
        for _ in 0..count {
            let mut next = FxHashMap::<u32, u64>::default();
            for (&done, &load) in &layer {
                for op in (0..count).filter(|&op| done >> op & 1 == 0 && needs[op] & !done == 0) {
                    let load = load.max(self.live_during(done, op, hand_overs));
                    let best = next.entry(done | 1 << op).or_insert(load);
                    *best = load.min(*best);
                }
            }
            sets += next.len();
            layer = next;
        }
        (layer.into_values().min().map(Bytes::new).expect("one set has all operations"), sets)
    }
}

/// 500 random graphs of up to 30 operations on three streams: a few hundred sets each.
#[test]
fn the_search_equals_the_reference_on_500_graphs() {
    let mut rng = ChaCha8Rng::seed_from_u64(2026);
    let (mut tried, mut sets, mut large, mut missed, mut saved) = (0, 0, 0, 0, 0);
    while tried < 500 {
        let count = rng.random_range(1..=27);
        let graph = random_graph_on(&mut rng, count, 3);
        if graph.operations().len() > 30 {
            continue;
        }
        tried += 1;
        large += usize::from(graph.operations().len() >= 25);
        let dependencies = Dependencies::with_streams(&graph);
        let reference = Reference::new(&graph);
        let mut loads = Vec::new();
        for hand_overs in [HandOvers::Counted, HandOvers::Relaxed] {
            let (expected, all) = reference.best_load(&dependencies, hand_overs);
            sets += all;
            let orders = Orders::new(&graph, &dependencies, hand_overs);
            let budget = Budget::default();
            for (forced, bounded) in [(true, true), (true, false), (false, true), (false, false)] {
                let rules = ExactOrder { forced, bounded, ..ExactOrder::default() };
                let found = rules.exact_order(&orders, &budget);
                assert_eq!((found.load, found.bound), (expected, expected), "{rules:?} {hand_overs:?}");
                assert_eq!(dependencies.check_order(&found.order), Ok(()));
                assert_eq!(load_of(&graph, &found.order, hand_overs), expected);
            }
            let greedy = Greedy::default().greedy_order(&orders, &budget);
            missed += usize::from(greedy.load > expected);
            assert!(greedy.load >= expected && greedy.bound <= expected);
            let all = BestOrder::default().with_work(1 << 10);
            assert_eq!(all.run_stages(&orders, &budget, &mut rng, |_, _| {}).load, expected);
            loads.push(expected);
        }
        saved += usize::from(loads[1] < loads[0]);
    }
    assert!(sets > 50_000 && large > 50 && missed > 50 && saved > 50, "{sets} {large} {missed} {saved}");
}
