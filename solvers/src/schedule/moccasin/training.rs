//! The iteration of a net as an order of computations, and the fates of a solution.

use planlab_dsa::BufferId;
use planlab_graph::{Content, Engine, MapId, Schedule, SchedulingProblem, Task};

use super::retention::{Load, Node, RetentionProblem, Runs};
use crate::schedule::fates::{Fate, Fates, backward_stage, build_program, forward_stage};

/// The order of a net's passes: first its inputs, which are there from the start, then the forward passes, then the
/// backward passes.
pub(super) struct TrainingOrder<'p> {
    problem: &'p SchedulingProblem,
    /// The inputs of the net that a function reads.
    inputs: Vec<MapId>,
    /// The computations, with the bytes of gradients as loads.
    pub(super) retention: RetentionProblem,
}

impl<'p> TrainingOrder<'p> {
    /// The order of a problem; `None` if there is no room for any map.
    pub(super) fn new(problem: &'p SchedulingProblem) -> Option<Self> {
        let net = &problem.net;
        let is_input = |map: &MapId| net.producer_of(*map).is_none();
        let is_read = |map: &MapId| net.last_use(*map).is_some();
        let (inputs, unread): (Vec<_>, Vec<_>) = net.map_ids().filter(is_input).partition(is_read);
        let unread: u64 = unread.iter().map(|&map| net.map(map).bytes.get()).sum();
        let budget = problem.capacity.get().checked_sub(problem.base().get())?.checked_sub(unread)?;
        let retention = RetentionProblem { nodes: Vec::new(), loads: Vec::new(), budget };
        let mut order = Self { problem, inputs, retention };
        order.add_nodes();
        order.retention.loads = vec![Load::default(); order.inputs.len()];
        order.retention.loads.extend(gradient_loads(problem));
        Some(order)
    }

    fn add_nodes(&mut self) {
        let problem = self.problem;
        let (net, times) = (&problem.net, &problem.times);
        let mut node_of_map = vec![None; net.maps().len()];
        for (node, map) in self.inputs.iter().enumerate() {
            node_of_map[map.index()] = Some(node);
        }
        for id in net.function_ids() {
            node_of_map[net.function(id).output.index()] = Some(self.inputs.len() + forward_stage(id));
        }
        let nodes_of = |maps: &[MapId]| {
            let mut nodes: Vec<usize> = maps.iter().filter_map(|map| node_of_map[map.index()]).collect();
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        };
        let bytes = |map: MapId| net.map(map).bytes.get();
        let given =
            |&map: &MapId| Node { cost: 0.0, bytes: bytes(map), inputs: Vec::new(), may_repeat: false };
        let mut nodes: Vec<Node> = self.inputs.iter().map(given).collect();
        for id in net.function_ids() {
            let function = net.function(id);
            let (cost, bytes) = (times.forward()[id.index()], bytes(function.output));
            nodes.push(Node { cost, bytes, inputs: nodes_of(&function.inputs), may_repeat: true });
        }
        for id in net.function_ids().rev() {
            let needs: &[MapId] = if net.has_backward_pass(id) { &net.function(id).needs } else { &[] };
            nodes.push(Node { cost: 0.0, bytes: 0, inputs: nodes_of(needs), may_repeat: false });
        }
        self.retention.nodes = nodes;
    }

    /// The fates of maps in a solution: each is dropped after the last read before it is made again.
    pub(super) fn to_fates(&self, runs: &Runs) -> Fates {
        let net = &self.problem.net;
        let mut fates = Fates::keep_all(net);
        let first = self.inputs.len();
        let held = self.retention.retain_values(runs);
        for id in net.function_ids() {
            for pair in held[first + forward_stage(id)].windows(2) {
                let (stage, next) = (pair[0].last.0 - first, pair[1].stage - first);
                fates.set_fate(net.function(id).output, stage, next, Fate::Drop);
            }
        }
        fates
    }

    /// The stages in which the passes of a schedule run, if none runs more than `computations` times.
    pub(super) fn runs_of_schedule(&self, schedule: &Schedule, computations: usize) -> Option<Runs> {
        let net = &self.problem.net;
        let first = self.inputs.len();
        let mut runs = self.retention.run_once();
        let mut following = None;
        for event in schedule.events_of(Engine::Compute).iter().rev() {
            match event.task {
                Task::Forward(id) => following = Some(first + forward_stage(id)),
                Task::Backward(id) => following = Some(first + backward_stage(id, net.functions().len())),
                Task::Recompute(id) => runs[first + forward_stage(id)].push(following?),
                Task::Accumulate(_) | Task::CopyOut(_) | Task::CopyIn(_) => {}
            }
        }
        for stages in &mut runs {
            stages.sort_unstable();
            stages.dedup();
        }
        runs.iter().all(|stages| stages.len() <= computations).then_some(runs)
    }
}

/// For each pass, the bytes of gradients. They do not depend on the fates of maps.
fn gradient_loads(problem: &SchedulingProblem) -> Vec<Load> {
    let functions = problem.net.functions().len();
    let (program, _) = build_program(problem, &Fates::keep_all(&problem.net));
    let gradient_bytes = |ids: &[BufferId]| {
        let buffers = ids.iter().map(|&id| program.schedule.buffer(id));
        let gradients = buffers.filter(|buffer| matches!(buffer.content, Content::Gradient(_)));
        gradients.map(|buffer| buffer.bytes.get()).sum::<u64>()
    };
    let mut loads = vec![Load::default(); 2 * functions];
    let (mut live, mut stage) = (0, 0);
    for event in program.compute_steps() {
        if let Task::Backward(id) = event.task {
            // The pass of an addition has no event.
            let next = backward_stage(id, functions);
            loads[stage + 1..=next].fill(Load { before: live, during: live, after: live });
            stage = next;
        } else if let Task::Forward(id) = event.task {
            stage = forward_stage(id);
        }
        live += gradient_bytes(&event.writes);
        let most = live;
        live -= gradient_bytes(&event.frees);
        let load = &mut loads[stage];
        if matches!(event.task, Task::Accumulate(_)) {
            load.after = load.after.max(most);
        } else {
            (load.during, load.after) = (most, live);
        }
    }
    loads
}
