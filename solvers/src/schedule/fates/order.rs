//! The order of the passes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use planlab_graph::{FunctionId, TrainingNet};

/// The index of a function's forward pass among the stages.
pub(in crate::schedule) const fn forward_stage(id: FunctionId) -> usize {
    id.index()
}

/// The index of a function's backward pass among the stages of a net with `functions` functions.
pub(in crate::schedule) const fn backward_stage(id: FunctionId, functions: usize) -> usize {
    2 * functions - 1 - id.index()
}

/// The stages in the order in which they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::schedule) struct StageOrder {
    stages: Vec<usize>,
    /// For each stage its position, and the number of stages at the end.
    positions: Vec<usize>,
}

impl StageOrder {
    /// Forward passes in the net's order, then backward passes in the reverse order.
    pub(super) fn canonical(net: &TrainingNet) -> Self {
        let stages = 2 * net.functions().len();
        Self { stages: (0..stages).collect(), positions: (0..=stages).collect() }
    }

    /// The order in which some passes run. Any other stage runs before the first of them that has a higher number; what a
    /// stage has to follow runs before it in any case.
    pub(super) fn from_passes(passes: &[usize], limits: &StageLimits) -> Self {
        let ranks = rank_stages(passes, limits.before.len());
        let mut missing: Vec<usize> = limits.before.iter().map(Vec::len).collect();
        let is_first = |&stage: &usize| missing[stage] == 0;
        let first = (0..ranks.len()).filter(is_first);
        let mut ready: BinaryHeap<_> = first.map(|stage| Reverse((ranks[stage], stage))).collect();
        let mut stages = Vec::with_capacity(ranks.len());
        let mut positions: Vec<usize> = (0..=ranks.len()).collect();
        while let Some(Reverse((_, stage))) = ready.pop() {
            positions[stage] = stages.len();
            stages.push(stage);
            for &after in &limits.after[stage] {
                missing[after] -= 1;
                if missing[after] == 0 {
                    ready.push(Reverse((ranks[after], after)));
                }
            }
        }
        Self { stages, positions }
    }

    /// The stages in the order in which they run.
    pub(in crate::schedule) fn stages(&self) -> &[usize] {
        &self.stages
    }

    /// The position of a stage; the number of stages has the last one.
    pub(super) fn position(&self, stage: usize) -> usize {
        self.positions[stage]
    }

    /// Runs a stage, and all before it that it has to follow, from an earlier position on.
    pub(in crate::schedule) fn pull_stage(&mut self, stage: usize, to: usize, limits: &StageLimits) {
        let from = self.positions[stage];
        let mut is_pulled = vec![false; self.stages.len()];
        is_pulled[stage] = true;
        for &other in self.stages[to..=from].iter().rev().filter(|_| to < from) {
            if is_pulled[other] {
                limits.before[other].iter().for_each(|&before| is_pulled[before] = true);
            }
        }
        self.put_first(to, from, |other| is_pulled[other]);
    }

    /// Runs a stage, and all after it that have to follow it, up to a later position.
    pub(in crate::schedule) fn push_stage(&mut self, stage: usize, to: usize, limits: &StageLimits) {
        let from = self.positions[stage];
        let mut is_pushed = vec![false; self.stages.len()];
        is_pushed[stage] = true;
        for &other in &self.stages[from..=to] {
            if is_pushed[other] {
                limits.after[other].iter().for_each(|&after| is_pushed[after] = true);
            }
        }
        self.put_first(from, to, |other| !is_pushed[other]);
    }

    /// Puts some stages of a range of positions before its others; both keep their order.
    fn put_first(&mut self, first: usize, last: usize, is_first: impl Fn(usize) -> bool) {
        let Some(range) = self.stages.get_mut(first..=last) else { return };
        range.sort_by_key(|&stage| !is_first(stage));
        for position in first..=last {
            self.positions[self.stages[position]] = position;
        }
    }
}

/// For each stage, the stages that it has to follow and to precede.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct StageLimits {
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

impl StageLimits {
    /// A pass follows the forward passes that make its inputs; a backward pass also its function's forward pass and the
    /// backward passes of the functions that read its output.
    pub(in crate::schedule) fn new(net: &TrainingNet) -> Self {
        let functions = net.functions().len();
        let mut limits =
            Self { before: vec![Vec::new(); 2 * functions], after: vec![Vec::new(); 2 * functions] };
        for id in net.function_ids() {
            limits.add(forward_stage(id), backward_stage(id, functions));
            for producer in net.function(id).inputs.iter().filter_map(|&input| net.producer_of(input)) {
                limits.add(forward_stage(producer), forward_stage(id));
                limits.add(backward_stage(id, functions), backward_stage(producer, functions));
            }
        }
        limits
    }

    fn add(&mut self, first: usize, second: usize) {
        self.before[second].push(first);
        self.after[first].push(second);
    }

    /// Whether there is another order than that of the net: two neighbours that do not depend on each other.
    pub(in crate::schedule) fn leave_a_choice(&self) -> bool {
        (1..self.before.len()).any(|stage| !self.before[stage].contains(&(stage - 1)))
    }
}

/// For each stage, its place among some passes, or that of the first pass with a higher number.
fn rank_stages(passes: &[usize], stages: usize) -> Vec<usize> {
    let mut ranks = vec![passes.len(); stages];
    for (place, &stage) in passes.iter().enumerate() {
        ranks[stage] = place;
    }
    let mut first = passes.len();
    for rank in ranks.iter_mut().rev() {
        if *rank < passes.len() {
            first = first.min(*rank);
        } else {
            *rank = first;
        }
    }
    ranks
}

/// The function of a stage, and whether it is a forward pass.
pub(super) fn function_of_stage(stage: usize, functions: usize) -> (FunctionId, bool) {
    if stage < functions {
        (FunctionId::from_index(stage), true)
    } else {
        (FunctionId::from_index(2 * functions - 1 - stage), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::testing::{branching_problem, shortcut_problem};

    #[test]
    fn stage_is_pulled_with_what_it_follows() {
        // 0 conv; 1 relu and 2 tanh of it; 3 product; 4 loss.
        let net = branching_problem().net;
        let limits = StageLimits::new(&net);
        assert!(limits.leave_a_choice());
        let mut order = StageOrder::canonical(&net);
        order.pull_stage(2, 1, &limits);
        assert_eq!(order.stages(), [0, 2, 1, 3, 4, 5, 6, 7, 8, 9]);
        order.push_stage(2, 4, &limits);
        assert_eq!(order.stages(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // Nothing runs before what it follows.
        order.pull_stage(4, 0, &limits);
        assert_eq!(order.stages(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        order.push_stage(7, 9, &limits);
        assert_eq!(order.stages(), [0, 1, 2, 3, 4, 5, 6, 8, 7, 9]);
    }

    #[test]
    fn order_of_passes_is_kept_and_the_others_are_inserted() {
        let net = branching_problem().net;
        let limits = StageLimits::new(&net);
        let order = |passes: &[usize]| StageOrder::from_passes(passes, &limits);
        assert_eq!(order(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), StageOrder::canonical(&net));
        assert_eq!(order(&[0, 3, 4, 5, 9]), StageOrder::canonical(&net));
        let moved = [0, 2, 1, 3, 4, 5, 6, 8, 7, 9];
        assert_eq!((order(&moved).stages(), order(&moved).position(8)), (&moved[..], 7));
        // Stage 6 has no pass of its own: it runs before stage 8.
        assert_eq!(order(&[0, 2, 1, 3, 4, 5, 8, 7, 9]).stages(), moved);
        // The loss's backward pass waits for its forward pass.
        assert_eq!(order(&[0, 1, 2, 3, 5, 4, 6, 7, 8, 9]), StageOrder::canonical(&net));
    }

    #[test]
    fn every_move_keeps_what_has_to_follow() {
        for net in [branching_problem().net, shortcut_problem().net] {
            let limits = StageLimits::new(&net);
            for (stage, to) in (0..10).flat_map(|stage| (0..10).map(move |to| (stage, to))) {
                let mut order = StageOrder::canonical(&net);
                if to < stage {
                    order.pull_stage(stage, to, &limits);
                } else {
                    order.push_stage(stage, to, &limits);
                }
                for second in 0..10 {
                    let is_before = |&first: &usize| order.position(first) < order.position(second);
                    assert!(limits.before[second].iter().all(is_before), "{stage} to {to}");
                }
            }
        }
    }
}
