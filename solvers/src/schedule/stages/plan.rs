//! A plan: the results that each stage finds, and the nodes that it runs.

use super::graph::NodeGraph;
use crate::schedule::fates::Fate;

/// What a solution holds, for each stage and each earlier node.
#[derive(Clone, Debug, Default)]
pub(super) struct StageValues {
    /// Which part of the result is there when the stage begins.
    pub(super) kept: Vec<Vec<f64>>,
    /// Which part of it has arrived from the host by then.
    pub(super) arrived: Vec<Vec<f64>>,
}

impl StageValues {
    fn has_arrived(&self, stage: usize, node: usize, threshold: f64) -> bool {
        let part = self.arrived.get(stage).and_then(|parts| parts.get(node));
        part.is_some_and(|&part| part >= threshold)
    }
}

/// What is there at the start of each stage, and what runs in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StagePlan {
    /// For each stage and each earlier node.
    kept: Vec<Vec<bool>>,
    /// For each stage and each node up to its own.
    runs: Vec<Vec<bool>>,
}

impl StagePlan {
    /// Keeps what has at least the threshold in a solution, and runs what that takes: the stage's own node, what the
    /// next stage keeps and this one does not find, and their inputs that are not there. In a lazy graph the next stage
    /// does without what nothing here reads, unless at least the threshold of it has arrived by then.
    pub(super) fn from_solution(graph: &NodeGraph, solution: &StageValues, threshold: f64) -> Self {
        let is_kept = |&part: &f64| part >= threshold;
        let mut kept: Vec<Vec<bool>> =
            solution.kept.iter().map(|parts| parts.iter().map(is_kept).collect()).collect();
        let mut runs = Vec::with_capacity(kept.len());
        for stage in 0..kept.len() {
            let mut runs_now = vec![false; stage];
            if let Some(next) = kept.get(stage + 1).filter(|_| !graph.is_lazy()) {
                let missing = kept[stage].iter().zip(next).map(|(&kept, &wanted)| wanted && !kept);
                runs_now = missing.collect();
            }
            runs_now.push(true);
            add_inputs(graph, &kept[stage], &mut runs_now);
            let here: Vec<bool> =
                (0..=stage).map(|node| runs_now[node] || kept[stage].get(node) == Some(&true)).collect();
            if let Some(next) = kept.get_mut(stage + 1) {
                for (node, (kept, is_here)) in next.iter_mut().zip(here).enumerate() {
                    *kept &= is_here || solution.has_arrived(stage + 1, node, threshold);
                }
            }
            runs.push(runs_now);
        }
        Self { kept, runs }
    }

    /// What becomes of the result of an earlier node before a stage, if `after` becomes of it after the stage. What is
    /// there and not used before it goes has gone before.
    pub(super) fn fate_before(&self, graph: &NodeGraph, stage: usize, node: usize, after: Fate) -> Fate {
        let (is_kept, is_awaited) = (self.kept[stage][node], after == Fate::Keep);
        if is_kept && (is_awaited || self.uses_result(graph, stage, node)) {
            Fate::Keep
        } else if is_kept {
            after
        } else if self.runs[stage][node] {
            Fate::Drop
        } else if is_awaited {
            // It has arrived.
            Fate::Swap
        } else {
            after
        }
    }

    /// Whether a node runs in a stage, or a reader of it does.
    fn uses_result(&self, graph: &NodeGraph, stage: usize, node: usize) -> bool {
        let runs = |node: usize| self.runs[stage].get(node) == Some(&true);
        runs(node) || graph.readers_of(node).iter().any(|&reader| runs(reader))
    }
}

/// Adds the inputs of what runs in a stage that are not there, with theirs.
fn add_inputs(graph: &NodeGraph, kept: &[bool], runs: &mut [bool]) {
    for node in (0..runs.len()).rev() {
        if runs[node] {
            let missing = graph.nodes()[node].inputs.iter().filter(|&&input| !kept[input]);
            missing.for_each(|&input| runs[input] = true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::stages::formulation::tests::least_seconds;
    use crate::schedule::stages::formulation::{Form, Formulation};
    use crate::schedule::stages::graph::tests::unit_chain;

    fn solve(graph: &NodeGraph, budget: f64, form: Form) -> StageValues {
        let (_, values) = Formulation::new(graph, budget, form)
            .solve(crate::milp::SolverLimits::default())
            .expect("a model");
        values.expect("a solution")
    }

    fn keep_values(kept: &[Vec<f64>]) -> StageValues {
        StageValues { kept: kept.to_vec(), ..StageValues::default() }
    }

    fn run_seconds(graph: &NodeGraph, plan: &StagePlan) -> f64 {
        let runs = plan.runs.iter().flat_map(|runs| runs.iter().zip(graph.nodes()));
        runs.filter(|&(&runs, _)| runs).map(|(_, node)| node.seconds).sum()
    }

    /// The most bytes in use, if a result is freed after its last use.
    fn peak_bytes(graph: &NodeGraph, plan: &StagePlan) -> u64 {
        let mut peak = 0_u64;
        for (stage, runs) in plan.runs.iter().enumerate() {
            let is_used_after = |node: usize, first: usize| {
                let keeps = plan.kept.get(stage + 1).is_some_and(|kept| kept[node]);
                keeps
                    || graph
                        .readers_of(node)
                        .iter()
                        .any(|&reader| reader >= first && runs.get(reader) == Some(&true))
            };
            let mut here: Vec<bool> = (0..=stage)
                .map(|node| node < stage && plan.kept[stage][node] && is_used_after(node, 0))
                .collect();
            for node in (0..=stage).filter(|&node| runs[node]) {
                here[node] = true;
                let bytes = here.iter().zip(graph.nodes()).filter(|&(&here, _)| here);
                peak = peak.max(bytes.map(|(_, node)| node.bytes).sum());
                for &freed in graph.nodes()[node].inputs.iter().chain([&node]) {
                    here[freed] &= is_used_after(freed, node + 1);
                }
            }
        }
        peak
    }

    #[test]
    fn plan_of_an_optimum_takes_its_time_and_its_memory() {
        for (length, budget) in [(4, 4_u32), (4, 5), (4, 6), (6, 5), (6, 6)] {
            let graph = unit_chain(length);
            let bytes = f64::from(budget);
            let plan = StagePlan::from_solution(&graph, &solve(&graph, bytes, Form::Whole), 0.5);
            let least = least_seconds(&graph, bytes, Form::Whole);
            assert!((run_seconds(&graph, &plan) - least).abs() < 1e-6, "{length} in {budget}");
            assert!(peak_bytes(&graph, &plan) <= u64::from(budget), "{length} in {budget}");
        }
    }

    #[test]
    fn rounding_is_no_faster_than_the_optimum() {
        let mut fitting = 0;
        for (length, budget) in [(4, 4_u32), (4, 5), (4, 6), (6, 5), (6, 6)] {
            let graph = unit_chain(length);
            let bytes = f64::from(budget);
            let least = least_seconds(&graph, bytes, Form::Whole);
            let solution = solve(&graph, bytes * 0.9, Form::Relaxed);
            for tenth in 1..10_u32 {
                let plan = StagePlan::from_solution(&graph, &solution, f64::from(tenth) / 10.0);
                if peak_bytes(&graph, &plan) <= u64::from(budget) {
                    assert!(run_seconds(&graph, &plan) > least - 1e-6, "{length} in {budget}");
                    fitting += 1;
                }
            }
        }
        assert!(fitting > 9, "only {fitting} fit");
    }

    #[test]
    fn plan_without_kept_results_runs_all_that_a_node_takes() {
        let graph = unit_chain(2);
        let nothing: Vec<_> = (0..5).map(|stage| vec![0.0; stage]).collect();
        let plan = StagePlan::from_solution(&graph, &keep_values(&nothing), 0.5);
        // 0, 0 1, 0 1 loss, 0 1 loss 1', all.
        assert_eq!(run_seconds(&graph, &plan), 15.0);
        assert!(plan.uses_result(&graph, 4, 1) && !plan.kept[4][1]);
    }

    #[test]
    fn result_that_is_kept_late_runs_early_unless_the_graph_is_lazy() {
        let graph = unit_chain(2);
        let mut solution: Vec<_> = (0..5).map(|stage| vec![1.0; stage]).collect();
        // Node 0 is gone in stage 2, and there again from stage 3 on; only the last stage reads it.
        solution[2][0] = 0.0;
        let eager = StagePlan::from_solution(&graph, &keep_values(&solution), 0.5);
        assert!(eager.runs[2][0] && eager.kept[3][0] && !eager.runs[4][0]);
        let graph = graph.with_laziness(true);
        let lazy = StagePlan::from_solution(&graph, &keep_values(&solution), 0.5);
        assert!(!lazy.runs[2][0] && !lazy.kept[3][0] && lazy.runs[4][0]);
        assert_eq!([eager, lazy].map(|plan| run_seconds(&graph, &plan)), [6.0, 6.0]);
    }

    #[test]
    fn result_that_has_arrived_does_not_run_again() {
        let graph = unit_chain(2).with_laziness(true);
        let mut solution = keep_values(&(0..5).map(|stage| vec![1.0; stage]).collect::<Vec<_>>());
        // Node 0 is gone in stages 2 and 3, and back in stage 4, which reads it.
        solution.kept[2][0] = 0.0;
        solution.kept[3][0] = 0.0;
        solution.arrived = (0..5).map(|stage| vec![0.0; stage]).collect();
        for (arrived, seconds, fate) in [(0.4, 6.0, Fate::Drop), (0.6, 5.0, Fate::Swap)] {
            solution.arrived[4][0] = arrived;
            let plan = StagePlan::from_solution(&graph, &solution, 0.5);
            assert_eq!(run_seconds(&graph, &plan), seconds);
            let fates = (2..5).rev().scan(Fate::Drop, |after, stage| {
                *after = plan.fate_before(&graph, stage, 0, *after);
                Some(*after)
            });
            let last = if arrived < 0.5 { Fate::Drop } else { Fate::Keep };
            assert_eq!(fates.collect::<Vec<_>>(), [last, fate, fate]);
        }
    }
}
