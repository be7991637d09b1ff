//! A net as a chain of segments: what each takes in bytes and seconds.
//!
//! A segment ends with a map through which all later functions get their inputs, if a backward pass reads it. So the
//! segments before it and those after it share no other map. Inputs of the net stay on the device. What a pass takes is
//! measured in the schedule in which everything stays.

use std::ops::Range;

use planlab_dsa::BufferId;
use planlab_graph::{FunctionId, MapId, SchedulingProblem, Task, TrainingNet};

use crate::schedule::checkpoints::carrier_maps;
use crate::schedule::fates::{Fates, build_program};

/// The bytes and the seconds of a segment. Its input is in none of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Segment {
    /// The bytes of its output.
    pub(super) output: u64,
    /// The bytes of the gradient of its output; 0 at the end of the net.
    pub(super) gradient: u64,
    /// The bytes of its maps that backward passes read, the output included.
    pub(super) saved: u64,
    /// The most bytes of its maps during a forward run that keeps only the output.
    pub(super) advance_peak: u64,
    /// The most bytes of its maps during a forward run that keeps what is saved.
    pub(super) save_peak: u64,
    /// The most bytes of its maps and gradients during the backward pass.
    pub(super) backward_peak: u64,
    /// The seconds of a forward run.
    pub(super) forward: f64,
    /// The seconds of the backward pass, sums of gradients included.
    pub(super) backward: f64,
}

impl Segment {
    /// All its numbers of bytes.
    pub(super) fn sizes(&self) -> [u64; 6] {
        [self.output, self.gradient, self.saved, self.advance_peak, self.save_peak, self.backward_peak]
    }
}

/// The segments of a net.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    segments: Vec<Segment>,
    /// For each segment, the index of the function after its last one.
    ends: Vec<usize>,
    /// For each function, its segment.
    segment_of: Vec<usize>,
    fixed: u64,
}

impl Chain {
    /// The chain of a problem's net; joins short neighbours until there are at most `most` segments.
    pub(super) fn new(problem: &SchedulingProblem, most: usize) -> Self {
        let net = &problem.net;
        let ends = cut_net(problem, most);
        let mut segment_of = Vec::with_capacity(net.functions().len());
        for (segment, &end) in ends.iter().enumerate() {
            segment_of.resize(end, segment);
        }
        let inputs = net.map_ids().filter(|&map| !net.has_gradient(map));
        let inputs: u64 = inputs.map(|map| net.map(map).bytes.get()).sum();
        let fixed = problem.base().get().saturating_add(inputs);
        let mut chain = Self { segments: vec![Segment::default(); ends.len()], ends, segment_of, fixed };
        chain.measure_maps(net);
        chain.measure_passes(problem);
        chain
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The bytes that are always taken: the base and the inputs of the net.
    pub(super) const fn fixed_bytes(&self) -> u64 {
        self.fixed
    }

    /// The segment of a function.
    pub(super) fn segment_of(&self, id: FunctionId) -> usize {
        self.segment_of[id.index()]
    }

    /// Whether a function makes the output of its segment.
    pub(super) fn ends_segment(&self, id: FunctionId) -> bool {
        self.ends[self.segment_of(id)] == id.index() + 1
    }

    /// The phase of a stage: 0 for the forward sweep, then 1 for the backward pass of the last segment, and so on.
    pub(super) fn phase_of(&self, stage: usize) -> usize {
        let functions = self.segment_of.len();
        if stage < functions { 0 } else { self.backward_phase(self.segment_of[2 * functions - 1 - stage]) }
    }

    /// The phase of the backward pass of a segment.
    pub(super) const fn backward_phase(&self, segment: usize) -> usize {
        self.segments.len() - segment
    }

    fn measure_maps(&mut self, net: &TrainingNet) {
        let bytes = |map: MapId| net.map(map).bytes.get();
        let is_saved = find_saved_maps(net);
        let last = self.ends.len() - 1;
        let mut start = 0;
        for (index, (segment, &end)) in self.segments.iter_mut().zip(&self.ends).enumerate() {
            let functions = &net.functions()[start..end];
            segment.output = functions.last().map_or(0, |function| bytes(function.output));
            segment.gradient = if index < last { segment.output } else { 0 };
            let outputs = functions.iter().map(|function| function.output);
            segment.saved = outputs.filter(|map| is_saved[map.index()]).map(bytes).sum();
            segment.advance_peak = measure_advance(net, start..end);
            start = end;
        }
    }

    /// Measures the bytes and seconds of all passes.
    fn measure_passes(&mut self, problem: &SchedulingProblem) {
        let (program, _) = build_program(problem, &Fates::keep_all(&problem.net));
        let schedule = &program.schedule;
        let size = |ids: &[BufferId]| -> u64 {
            let own = ids.iter().filter(|id| !schedule.resident.contains(id));
            own.map(|&id| schedule.buffer(id).bytes.get()).sum()
        };
        let sums = self.segments.iter().scan(0, |sum, segment| {
            *sum += segment.saved;
            Some(*sum - segment.saved)
        });
        let saved_before: Vec<u64> = sums.collect();
        let mut taken = 0;
        for event in program.compute_steps() {
            taken += size(&event.writes);
            let index = self.segment_of_task(&problem.net, event.task);
            let own = taken.saturating_sub(saved_before[index]);
            let segment = &mut self.segments[index];
            if matches!(event.task, Task::Forward(_)) {
                segment.forward += event.seconds;
                segment.save_peak = segment.save_peak.max(own);
            } else {
                segment.backward += event.seconds;
                segment.backward_peak = segment.backward_peak.max(own);
            }
            taken -= size(&event.frees);
        }
    }

    /// The segment of a task. A sum of gradients belongs to the segment whose functions read the map.
    fn segment_of_task(&self, net: &TrainingNet, task: Task) -> usize {
        match task {
            Task::Forward(id) | Task::Recompute(id) | Task::Backward(id) => self.segment_of(id),
            Task::Accumulate(map) | Task::CopyOut(map) | Task::CopyIn(map) => {
                let Some(producer) = net.producer_of(map) else { return 0 };
                let segment = self.segment_of(producer) + usize::from(self.ends_segment(producer));
                segment.min(self.segments.len() - 1)
            }
        }
    }
}

/// The most bytes of a segment's maps if each is freed after its last use.
fn measure_advance(net: &TrainingNet, functions: Range<usize>) -> u64 {
    let bytes = |map: MapId| net.map(map).bytes.get();
    let (mut taken, mut peak) = (0, 0);
    let own = functions.clone();
    for index in functions {
        let function = &net.functions()[index];
        taken += bytes(function.output);
        peak = peak.max(taken);
        let mut read = function.inputs.clone();
        read.sort_unstable();
        read.dedup();
        let is_own = |map: MapId| net.producer_of(map).is_some_and(|id| own.contains(&id.index()));
        let is_last = |map: MapId| net.last_use(map).is_some_and(|id| id.index() == index);
        taken -= read.into_iter().filter(|&map| is_own(map) && is_last(map)).map(bytes).sum::<u64>();
        if net.last_use(function.output).is_none() {
            taken -= bytes(function.output);
        }
    }
    peak
}

/// For each map, whether the backward pass of a function reads it: a sum has no such pass.
fn find_saved_maps(net: &TrainingNet) -> Vec<bool> {
    let mut is_saved = vec![false; net.maps().len()];
    for id in net.function_ids().filter(|&id| net.has_backward_pass(id)) {
        net.function(id).needs.iter().for_each(|map| is_saved[map.index()] = true);
    }
    is_saved
}

/// For each segment, the index of the function after its last one.
fn cut_net(problem: &SchedulingProblem, most: usize) -> Vec<usize> {
    let net = &problem.net;
    let carriers = carrier_maps(net);
    let is_saved = find_saved_maps(net);
    let functions = net.functions().len();
    let is_cut = |map: MapId| carriers[map.index()] && is_saved[map.index()];
    let cuts = net.function_ids().filter(|&id| is_cut(net.function(id).output));
    let mut ends: Vec<usize> = cuts.map(|id| id.index() + 1).collect();
    if ends.last() != Some(&functions) {
        ends.push(functions);
    }
    let [forward, backward] = [problem.times.forward(), problem.times.backward()];
    let mut start = 0;
    let seconds_to = |&end: &usize| -> f64 {
        let functions = std::mem::replace(&mut start, end)..end;
        forward[functions.clone()].iter().chain(&backward[functions]).sum()
    };
    let seconds: Vec<f64> = ends.iter().map(seconds_to).collect();
    join_short_segments(&mut ends, seconds, most);
    ends
}

/// Joins the two neighbours that take the least seconds together, until there are at most `most` segments.
fn join_short_segments(ends: &mut Vec<usize>, mut seconds: Vec<f64>, most: usize) {
    while ends.len() > most.max(1) {
        let pairs = seconds.windows(2).map(|pair| pair[0] + pair[1]).enumerate();
        let Some((first, both)) = pairs.min_by(|one, other| one.1.total_cmp(&other.1)) else { return };
        ends.remove(first);
        seconds.remove(first);
        seconds[first] = both;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::chains::testing::chain_problem;
    use crate::schedule::testing::shortcut_problem;

    #[test]
    fn segments_of_shortcut_have_their_peaks_and_times() {
        let problem = shortcut_problem();
        let chain = Chain::new(&problem, 10);
        assert_eq!((&chain.ends[..], chain.fixed_bytes()), (&[2, 4, 5][..], 64));
        let first = Segment {
            output: 256,
            gradient: 256,
            saved: 256,
            advance_peak: 512,
            save_peak: 512,
            backward_peak: 768,
            forward: 4.0,
            backward: 4.0,
        };
        // The convolution of the second segment adds its gradient of the relu to that of the sum: 3 seconds.
        let second = Segment { backward: 5.0, ..first };
        let third = Segment {
            output: 4,
            gradient: 0,
            saved: 0,
            advance_peak: 4,
            save_peak: 4,
            backward_peak: 256,
            forward: 2.0,
            backward: 2.0,
        };
        let expected = [first, second, third];
        assert_eq!(chain.segments(), expected);
        let phases: Vec<_> = (0..10).map(|stage| chain.phase_of(stage)).collect();
        assert_eq!(phases, [0, 0, 0, 0, 0, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn functions_of_a_true_chain_are_its_segments() {
        let problem = chain_problem(&[5, 7, 2], &[1, 2, 3], &[4, 5, 6], 100);
        let chain = Chain::new(&problem, 10);
        let column = |field: fn(&Segment) -> u64| chain.segments().iter().map(field).collect::<Vec<_>>();
        assert_eq!(column(|segment| segment.saved), [5, 7, 2]);
        assert_eq!(column(|segment| segment.gradient), [5, 7, 0]);
        assert_eq!(column(|segment| segment.advance_peak), [5, 7, 2]);
        // Output, its gradient and the gradient of the input; the image has no gradient.
        assert_eq!(column(|segment| segment.backward_peak), [5 + 5, 7 + 7 + 5, 2 + 7]);
        assert_eq!(chain.segments()[1].backward, 5.0);
    }

    #[test]
    fn short_neighbours_are_joined_first() {
        let problem = chain_problem(&[1; 5], &[9, 1, 2, 9, 9], &[0; 5], 100);
        assert_eq!(Chain::new(&problem, 4).ends, [1, 3, 4, 5]);
        assert_eq!(Chain::new(&problem, 3).ends, [3, 4, 5]);
        let whole = Chain::new(&problem, 1);
        assert_eq!((&whole.ends[..], whole.segments()[0].saved), (&[5][..], 5));
    }
}
