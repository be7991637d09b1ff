//! The best-first search over states.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::model::Model;
use super::state::{Key, State};

/// A state, and how it was reached.
struct Node {
    state: State,
    before: u32,
    /// The operation that starts; `None` if the clock advances.
    started: Option<u16>,
}

/// A node that waits for its turn: the least end first, then the latest moment.
struct Open {
    least_end: f64,
    now: f64,
    node: u32,
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        let least_end = other.least_end.total_cmp(&self.least_end);
        least_end.then(self.now.total_cmp(&other.now)).then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Open {}

/// The start of an operation: its index and its time.
pub(super) type Start = (usize, f64);

/// What the next step of a search gives.
pub(super) enum Step {
    /// One more state was looked at.
    Expanded,
    /// The starts of a fastest iteration of those not returned yet, and its seconds.
    Found(Vec<Start>, f64),
    /// There is no other iteration below the limit.
    Exhausted,
}

/// The part of a known time by which an iteration has to be faster to count. Half of the tolerance of a proof: the bound
/// on the end of a state adds up seconds in another order than the clock.
const FASTER: f64 = 0.5e-9;

/// A search for the fastest iterations of a model.
pub(super) struct StateSearch<'m, 'p> {
    model: &'m Model<'p>,
    nodes: Vec<Node>,
    open: BinaryHeap<Open>,
    /// The times of the states with each key, without those that are no better than others.
    seen: FxHashMap<Key, SmallVec<[[f64; 4]; 1]>>,
    /// Iterations that take as long or longer do not count.
    limit: f64,
    /// Iterations that take less than this were all looked at, or will be.
    complete_below: f64,
}

impl<'m, 'p> StateSearch<'m, 'p> {
    /// A search for iterations that take less than `fastest` seconds, by more than rounding.
    pub(super) fn new(model: &'m Model<'p>, fastest: f64) -> Self {
        let mut search = Self {
            model,
            nodes: Vec::new(),
            open: BinaryHeap::new(),
            seen: FxHashMap::default(),
            complete_below: f64::INFINITY,
            limit: f64::INFINITY,
        };
        search.leave_out_from(fastest);
        if model.total_bytes(model.inputs) <= model.room {
            search.add_state(State::first(model), u32::MAX, None);
        }
        search
    }

    pub(super) const fn model(&self) -> &'m Model<'p> {
        self.model
    }

    /// Leaves out iterations that are not faster than one of this many seconds, by more than rounding.
    pub(super) fn leave_out_from(&mut self, fastest: f64) {
        self.limit = fastest * (1.0 - FASTER);
    }

    /// The states so far.
    pub(super) const fn states(&self) -> usize {
        self.nodes.len()
    }

    /// A bound on the seconds of all iterations, if `found` is that of the first that was returned.
    pub(super) fn bound(&self, found: Option<f64>) -> f64 {
        let next = || self.open.peek().map_or(f64::INFINITY, |open| open.least_end).min(self.limit);
        // What was left out before the first iteration was found takes longer than it.
        found.unwrap_or_else(next).min(self.complete_below)
    }

    fn add_state(&mut self, state: State, before: u32, started: Option<usize>) {
        let least_end = state.least_end(self.model);
        if least_end >= self.limit {
            return;
        }
        let times = state.times();
        let is_no_better =
            |one: &[f64; 4], other: &[f64; 4]| one.iter().zip(other).all(|(one, other)| one >= other);
        let seen = self.seen.entry(state.key).or_default();
        if seen.iter().any(|other| is_no_better(&times, other)) {
            return;
        }
        seen.retain(|other| !is_no_better(other, &times));
        seen.push(times);
        let node = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let started = started.map(|index| u16::try_from(index).unwrap_or(u16::MAX));
        self.nodes.push(Node { state, before, started });
        self.open.push(Open { least_end, now: state.now, node });
    }

    /// Looks at the most promising state.
    pub(super) fn take_step(&mut self) -> Step {
        let Some(open) = self.open.pop().filter(|open| open.least_end < self.limit) else {
            return Step::Exhausted;
        };
        let state = self.nodes[open.node as usize].state;
        let is_beaten = !self.seen.get(&state.key).is_some_and(|seen| seen.contains(&state.times()));
        if is_beaten {
            return Step::Expanded;
        }
        if state.is_end(self.model) {
            return Step::Found(self.starts_before(open.node), state.now);
        }
        let mut following = Vec::new();
        let are_all = state.for_each_start(self.model, |index, next| following.push((next, Some(index))));
        if !are_all {
            self.complete_below = self.complete_below.min(open.least_end);
        }
        following.extend(state.advance(self.model).map(|next| (next, None)));
        for (next, started) in following {
            self.add_state(next, open.node, started);
        }
        Step::Expanded
    }

    fn starts_before(&self, node: u32) -> Vec<Start> {
        let mut starts = Vec::new();
        let mut place = node;
        while let Some(node) = self.nodes.get(place as usize) {
            starts.extend(node.started.map(|index| (usize::from(index), node.state.now)));
            place = node.before;
        }
        starts.reverse();
        starts
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Bytes;
    use planlab_graph::{ScheduleBound, ScheduleEvidence, SchedulingProblem, Times};

    use super::*;
    use crate::schedule::testing::chain_problem;

    /// A chain in little memory, without copies. All times are whole tenths of a second, whose sums depend on their order.
    fn chain_of_tenths() -> SchedulingProblem {
        let mut problem = chain_problem(&[1; 7]).with_capacity(Bytes::new(5));
        (problem.machine.copy_out, problem.machine.copy_in) = (1e-6, 1e-6);
        let forward = vec![0.1, 0.2, 0.3, 0.7, 0.1, 0.3];
        let backward = vec![0.3, 0.1, 0.7, 0.2, 0.1, 0.6];
        let times = Times::new(&problem.net, forward, backward, vec![0.0; 7]).expect("times");
        problem.with_times(times)
    }

    /// The states of a search that finds nothing faster, and its bound.
    fn search_below(model: &Model<'_>, fastest: f64) -> (usize, f64) {
        let mut search = StateSearch::new(model, fastest);
        loop {
            match search.take_step() {
                Step::Expanded => {}
                Step::Found(_, seconds) => panic!("{seconds} s is below {fastest} s"),
                Step::Exhausted => return (search.states(), search.bound(None)),
            }
        }
    }

    #[test]
    fn states_that_end_with_the_known_fastest_are_left_out() {
        let problem = chain_of_tenths();
        let model = Model::new(&problem).expect("a small net");
        let mut search = StateSearch::new(&model, f64::INFINITY);
        let fastest = loop {
            match search.take_step() {
                Step::Expanded => {}
                Step::Found(_, seconds) => break seconds,
                Step::Exhausted => panic!("the chain has a schedule"),
            }
        };
        assert_eq!(search.bound(Some(fastest)), fastest);
        let (states, seconds) = search_below(&model, fastest);
        // Times are tenths: no state ends in between.
        assert_eq!(states, search_below(&model, fastest - 0.05).0);
        let bound = ScheduleBound { seconds, evidence: ScheduleEvidence::Search };
        assert!(seconds < fastest && bound.proves_fastest(fastest), "{seconds} of {fastest} s");
    }
}
