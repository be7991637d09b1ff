//! The verifier: one sweep over the steps with the active bytes in an ordered map.
//!
//! Every buffer is cut into its [pieces](crate::Buffer::pieces); a piece is a rectangle of steps and addresses. Each
//! step first removes the pieces that end, then inserts those that begin. A piece overlaps an active one exactly if it
//! overlaps its neighbour below or above.
//!
//! A buffer that takes another's place in a hand-over is inserted one step later: at its first step its bytes lie
//! inside the other's, which are still active.
//!
//! # Complexity
//!
//! O(n log n) time and O(n) memory for n pieces.

use std::collections::BTreeMap;

use crate::{Alignment, ArenaId};
use crate::{
    BufferId, Bytes, InPlace, Instance, InstanceError, KeepApart, LiveRange, Offset, Plan, Step, VerifiedPlan,
};

/// Why a plan is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The number of offsets is not the number of buffers.
    #[error("the plan has {got} offsets, but the instance has {expected} buffers")]
    WrongCount {
        /// Buffers of the instance.
        expected: usize,
        /// Offsets of the plan.
        got: usize,
    },
    /// An end, or the sum of the arenas' heights, past 2^64 - 1.
    #[error("buffer {buffer} at offset {offset}: its end lies past 2^64 - 1")]
    Overflow {
        /// The buffer.
        buffer: BufferId,
        /// Its offset.
        offset: Offset,
    },
    /// An offset that is not a multiple of the alignment.
    #[error("buffer {buffer} at offset {offset}: not a multiple of its alignment {align}")]
    Misaligned {
        /// The buffer.
        buffer: BufferId,
        /// Its offset.
        offset: Offset,
        /// The required alignment.
        align: Alignment,
    },
    /// A pinned buffer at another offset.
    #[error("buffer {buffer} at offset {offset}: it is pinned at {pin}")]
    OffPin {
        /// The buffer.
        buffer: BufferId,
        /// Its offset.
        offset: Offset,
        /// The required offset.
        pin: Offset,
    },
    /// A hand-over that is forbidden, used twice, or whose output exceeds the input's bytes.
    #[error("buffer {} takes the place of buffer {}: {reason}", pair.output, pair.input)]
    HandOver {
        /// The hand-over.
        pair: InPlace,
        /// The step at which it happens.
        step: Step,
        /// The reason why it is invalid.
        reason: &'static str,
    },
    /// Two buffers that must be kept apart share an address.
    #[error("buffers {} and {} share an address, but must be kept apart", pair.first, pair.second)]
    Together {
        /// The pair.
        pair: KeepApart,
    },
    /// Two buffers in use at one step share an address.
    #[error("buffers {first} and {second} overlap at steps {steps}, addresses [{}, {})", bytes.0, bytes.1)]
    Overlap {
        /// The buffer that was placed first.
        first: BufferId,
        /// The buffer that overlaps it.
        second: BufferId,
        /// The steps at which both overlapping parts are in use.
        steps: LiveRange,
        /// The first shared address, and the end of the shared range.
        bytes: (Offset, Offset),
    },
    /// An arena that exceeds its capacity.
    #[error("arena {arena} needs {height} bytes, but its capacity is {capacity}")]
    OverCapacity {
        /// The arena.
        arena: ArenaId,
        /// The bytes that the plan needs.
        height: Bytes,
        /// The arena's capacity.
        capacity: Bytes,
    },
}

impl Violation {
    /// A short name for statuses and files.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::WrongCount { .. } => "wrong-count",
            Self::Overflow { .. } => "overflow",
            Self::Misaligned { .. } => "misaligned",
            Self::OffPin { .. } => "off-pin",
            Self::HandOver { .. } => "hand-over",
            Self::Together { .. } => "together",
            Self::Overlap { .. } => "overlap",
            Self::OverCapacity { .. } => "over-capacity",
        }
    }

    /// The buffers involved.
    #[must_use]
    pub fn buffers(&self) -> Vec<BufferId> {
        match self {
            Self::WrongCount { .. } | Self::OverCapacity { .. } => Vec::new(),
            Self::Overflow { buffer, .. } | Self::Misaligned { buffer, .. } | Self::OffPin { buffer, .. } => {
                vec![*buffer]
            }
            Self::HandOver { pair, .. } => vec![pair.input, pair.output],
            Self::Together { pair } => vec![pair.first, pair.second],
            Self::Overlap { first, second, .. } => vec![*first, *second],
        }
    }

    /// The steps of the violation, if it has any.
    #[must_use]
    pub fn steps(&self) -> Option<LiveRange> {
        match self {
            Self::Overlap { steps, .. } => Some(*steps),
            Self::HandOver { step, .. } => LiveRange::new(step.get(), step.get().checked_add(1)?).ok(),
            _ => None,
        }
    }
}

pub(crate) fn verify(instance: &Instance, plan: Plan) -> Result<VerifiedPlan<'_>, Violation> {
    let height = check(instance, &plan);
    #[cfg(feature = "debug-checks")]
    crate::recheck::assert_agrees(instance, &plan, height.is_ok());
    Ok(VerifiedPlan::new(instance, plan, height?))
}

fn check(instance: &Instance, plan: &Plan) -> Result<Bytes, Violation> {
    check_each(instance, plan)?;
    let outputs = check_hand_overs(instance, plan)?;
    check_apart(instance, plan)?;
    let rectangles =
        rectangles(instance, &plan.offsets, |id| outputs.get(id.index()).copied().unwrap_or(false));
    first_overlap(rectangles)?;
    check_heights(instance, plan)
}

/// Rejects pinned buffers that overlap, except at a pinned output's first step, which a hand-over may cover.
pub(crate) fn check_pins(instance: &Instance) -> Result<(), InstanceError> {
    if instance.buffers().iter().all(|buffer| buffer.pin.is_none()) {
        return Ok(());
    }
    let mut may_overwrite = vec![false; instance.len()];
    for permission in instance.in_place() {
        may_overwrite[permission.output.index()] = true;
    }
    let offsets: Vec<Offset> = instance.buffers().iter().map(|b| b.pin.unwrap_or_default()).collect();
    let mut all = rectangles(instance, &offsets, |id| may_overwrite[id.index()]);
    all.retain(|rectangle| instance.buffer(rectangle.id).pin.is_some());
    match first_overlap(all) {
        Err(Violation::Overlap { first, second, steps, .. }) => {
            Err(InstanceError::PinConflict { first, second, step: steps.start() })
        }
        _ => Ok(()),
    }
}

fn check_each(instance: &Instance, plan: &Plan) -> Result<(), Violation> {
    let (expected, got) = (instance.len(), plan.offsets.len());
    if expected != got {
        return Err(Violation::WrongCount { expected, got });
    }
    for ((buffer, &offset), id) in instance.buffers().iter().zip(&plan.offsets).zip(instance.ids()) {
        if offset.end(buffer.size).is_none() {
            return Err(Violation::Overflow { buffer: id, offset });
        }
        if !buffer.align.divides(offset.get()) {
            return Err(Violation::Misaligned { buffer: id, offset, align: buffer.align });
        }
        if let Some(pin) = buffer.pin.filter(|&pin| pin != offset) {
            return Err(Violation::OffPin { buffer: id, offset, pin });
        }
    }
    Ok(())
}

/// The buffers that take another's place, by id; empty if none does.
fn check_hand_overs(instance: &Instance, plan: &Plan) -> Result<Vec<bool>, Violation> {
    if plan.in_place.is_empty() {
        return Ok(Vec::new());
    }
    let (mut inputs, mut outputs) = (vec![false; instance.len()], vec![false; instance.len()]);
    for &pair in &plan.in_place {
        let step = match instance.buffers().get(pair.output.index()) {
            Some(output) => output.live.start(),
            None => Step::default(),
        };
        let fault = |reason| Err(Violation::HandOver { pair, step, reason });
        if instance.in_place().binary_search(&pair).is_err() {
            return fault("the instance does not permit it");
        }
        if std::mem::replace(&mut inputs[pair.input.index()], true) {
            return fault("the input's place was taken already");
        }
        if std::mem::replace(&mut outputs[pair.output.index()], true) {
            return fault("the output has a place already");
        }
        let span = |id: BufferId| {
            let start = plan.offsets[id.index()].get();
            start..start + instance.buffer(id).size.get()
        };
        let (input, output) = (span(pair.input), span(pair.output));
        if output.start < input.start || output.end > input.end {
            return fault("its bytes do not lie inside the input's");
        }
    }
    match circle(instance, plan) {
        Some(pair) => {
            let step = instance.buffer(pair.output).live.start();
            Err(Violation::HandOver { pair, step, reason: "the place comes back to where it was" })
        }
        None => Ok(outputs),
    }
}

/// A hand-over in a circle of hand-overs: buffers that are live at one and the same step only, each in the place of the
/// next, so that none of them holds the place itself.
fn circle(instance: &Instance, plan: &Plan) -> Option<InPlace> {
    let momentary = plan.in_place.iter().filter(|pair| instance.buffer(pair.input).live.width() == 1);
    let mut givers: BTreeMap<BufferId, InPlace> = momentary.map(|&pair| (pair.output, pair)).collect();
    while let Some((output, pair)) = givers.pop_first() {
        let mut holder = pair.input;
        while let Some(earlier) = givers.remove(&holder) {
            holder = earlier.input;
        }
        if holder == output {
            return Some(pair);
        }
    }
    None
}

fn check_apart(instance: &Instance, plan: &Plan) -> Result<(), Violation> {
    let span = |id: BufferId| {
        let start = plan.offsets[id.index()].get();
        (start, start + instance.buffer(id).size.get())
    };
    for &pair in instance.apart() {
        let ((low, low_end), (high, high_end)) = (span(pair.first), span(pair.second));
        if low < high_end && high < low_end {
            return Err(Violation::Together { pair });
        }
    }
    Ok(())
}

fn check_heights(instance: &Instance, plan: &Plan) -> Result<Bytes, Violation> {
    let mut tops = vec![(0_u64, BufferId::default()); instance.arenas().len()];
    for ((buffer, offset), id) in instance.buffers().iter().zip(&plan.offsets).zip(instance.ids()) {
        let top = &mut tops[buffer.arena.index()];
        *top = (*top).max((offset.get() + buffer.size.get(), id));
    }
    let mut sum = 0_u64;
    for ((arena, &(height, buffer)), number) in instance.arenas().iter().zip(&tops).zip(0_u16..) {
        if let Some(capacity) = arena.capacity.filter(|capacity| capacity.get() < height) {
            let height = Bytes::new(height);
            return Err(Violation::OverCapacity { arena: ArenaId::new(number), height, capacity });
        }
        sum = sum
            .checked_add(height)
            .ok_or_else(|| Violation::Overflow { buffer, offset: plan.offsets[buffer.index()] })?;
    }
    Ok(Bytes::new(sum))
}

/// A range of steps, a range of addresses in an arena, and the piece's buffer.
#[derive(Clone, Copy)]
struct Rectangle {
    start: u32,
    end: u32,
    low: u64,
    high: u64,
    arena: ArenaId,
    id: BufferId,
}

fn rectangles(instance: &Instance, offsets: &[Offset], is_late: impl Fn(BufferId) -> bool) -> Vec<Rectangle> {
    let mut all = Vec::with_capacity(instance.len());
    for ((buffer, offset), id) in instance.buffers().iter().zip(offsets).zip(instance.ids()) {
        let first = buffer.live.start().get() + u32::from(is_late(id));
        for piece in buffer.pieces() {
            let (start, end) = (piece.steps.start().get().max(first), piece.steps.end().get());
            if start < end {
                let low = offset.get() + piece.window.start.get();
                all.push(Rectangle { start, end, low, high: low + piece.bytes(), arena: buffer.arena, id });
            }
        }
    }
    all
}

/// The active rectangles of one arena: from the first address to the end and the index.
type Active = BTreeMap<u64, (u64, u32)>;

fn first_overlap(mut rectangles: Vec<Rectangle>) -> Result<(), Violation> {
    rectangles.sort_unstable_by_key(|r| (r.start, r.id));
    let mut ends: Vec<(u32, u32)> = rectangles.iter().map(|r| r.end).zip(0..).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let arenas = rectangles.iter().map(|r| r.arena.index() + 1).max().unwrap_or(0);
    let mut active = vec![Active::new(); arenas];
    for (new, index) in rectangles.iter().zip(0_u32..) {
        while let Some((_, over)) = ends.next_if(|&(end, _)| end <= new.start) {
            let over = &rectangles[over as usize];
            active[over.arena.index()].remove(&over.low);
        }
        insert(&mut active[new.arena.index()], &rectangles, index)?;
    }
    Ok(())
}

fn insert(active: &mut Active, rectangles: &[Rectangle], index: u32) -> Result<(), Violation> {
    let new = &rectangles[index as usize];
    // Active rectangles are disjoint, so among those that begin below `high` only the last can reach past `low`.
    if let Some((_, &(high, there))) = active.range(..new.high).next_back()
        && high > new.low
    {
        return Err(overlap(&rectangles[there as usize], new));
    }
    active.insert(new.low, (new.high, index));
    Ok(())
}

fn overlap(there: &Rectangle, new: &Rectangle) -> Violation {
    let steps = LiveRange::new(there.start.max(new.start), there.end.min(new.end));
    Violation::Overlap {
        first: there.id,
        second: new.id,
        steps: steps.expect("both are active at the later one's start"),
        bytes: (Offset::new(there.low.max(new.low)), Offset::new(there.high.min(new.high))),
    }
}
