//! Several parallel streams, whose buffers are only freed at a common point.
//!
//! Models inference on parallel CUDA streams: a buffer's last reader has been *issued* long before it has *run*, so
//! another stream may use its memory only after both have met. `rule=late` keeps each buffer until the next meeting
//! (every `sync` operations). `rule=apart` frees it immediately, but keeps it apart from buffers that other streams
//! allocate before that meeting.
//!
//! # References
//!
//! 1. `PyTorch`'s caching allocator, `record_stream`: reuse across streams waits for an event.

use planlab_dsa::{Buffer, BufferId, Bytes, Instance, KeepApart};

use crate::synthetic::dice::Dice;
use crate::synthetic::family::{Family, Made, life};
use crate::synthetic::parameters::{N, Parameter, ParameterError, SEED, Values};

/// The family `multi-stream`.
pub const FAMILY: Family = Family {
    name: "multi-stream",
    summary: "several streams at once, whose buffers come free at common points",
    parameters: &[
        N,
        SEED,
        Parameter::from_number("streams", "4", (1, 1024), "streams that run at once"),
        Parameter::from_number("sync", "32", (1, 1_000_000), "operations between two meetings"),
        Parameter::from_choices(
            "rule",
            &["late", "apart"],
            "buffers wait for the meeting, or are kept apart until then",
        ),
    ],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let (n, sync) = (values.steps("n"), values.steps("sync"));
    let streams: Vec<u64> = (0..n).map(|_| dice.below(values.number("streams"))).collect();
    let ends = last_uses(&mut dice, &streams);
    let meeting = |step: u32| step.div_ceil(sync) * sync;
    let late = values.choice("rule") == "late";
    let buffers = ends.iter().zip(0..).map(|(&end, start)| {
        let end = if late { meeting(end) } else { end };
        Buffer::new(random_size(&mut dice), life(start, end))
    });
    let mut made = Made::from_buffers(buffers.collect())?;
    if !late {
        let pairs = keep_apart_pairs(&streams, &ends, meeting);
        let buffers = made.instance.buffers().to_vec();
        made.instance = Instance::builder().buffers(buffers).apart(pairs).build()?;
    }
    Ok(made)
}

/// The step after the last read of each buffer. Operation `i` makes buffer `i` at step `i` on its stream. The next
/// operation of the stream reads it; one time in eight, a later one does (a skip connection).
fn last_uses(dice: &mut Dice, streams: &[u64]) -> Vec<u32> {
    let mut ahead = std::collections::BTreeMap::<u64, Vec<u32>>::new();
    let mut ends = vec![0; streams.len()];
    let horizon = u32::try_from(streams.len()).expect("n is bounded");
    for (start, stream) in (0..horizon).zip(streams).rev() {
        // The stream's later operations, the next one last.
        let later = ahead.entry(*stream).or_default();
        let skip = if dice.below(8) == 0 { dice.between(2, 8) } else { 1 };
        let skip = usize::try_from(skip).expect("at most 8").min(later.len());
        let reader = later.len().checked_sub(skip).and_then(|at| later.get(at)).copied().unwrap_or(start);
        ends[start as usize] = reader + 1;
        later.push(start);
    }
    ends
}

/// From 64 KiB to 16 MiB, with each power of two equally likely.
fn random_size(dice: &mut Dice) -> Bytes {
    let low = 1 << dice.between(16, 23);
    Bytes::new(dice.between(low / 512, 2 * low / 512) * 512)
}

/// Pairs each buffer with those that other streams allocate between its end and the next meeting.
fn keep_apart_pairs(streams: &[u64], ends: &[u32], meeting: impl Fn(u32) -> u32) -> Vec<KeepApart> {
    let horizon = u32::try_from(streams.len()).expect("n is bounded");
    let mut pairs = Vec::new();
    for (index, &end) in ends.iter().enumerate() {
        for start in end..meeting(end).min(horizon) {
            if streams[start as usize] != streams[index] {
                pairs.push(KeepApart { first: BufferId::from_index(index), second: BufferId::new(start) });
            }
        }
    }
    pairs
}
