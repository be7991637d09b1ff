//! Capuchin: swaps the maps whose copies are hidden, and closes the gap by what exposes least, swap or recomputation.
//!
//! A run that keeps everything gives the time of each access. A map is a candidate between its last access in the forward
//! pass and its first access in the backward pass. Its *free time* is what remains of that time after both copies:
//!
//! ```text
//!  last forward access |== copy out ==|        free time        |== copy in ==| first backward access
//! ```
//!
//! Maps with a free time of at least 0 are swapped in descending order of it, until the rest fits. If that is not enough,
//! each further step compares two candidates: the one with the most free time, which exposes the missing seconds, and the
//! one that saves most bytes per second of recomputation. The one that takes fewer seconds leaves. The sources of the
//! others change with it: a map from which they were to be recomputed may have to be recomputed itself.
//!
//! # References
//!
//! 1. X. Peng et al.: Capuchin: Tensor-based GPU Memory Management for Deep Learning. ASPLOS 2020.
//!    doi:10.1145/3373376.3378505.
//!
//! # Complexity
//!
//! O(c (n + c m)) for n events, c candidates and recomputations of m functions. If the maps do not fit in the end, O(n^2)
//! to drop what recomputations leave.
//!
//! # Deviations from the paper
//!
//! - The need for memory is the peak of the program with these decisions, not a sum of bytes.
//! - A map is away once in an iteration. Its copy comes back as early as there is room, not by a trigger that a later
//!   iteration moves.
//! - Copies are thought not to queue: each free time is that on an idle link. Where many maps are swapped, the link is not
//!   idle, and the schedule waits.
//! - What a recomputation leaves stays for others. If the maps then do not fit, it is dropped at once instead.

use planlab_graph::{
    MapId, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor, SchedulingProblem, Task, TrainingNet,
};
use rustc_hash::FxHashSet;

use super::bound::claim_lp_bound;
use super::fates::{
    Fate, Fates, backward_stage, build_program, build_program_within, forward_stage, offer_fates,
};
use super::program::{Program, least_room};

const KEY: &str = "capuchin";

/// The most events of a schedule that recomputes without sharing, for each function.
const EVENTS_PER_FUNCTION: usize = 16;

/// Swaps by free time and recomputes by bytes per second; key `capuchin`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capuchin;

impl Scheduler for Capuchin {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "swaps maps whose copies are hidden; then swaps or recomputes what costs less".into(),
            randomized: false,
            reference: "Peng et al. 2020",
            complexity: "n^2 and more for long recomputations",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        claim_lp_bound(run)?;
        let mut policy = PolicyMaker::new(problem);
        policy.swap_hidden_maps(run)?;
        policy.close_gap(run)?;
        if !policy.fits() {
            run.tick(1)?;
            let most = EVENTS_PER_FUNCTION * problem.net.functions().len();
            if !policy.discard_intermediates(most) {
                run.fall_short(format!(
                    "out of memory: what would fit recomputes too often (more than {most} events)"
                ));
                return Ok(());
            }
        }
        offer_fates(run, KEY, &policy.fates)
    }
}

/// A map that can leave between two accesses.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    map: MapId,
    /// The stage of the last access in the forward pass.
    stage: usize,
    /// The stage of the first access in the backward pass.
    next: usize,
    /// Seconds that remain of the time between the accesses after both copies.
    free_seconds: f64,
}

/// The decisions so far.
struct PolicyMaker<'p> {
    problem: &'p SchedulingProblem,
    fates: Fates,
    /// The maps about which nothing is decided, in descending order of free time.
    candidates: Vec<Candidate>,
    /// For each map: whether recomputations can begin with it, as it is kept or comes back.
    is_source: Vec<bool>,
}

impl<'p> PolicyMaker<'p> {
    /// Keeps all maps that a backward pass reads.
    fn new(problem: &'p SchedulingProblem) -> Self {
        let net = &problem.net;
        let stages = 2 * net.functions().len();
        let mut fates = Fates::keep_all(net);
        let mut is_source = vec![false; net.maps().len()];
        for id in net.function_ids().filter(|&id| net.has_backward_pass(id)) {
            net.function(id).needs.iter().for_each(|map| is_source[map.index()] = true);
        }
        for map in net.map_ids() {
            let last = net.last_use(map).or(net.producer_of(map)).map_or(0, forward_stage);
            if net.producer_of(map).is_none() {
                is_source[map.index()] = true;
            } else if !is_source[map.index()] {
                fates.set_fate(map, last, stages, Fate::Drop);
            }
        }
        let mut policy = Self { problem, fates, candidates: Vec::new(), is_source };
        policy.find_candidates();
        policy
    }

    /// Profiles the run that keeps everything.
    fn find_candidates(&mut self) {
        let functions = self.problem.net.functions().len();
        let (program, gaps) = build_program(self.problem, &self.fates);
        let spans = find_spans(&self.problem.net, &program);
        for gap in gaps.iter().filter(|gap| gap.stage < functions && gap.next >= functions) {
            let bytes = self.problem.net.map(gap.map).bytes;
            let (out, back) =
                (self.problem.machine.out_seconds(bytes), self.problem.machine.in_seconds(bytes));
            let free_seconds = (spans[gap.next].0 - back) - (spans[gap.stage].1 + out);
            self.candidates.push(Candidate { map: gap.map, stage: gap.stage, next: gap.next, free_seconds });
        }
        self.candidates.sort_by(|one, other| {
            other.free_seconds.total_cmp(&one.free_seconds).then(one.map.cmp(&other.map))
        });
    }

    fn fits(&self) -> bool {
        least_room(&build_program(self.problem, &self.fates).0) <= self.problem.capacity.get()
    }

    /// Swaps what has free time, most first, until the rest fits.
    fn swap_hidden_maps(&mut self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        while self.candidates.first().is_some_and(|candidate| candidate.free_seconds >= 0.0) {
            run.tick(1)?;
            if self.fits() {
                break;
            }
            self.decide_fate(0, Fate::Swap);
        }
        Ok(())
    }

    /// Swaps or recomputes, whatever exposes fewer seconds, until the rest fits.
    fn close_gap(&mut self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        while let Some(swapped) = self.candidates.first() {
            run.tick(1)?;
            if self.fits() {
                break;
            }
            let exposed = -swapped.free_seconds;
            match self.best_recomputation() {
                Some((place, seconds)) if seconds < exposed => self.decide_fate(place, Fate::Drop),
                _ => self.decide_fate(0, Fate::Swap),
            }
        }
        Ok(())
    }

    fn decide_fate(&mut self, place: usize, fate: Fate) {
        let Candidate { map, stage, next, .. } = self.candidates.remove(place);
        self.fates.set_fate(map, stage, next, fate);
        self.is_source[map.index()] = fate != Fate::Drop;
    }

    /// The candidate that saves most bytes per second of recomputation, and these seconds.
    fn best_recomputation(&self) -> Option<(usize, f64)> {
        let net = &self.problem.net;
        let mut best: Option<(f64, usize, f64)> = None;
        for (place, candidate) in self.candidates.iter().enumerate() {
            if net.producer_of(candidate.map).is_none() {
                continue;
            }
            let seconds = self.recompute_seconds(candidate.map);
            let saved = net.map(candidate.map).bytes.get() as f64 / seconds.max(f64::MIN_POSITIVE);
            if best.is_none_or(|(most, ..)| saved > most) {
                best = Some((saved, place, seconds));
            }
        }
        best.map(|(_, place, seconds)| (place, seconds))
    }

    /// The seconds to recompute a map from the nearest sources.
    fn recompute_seconds(&self, map: MapId) -> f64 {
        let net = &self.problem.net;
        let mut seen = FxHashSet::default();
        let mut open = vec![map];
        let mut seconds = 0.0;
        while let Some(current) = open.pop() {
            let Some(producer) = net.producer_of(current) else { continue };
            if !seen.insert(current) {
                continue;
            }
            seconds += self.problem.times.forward()[producer.index()];
            let inputs = net.function(producer).inputs.iter().copied();
            open.extend(inputs.filter(|input| !self.is_source[input.index()]));
        }
        seconds
    }

    /// Drops what recomputations leave, up to the stage of the pass that reads it. Returns whether the compute engine
    /// then has at most `most` events.
    fn discard_intermediates(&mut self, most: usize) -> bool {
        let functions = self.problem.net.functions().len();
        let reads = first_backward_reads(&self.problem.net);
        for map in self.problem.net.map_ids().filter(|map| !self.is_source[map.index()]) {
            self.fates.drop_after_each(map, functions..reads[map.index()].unwrap_or(2 * functions));
        }
        build_program_within(self.problem, &self.fates, most).is_some()
    }
}

/// For each stage, the start and the end of its pass in seconds, if its functions run without waiting.
fn find_spans(net: &TrainingNet, program: &Program) -> Vec<(f64, f64)> {
    let functions = net.functions().len();
    let mut spans = vec![(0.0, 0.0); 2 * functions];
    let mut now = 0.0;
    for event in program.compute_steps() {
        let end = now + event.seconds;
        match event.task {
            Task::Forward(id) => spans[forward_stage(id)] = (now, end),
            Task::Backward(id) => spans[backward_stage(id, functions)] = (now, end),
            Task::Recompute(_) | Task::Accumulate(_) | Task::CopyOut(_) | Task::CopyIn(_) => {}
        }
        now = end;
    }
    spans
}

/// For each map, the stage of the first backward pass that reads it.
fn first_backward_reads(net: &TrainingNet) -> Vec<Option<usize>> {
    let functions = net.functions().len();
    let mut reads = vec![None; net.maps().len()];
    for id in net.function_ids().rev().filter(|&id| net.has_backward_pass(id)) {
        for map in &net.function(id).needs {
            reads[map.index()].get_or_insert(backward_stage(id, functions));
        }
    }
    reads
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;
    use planlab_graph::{Engine, ScheduleBudget, execute_scheduler};

    use super::*;
    use crate::schedule::testing::{chain_problem, event_names, shortcut_problem};

    /// An image of a byte, three maps of 4 and a loss of 1; everything kept takes 17 bytes.
    fn chain(link: f64, capacity: u64) -> SchedulingProblem {
        let mut problem = chain_problem(&[1, 4, 4, 4, 1]).with_capacity(Bytes::new(capacity));
        (problem.machine.copy_out, problem.machine.copy_in) = (link, link);
        problem
    }

    /// The steps, and the maps that are copied out.
    fn scheduled(problem: &SchedulingProblem) -> Option<(String, Vec<usize>)> {
        let outcome = execute_scheduler(&Capuchin, problem, ScheduleBudget::default(), 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        let best = outcome.best?;
        let copied = best.schedule().events_of(Engine::Out).iter().filter_map(|event| match event.task {
            Task::CopyOut(map) => Some(map.index()),
            _ => None,
        });
        Some((event_names(best.schedule().events_of(Engine::Compute)), copied.collect()))
    }

    #[test]
    fn free_time_is_what_two_copies_leave() {
        let problem = chain(4.0, 17);
        let candidates = PolicyMaker::new(&problem).candidates;
        let free: Vec<_> =
            candidates.iter().map(|candidate| (candidate.map.index(), candidate.free_seconds)).collect();
        assert_eq!(free, [(0, 5.5), (1, 2.0), (2, 0.0), (3, -2.0)]);
        let problem = shortcut_problem();
        let candidates = PolicyMaker::new(&problem).candidates;
        let free: Vec<_> =
            candidates.iter().map(|candidate| (candidate.map.index(), candidate.free_seconds)).collect();
        assert_eq!(free, [(0, 16.25), (2, 1.0), (4, -3.0)]);
    }

    #[test]
    fn hidden_maps_are_swapped_in_the_order_of_free_time() {
        let steps = "F0 F1 F2 F3 B3 B2 B1 B0".to_owned();
        assert_eq!(scheduled(&chain(4.0, 17)), Some((steps.clone(), vec![])));
        assert_eq!(scheduled(&chain(4.0, 16)), Some((steps.clone(), vec![0])));
        assert_eq!(scheduled(&chain(4.0, 12)), Some((steps, vec![0, 1])));
    }

    #[test]
    fn slow_link_leads_to_recomputation() {
        let steps = "F0 F1 F2 F3 B3 B2 R0 B1 B0".to_owned();
        assert_eq!(scheduled(&chain(0.01, 13)), Some((steps, vec![])));
    }

    #[test]
    fn dropped_source_is_recomputed_with_those_that_need_it() {
        let problem = chain(0.01, 17);
        let mut policy = PolicyMaker::new(&problem);
        let [first, second] = [1, 2].map(MapId::from_index);
        assert_eq!(policy.recompute_seconds(second), 1.0);
        let place = policy.candidates.iter().position(|candidate| candidate.map == first);
        policy.decide_fate(place.expect("a candidate"), Fate::Drop);
        assert_eq!(policy.recompute_seconds(second), 2.0);
        // Its bytes per second are fewer now than those of the third map.
        let (place, seconds) = policy.best_recomputation().expect("a candidate");
        assert_eq!((policy.candidates[place].map.index(), seconds), (3, 1.0));
    }

    #[test]
    fn too_little_memory_is_reported() {
        let problem = chain(4.0, 4);
        let outcome = execute_scheduler(&Capuchin, &problem, ScheduleBudget::default(), 0);
        assert!(outcome.end.is_ok() && outcome.best.is_none(), "{:?}", outcome.end);
        let reason = outcome.shortfall.expect("a reason");
        assert!(reason.starts_with("out of memory"), "{reason}");
    }
}
