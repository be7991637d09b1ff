//! A request that could not be served, and whether a plan would have had room for it.

use planlab_dsa::{Buffer, Bytes, Instance, Label, LiveRange};
use planlab_results::Status;
use planlab_workloads::Trace;
use planlab_workloads::formats::import::{Framework, OutOfMemory};
use planlab_workloads::waste;

use super::Planning;
use crate::shell::exit::Failure;

/// Why memory ran out, the last time that it did.
pub(super) struct Failed {
    pub(super) event: OutOfMemory,
    /// How often it ran out.
    pub(super) times: usize,
    /// Bytes reserved, and bytes in use, when it did.
    pub(super) reserved: u64,
    pub(super) live: u64,
    /// Bytes that the program could have at most: what it had and what the device had left.
    pub(super) capacity: Option<u64>,
    pub(super) answer: Answer,
}

/// Whether a plan would have had room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A plan of all buffers and the request has this height at most, which fits.
    Fits { height: u64 },
    /// Every plan needs at least this many bytes, which do not fit.
    TooMuch { needed: u64 },
    /// Neither is proved in time, or the capacity is not known.
    Unknown,
}

impl Failed {
    /// What the framework says of its last failure, given the height of a plan of all buffers.
    pub(super) fn of(
        trace: &Trace,
        framework: &Framework,
        height: u64,
        planning: &Planning<'_>,
    ) -> Result<Option<Self>, Failure> {
        let Some(event) = framework.failures.last().cloned() else { return Ok(None) };
        let (reserved, live) = waste::at(trace, &framework.segments, event.step);
        let capacity = event.device_free.and_then(|free| reserved.checked_add(free));
        let answer = match capacity {
            Some(capacity) => answer(trace, &event, (live, height, capacity), planning)?,
            None => Answer::Unknown,
        };
        let times = framework.failures.len();
        Ok(Some(Self { event, times, reserved, live, capacity, answer }))
    }
}

fn answer(
    trace: &Trace,
    event: &OutOfMemory,
    (live, height, capacity): (u64, u64, u64),
    planning: &Planning<'_>,
) -> Result<Answer, Failure> {
    let needed = live.saturating_add(event.size).max(trace.instance.load().bytes.get());
    let on_top = height.checked_add(event.size).filter(|&height| height <= capacity);
    if needed > capacity {
        return Ok(Answer::TooMuch { needed });
    }
    if let Some(height) = on_top {
        return Ok(Answer::Fits { height });
    }
    let Some(with_request) = with_request(trace, event) else { return Ok(Answer::Unknown) };
    let best = planning.best(&with_request, Some(capacity))?;
    Ok(match (best.height, best.row.status) {
        (Some(height), _) if height <= capacity => Answer::Fits { height },
        (_, Status::Infeasible) => Answer::TooMuch { needed: best.row.bound },
        _ => Answer::Unknown,
    })
}

/// The trace with the request as one buffer more, which lives for the step of the failure: how much longer it would
/// have lived, nobody knows.
fn with_request(trace: &Trace, event: &OutOfMemory) -> Option<Trace> {
    if event.size == 0 {
        return None;
    }
    let step = ranked(trace, event.step)?;
    let request = Buffer::new(Bytes::new(event.size), LiveRange::new(step, step.checked_add(1)?).ok()?);
    let instance = &trace.instance;
    let instance = Instance::builder()
        .buffers(instance.buffers().iter().cloned().chain([request]))
        .in_place(instance.in_place().iter().copied())
        .arenas(instance.arenas().iter().cloned())
        .apart(instance.apart().iter().copied())
        .build()
        .ok()?;
    let mut labels = trace.labels.clone();
    // A name that no other has, and no steps of the file: the labels are written for the planner alone.
    let longest = labels.buffers.iter().map(|label| label.name.len()).max().unwrap_or(0);
    labels.buffers.iter_mut().for_each(|label| {
        label.original_steps = None;
        label.requested = None;
    });
    labels.buffers.push(Label { name: "r".repeat(longest + 1), ..Label::default() });
    labels.metadata.clear();
    Some(Trace::new(instance, labels))
}

/// The step of the instance at which the same buffers are live as at a step of the file.
fn ranked(trace: &Trace, step: u64) -> Option<u32> {
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
