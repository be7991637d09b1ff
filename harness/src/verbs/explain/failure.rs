//! Requests that could not be served, and whether a plan would have had room for them.

use planlab_dsa::{Buffer, BufferId, Bytes, InPlace, Instance, KeepApart, LiveRange, Pause};
use planlab_workloads::Trace;
use planlab_workloads::formats::import::{Framework, OutOfMemory};
use planlab_workloads::waste;

use super::planning::Planning;
use crate::shell::exit::Failure;

/// Failures that are judged; each may take a planner its whole time.
const MOST_JUDGED: usize = 4;

/// Why memory ran out.
pub(super) struct Failed {
    pub(super) event: OutOfMemory,
    /// Bytes reserved, and bytes in use, when it did.
    pub(super) reserved: u64,
    pub(super) live: u64,
    /// Bytes that the program could have at most: what it had and what the device had left.
    pub(super) capacity: Option<u64>,
    /// Whether the device had enough left for the request, so that something else set a limit.
    pub(super) is_limited: bool,
    pub(super) answer: CapacityAnswer,
}

/// Whether a plan would have had room for all buffers up to the failure and for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CapacityAnswer {
    /// A plan has this height, which fits.
    Fits { height: u64 },
    /// Every plan needs at least this many bytes, which do not fit.
    TooMuch { needed: u64 },
    /// Neither is proved in time, or the capacity is not known.
    Unknown,
}

/// Bytes that are available where memory first ran out, if that is known.
pub(super) fn available_capacity(framework: &Framework) -> Option<u64> {
    framework.failures.iter().find_map(|event| {
        let held = waste::reserved_at(&framework.segments, event.step);
        held.checked_add(event.device_free?).filter(|_| !is_limited(event))
    })
}

/// Whether the device had enough left for a request, so that something else set a limit.
fn is_limited(event: &OutOfMemory) -> bool {
    event.asked_of_device.zip(event.device_free).is_some_and(|(asked, free)| asked <= free)
}

impl Failed {
    /// What the framework says of its first failures.
    pub(super) fn all_failures(
        trace: &Trace,
        framework: &Framework,
        planning: &Planning<'_>,
    ) -> Result<Vec<Self>, Failure> {
        let judge = |event: &OutOfMemory| -> Result<Self, Failure> {
            let (reserved, live) = waste::bytes_at(trace, &framework.segments, event.step);
            let said = planning.args.capacity;
            let is_limited = said.is_none() && is_limited(event);
            let capacity = said.or_else(|| reserved.checked_add(event.device_free?));
            let answer = match capacity.zip(buffers_until(trace, event)) {
                Some((capacity, instance)) => capacity_answer(&instance, capacity, is_limited, planning)?,
                None => CapacityAnswer::Unknown,
            };
            Ok(Self { event: event.clone(), reserved, live, capacity, is_limited, answer })
        };
        framework.failures.iter().take(MOST_JUDGED).map(judge).collect()
    }
}

fn capacity_answer(
    instance: &Instance,
    capacity: u64,
    is_limited: bool,
    planning: &Planning<'_>,
) -> Result<CapacityAnswer, Failure> {
    let load = instance.load().bytes.get();
    if load > capacity {
        return Ok(CapacityAnswer::TooMuch { needed: load });
    }
    if is_limited {
        return Ok(CapacityAnswer::Unknown);
    }
    // First as low as it goes, which says most; then any plan that fits.
    for target in [None, Some(capacity)] {
        let best = planning.plan_best(instance, target)?;
        if let Some(height) = best.height_within(capacity) {
            return Ok(CapacityAnswer::Fits { height });
        }
        if let Some(needed) = best.bound_beyond(capacity) {
            return Ok(CapacityAnswer::TooMuch { needed });
        }
    }
    Ok(CapacityAnswer::Unknown)
}

/// The buffers up to a failure and the request as one more: what came later does not count, and how much longer anything
/// would have lived does not either.
fn buffers_until(trace: &Trace, event: &OutOfMemory) -> Option<Instance> {
    let instance = &trace.instance;
    let last = ranked_step(trace, event.step)?;
    let end = last.checked_add(1)?;
    let is_there = |id: &BufferId| instance.buffer(*id).live.start().get() < end;
    let there: Vec<BufferId> = instance.ids().filter(is_there).collect();
    let number = |id: BufferId| there.binary_search(&id).ok().map(BufferId::from_index);
    let mut buffers: Vec<Buffer> =
        there.iter().map(|id| cut_at(instance.buffer(*id), end)).collect::<Option<_>>()?;
    if event.size > 0 {
        let align = instance.buffers().iter().map(|buffer| buffer.align).max()?;
        let request = Buffer::new(Bytes::new(event.size), LiveRange::new(last, end).ok()?).with_align(align);
        buffers.push(request);
    }
    let in_place = instance
        .in_place()
        .iter()
        .filter_map(|pair| Some(InPlace { input: number(pair.input)?, output: number(pair.output)? }));
    let apart = instance
        .keep_apart_pairs()
        .iter()
        .filter_map(|pair| Some(KeepApart { first: number(pair.first)?, second: number(pair.second)? }));
    let builder = Instance::builder().buffers(buffers).arenas(instance.arenas().iter().cloned());
    builder.in_place(in_place).apart(apart).build().ok()
}

/// A buffer as it is up to a step.
fn cut_at(buffer: &Buffer, end: u32) -> Option<Buffer> {
    let shorter = |range: LiveRange| -> Option<LiveRange> {
        LiveRange::new(range.start().get(), range.end().get().min(end)).ok()
    };
    let pauses = buffer
        .pauses
        .iter()
        .filter_map(|pause| Some(Pause { steps: shorter(pause.steps)?, ..pause.clone() }));
    let pauses: Vec<Pause> = pauses.collect();
    Some(Buffer { live: shorter(buffer.live)?, pauses: pauses.into(), ..buffer.clone() })
}

/// The step of the instance at which the same buffers are live as at a step of the file.
fn ranked_step(trace: &Trace, step: u64) -> Option<u32> {
    if trace.labels.buffers.iter().all(|label| label.original_steps.is_none()) {
        return u32::try_from(step).ok();
    }
    let all = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let ends = all.filter_map(|(buffer, label)| {
        let (start, end) = label.original_steps?;
        Some([(start, buffer.live.start().get()), (end, buffer.live.end().get())])
    });
    ends.flatten().filter(|(original, _)| *original <= step).max().map(|(_, ranked)| ranked)
}
