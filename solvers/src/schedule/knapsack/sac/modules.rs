//! The modules of a net: blocks between articulation points, and a balanced binary tree over them.
//!
//! A block ends at a map that a backward pass reads and through which all later functions get their inputs. Consecutive
//! blocks are joined if there are more than [`MOST_BLOCKS`].

use std::ops::Range;

use planlab_dsa::BufferId;
use planlab_graph::{Content, FunctionId, MapId, SchedulingProblem, Task, TrainingNet};

use super::curve::trade_off_lines;
use super::program::ModuleStats;
use crate::schedule::checkpoints::carrier_maps;
use crate::schedule::fates::{Fates, build_program};
use crate::schedule::knapsack::activations::{Activation, total_bytes};
use crate::schedule::program::memory_by_step;

/// The most blocks: 63 modules.
const MOST_BLOCKS: usize = 32;

/// A module of a net.
#[derive(Clone, Debug)]
pub(super) struct NetModule {
    /// The maps that it may discard: all that its functions make, except its output.
    pub(super) maps: Vec<MapId>,
    pub(super) stats: ModuleStats,
}

/// The modules of a net, in pre-order.
pub(super) fn list_modules(problem: &SchedulingProblem) -> Vec<NetModule> {
    let mut spans = Vec::new();
    push_tree(&split_blocks(&problem.net), &mut spans);
    let steps = list_backward_steps(problem);
    spans.into_iter().map(|(functions, end)| measure_module(problem, &steps, &functions, end)).collect()
}

/// The functions of each block.
fn split_blocks(net: &TrainingNet) -> Vec<Range<usize>> {
    let carriers = carrier_maps(net);
    let functions = net.functions().len();
    let is_end = |id: &FunctionId| {
        let output = net.function(*id).output;
        carriers[output.index()] && net.is_retained(output)
    };
    let ends = net.function_ids().filter(is_end).map(|id| id.index() + 1);
    let ends: Vec<usize> = ends.filter(|&end| end < functions).collect();
    let joined = (ends.len() + 1).div_ceil(MOST_BLOCKS);
    let ends: Vec<usize> = ends.into_iter().skip(joined - 1).step_by(joined).chain([functions]).collect();
    let starts = [0].into_iter().chain(ends.clone());
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// Appends the functions of each module, in pre-order, with the index after its last inner module.
fn push_tree(blocks: &[Range<usize>], spans: &mut Vec<(Range<usize>, usize)>) {
    let [first, .., last] = blocks else {
        let end = spans.len() + 1;
        spans.extend(blocks.iter().map(|block| (block.clone(), end)));
        return;
    };
    let index = spans.len();
    spans.push((first.start..last.end, 0));
    let (left, right) = blocks.split_at(blocks.len() / 2);
    push_tree(left, spans);
    push_tree(right, spans);
    spans[index].1 = spans.len();
}

/// A step of the backward pass if everything is kept.
struct BackwardStep {
    function: usize,
    /// Bytes of maps.
    activations: u64,
    /// Bytes of gradients.
    gradients: u64,
}

/// The steps from the first backward pass on; sums of gradients belong to the pass before them.
fn list_backward_steps(problem: &SchedulingProblem) -> Vec<BackwardStep> {
    let (program, _) = build_program(problem, &Fates::keep_all(&problem.net));
    let gradient_bytes = |ids: &[BufferId]| {
        let buffers = ids.iter().map(|&id| program.schedule.buffer(id));
        let gradients = buffers.filter(|buffer| matches!(buffer.content, Content::Gradient(_)));
        gradients.map(|buffer| buffer.bytes.get()).sum::<u64>()
    };
    let mut steps = Vec::new();
    let (mut function, mut gradients) = (None, 0);
    for (event, taken) in program.compute_steps().iter().zip(memory_by_step(&program)) {
        if let Task::Backward(id) = event.task {
            function = Some(id.index());
        }
        gradients += gradient_bytes(&event.writes);
        if let Some(function) = function {
            let activations = taken - problem.base().get() - gradients;
            steps.push(BackwardStep { function, activations, gradients });
        }
        gradients -= gradient_bytes(&event.frees);
    }
    steps
}

fn measure_module(
    problem: &SchedulingProblem,
    steps: &[BackwardStep],
    functions: &Range<usize>,
    subtree_end: usize,
) -> NetModule {
    let net = &problem.net;
    let bytes = |map: &MapId| net.map(*map).bytes.get();
    let inner = functions.start..functions.end - 1;
    let maps: Vec<MapId> = net.functions()[inner].iter().map(|function| function.output).collect();
    let activations: Vec<Activation> = maps.iter().map(|&map| Activation::from_map(problem, map)).collect();
    let own = steps.iter().filter(|step| functions.contains(&step.function));
    let peak = own.max_by_key(|step| step.activations + step.gradients);
    let stats = ModuleStats {
        subtree_end,
        saved: maps.iter().filter(|&&map| net.is_retained(map)).map(bytes).sum::<u64>() as f64,
        all: total_bytes(&activations) as f64,
        total: peak.map_or(0, |step| step.activations) as f64,
        gradients: peak.map_or(0, |step| step.gradients) as f64,
        seconds: activations.iter().map(|activation| activation.seconds).sum(),
        lines: trade_off_lines(&activations),
    };
    NetModule { maps, stats }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::knapsack::testing::chain_problem;
    use crate::schedule::testing::shortcut_problem;

    #[test]
    fn blocks_end_at_articulation_points_that_are_read_again() {
        let problem = shortcut_problem();
        assert_eq!(split_blocks(&problem.net), [0..2, 2..4, 4..5]);
        let long = chain_problem(&[1.0; 70]);
        let blocks = split_blocks(&long.net);
        assert_eq!((blocks.len(), &blocks[0], &blocks[23]), (24, &(0..3), &(69..70)));
    }

    #[test]
    fn modules_of_a_shortcut_have_its_figures() {
        let modules = list_modules(&shortcut_problem());
        let figures = |module: &NetModule| {
            let ModuleStats { subtree_end, saved, all, total, gradients, seconds, .. } = module.stats;
            (subtree_end, [saved, all, total, gradients, seconds])
        };
        // The halves of three blocks have one and two. The sum of the relu's gradients, of three buffers of 256 bytes, is
        // the peak; the image and the relu are there.
        assert_eq!(
            modules.iter().map(figures).collect::<Vec<_>>(),
            [
                (5, [512.0, 1024.0, 320.0, 768.0, 8.0]),
                (2, [0.0, 256.0, 320.0, 512.0, 2.0]),
                (5, [256.0, 512.0, 320.0, 768.0, 4.0]),
                (4, [0.0, 256.0, 320.0, 768.0, 2.0]),
                (5, [0.0, 0.0, 576.0, 256.0, 0.0]),
            ]
        );
        let maps = |index: usize| modules[index].maps.iter().map(|map| map.index()).collect::<Vec<_>>();
        assert_eq!((maps(0), maps(2), maps(4)), (vec![1, 2, 3, 4], vec![3, 4], vec![]));
    }
}
