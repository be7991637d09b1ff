//! What is live, and what is reserved, at the steps of a file.

use planlab_dsa::BufferId;

use crate::formats::Trace;
use crate::formats::import::Segment;

/// The buffers that count at the peak of the load, largest first, and the step as the file has it.
#[must_use]
pub fn peak_buffers(trace: &Trace) -> (u64, Vec<BufferId>) {
    let instance = &trace.instance;
    let step = instance.load().step;
    let mut active: Vec<BufferId> = instance.ids().filter(|&id| instance.counts_at(id, step)).collect();
    active.sort_by_key(|&id| (std::cmp::Reverse(instance.buffer(id).size), id));
    (original_step(trace, step.get()), active)
}

/// Bytes that were reserved, and bytes that were live, at a step as the file has it.
#[must_use]
pub fn bytes_at(trace: &Trace, segments: &[Segment], step: u64) -> (u64, u64) {
    let live = (0..trace.instance.len()).filter(|&index| is_live(trace, index, step));
    let bytes = live.map(|index| trace.instance.buffers()[index].size.get()).fold(0, u64::saturating_add);
    (reserved_at(segments, step), bytes)
}

/// Bytes that were reserved at a step as the file has it.
#[must_use]
pub fn reserved_at(segments: &[Segment], step: u64) -> u64 {
    let held = segments.iter().filter(|segment| (segment.steps.0..segment.steps.1).contains(&step));
    held.map(|segment| segment.size).fold(0, u64::saturating_add)
}

pub(super) fn is_live(trace: &Trace, index: usize, step: u64) -> bool {
    let (start, end) = trace.life(index);
    (start..end).contains(&step)
}

/// A step in which a buffer begins, as the file has it.
pub(super) fn original_step(trace: &Trace, step: u32) -> u64 {
    let mut all = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let begins = all.find(|(buffer, _)| buffer.live.start().get() == step);
    begins.and_then(|(_, label)| label.original_steps).map_or(u64::from(step), |(start, _)| start)
}

/// The step with most live bytes of those with most reserved ones.
pub(super) fn reserved_moment(trace: &Trace, segments: &[Segment]) -> u64 {
    let mut changes: Vec<(u64, i128, i128)> = Vec::new();
    for segment in segments {
        let size = i128::from(segment.size);
        changes.extend([(segment.steps.0, size, 0), (segment.steps.1, -size, 0)]);
    }
    for (index, buffer) in trace.instance.buffers().iter().enumerate() {
        let (start, end) = trace.life(index);
        let size = i128::from(buffer.size.get());
        changes.extend([(start, 0, size), (end, 0, -size)]);
    }
    changes.sort_unstable();
    let (mut reserved, mut live) = (0, 0);
    let mut best = (0, 0, 0);
    for group in changes.chunk_by(|a, b| a.0 == b.0) {
        for (_, held, used) in group {
            reserved += held;
            live += used;
        }
        if (reserved, live) > (best.1, best.2) {
            best = (group[0].0, reserved, live);
        }
    }
    best.0
}
