//! A bound on the memory of every schedule that the [validator](crate::validate_schedule) accepts.
//!
//! It is the most that one event takes, of the events that no schedule avoids. Every schedule starts with the inputs of
//! the net on the device, runs every pass, and sums every gradient that has several parts. While an event runs, its
//! operands and its results are in different buffers, all of them on the device.
//!
//! Gradients *wait* during backward passes and sums. A part of a gradient is made once, and is never copied. From then
//! until the pass that reads the gradient, some buffer holds it, alone or in a sum. Backward passes follow the net from its
//! outputs. Let a map x lead to a function g, and g to a function f that reads x. Then f has contributed to the
//! gradient of x before g's backward pass, and x's producer reads that gradient after it.
//!
//! An addition passes its gradient on, so the gradients of the maps that it joins may be one buffer. Such maps are a
//! *group*, all of one size. Of a group, one buffer counts, and none if the event reads a gradient of the group.
//!
//! Offsets add gaps to these bytes, so the bound holds for heights, too.
//!
//! # Complexity
//!
//! O(n) for n functions and their operands, and O(s) more for each map whose readers span s functions.

use std::collections::BTreeSet;

use planlab_dsa::Bytes;

use super::bounds::{Gradients, ScheduleEvidence};
use crate::{FunctionId, MapId, SchedulingProblem, Task, TrainingNet};

/// A proven lower bound on the memory of every schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBound {
    /// Bytes on the device, base included.
    pub bytes: Bytes,
    /// How it was obtained: `compute` or `search`.
    pub evidence: ScheduleEvidence,
    /// The task that takes these bytes; `None` for the inputs of the net at the start, and for a search.
    pub task: Option<Task>,
}

impl MemoryBound {
    /// The bound if a search of all schedules has found none in `capacity` bytes.
    #[must_use]
    pub const fn above_searched(capacity: Bytes) -> Self {
        let bytes = Bytes::new(capacity.get().saturating_add(1));
        Self { bytes, evidence: ScheduleEvidence::Search, task: None }
    }

    /// Why no schedule fits the capacity of a problem that this bound exceeds.
    #[must_use]
    pub fn explain_shortfall(&self, problem: &SchedulingProblem) -> String {
        let (bytes, capacity, base) = (self.bytes, problem.capacity, problem.base());
        if self.evidence == ScheduleEvidence::Search {
            return format!("out of memory: a search of all schedules found none in {capacity} bytes");
        }
        let rest = bytes.get().saturating_sub(base.get());
        let what = describe_task(&problem.net, self.task);
        format!(
            "out of memory: every schedule needs at least {bytes} bytes, but the capacity is {capacity}: {what} takes {rest} \
             beside {base} bytes of parameters and workspace"
        )
    }
}

fn describe_task(net: &TrainingNet, task: Option<Task>) -> String {
    match task {
        None => "the input of the net".to_owned(),
        Some(Task::Forward(id) | Task::Recompute(id)) => {
            format!("the forward pass of `{}`", net.function(id).name)
        }
        Some(Task::Backward(id)) => format!("the backward pass of `{}`", net.function(id).name),
        Some(Task::Accumulate(map)) => format!("a sum of gradients of `{}`", net.map(map).name),
        Some(Task::CopyOut(map) | Task::CopyIn(map)) => format!("a copy of `{}`", net.map(map).name),
    }
}

/// The memory that every schedule needs at least.
#[must_use]
pub fn bound_memory(problem: &SchedulingProblem) -> MemoryBound {
    let net = &problem.net;
    let waiting = SkipConnections::new(net).waiting_bytes();
    let start = (total_bytes(net, net.map_ids().filter(|&map| is_read_input(net, map))), None);
    let forward = net.function_ids().map(|id| (forward_bytes(net, id), Some(Task::Forward(id))));
    let backward = net.function_ids().filter(|&id| net.has_backward_pass(id)).map(|id| {
        let bytes = backward_bytes(net, id).saturating_add(waiting[id.index()]);
        (bytes, Some(Task::Backward(id)))
    });
    let sums = sum_bytes(net).into_iter().map(|(map, bytes)| {
        let beside = net.producer_of(map).map_or(0, |producer| waiting[producer.index()]);
        (bytes.saturating_add(beside), Some(Task::Accumulate(map)))
    });
    let events = forward.chain(backward).chain(sums);
    let (bytes, task) = events.fold(start, |most, event| if event.0 > most.0 { event } else { most });
    let bytes = Bytes::new(problem.base().get().saturating_add(bytes));
    MemoryBound { bytes, evidence: ScheduleEvidence::Compute, task }
}

fn total_bytes(net: &TrainingNet, maps: impl IntoIterator<Item = MapId>) -> u64 {
    maps.into_iter().fold(0, |sum, map| sum.saturating_add(net.map(map).bytes.get()))
}

/// Whether the map is an input of the net that a function reads.
fn is_read_input(net: &TrainingNet, map: MapId) -> bool {
    net.producer_of(map).is_none() && net.last_use(map).is_some()
}

/// The bytes that the forward pass of a function reads and writes.
fn forward_bytes(net: &TrainingNet, id: FunctionId) -> u64 {
    let function = net.function(id);
    let inputs: BTreeSet<MapId> = function.inputs.iter().copied().collect();
    total_bytes(net, inputs.into_iter().chain([function.output]))
}

/// The bytes that the backward pass of a function reads and writes. It writes a part for each place of an input.
fn backward_bytes(net: &TrainingNet, id: FunctionId) -> u64 {
    let function = net.function(id);
    let needs: BTreeSet<MapId> = function.needs.iter().copied().collect();
    let gradient = net.last_use(function.output).map(|_| function.output);
    let parts = function.inputs.iter().copied().filter(|&input| net.has_gradient(input));
    total_bytes(net, needs.into_iter().chain(gradient).chain(parts))
}

/// For each map whose gradient is summed, the bytes that one of its sums reads and writes. It reads one buffer twice if
/// all parts are equal.
fn sum_bytes(net: &TrainingNet) -> Vec<(MapId, u64)> {
    let gradients = Gradients::new(net);
    let sum = |map: usize| {
        let buffers = if gradients.has_equal_parts(map) { 2 } else { 3 };
        let id = MapId::from_index(map);
        (id, net.map(id).bytes.get().saturating_mul(buffers))
    };
    gradients.summed_maps().map(sum).collect()
}

/// The ways through a net that pass from a map to the functions that contribute to its gradient.
struct SkipConnections<'n> {
    net: &'n TrainingNet,
    /// For each map, the functions that read it, ascending.
    readers: Vec<Vec<FunctionId>>,
    /// For each map, the map that stands for its group.
    groups: Vec<usize>,
}

impl<'n> SkipConnections<'n> {
    fn new(net: &'n TrainingNet) -> Self {
        let mut readers: Vec<Vec<FunctionId>> = vec![Vec::new(); net.maps().len()];
        for id in net.function_ids() {
            for input in &net.function(id).inputs {
                if readers[input.index()].last() != Some(&id) {
                    readers[input.index()].push(id);
                }
            }
        }
        Self { net, readers, groups: group_maps(net) }
    }

    /// For each function, the bytes of the gradients that wait while its backward pass runs, or the sum that makes the
    /// gradient of its output.
    fn waiting_bytes(&self) -> Vec<u64> {
        let net = self.net;
        let mut waiting: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); net.functions().len()];
        for producer in net.function_ids().filter(|&id| net.has_backward_pass(id)) {
            let map = net.function(producer).output;
            let group = self.groups[map.index()];
            for skipped in self.skipped_functions(producer.index() + 1, map) {
                if self.groups[net.function(skipped).output.index()] != group {
                    waiting[skipped.index()].insert(group);
                }
            }
        }
        waiting
            .into_iter()
            .map(|groups| total_bytes(net, groups.into_iter().map(MapId::from_index)))
            .collect()
    }

    /// The functions to which a map leads, and which lead to a contributor to its gradient. All are from `start` on.
    fn skipped_functions(&self, start: usize, map: MapId) -> Vec<FunctionId> {
        let contributors = self.find_contributors(map);
        let Some(last) = contributors.last().filter(|_| contributors.len() > 1) else { return Vec::new() };
        let between = || (start..=last.index()).map(FunctionId::from_index);
        let mut follows = vec![false; last.index() + 1 - start];
        for id in between() {
            follows[id.index() - start] = self.net.function(id).inputs.iter().any(|&input| {
                let maker = self.net.producer_of(input).and_then(|maker| maker.index().checked_sub(start));
                input == map || maker.is_some_and(|maker| follows[maker])
            });
        }
        let mut leads = vec![false; follows.len()];
        for id in between().rev() {
            let readers = &self.readers[self.net.function(id).output.index()];
            leads[id.index() - start] = readers
                .iter()
                .take_while(|&reader| reader <= last)
                .any(|reader| contributors.contains(reader) || leads[reader.index() - start]);
        }
        between().filter(|id| follows[id.index() - start] && leads[id.index() - start]).collect()
    }

    /// The functions whose backward passes make the parts of a map's gradient: its readers, and those of what additions
    /// make of it.
    fn find_contributors(&self, map: MapId) -> BTreeSet<FunctionId> {
        let mut contributors = BTreeSet::new();
        let (mut open, mut seen) = (vec![map], BTreeSet::from([map]));
        while let Some(map) = open.pop() {
            for &reader in &self.readers[map.index()] {
                let output = self.net.function(reader).output;
                if self.net.has_backward_pass(reader) {
                    contributors.insert(reader);
                } else if seen.insert(output) {
                    open.push(output);
                }
            }
        }
        contributors
    }
}

/// For each map, the map that stands for its group: those that additions join.
fn group_maps(net: &TrainingNet) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..net.maps().len()).collect();
    for id in net.function_ids().filter(|&id| !net.has_backward_pass(id)) {
        let function = net.function(id);
        let root = find_root(&parents, function.output.index());
        for input in &function.inputs {
            let other = find_root(&parents, input.index());
            parents[other] = root;
        }
    }
    (0..parents.len()).map(|map| find_root(&parents, map)).collect()
}

fn find_root(parents: &[usize], mut map: usize) -> usize {
    while parents[map] != map {
        map = parents[map];
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::bounds::tests::net_of;
    use crate::schedule::training::shortcut_net;
    use crate::{FeatureMap, Machine};

    /// The bound of a net as of [`net_of`] with maps of these bytes, beside two bytes of workspace.
    fn bound_of(inputs: &[&[usize]], bytes: &[u64]) -> (u64, Option<Task>) {
        let net = net_of(inputs);
        let map = |&bytes: &u64| FeatureMap { bytes: Bytes::new(bytes), ..FeatureMap::default() };
        let maps = bytes.iter().map(map).collect();
        let net = TrainingNet::new("net", 1, 0, maps, net.functions().to_vec()).expect("a net");
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        let problem = SchedulingProblem::new(net, Machine { workspace: Bytes::new(2), ..machine });
        let bound = bound_memory(&problem);
        (bound.bytes.get(), bound.task)
    }

    #[test]
    fn largest_event_of_a_chain_is_the_bound() {
        let chain: [&[usize]; 3] = [&[0], &[1], &[2]];
        let [first, second] = [0, 1].map(FunctionId::from_index);
        assert_eq!(bound_of(&chain, &[8, 1, 2, 3]), (2 + 9, Some(Task::Forward(first))));
        assert_eq!(bound_of(&chain, &[1, 5, 5, 1]), (2 + 10, Some(Task::Forward(second))));
    }

    #[test]
    fn gradient_of_a_shortcut_waits_during_the_branch() {
        // x (4 bytes) -> 12 bytes -> y (4 bytes), and x + y.
        let shortcut: [&[usize]; 5] = [&[0], &[1], &[2], &[1, 3], &[4]];
        let branch = Some(Task::Backward(FunctionId::from_index(1)));
        assert_eq!(bound_of(&shortcut, &[1, 4, 12, 4, 4, 1]), (2 + 12 + 4 + 4, branch));
        // The gradient of y is that of the sum, which waits for x: its pass reads the same buffer.
        assert_eq!(SkipConnections::new(&net_of(&shortcut)).waiting_bytes(), [0, 4, 0, 0, 0]);
    }

    #[test]
    fn sum_of_equal_parts_reads_one_buffer() {
        let map = MapId::from_index(1);
        // The addition reads one map, too.
        let equal: [&[usize]; 3] = [&[0], &[1, 1], &[2]];
        assert_eq!(bound_of(&equal, &[1, 4, 4, 1]), (2 + 8, Some(Task::Forward(FunctionId::from_index(1)))));
        let different: [&[usize]; 3] = [&[0], &[1], &[1]];
        assert_eq!(bound_of(&different, &[1, 4, 1, 1]), (2 + 12, Some(Task::Accumulate(map))));
    }

    #[test]
    fn shortfall_names_capacity_bound_and_operation() {
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        let problem = SchedulingProblem::new(shortcut_net(), machine).with_capacity(Bytes::new(8_001_967));
        let bound = bound_memory(&problem);
        assert_eq!(bound.bytes.get(), 8_001_200 + 3 * 256);
        let text = bound.explain_shortfall(&problem);
        assert!(text.starts_with(
            "out of memory: every schedule needs at least 8001968 bytes, but the capacity is 8001967: "
        ));
        assert!(text.ends_with("`add` takes 768 beside 8001200 bytes of parameters and workspace"), "{text}");
        let searched = MemoryBound::above_searched(problem.capacity);
        assert_eq!((searched.bytes.get(), searched.task), (8_001_968, None));
        assert!(searched.explain_shortfall(&problem).ends_with("found none in 8001967 bytes"));
    }
}
