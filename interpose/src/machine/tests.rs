//! The machine on simulated memory: several threads, each with a machine; blocks of the real allocator and of plans.

mod memory;

use std::sync::Arc;
use std::time::Duration;

use planlab_dsa::{Address, Audit, Bytes};
use proptest::prelude::*;

use super::{Config, Ground, Machine, Pages, RequestAnswer};
use crate::calls::{Proof, Round};
use crate::planning::{Solved, Unsolved, solve};
use crate::plans::Segment;
use crate::plans::pages::PAGE;
use crate::tally::{PlanTally, Tally};

/// The simulated ground of a thread's machine.
#[derive(Default)]
struct Sim {
    /// The next address of a segment.
    next: u64,
    segments: Vec<Segment>,
    solved: Option<Result<Solved, Unsolved>>,
    foreign: Vec<u64>,
    adopted: Vec<Arc<PlanTally>>,
    settled: u64,
    rested: u64,
    /// Whether the pages are claimed, and whether they were given back since.
    is_claimed: bool,
    is_given_back: bool,
    /// One in this many pages holds memory; 0: nobody knows.
    sparsity: usize,
    is_full: bool,
    clock: u64,
    /// Nanoseconds that pass from one look at the clock to the next.
    pace: u64,
}

impl Ground for Sim {
    fn acquire(&mut self, bytes: u64) -> Option<Segment> {
        let segment = Segment { base: self.next, len: bytes.next_multiple_of(4096) };
        self.next += segment.len + (1 << 20);
        self.segments.push(segment);
        (!self.is_full).then_some(segment)
    }

    fn release(&mut self, segment: Segment) {
        let at = self.segments.iter().position(|other| *other == segment).expect("it was handed out");
        self.segments.remove(at);
    }

    fn discard_pages(&mut self, segment: Segment) {
        assert!(self.segments.contains(&segment));
        self.rested += 1;
    }

    fn claim_segment(&mut self, segment: Segment) -> bool {
        assert!(self.segments.contains(&segment));
        self.is_claimed = true;
        std::mem::take(&mut self.is_given_back)
    }

    fn unclaim_segment(&mut self, segment: Segment) {
        assert!(self.segments.contains(&segment) && self.is_claimed);
        self.is_claimed = false;
    }

    fn resident_pages(&mut self, segment: Segment, bytes: u64) -> Option<Pages> {
        assert!(self.segments.contains(&segment) && bytes <= segment.len);
        let count = usize::try_from(bytes.div_ceil(PAGE)).expect("small");
        let page = |at: usize| u8::from(at.is_multiple_of(self.sparsity));
        (self.sparsity > 0).then(|| Pages::new((0..count).map(page).collect()))
    }

    fn submit_round(&mut self, round: Round) -> bool {
        assert!(self.solved.is_none(), "one at a time");
        // Miri is a thousand times slower.
        let patience = if cfg!(miri) { Duration::from_secs(60) } else { Duration::from_millis(50) };
        self.solved = Some(solve(round, Bytes::new(1), patience));
        true
    }

    fn collect_result(&mut self) -> Option<Result<Solved, Unsolved>> {
        self.solved.take()
    }

    fn next_foreign_free(&mut self) -> Option<u64> {
        self.foreign.pop()
    }

    /// Each look at the clock is far from the last.
    fn clock_nanoseconds(&mut self) -> u64 {
        self.clock += self.pace;
        self.clock
    }

    fn receive_tally(&mut self, tally: &Arc<PlanTally>) {
        self.adopted.push(Arc::clone(tally));
    }

    fn settle_rounds(&mut self) {
        self.settled += 1;
    }
}

/// A block, and the thread whose plan serves it, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    address: u64,
    planned_by: Option<usize>,
}

struct Rig {
    threads: Vec<(Machine, Sim, Arc<Tally>)>,
    /// The live blocks.
    live: Audit,
    next: u64,
}

impl Rig {
    fn new(threads: usize, config: Config) -> Self {
        let thread = |number: usize| {
            let tally = Arc::new(Tally::new());
            let sim = Sim { next: (number as u64 + 1) << 40, pace: 1 << 30, ..Sim::default() };
            (Machine::new(config, Arc::clone(&tally)), sim, tally)
        };
        Self { threads: (0..threads).map(thread).collect(), live: Audit::default(), next: 4096 }
    }

    fn alloc(&mut self, thread: usize, size: u64, align: u64) -> Block {
        let (machine, sim, _) = &mut self.threads[thread];
        let (address, planned_by) = match machine.handle_request(size, align, sim) {
            RequestAnswer::Planned(address) => {
                let is_inside = |segment: &Segment| {
                    segment.contains_address(address) && segment.contains_address(address + size - 1)
                };
                assert!(sim.segments.iter().any(is_inside), "outside of all segments");
                assert!(sim.is_claimed, "the pages may be given back");
                (address, Some(thread))
            }
            answer => {
                let address = self.next.next_multiple_of(align);
                self.next = address + size;
                if let RequestAnswer::HandThrough(number) = answer {
                    machine.record_placement(number, address);
                }
                (address, None)
            }
        };
        assert_eq!(address % align, 0);
        self.live.handed_out(Address::new(address), Bytes::new(size)).expect("it overlaps no live block");
        Block { address, planned_by }
    }

    fn free(&mut self, thread: usize, block: Block) {
        assert!(self.live.remove_block(Address::new(block.address)), "it is live");
        if let Some(owner) = block.planned_by.filter(|&owner| owner != thread) {
            return self.threads[owner].1.foreign.push(block.address);
        }
        let (machine, sim, _) = &mut self.threads[thread];
        match block.planned_by {
            Some(_) => assert!(machine.free_planned(block.address, sim)),
            None => machine.record_free(block.address, sim),
        }
    }

    /// Allocates a block and frees it at once.
    fn alloc_and_free(&mut self, thread: usize, size: u64, align: u64) {
        let block = self.alloc(thread, size, align);
        self.free(thread, block);
    }

    fn tally(&self, thread: usize) -> &Tally {
        &self.threads[thread].2
    }

    /// The requests of one round of a thread that a plan served, and those that it did not.
    fn count(&mut self, thread: usize, round: impl FnOnce(&mut Self)) -> (u64, u64) {
        let before = (self.tally(thread).planned.get(), self.tally(thread).requests.get());
        round(self);
        let planned = self.tally(thread).planned.get() - before.0;
        (planned, self.tally(thread).requests.get() - before.1 - planned)
    }
}

fn config() -> Config {
    Config { least_load: Bytes::new(1), ..Config::default() }
}

/// Plays a net of `layers`: each output lives until the next exists, with a workspace in between.
fn net(rig: &mut Rig, thread: usize, layers: u64, scale: u64) {
    net_with(rig, thread, layers, scale, |_| {});
}

/// As [`net`], with calls after the first request.
fn net_with(rig: &mut Rig, thread: usize, layers: u64, scale: u64, calls: impl FnOnce(&mut Rig)) {
    let mut input = rig.alloc(thread, scale * 4096, 64);
    calls(rig);
    for layer in 1..=layers {
        let output = rig.alloc(thread, scale * (4096 + 512 * layer), 64);
        rig.alloc_and_free(thread, 8192 + layer, 16);
        rig.free(thread, input);
        input = output;
    }
    rig.free(thread, input);
}

/// A thread that has a plan of a net with 20 layers.
fn planned_rig() -> Rig {
    let mut rig = Rig::new(1, config());
    (0..4).for_each(|_| net(&mut rig, 0, 20, 1));
    rig
}

#[test]
fn a_steady_sequence_is_served_from_its_plan() {
    let mut rig = Rig::new(1, config());
    (0..3).for_each(|_| net(&mut rig, 0, 20, 1));
    for _ in 0..10 {
        assert_eq!(rig.count(0, |rig| net(rig, 0, 20, 1)), (41, 0));
    }
    let (_, sim, tally) = &rig.threads[0];
    assert_eq!((tally.plans.get(), tally.departures.get(), sim.settled), (1, 0, 1));
    let plan = &sim.adopted[0];
    assert_eq!((plan.requests.get(), plan.planned.get()), (41, 41));
    assert!(plan.height.get() >= plan.load.get());
    assert_eq!(sim.segments.len(), 1);
}

#[test]
fn a_departure_is_served_and_the_next_round_is_planned_again() {
    let mut rig = planned_rig();
    let (planned, missed) = rig.count(0, |rig| {
        let mut blocks = vec![rig.alloc(0, 4096, 64)];
        blocks.extend((0..8).map(|number| rig.alloc(0, (1 << 20) + number, 64)));
        blocks.into_iter().for_each(|block| rig.free(0, block));
    });
    assert_eq!((planned, missed), (1, 8));
    let tally = rig.tally(0);
    // The first of the eight is odd.
    assert_eq!((tally.departures.get(), tally.other_size.get(), tally.departed.get()), (1, 5, 2));
    assert_eq!(rig.count(0, |rig| net(rig, 0, 20, 1)), (41, 0));
}

#[test]
fn a_request_in_between_does_not_end_a_round() {
    let mut rig = planned_rig();
    let (planned, missed) = rig.count(0, |rig| {
        let mut line = None;
        net_with(rig, 0, 20, 1, |rig| line = Some(rig.alloc(0, 70_000, 16)));
        rig.free(0, line.expect("it was requested"));
    });
    assert_eq!((planned, missed, rig.tally(0).departures.get()), (41, 1, 0));
    assert_eq!(rig.count(0, |rig| net(rig, 0, 20, 1)), (41, 0));
}

#[test]
fn a_few_requests_between_two_rounds_do_not_cost_the_next() {
    let mut rig = planned_rig();
    for kept in 1..=4 {
        // Buffers of files that stay open.
        let (planned, missed) = rig.count(0, |rig| {
            (0..kept).for_each(|_| {
                rig.alloc(0, 8208, 16);
            });
            net(rig, 0, 20, 1);
        });
        assert_eq!((planned, missed), (41, kept));
    }
}

#[test]
fn a_request_of_another_size_in_every_round_does_not_hide_it() {
    let mut rig = Rig::new(1, config());
    for round in 0..20 {
        let (planned, missed) = rig.count(0, |rig| {
            let stray = rig.alloc(0, 5000 + 1600 * round, 16);
            net(rig, 0, 20, 1);
            rig.free(0, stray);
        });
        if round > 5 {
            assert_eq!((planned, missed), (41, 1), "round {round}");
        }
    }
}

#[test]
fn several_sequences_keep_a_plan_each_over_one_segment() {
    let mut rig = Rig::new(1, config());
    for scale in [1, 4, 2] {
        (0..4).for_each(|_| net(&mut rig, 0, 20, scale));
    }
    for scale in [1, 2, 4, 4, 1, 2] {
        assert_eq!(rig.count(0, |rig| net(rig, 0, 20, scale)), (41, 0), "scale {scale}");
    }
    assert_eq!(rig.tally(0).plans.get(), 3);
    assert_eq!(rig.threads[0].1.segments.len(), 1, "the smaller one was given back");
}

#[test]
fn a_block_that_outlives_its_round_leaves_the_plan_and_not_the_memory() {
    let mut rig = Rig::new(1, config());
    let kept_of = |rig: &mut Rig, keep: bool| {
        let kept = rig.alloc(0, 10_000, 64);
        net(rig, 0, 20, 1);
        if keep {
            return Some(kept);
        }
        rig.free(0, kept);
        None
    };
    let round = |rig: &mut Rig| assert_eq!(kept_of(rig, false), None);
    (0..4).for_each(|_| round(&mut rig));
    let kept = kept_of(&mut rig, true).expect("kept");
    assert_eq!(kept.planned_by, Some(0));
    // The next round finds the block in use; the one after has a plan without it, on another segment.
    let (_, missed) = rig.count(0, round);
    assert!(missed > 0 && rig.tally(0).late.get() > 0);
    (0..2).for_each(|_| round(&mut rig));
    assert_eq!(rig.count(0, round), (41, 1));
    assert_eq!(rig.threads[0].1.segments.len(), 2);
    rig.free(0, kept);
    assert_eq!(rig.threads[0].1.segments.len(), 1, "the old segment went with its last block");
    assert_eq!(rig.count(0, round), (41, 1));
}

#[test]
fn what_another_thread_frees_is_free_for_the_next_round() {
    let mut rig = Rig::new(2, config());
    let round = |rig: &mut Rig, by: usize| {
        let first = rig.alloc(0, 100_000, 64);
        net(rig, 0, 30, 1);
        rig.free(by, first);
    };
    (0..4).for_each(|_| round(&mut rig, 0));
    for _ in 0..4 {
        assert_eq!(rig.count(0, |rig| round(rig, 1)), (62, 0));
    }
    assert_eq!(rig.tally(0).foreign_frees.get(), 3, "the last waits for the next round");
}

#[test]
fn requests_that_another_thread_frees_from_the_begin_are_not_planned() {
    let mut rig = Rig::new(2, config());
    let round = |rig: &mut Rig| {
        net(rig, 0, 30, 1);
        let given_away = rig.alloc(0, 100_000, 64);
        rig.free(1, given_away);
    };
    (0..6).for_each(|_| round(&mut rig));
    assert_eq!(rig.count(0, round), (61, 1));
}

#[test]
fn a_resized_block_is_left_to_the_real_allocator() {
    let mut rig = Rig::new(1, config());
    let round = |rig: &mut Rig| {
        let growing = rig.alloc(0, 5000, 16);
        assert_eq!(growing.planned_by, None);
        let (machine, sim, _) = &mut rig.threads[0];
        let number = machine.record_resize(growing.address, sim).expect("known");
        machine.record_placement(number, growing.address);
        net(rig, 0, 30, 1);
        rig.free(0, growing);
    };
    (0..4).for_each(|_| round(&mut rig));
    assert_eq!(rig.count(0, round), (61, 1));
}

#[test]
#[cfg_attr(miri, ignore = "too many calls for an interpreter")]
fn nothing_is_planned_where_nothing_repeats() {
    let mut rig = Rig::new(1, config());
    (0..5000).for_each(|number| rig.alloc_and_free(0, 4096 + number * 8, 16));
    let tally = rig.tally(0);
    assert_eq!((tally.plans.get(), tally.unplanned.get()), (0, 5000));
}

#[test]
fn marks_say_where_a_round_begins() {
    let mut rig = Rig::new(1, Config { marks: true, ..config() });
    let round = |rig: &mut Rig, scale: u64| {
        let (machine, sim, _) = &mut rig.threads[0];
        machine.mark_round(sim);
        net(rig, 0, 3, scale);
    };
    // Equal rounds never follow each other.
    for _ in 0..4 {
        (1..=3).for_each(|scale| round(&mut rig, scale));
    }
    for scale in [3, 1, 2, 2, 1, 3] {
        assert_eq!(rig.count(0, |rig| round(rig, scale)), (7, 0), "scale {scale}");
    }
}

#[test]
fn without_memory_all_is_handed_through() {
    let mut rig = Rig::new(1, config());
    rig.threads[0].1.is_full = true;
    (0..10).for_each(|_| net(&mut rig, 0, 20, 1));
    assert_eq!((rig.tally(0).planned.get(), rig.tally(0).refused.get()), (0, 1));
}

#[test]
fn every_request_counts_once() {
    let mut rig = Rig::new(1, config());
    for number in 0..12 {
        net(&mut rig, 0, 20, 1 + number / 6);
        if number % 5 == 4 {
            rig.alloc_and_free(0, 4096 * number, 16);
        }
    }
    let tally = rig.tally(0);
    let missed = [&tally.unplanned, &tally.outliving, &tally.late, &tally.other_size, &tally.other_order];
    let missed: u64 = missed.into_iter().map(|count| count.get()).sum();
    assert_eq!(tally.requests.get(), tally.planned.get() + missed + tally.departed.get());
}

#[test]
fn a_request_like_the_first_does_not_begin_a_round() {
    let mut rig = Rig::new(1, config());
    // All requests have one size, so only the calls before identify the begin.
    let round = |rig: &mut Rig| {
        let blocks: Vec<Block> = (0..40).map(|_| rig.alloc(0, 5000, 64)).collect();
        rig.alloc_and_free(0, 5000, 64);
        blocks.into_iter().for_each(|block| rig.free(0, block));
    };
    (0..4).for_each(|_| round(&mut rig));
    // The plan is ready in the middle of a round, and waits.
    let other = rig.alloc(0, 7000, 64);
    round(&mut rig);
    rig.free(0, other);
    let departures = rig.tally(0).departures.get();
    (0..2).for_each(|_| round(&mut rig));
    assert_eq!(rig.count(0, round), (41, 0));
    assert_eq!(rig.tally(0).departures.get(), departures);
}

#[test]
fn plans_leave_a_segment_to_blocks_of_a_round_that_departed() {
    let mut rig = planned_rig();
    let kept = rig.alloc(0, 4096, 64);
    assert_eq!(kept.planned_by, Some(0));
    let other = rig.alloc(0, 1 << 20, 64);
    (0..5).for_each(|_| net(&mut rig, 0, 20, 1));
    assert_eq!(rig.count(0, |rig| net(rig, 0, 20, 1)), (41, 0));
    assert_eq!((rig.tally(0).late.get(), rig.threads[0].1.segments.len()), (3, 2));
    rig.free(0, kept);
    rig.free(0, other);
    assert_eq!(rig.threads[0].1.segments.len(), 1);
}

/// The next action of a thread of a random program.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Rounds of a net with this number of layers, at this scale.
    Net(u64, u64),
    /// A block that is kept.
    Keep(u64),
    /// Frees one of the kept blocks, of any thread.
    Drop(usize),
    /// A mark.
    Mark,
    /// The thread ends, and another takes over its machine.
    Rest,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (1_u64..12, 1_u64..3).prop_map(|(layers, scale)| Deed::Net(layers, scale)),
        2 => (4096_u64..50_000).prop_map(Deed::Keep),
        2 => any::<usize>().prop_map(Deed::Drop),
        1 => Just(Deed::Mark),
        1 => Just(Deed::Rest),
    ]
}

/// Plays a net in which another thread frees some blocks, and some are kept.
fn untidy_net(rig: &mut Rig, thread: usize, layers: u64, scale: u64, kept: &mut Vec<Block>, odd: usize) {
    let threads = rig.threads.len();
    let mut blocks = vec![rig.alloc(thread, scale * 4096, 64)];
    for layer in 0..layers {
        blocks.push(rig.alloc(thread, scale * (4096 + 512 * layer), 64));
        let first = blocks.remove(0);
        let number = usize::try_from(layer).expect("small");
        match odd.checked_sub(number) {
            Some(0) => kept.push(first),
            Some(1) => rig.free((thread + 1) % threads, first),
            _ => rig.free(thread, first),
        }
    }
    blocks.into_iter().for_each(|block| rig.free(thread, block));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever several threads do, no live block is handed out again (which [`Rig::alloc`] checks), and every block
    /// is freed where it was allocated.
    #[test]
    fn no_live_block_is_handed_out_again(
        deeds in proptest::collection::vec((0_usize..3, deed(), 1_usize..8, 0_usize..40), 1..40),
        marks in any::<bool>(),
        calls in 8_u64..64,
    ) {
        let proof = Proof { rounds: 2, calls };
        let mut rig = Rig::new(3, Config { marks, proof, most_plans: 3, ..config() });
        let mut kept: Vec<Block> = Vec::new();
        for (thread, deed, times, odd) in deeds {
            for _ in 0..times {
                match deed {
                    Deed::Net(layers, scale) => untidy_net(&mut rig, thread, layers, scale, &mut kept, odd),
                    Deed::Keep(size) => kept.push(rig.alloc(thread, size, 16)),
                    Deed::Drop(which) if !kept.is_empty() => {
                        let block = kept.swap_remove(which % kept.len());
                        rig.free(thread, block);
                    }
                    Deed::Drop(_) => {}
                    Deed::Mark => {
                        let (machine, sim, _) = &mut rig.threads[thread];
                        machine.mark_round(sim);
                    }
                    Deed::Rest => rig.threads[thread].0.prepare_for_next_thread(),
                }
            }
        }
        for block in kept {
            rig.free(0, block);
        }
        prop_assert_eq!(rig.live.live_blocks().count(), 0);
        for thread in 0..3 {
            prop_assert_eq!(rig.tally(thread).wrong_frees.get(), 0);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many calls for an interpreter")]
fn what_is_kept_of_a_steady_sequence_does_not_grow() {
    let mut rig = Rig::new(1, config());
    (0..200).for_each(|_| net(&mut rig, 0, 20, 1));
    let known = rig.threads[0].0.history.known_calls();
    (0..200).for_each(|_| net(&mut rig, 0, 20, 1));
    assert_eq!(rig.threads[0].0.history.known_calls(), known);
    (0..4).for_each(|_| net(&mut rig, 0, 25, 1));
    assert_eq!(rig.count(0, |rig| net(rig, 0, 25, 1)), (51, 0), "another round is found as before");
}

#[test]
fn rounds_of_several_kinds_need_not_follow_each_other() {
    let mut rig = Rig::new(1, config());
    let weights: Vec<Block> = (0..5).map(|_| rig.alloc(0, 50_000, 64)).collect();
    (0..4).for_each(|_| net(&mut rig, 0, 20, 1));
    // From here on equal rounds never follow each other, and their order does not repeat.
    let mut state = 7_u64;
    let mut layers = 20;
    // The blocks that were live while the weights were loaded are forgotten after a while.
    for _ in 0..150 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        layers = 20 + (layers - 20 + 1 + (state >> 62) % 3) % 5;
        net(&mut rig, 0, layers, 1 + layers);
    }
    for layers in [22, 20, 24, 21, 23] {
        let requests = 2 * layers + 1;
        assert_eq!(rig.count(0, |rig| net(rig, 0, layers, 1 + layers)), (requests, 0), "{layers} layers");
    }
    weights.into_iter().for_each(|block| rig.free(0, block));
}

#[test]
fn an_inner_loop_gives_way_to_its_round() {
    let mut rig = Rig::new(1, config());
    let round = |rig: &mut Rig| {
        let held: Vec<Block> = (0..10).map(|layer| rig.alloc(0, 200_000 + layer, 64)).collect();
        (0..8).for_each(|_| net(rig, 0, 20, 1));
        held.into_iter().for_each(|block| rig.free(0, block));
    };
    (0..5).for_each(|_| round(&mut rig));
    assert!(rig.tally(0).plans.get() >= 2, "the inner loop has a plan first");
    for _ in 0..3 {
        assert_eq!(rig.count(0, round), (10 + 8 * 41, 0));
    }
    // Another request comes in between, and the round begins at once the next time.
    rig.alloc_and_free(0, 77_777, 64);
    (0..2).for_each(|_| round(&mut rig));
    assert_eq!(rig.count(0, round), (10 + 8 * 41, 0));
}

#[test]
fn requests_that_come_fast_are_not_looked_at_until_they_do_not() {
    let mut rig = Rig::new(1, config());
    rig.threads[0].1.pace = 64 * 500;
    (0..2000).for_each(|number| rig.alloc_and_free(0, 4096 + number * 8, 16));
    let known = rig.threads[0].0.history.len();
    let kept = rig.alloc(0, 5000, 16);
    (0..5).for_each(|_| net(&mut rig, 0, 20, 1));
    assert_eq!((rig.threads[0].0.history.len(), rig.tally(0).plans.get()), (known, 0));
    rig.threads[0].1.pace = 64 * 50_000;
    (0..9).for_each(|_| net(&mut rig, 0, 20, 1));
    assert_eq!(rig.count(0, |rig| net(rig, 0, 20, 1)), (41, 0));
    // Requests with a plan are served however fast they come.
    rig.threads[0].1.pace = 64 * 500;
    (0..100).for_each(|_| net(&mut rig, 0, 20, 1));
    assert_eq!(rig.count(0, |rig| net(rig, 0, 20, 1)), (41, 0));
    rig.free(0, kept);
}

#[test]
#[cfg_attr(miri, ignore = "too many calls for an interpreter")]
fn who_never_repeats_is_looked_at_now_and_then() {
    let mut rig = Rig::new(1, config());
    let mut size = 0;
    let mut other = |rig: &mut Rig| {
        size += 8;
        rig.alloc_and_free(0, 4096 + size, 16);
    };
    (0..super::attention::AWAKE + 10).for_each(|_| other(&mut rig));
    let known = rig.threads[0].0.history.len();
    (0..1000).for_each(|_| other(&mut rig));
    assert_eq!(rig.threads[0].0.history.len(), known, "it looks away");
    (0..super::attention::ASLEEP).for_each(|_| other(&mut rig));
    (0..8).for_each(|_| net(&mut rig, 0, 20, 1));
    assert_eq!(rig.count(0, |rig| net(rig, 0, 20, 1)), (41, 0));
}
