//! The steps of a chain, and the fates of maps that make a schedule of them.
//!
//! Recomputation for a backward pass belongs to the *phase* of that pass; phase 0 is the forward sweep. Between two
//! phases, a map stays if
//!
//! - its segment was run with [`Step::Save`]: all that the segment saved stays until its backward pass;
//! - it is the input of a segment that was run with [`Step::Save`] or [`Step::Checkpoint`]: it stays until the backward
//!   pass of that segment;
//! - the next phase begins with a run of its segment that saves it, and the pass that needed it is over: it takes no
//!   memory that the run would not take.
//!
//! All other maps are dropped. What is recomputed follows from the fates: only what backward passes read, and what this
//! takes.

use planlab_graph::{FunctionId, SchedulingProblem};

use super::chain::Chain;
use crate::schedule::fates::{Fate, Fates, Gap, build_program};

/// A run of a segment, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Forward; keeps the output, and forgets the input.
    Advance(usize),
    /// Forward; keeps the output and the input.
    Checkpoint(usize),
    /// Forward; keeps the input, the output and all that the backward pass reads.
    Save(usize),
    /// Backward.
    Backward(usize),
}

/// The steps of an iteration, and what goes to the host after the forward sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChainPlan {
    pub(super) steps: Vec<Step>,
    /// For each segment, whether what it saves in the forward sweep goes to the host.
    pub(super) moves_saved: Vec<bool>,
    /// For each segment, whether its input goes to the host.
    pub(super) moves_input: Vec<bool>,
}

impl ChainPlan {
    /// Steps that move nothing to the host.
    pub(super) fn new(steps: Vec<Step>, segments: usize) -> Self {
        Self { steps, moves_saved: vec![false; segments], moves_input: vec![false; segments] }
    }

    /// The fates of maps by which the steps run.
    pub(super) fn to_fates(&self, problem: &SchedulingProblem, chain: &Chain) -> Fates {
        let residence = Residence::new(self, chain);
        let mut fates = Fates::keep_all(&problem.net);
        // The fates up to a stage decide what the next one accesses, so each round makes at least one more stage final.
        for _ in 0..fates.stages() {
            let mut is_final = true;
            for gap in build_program(problem, &fates).1 {
                let fate =
                    problem.net.producer_of(gap.map).map_or(Fate::Keep, |id| residence.decide_fate(id, gap));
                if fates.fate(gap.map, gap.stage) != fate {
                    fates.set_fate(gap.map, gap.stage, gap.next, fate);
                    is_final = false;
                }
            }
            if is_final {
                break;
            }
        }
        fates
    }
}

/// The phases from which maps stay.
struct Residence<'a> {
    plan: &'a ChainPlan,
    chain: &'a Chain,
    /// For each segment, the phase in which it is saved.
    saved_from: Vec<usize>,
    /// For each segment, the phase from which its input stays.
    held_from: Vec<usize>,
    /// For each phase, its first forward step.
    openings: Vec<Option<Step>>,
}

impl<'a> Residence<'a> {
    fn new(plan: &'a ChainPlan, chain: &'a Chain) -> Self {
        let segments = chain.segments().len();
        let never = vec![usize::MAX; segments];
        let (mut saved_from, mut held_from) = (never.clone(), never);
        let mut openings = vec![None; segments + 2];
        let mut phase = 0;
        for &step in &plan.steps {
            match step {
                Step::Advance(_) => {}
                Step::Checkpoint(segment) => held_from[segment] = held_from[segment].min(phase),
                Step::Save(segment) => {
                    held_from[segment] = held_from[segment].min(phase);
                    saved_from[segment] = saved_from[segment].min(phase);
                }
                Step::Backward(segment) => {
                    phase = chain.backward_phase(segment) + 1;
                    continue;
                }
            }
            openings[phase].get_or_insert(step);
        }
        Self { plan, chain, saved_from, held_from, openings }
    }

    /// The fate of the output of a function in a gap.
    fn decide_fate(&self, producer: FunctionId, gap: Gap) -> Fate {
        let [from, to] = [gap.stage, gap.next].map(|stage| self.chain.phase_of(stage));
        if from == to {
            return Fate::Keep;
        }
        let segment = self.chain.segment_of(producer);
        let reader = self.chain.ends_segment(producer).then_some(segment + 1);
        let reader = reader.filter(|&reader| reader < self.held_from.len());
        let is_saved = self.saved_from[segment] <= from;
        let is_held = reader.is_some_and(|reader| {
            let is_checkpoint = self.held_from[reader] <= from && to <= self.chain.backward_phase(reader);
            let is_over = from == self.chain.backward_phase(reader) && to == from + 1;
            is_checkpoint || (is_over && self.openings[to] == Some(Step::Save(segment)))
        });
        let is_moved = from == 0
            && ((is_saved && self.plan.moves_saved[segment])
                || reader.is_some_and(|reader| self.plan.moves_input[reader]));
        match (is_saved || is_held, is_moved) {
            (false, _) => Fate::Drop,
            (true, true) => Fate::Swap,
            (true, false) => Fate::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use Step::{Advance, Backward, Checkpoint, Save};

    use super::*;
    use crate::schedule::chains::testing::chain_problem;
    use crate::schedule::program::{least_room, memory_by_step};
    use crate::schedule::testing::{branching_problem, shortcut_problem, step_names};

    fn names(problem: &SchedulingProblem, plan: &ChainPlan) -> String {
        let chain = Chain::new(problem, 100);
        step_names(&build_program(problem, &plan.to_fates(problem, &chain)).0)
    }

    #[test]
    fn steps_of_a_true_chain_are_run_as_they_are() {
        let problem = chain_problem(&[1; 4], &[1; 4], &[1; 4], 100);
        let steps = vec![
            Checkpoint(0),
            Advance(1),
            Save(2),
            Save(3),
            Backward(3),
            Backward(2),
            Checkpoint(0),
            Save(1),
            Backward(1),
            Save(0),
            Backward(0),
        ];
        // The last step but one finds the output of the first function, which was the input of the second.
        let plan = ChainPlan::new(steps, 4);
        assert_eq!(names(&problem, &plan), "F0 F1 F2 F3 B3 B2 R0 R1 B1 B0");
    }

    #[test]
    fn checkpoint_is_freed_after_its_segment() {
        let problem = chain_problem(&[1; 5], &[1; 5], &[1; 5], 100);
        let steps = vec![
            Checkpoint(0),
            Advance(1),
            Advance(2),
            Checkpoint(3),
            Save(4),
            Backward(4),
            Save(3),
            Backward(3),
            Checkpoint(0),
            Advance(1),
            Save(2),
            Backward(2),
            Save(0),
            Save(1),
            Backward(1),
            Backward(0),
        ];
        let plan = ChainPlan::new(steps, 5);
        assert_eq!(names(&problem, &plan), "F0 F1 F2 F3 F4 B4 B3 R0 R1 R2 B2 R0 R1 B1 B0");
        let chain = Chain::new(&problem, 100);
        let (program, _) = build_program(&problem, &plan.to_fates(&problem, &chain));
        // With the image: a run has input and output, a backward pass these and the gradients of both.
        assert_eq!(memory_by_step(&program), [2, 3, 3, 3, 4, 5, 5, 3, 4, 4, 5, 3, 4, 5, 3]);
        assert_eq!(least_room(&program), 5);
    }

    #[test]
    fn what_moves_comes_back_for_the_backward_pass() {
        let problem = shortcut_problem();
        let steps = vec![Save(0), Save(1), Save(2), Backward(2), Backward(1), Backward(0)];
        let mut plan = ChainPlan::new(steps, 3);
        plan.moves_saved[0] = true;
        let chain = Chain::new(&problem, 100);
        let (program, _) = build_program(&problem, &plan.to_fates(&problem, &chain));
        let moved: Vec<_> = program.returns.iter().map(|back| back.map.index()).collect();
        assert_eq!((program.departures.len(), moved), (1, vec![2]));
        assert_eq!(step_names(&program), "F0 F1 F2 F3 F4 B4 B2 A2 B1 B0");
    }

    #[test]
    fn what_no_backward_pass_reads_is_not_run_again() {
        let steps = vec![Save(0), Checkpoint(1), Save(2), Backward(2), Save(1), Backward(1), Backward(0)];
        // The backward passes of the second segment read its input alone.
        let plan = ChainPlan::new(steps, 3);
        assert_eq!(names(&shortcut_problem(), &plan), "F0 F1 F2 F3 F4 B4 B2 A2 B1 B0");
        let plan = ChainPlan::new(vec![Checkpoint(0), Save(1), Backward(1), Save(0), Backward(0)], 2);
        assert_eq!(names(&branching_problem(), &plan), "F0 F1 F2 F3 F4 B4 R0 R1 R2 B3 B2 B1 A1 B0");
    }
}
