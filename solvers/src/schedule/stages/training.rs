//! The graph of a net in training: the forward passes, then the backward passes in reverse order, each with the sums of
//! gradients that its parts complete.
//!
//! A sum of gradients is a node, with an output of its own beside its two inputs, as on the machine. So is each gradient
//! of a pass that writes more than one: it may be freed alone. An addition that passes its gradient on is no node.

use planlab_dsa::Bytes;
use planlab_graph::{FunctionId, Machine, MapId, SchedulingProblem, TrainingNet};

use super::graph::{Link, Node, NodeGraph};
use super::plan::StagePlan;
use crate::schedule::fates::{Fate, Fates, backward_stage, forward_stage};

/// A net in training as a graph. Its first nodes are the functions' forward passes.
#[derive(Clone, Debug)]
pub(super) struct PassGraph<'p> {
    net: &'p TrainingNet,
    graph: NodeGraph,
    /// For each node: the stage of its pass among those of fates; `None` for a sum, and for all but the first of
    /// the gradients that a pass writes.
    stages: Vec<Option<usize>>,
    budget: u64,
}

impl<'p> PassGraph<'p> {
    /// Without copies.
    pub(super) fn new(problem: &'p SchedulingProblem) -> Self {
        let net = &problem.net;
        let inputs = net.map_ids().filter(|&map| !net.has_gradient(map));
        let inputs: u64 = inputs.map(|map| net.map(map).bytes.get()).sum();
        let free = problem.capacity.get().saturating_sub(problem.base().get());
        let mut builder = Builder {
            problem,
            nodes: Vec::new(),
            stages: Vec::new(),
            gradients: vec![None; net.maps().len()],
        };
        net.function_ids().for_each(|id| builder.add_forward(id));
        net.function_ids().rev().for_each(|id| builder.add_backward(id));
        let graph = NodeGraph::new(builder.nodes).with_laziness(true);
        Self { net, graph, stages: builder.stages, budget: free.saturating_sub(inputs) }
    }

    /// The same with copies of maps over the machine's link.
    pub(super) fn with_link(self, machine: &Machine) -> Self {
        let byte = Bytes::new(1);
        let link = Link { out: machine.out_seconds(byte), back: machine.in_seconds(byte) };
        Self { graph: self.graph.with_link(link), ..self }
    }

    pub(super) const fn graph(&self) -> &NodeGraph {
        &self.graph
    }

    /// Bytes for the results of nodes.
    pub(super) const fn budget(&self) -> u64 {
        self.budget
    }

    /// The fates of a plan: after a stage, a map is kept if the plan keeps it until a stage uses it, and swapped if it
    /// arrives from the host before it runs again.
    pub(super) fn plan_fates(&self, plan: &StagePlan) -> Fates {
        let mut fates = Fates::keep_all(self.net);
        for id in self.net.function_ids() {
            let (node, map) = (id.index(), self.net.function(id).output);
            let mut fate = Fate::Drop;
            for stage in (node..self.graph.count_stages()).rev() {
                if let Some(pass) = self.stages[stage] {
                    fates.set_fate(map, pass, pass + 1, fate);
                }
                if stage > node {
                    fate = plan.fate_before(&self.graph, stage, node, fate);
                }
            }
        }
        fates
    }
}

/// The number of nodes of a net's graph, which need not be built: passes, further gradients of passes, and sums.
pub(in crate::schedule) fn count_nodes(net: &TrainingNet) -> usize {
    let mut parts = vec![0_usize; net.maps().len()];
    let mut nodes = net.functions().len();
    for id in net.function_ids() {
        let written = net.function(id).inputs.iter().filter(|&&map| net.has_gradient(map));
        written.clone().for_each(|map| parts[map.index()] += 1);
        if net.has_backward_pass(id) {
            nodes += written.count().max(1);
        }
    }
    nodes + parts.into_iter().map(|parts| parts.saturating_sub(1)).sum::<usize>()
}

struct Builder<'p> {
    problem: &'p SchedulingProblem,
    nodes: Vec<Node>,
    stages: Vec<Option<usize>>,
    /// For each map: the node that holds the sum of the gradients so far.
    gradients: Vec<Option<usize>>,
}

impl Builder<'_> {
    fn add_node(&mut self, mut node: Node, stage: Option<usize>) -> usize {
        node.inputs.sort_unstable();
        node.inputs.dedup();
        self.nodes.push(node);
        self.stages.push(stage);
        self.nodes.len() - 1
    }

    /// The nodes that make these maps.
    fn producing_nodes(&self, maps: &[MapId]) -> Vec<usize> {
        maps.iter().filter_map(|&map| self.problem.net.producer_of(map)).map(FunctionId::index).collect()
    }

    fn add_forward(&mut self, id: FunctionId) {
        let function = self.problem.net.function(id);
        let node = Node {
            seconds: self.problem.times.forward()[id.index()],
            bytes: self.problem.net.map(function.output).bytes.get(),
            inputs: self.producing_nodes(&function.inputs),
            runs_once: false,
        };
        self.add_node(node, Some(forward_stage(id)));
    }

    /// Adds a backward pass, and the sums that its gradients complete.
    fn add_backward(&mut self, id: FunctionId) {
        let net = &self.problem.net;
        let function = net.function(id);
        let gradient = self.gradients[function.output.index()];
        let outputs: Vec<MapId> =
            function.inputs.iter().copied().filter(|&map| net.has_gradient(map)).collect();
        let parts = match gradient {
            Some(gradient) if !net.has_backward_pass(id) => vec![gradient; outputs.len()],
            _ => self.add_pass(id, gradient, &outputs),
        };
        for (map, part) in outputs.into_iter().zip(parts) {
            self.add_gradient(map, part);
        }
    }

    /// Adds a node for each gradient that a backward pass writes; they have the same inputs, and the first takes the
    /// time of the pass.
    fn add_pass(&mut self, id: FunctionId, gradient: Option<usize>, outputs: &[MapId]) -> Vec<usize> {
        let problem = self.problem;
        let mut inputs = self.producing_nodes(&problem.net.function(id).needs);
        inputs.extend(gradient);
        let mut sizes = outputs.iter().map(|&map| problem.net.map(map).bytes.get());
        let node = |seconds, bytes| Node { seconds, bytes, inputs: inputs.clone(), runs_once: true };
        let pass = node(problem.times.backward()[id.index()], sizes.next().unwrap_or(0));
        let stage = backward_stage(id, problem.net.functions().len());
        let mut added = vec![self.add_node(pass, Some(stage))];
        added.extend(sizes.map(|bytes| self.add_node(node(0.0, bytes), None)));
        added
    }

    /// Adds a part of a map's gradient to those before it.
    fn add_gradient(&mut self, map: MapId, part: usize) {
        let sum = self.gradients[map.index()].map(|before| {
            let seconds = self.problem.times.accumulate_times()[map.index()];
            let bytes = self.problem.net.map(map).bytes.get();
            self.add_node(Node { seconds, bytes, inputs: vec![before, part], runs_once: true }, None)
        });
        self.gradients[map.index()] = Some(sum.unwrap_or(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::fates::build_program;
    use crate::schedule::stages::plan::StageValues;
    use crate::schedule::testing::{branching_problem, shortcut_problem, step_names};

    /// For each node: seconds, bytes and inputs.
    fn rows_of(graph: &NodeGraph) -> Vec<(f64, u64, Vec<usize>)> {
        graph.nodes().iter().map(|node| (node.seconds, node.bytes, node.inputs.clone())).collect()
    }

    #[test]
    fn addition_passes_its_gradient_on_and_a_sum_is_a_node() {
        let problem = shortcut_problem();
        let passes = PassGraph::new(&problem);
        let wanted = [
            (2.0, 256, vec![]),
            (2.0, 256, vec![0]),
            (2.0, 256, vec![1]),
            (2.0, 256, vec![1, 2]),
            (2.0, 4, vec![3]),
            // The loss; the second convolution; the sum of both gradients of the relu.
            (2.0, 256, vec![3]),
            (2.0, 256, vec![1, 5]),
            (3.0, 256, vec![5, 6]),
            (2.0, 256, vec![1, 7]),
            (2.0, 0, vec![8]),
        ];
        assert_eq!(rows_of(passes.graph()), wanted);
        assert_eq!(count_nodes(&problem.net), wanted.len());
        let sum = 7;
        assert_eq!(passes.stages[..sum], [0, 1, 2, 3, 4, 5, 7].map(Some));
        assert_eq!(passes.stages[sum..], [None, Some(8), Some(9)]);
        assert_eq!(passes.budget(), problem.capacity.get() - 64);
    }

    #[test]
    fn each_gradient_of_a_pass_is_a_node() {
        let problem = branching_problem();
        let rows = rows_of(PassGraph::new(&problem).graph());
        assert_eq!(count_nodes(&problem.net), rows.len());
        // The product; the tanh and the relu; the sum of both gradients of the convolution.
        assert_eq!(rows[6..8], [(2.0, 256, vec![1, 2, 5]), (0.0, 256, vec![1, 2, 5])]);
        assert_eq!(rows[8..10], [(2.0, 256, vec![2, 7]), (2.0, 256, vec![1, 6])]);
        assert_eq!(rows[10..], [(3.0, 256, vec![8, 9]), (2.0, 0, vec![10])]);
    }

    #[test]
    fn map_that_a_plan_keeps_in_vain_is_dropped() {
        let problem = shortcut_problem();
        let passes = PassGraph::new(&problem);
        let steps = |solution: &[Vec<f64>]| {
            let values = StageValues { kept: solution.to_vec(), ..StageValues::default() };
            let plan = StagePlan::from_solution(passes.graph(), &values, 0.5);
            step_names(&build_program(&problem, &passes.plan_fates(&plan)).0)
        };
        let mut solution: Vec<_> = (0..10).map(|stage| vec![1.0; stage]).collect();
        assert_eq!(steps(&solution), "F0 F1 F2 F3 F4 B4 B2 A2 B1 B0");
        // The relu is kept until the loss, but not for the backward pass of the second convolution, which runs it again.
        solution[6][1] = 0.0;
        assert_eq!(steps(&solution), "F0 F1 F2 F3 F4 B4 R1 B2 A2 B1 B0");
        // It is gone once more after that pass, in the stage of the sum.
        solution[7][1] = 0.0;
        assert_eq!(steps(&solution), "F0 F1 F2 F3 F4 B4 R1 B2 A2 R1 B1 B0");
        // What it reads is gone, too.
        solution[6][0] = 0.0;
        assert_eq!(steps(&solution), "F0 F1 F2 F3 F4 B4 R0 R1 B2 A2 R1 B1 B0");
    }
}
