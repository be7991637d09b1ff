//! A bound on the memory of every schedule that the [validator](crate::validate_schedule) accepts.
//!
//! It is the most that one event takes, of the events that no schedule avoids. Every schedule starts with the inputs of
//! the net on the device, runs every pass, and sums every gradient that has several parts. While an event runs, its
//! operands and its results are in different buffers, all of them on the device.
//!
//! Gradients *wait* during backward passes and sums. A part of a gradient is made once, and is never copied. From then
//! until the pass that reads the gradient, some buffer that leads to this pass holds it, alone or in a sum. Backward passes follow the net from its
//! outputs. Let a map x lead to a function g, and g to a function f that reads x. Then f has contributed to the
//! gradient of x before g's backward pass, and x's producer reads that gradient after it.
//!
//! An addition passes its gradient on, so the gradients of the maps that it joins may be one buffer. Such maps are a
//! *group*, all of one size. Of a group, one buffer counts, and none if the event reads a gradient of the group.
//!
//! It is enough that g follows one map of the group, and leads to a function that reads another. Suppose that no part of a
//! gradient of the group waits. Then for each map, either all parts have been made and read, or none has been made. The maps
//! of an addition share parts, so the same holds for all maps of the group. But the first map's gradient is read after g's
//! backward pass, and the other one has a part. Maps whose gradient no backward pass reads join no group: their parts do not
//! wait.
//!
//! The same holds beside one sum of each gradient. Of the sums that no schedule avoids, one adds two different values and
//! includes every part, or all parts are equal. By then every function f has contributed.
//!
//! Offsets add gaps to these bytes, so the bound holds for heights, too.
//!
//! # Complexity
//!
//! O(n log n) time for n functions with few operands each, and O(s) more for each group whose producers and readers span s
//! functions: O(n^2) if each of n maps is read far away, as in a `DenseNet`; the residual stream of a net is one group. O(n)
//! memory.

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
    /// The bound if a search of all schedules has found none in `capacity` bytes; `None` if no number of 64 bits is above.
    #[must_use]
    pub fn above_searched(capacity: Bytes) -> Option<Self> {
        let bytes = Bytes::new(capacity.get().checked_add(1)?);
        Some(Self { bytes, evidence: ScheduleEvidence::Search, task: None })
    }

    /// Why no schedule fits the capacity of a problem that this bound exceeds.
    #[must_use]
    pub fn explain_shortfall(&self, problem: &SchedulingProblem) -> String {
        let (bytes, capacity, base) = (self.bytes, problem.capacity, problem.base());
        if self.evidence == ScheduleEvidence::Search {
            return format!("out of memory: a search of all schedules found none in {capacity} bytes");
        }
        let why = if base > capacity {
            format!("parameters and workspace alone take {base}")
        } else {
            let rest = bytes.get().saturating_sub(base.get());
            let what = describe_task(&problem.net, self.task);
            format!("{what} takes {rest} beside {base} bytes of parameters and workspace")
        };
        format!(
            "out of memory: every schedule needs at least {bytes} bytes, but the capacity is {capacity}: {why}"
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
    let gradients = Gradients::new(net);
    let waiting = waiting_bytes(net, &gradients);
    let start = (total_bytes(net, net.map_ids().filter(|&map| is_read_input(net, map))), None);
    let forward = net.function_ids().map(|id| (forward_bytes(net, id), Some(Task::Forward(id))));
    let backward = net.function_ids().filter(|&id| net.has_backward_pass(id)).map(|id| {
        let bytes = backward_bytes(net, id).saturating_add(waiting[id.index()]);
        (bytes, Some(Task::Backward(id)))
    });
    let sums = sum_bytes(net, &gradients).into_iter().map(|(map, bytes)| {
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
fn sum_bytes(net: &TrainingNet, gradients: &Gradients) -> Vec<(MapId, u64)> {
    let sum = |map: usize| {
        let buffers = if gradients.has_equal_parts(map) { 2 } else { 3 };
        let id = MapId::from_index(map);
        (id, net.map(id).bytes.get().saturating_mul(buffers))
    };
    gradients.summed_maps().map(sum).collect()
}

/// For each function, the bytes of the gradients that wait while its backward pass runs, or the sum that makes the gradient
/// of its output.
fn waiting_bytes(net: &TrainingNet, gradients: &Gradients) -> Vec<u64> {
    let groups = group_maps(net, gradients);
    let mut waiting = vec![0_u64; net.functions().len()];
    for (group, &span) in GroupSpan::list_all(net, gradients, &groups).iter().enumerate() {
        let bytes = net.map(MapId::from_index(group)).bytes.get();
        for skipped in span.skipped_functions(net, &groups, group) {
            waiting[skipped] = waiting[skipped].saturating_add(bytes);
        }
    }
    waiting
}

/// The functions from the first one that makes a map of a group to the last one that contributes to a gradient of it.
#[derive(Clone, Copy)]
struct GroupSpan {
    first_producer: usize,
    first_contributor: usize,
    last_contributor: usize,
}

impl GroupSpan {
    /// The span of each group, by the map that stands for it; an empty one for other maps, and if no backward pass reads a
    /// gradient of the group.
    fn list_all(net: &TrainingNet, gradients: &Gradients, groups: &[usize]) -> Vec<Self> {
        let empty = Self { first_producer: usize::MAX, first_contributor: usize::MAX, last_contributor: 0 };
        let mut spans = vec![empty; groups.len()];
        for id in net.function_ids() {
            let function = net.function(id);
            let output = function.output.index();
            if gradients.is_gradient_read(output) {
                let span = &mut spans[groups[output]];
                span.first_producer = span.first_producer.min(id.index());
            }
            if net.has_backward_pass(id) {
                for input in &function.inputs {
                    let span = &mut spans[groups[input.index()]];
                    span.first_contributor = span.first_contributor.min(id.index());
                    span.last_contributor = id.index();
                }
            }
        }
        spans
    }

    /// The functions outside of the group to which a map of it leads, and which lead to a contributor.
    fn skipped_functions(self, net: &TrainingNet, groups: &[usize], group: usize) -> Vec<usize> {
        if self.first_contributor >= self.last_contributor || self.first_producer >= self.last_contributor {
            return Vec::new();
        }
        let start = self.first_producer + 1;
        let is_member = |map: MapId| groups[map.index()] == group;
        let place = |map: MapId| net.producer_of(map)?.index().checked_sub(start);
        let mut follows = vec![false; self.last_contributor + 1 - start];
        for index in start..=self.last_contributor {
            let inputs = &net.function(FunctionId::from_index(index)).inputs;
            follows[index - start] = inputs
                .iter()
                .any(|&input| is_member(input) || place(input).is_some_and(|maker| follows[maker]));
        }
        let mut leads = vec![false; follows.len()];
        for index in (start..=self.last_contributor).rev() {
            let id = FunctionId::from_index(index);
            let inputs = &net.function(id).inputs;
            let contributes = net.has_backward_pass(id) && inputs.iter().any(|&input| is_member(input));
            if contributes || leads[index - start] {
                inputs.iter().filter_map(|&input| place(input)).for_each(|maker| leads[maker] = true);
            }
        }
        let is_skipped = |index: &usize| {
            let output = net.function(FunctionId::from_index(*index)).output;
            follows[index - start] && leads[index - start] && !is_member(output)
        };
        (start..=self.last_contributor).filter(is_skipped).collect()
    }
}

/// For each map, the map that stands for its group: those with gradients that backward passes read and that additions join.
fn group_maps(net: &TrainingNet, gradients: &Gradients) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..net.maps().len()).collect();
    for id in net.function_ids().filter(|&id| !net.has_backward_pass(id)) {
        let function = net.function(id);
        for input in function.inputs.iter().filter(|input| gradients.is_gradient_read(input.index())) {
            let root = find_root(&mut parents, function.output.index());
            let other = find_root(&mut parents, input.index());
            parents[other] = root;
        }
    }
    (0..parents.len()).map(|map| find_root(&mut parents, map)).collect()
}

/// The map that stands for the group of a map; shortens the path to it.
fn find_root(parents: &mut [usize], mut map: usize) -> usize {
    while parents[map] != map {
        parents[map] = parents[parents[map]];
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
        let net = net_of(&shortcut);
        assert_eq!(waiting_bytes(&net, &Gradients::new(&net)), [0, 4, 0, 0, 0]);
    }

    /// Blocks of two functions, whose results are added to the input of each block.
    #[test]
    fn residual_stream_waits_once_beside_each_block() {
        let blocks: Vec<Vec<usize>> = (0..3)
            .flat_map(|block| [vec![3 * block + 1], vec![3 * block + 2], vec![3 * block + 1, 3 * block + 3]])
            .collect();
        let inputs: Vec<&[usize]> =
            [&[0][..]].into_iter().chain(blocks.iter().map(Vec::as_slice)).chain([&[10][..]]).collect();
        let net = net_of(&inputs);
        let gradients = Gradients::new(&net);
        let groups = group_maps(&net, &gradients);
        assert_eq!([3, 4, 6, 7, 9, 10].map(|map| groups[map]), [groups[1]; 6]);
        assert_eq!(waiting_bytes(&net, &gradients), [0, 4, 0, 0, 4, 0, 0, 4, 0, 0, 0]);
    }

    #[test]
    fn gradient_that_no_pass_reads_joins_no_group() {
        // Map 2 is the sum of the input with itself. It is added to maps 1 and 3, whose gradients differ.
        let inputs: [&[usize]; 8] = [&[0], &[0, 0], &[0], &[1, 2], &[2, 3], &[4], &[5], &[6, 7]];
        let net = net_of(&inputs);
        let groups = group_maps(&net, &Gradients::new(&net));
        assert_eq!((groups[1], groups[3]), (groups[4], groups[5]));
        assert!(groups[1] != groups[3] && groups[2] == 2, "{groups:?}");
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
        let base = problem.with_capacity(Bytes::new(8_001_199));
        let text = bound.explain_shortfall(&base);
        assert!(text.ends_with("8001199: parameters and workspace alone take 8001200"), "{text}");
        let searched = MemoryBound::above_searched(base.capacity).expect("a bound");
        assert_eq!((searched.bytes.get(), searched.task), (8_001_200, None));
        assert!(searched.explain_shortfall(&base).ends_with("found none in 8001199 bytes"));
        assert_eq!(MemoryBound::above_searched(Bytes::new(u64::MAX)), None);
    }
}
