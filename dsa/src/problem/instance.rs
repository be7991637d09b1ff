//! A validated placement problem.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::load::Load;
use crate::verify::{self, Violation};
use crate::{
    Alignment, ArenaId, Buffer, BufferId, Bytes, Digest, LiveRange, Offset, Plan, Step, VerifiedPlan,
};

/// Permission: `output` may overwrite `input` at its first step, which is the input's last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InPlace {
    /// The buffer that is read for the last time.
    pub input: BufferId,
    /// The buffer that may take its place.
    pub output: BufferId,
}

/// Two buffers that must not share an address even though their live ranges do not overlap (they are
/// used on parallel streams, say).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeepApart {
    /// One of the two.
    pub first: BufferId,
    /// The other.
    pub second: BufferId,
}

/// A memory pool that buffers lie in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Arena {
    /// Its name in files and reports.
    pub name: String,
    /// The most bytes that it can hold; `None`: no limit.
    pub capacity: Option<Bytes>,
}

/// Why a problem is not well formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// More than 2^32 - 1 buffers.
    #[error("{count} buffers are more than an instance can hold (4294967295)")]
    TooMany {
        /// How many there were.
        count: usize,
    },
    /// More than 2^16 - 1 arenas.
    #[error("{count} arenas are more than an instance can hold (65535)")]
    TooManyArenas {
        /// How many there were.
        count: usize,
    },
    /// A buffer without bytes.
    #[error("buffer {buffer}: its size is 0; a buffer has at least one byte")]
    ZeroSize {
        /// The buffer.
        buffer: BufferId,
    },
    /// The sum of all sizes, each with its alignment, does not fit 64 bits.
    #[error("buffer {buffer}: with it the sizes (and their alignments) sum to more than 2^64 - 1 bytes")]
    TotalOverflow {
        /// The buffer at which the sum leaves the range.
        buffer: BufferId,
    },
    /// A pin that is not a multiple of the alignment.
    #[error("buffer {buffer}: pinned at offset {pin}, which is not a multiple of its alignment {align}")]
    MisalignedPin {
        /// The buffer.
        buffer: BufferId,
        /// Where it is pinned.
        pin: Offset,
        /// What it should be a multiple of.
        align: Alignment,
    },
    /// A pin so high that the buffer's end does not fit 64 bits.
    #[error("buffer {buffer}: pinned at offset {pin}, its end lies past 2^64 - 1")]
    PinOverflow {
        /// The buffer.
        buffer: BufferId,
        /// Where it is pinned.
        pin: Offset,
    },
    /// Two pinned buffers that overlap.
    #[error("buffers {first} and {second}: both are pinned, and they overlap at step {step}")]
    PinConflict {
        /// One of the two.
        first: BufferId,
        /// The other.
        second: BufferId,
        /// A step at which both are active.
        step: Step,
    },
    /// Pauses out of order, outside the live range, or with a bad window.
    #[error("buffer {buffer}: pause {steps} {reason}")]
    BadPause {
        /// The buffer.
        buffer: BufferId,
        /// The pause's steps.
        steps: LiveRange,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A permission or pair that names no buffer.
    #[error("{what} names buffer {buffer}, but there are only {count} buffers")]
    UnknownBuffer {
        /// The permission or the pair.
        what: &'static str,
        /// The number that it names.
        buffer: BufferId,
        /// How many buffers there are.
        count: usize,
    },
    /// A hand-over that can never be valid.
    #[error("buffer {} may not overwrite buffer {}: {reason}", permission.output, permission.input)]
    BadInPlace {
        /// The permission.
        permission: InPlace,
        /// Why it can never be used.
        reason: &'static str,
    },
    /// A buffer that is kept apart from itself, from a buffer of another arena, or from one that is pinned
    /// into its place.
    #[error("buffers {} and {} cannot be kept apart: {reason}", pair.first, pair.second)]
    BadPair {
        /// The pair.
        pair: KeepApart,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A buffer in an arena that was not declared.
    #[error("buffer {buffer}: it lies in arena {arena}, but there are only {count} arenas")]
    UnknownArena {
        /// The buffer.
        buffer: BufferId,
        /// The arena that it names.
        arena: ArenaId,
        /// How many arenas there are.
        count: usize,
    },
}

impl InstanceError {
    /// The buffer that is at fault; of two, the one that came later. `None` if no single buffer is at fault.
    #[must_use]
    pub fn buffer(&self) -> Option<BufferId> {
        match self {
            Self::ZeroSize { buffer }
            | Self::TotalOverflow { buffer }
            | Self::MisalignedPin { buffer, .. }
            | Self::PinOverflow { buffer, .. }
            | Self::BadPause { buffer, .. }
            | Self::UnknownBuffer { buffer, .. }
            | Self::UnknownArena { buffer, .. } => Some(*buffer),
            Self::PinConflict { first, second, .. } => Some(*first.max(second)),
            Self::BadInPlace { permission, .. } => Some(permission.output),
            Self::BadPair { pair, .. } => Some(pair.first),
            Self::TooMany { .. } | Self::TooManyArenas { .. } => None,
        }
    }
}

/// A validated placement problem.
///
/// Sizes are positive, totals fit 64 bits, pins are aligned and do not conflict, hand-overs are
/// one-step and never grow, pauses lie inside their live range in order.
#[derive(Clone, Debug)]
pub struct Instance {
    buffers: Vec<Buffer>,
    in_place: Vec<InPlace>,
    arenas: Vec<Arena>,
    apart: Vec<KeepApart>,
    pub(crate) load: OnceLock<Load>,
    pub(crate) load_without_in_place: OnceLock<Load>,
}

impl PartialEq for Instance {
    fn eq(&self, other: &Self) -> bool {
        self.buffers == other.buffers
            && self.in_place == other.in_place
            && self.arenas == other.arenas
            && self.apart == other.apart
    }
}

impl Eq for Instance {}

impl Instance {
    /// Starts an instance.
    #[must_use]
    pub fn builder() -> InstanceBuilder {
        InstanceBuilder::default()
    }

    /// A problem of plain buffers.
    ///
    /// # Errors
    ///
    /// As [`InstanceBuilder::build`].
    pub fn from_buffers(buffers: Vec<Buffer>) -> Result<Self, InstanceError> {
        InstanceBuilder { buffers, ..InstanceBuilder::default() }.build()
    }

    /// The buffers, by id.
    #[must_use]
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// One buffer.
    ///
    /// # Panics
    ///
    /// If there is no buffer of that id.
    #[must_use]
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.index()]
    }

    /// The ids of all buffers, ascending.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = BufferId> + use<> {
        (0..self.buffers.len()).map(BufferId::from_index)
    }

    /// The number of buffers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffers.len()
    }

    /// Whether there is no buffer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// In-place permissions, ascending by input and output, each once.
    #[must_use]
    pub fn in_place(&self) -> &[InPlace] {
        &self.in_place
    }

    /// The arenas; at least one.
    #[must_use]
    pub fn arenas(&self) -> &[Arena] {
        &self.arenas
    }

    /// The pairs that must not share an address.
    #[must_use]
    pub fn apart(&self) -> &[KeepApart] {
        &self.apart
    }

    /// The first step after every live range; 0 if there is no buffer.
    #[must_use]
    pub fn horizon(&self) -> Step {
        self.buffers.iter().map(|buffer| buffer.live.end()).max().unwrap_or_default()
    }

    /// The sum of all sizes, in bytes: what `bump` needs.
    #[must_use]
    pub fn total(&self) -> Bytes {
        Bytes::new(self.buffers.iter().map(|buffer| buffer.size.get()).sum())
    }

    /// Whether a buffer counts towards the [load](Self::load) at a step: it is in use, and this is not its first step if it
    /// may overwrite another. O(number of permissions).
    ///
    /// # Panics
    ///
    /// If there is no buffer of that id.
    #[must_use]
    pub fn counts_at(&self, id: BufferId, step: Step) -> bool {
        let buffer = self.buffer(id);
        let is_in_use = buffer.pieces().any(|piece| piece.steps.contains(step));
        let may_overwrite = || self.in_place.iter().any(|pair| pair.output == id);
        is_in_use && (buffer.live.start() != step || !may_overwrite())
    }

    /// A digest of everything that a planner can see; labels are not part of it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self)
    }

    /// A number such that some optimal plan has only multiples of it as offsets: the greatest that
    /// divides every size, pin and window, and divides or is a multiple of each alignment.
    /// 1 if there is no buffer.
    ///
    /// Offsets that are rounded down to multiples of it still keep every rule: differences that are
    /// multiples of it stay, an offset that an alignment above it asks for is one already, and an
    /// alignment below it divides what comes out.
    #[must_use]
    pub fn granularity(&self) -> u64 {
        let mut divisor = 0;
        for buffer in &self.buffers {
            divisor = gcd(divisor, buffer.size.get());
            divisor = gcd(divisor, buffer.pin.map_or(0, Offset::get));
            for window in buffer.pauses.iter().filter_map(|pause| pause.window.as_ref()) {
                divisor = gcd(gcd(divisor, window.start.get()), window.end.get());
            }
            if divisor == 1 {
                return 1;
            }
        }
        self.fit_alignments(divisor.max(1))
    }

    /// The greatest divisor of `grain` that divides or is a multiple of each alignment.
    fn fit_alignments(&self, mut grain: u64) -> u64 {
        loop {
            let is_misfit = |align: &u64| !grain.is_multiple_of(*align) && !align.is_multiple_of(grain);
            match self.buffers.iter().map(|buffer| buffer.align.get()).find(is_misfit) {
                Some(align) => grain = gcd(grain, align),
                None => return grain,
            }
        }
    }

    /// Turns a plan that somebody made into one that may be used.
    ///
    /// Checks, in this order: one offset for each buffer, ends within 64 bits, alignment, pins,
    /// hand-overs, kept-apart pairs, overlaps (a sweep over the steps, O(n log n)), capacities of the
    /// arenas.
    ///
    /// # Errors
    ///
    /// The first [`Violation`] found; among overlaps, one at the earliest step.
    pub fn verify(&self, plan: Plan) -> Result<VerifiedPlan<'_>, Violation> {
        verify::verify(self, plan)
    }
}

/// The greatest common divisor; of 0 and a number, the number.
#[must_use]
pub const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Few enough that 16 bits hold the count, too.
const MOST_ARENAS: usize = u16::MAX as usize;

/// Collects the parts of an [`Instance`].
#[derive(Clone, Debug, Default)]
pub struct InstanceBuilder {
    buffers: Vec<Buffer>,
    in_place: Vec<InPlace>,
    arenas: Vec<Arena>,
    apart: Vec<KeepApart>,
}

impl InstanceBuilder {
    /// Adds a buffer; its id is the number of buffers before it.
    #[must_use]
    pub fn buffer(mut self, buffer: Buffer) -> Self {
        self.buffers.push(buffer);
        self
    }

    /// Adds buffers.
    #[must_use]
    pub fn buffers(mut self, buffers: impl IntoIterator<Item = Buffer>) -> Self {
        self.buffers.extend(buffers);
        self
    }

    /// Adds in-place permissions.
    #[must_use]
    pub fn in_place(mut self, permissions: impl IntoIterator<Item = InPlace>) -> Self {
        self.in_place.extend(permissions);
        self
    }

    /// Declares arenas. Default: one without a name or a limit.
    #[must_use]
    pub fn arenas(mut self, arenas: impl IntoIterator<Item = Arena>) -> Self {
        self.arenas.extend(arenas);
        self
    }

    /// Adds pairs that must not share an address. The instance has each pair once, the lower id first, by ids.
    #[must_use]
    pub fn apart(mut self, pairs: impl IntoIterator<Item = KeepApart>) -> Self {
        self.apart.extend(pairs);
        self
    }

    /// Checks every rule.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, with the buffers that break it.
    pub fn build(self) -> Result<Instance, InstanceError> {
        let Self { buffers, mut in_place, mut arenas, mut apart } = self;
        if u32::try_from(buffers.len()).is_err() {
            return Err(InstanceError::TooMany { count: buffers.len() });
        }
        if arenas.is_empty() {
            arenas.push(Arena::default());
        }
        if arenas.len() > MOST_ARENAS {
            return Err(InstanceError::TooManyArenas { count: arenas.len() });
        }
        in_place.sort_unstable();
        in_place.dedup();
        // In one form, so that problems that are the same have the same digest.
        for pair in &mut apart {
            *pair = KeepApart { first: pair.first.min(pair.second), second: pair.first.max(pair.second) };
        }
        apart.sort_unstable();
        apart.dedup();
        let instance = Instance {
            buffers,
            in_place,
            arenas,
            apart,
            load: OnceLock::new(),
            load_without_in_place: OnceLock::new(),
        };
        instance.check_buffers()?;
        instance.check_permissions()?;
        instance.check_apart()?;
        verify::check_pins(&instance)?;
        Ok(instance)
    }
}

impl Instance {
    fn check_buffers(&self) -> Result<(), InstanceError> {
        let mut total = 0_u64;
        for (id, buffer) in self.ids().zip(&self.buffers) {
            if buffer.size == Bytes::ZERO {
                return Err(InstanceError::ZeroSize { buffer: id });
            }
            if buffer.arena.index() >= self.arenas.len() {
                let (arena, count) = (buffer.arena, self.arenas.len());
                return Err(InstanceError::UnknownArena { buffer: id, arena, count });
            }
            // With room for the padding in front of each buffer even `bump` cannot overflow.
            total = total
                .checked_add(buffer.size.get())
                .and_then(|sum| sum.checked_add(buffer.align.get() - 1))
                .ok_or(InstanceError::TotalOverflow { buffer: id })?;
            check_pin(id, buffer)?;
            check_pauses(id, buffer)?;
        }
        let tops = self.pinned_tops();
        match tops.into_iter().try_fold(total, u64::checked_add) {
            Some(_) => Ok(()),
            None => Err(InstanceError::TotalOverflow { buffer: BufferId::from_index(self.len() - 1) }),
        }
    }

    /// The highest end of a pinned buffer in each arena, in bytes; 0 without pins.
    pub(crate) fn pinned_tops(&self) -> Vec<u64> {
        let mut tops = vec![0_u64; self.arenas.len()];
        for buffer in &self.buffers {
            if let Some(end) = buffer.pin.and_then(|pin| pin.end(buffer.size)) {
                let top = &mut tops[buffer.arena.index()];
                *top = (*top).max(end.get());
            }
        }
        tops
    }

    fn check_permissions(&self) -> Result<(), InstanceError> {
        for &permission in &self.in_place {
            let InPlace { input, output } = permission;
            self.known("an in-place permission", [input, output])?;
            if let Some(reason) = hand_over_fault(self.buffer(input), self.buffer(output)) {
                return Err(InstanceError::BadInPlace { permission, reason });
            }
        }
        Ok(())
    }

    fn check_apart(&self) -> Result<(), InstanceError> {
        for &pair in &self.apart {
            self.known("a keep-apart pair", [pair.first, pair.second])?;
            let (first, second) = (self.buffer(pair.first), self.buffer(pair.second));
            let reason = if pair.first == pair.second {
                "they are one buffer"
            } else if first.arena != second.arena {
                "they lie in different arenas"
            } else if pinned_together(first, second) {
                "both are pinned, and they share an address"
            } else {
                continue;
            };
            return Err(InstanceError::BadPair { pair, reason });
        }
        Ok(())
    }

    fn known(&self, what: &'static str, ids: [BufferId; 2]) -> Result<(), InstanceError> {
        let count = self.len();
        match ids.into_iter().find(|id| id.index() >= count) {
            Some(buffer) => Err(InstanceError::UnknownBuffer { what, buffer, count }),
            None => Ok(()),
        }
    }
}

fn check_pin(id: BufferId, buffer: &Buffer) -> Result<(), InstanceError> {
    let Some(pin) = buffer.pin else { return Ok(()) };
    if !buffer.align.divides(pin.get()) {
        return Err(InstanceError::MisalignedPin { buffer: id, pin, align: buffer.align });
    }
    match pin.end(buffer.size) {
        Some(_) => Ok(()),
        None => Err(InstanceError::PinOverflow { buffer: id, pin }),
    }
}

fn pinned_together(first: &Buffer, second: &Buffer) -> bool {
    let (Some(low), Some(high)) = (first.pin, second.pin) else { return false };
    // Ends past 2^64 - 1 were refused before.
    low.end(first.size) > Some(high) && high.end(second.size) > Some(low)
}

fn check_pauses(id: BufferId, buffer: &Buffer) -> Result<(), InstanceError> {
    let mut at = buffer.live.start();
    for pause in &buffer.pauses {
        let window_ok = pause.window.as_ref().is_none_or(|w| w.start < w.end && w.end <= buffer.size);
        let reason = if !buffer.live.encloses(pause.steps) {
            "does not lie inside the live range"
        } else if pause.steps.start() < at {
            "overlaps the pause before it, or is out of order"
        } else if !window_ok {
            "has an empty window, or one that leaves the buffer"
        } else {
            at = pause.steps.end();
            continue;
        };
        return Err(InstanceError::BadPause { buffer: id, steps: pause.steps, reason });
    }
    Ok(())
}

fn hand_over_fault(input: &Buffer, output: &Buffer) -> Option<&'static str> {
    let step = output.live.start();
    if std::ptr::eq(input, output) {
        Some("they are one buffer")
    } else if step.get().checked_add(1) != Some(input.live.end().get()) {
        Some("its first step is not the other's last")
    } else if output.size > input.size {
        Some("it is larger")
    } else if output.arena != input.arena {
        Some("they lie in different arenas")
    } else if !input.is_whole_at(step) || !output.is_whole_at(step) {
        Some("one of them is paused at the step of the hand-over")
    } else {
        None
    }
}
