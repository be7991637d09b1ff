//! Collects the parts of an instance, and checks every rule.

use std::sync::OnceLock;

use super::sweep::{Overlap, first_overlap, rectangles};
use crate::{Arena, Buffer, BufferId, Bytes, InPlace, Instance, InstanceError, KeepApart, Offset};

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
        check_pins(&instance)?;
        Ok(instance)
    }
}

impl Instance {
    /// Starts an instance.
    #[must_use]
    pub fn builder() -> InstanceBuilder {
        InstanceBuilder::default()
    }

    /// A problem of plain buffers.
    pub fn from_buffers(buffers: Vec<Buffer>) -> Result<Self, InstanceError> {
        InstanceBuilder { buffers, ..InstanceBuilder::default() }.build()
    }

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

    fn check_permissions(&self) -> Result<(), InstanceError> {
        for &permission in &self.in_place {
            let InPlace { input, output } = permission;
            self.check_known_ids("an in-place permission", [input, output])?;
            if let Some(reason) = hand_over_fault(self.buffer(input), self.buffer(output)) {
                return Err(InstanceError::BadInPlace { permission, reason });
            }
        }
        Ok(())
    }

    fn check_apart(&self) -> Result<(), InstanceError> {
        for &pair in &self.apart {
            self.check_known_ids("a keep-apart pair", [pair.first, pair.second])?;
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

    fn check_known_ids(&self, what: &'static str, ids: [BufferId; 2]) -> Result<(), InstanceError> {
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
    match pin.end_of(buffer.size) {
        Some(_) => Ok(()),
        None => Err(InstanceError::PinOverflow { buffer: id, pin }),
    }
}

fn pinned_together(first: &Buffer, second: &Buffer) -> bool {
    let (Some(low), Some(high)) = (first.pin, second.pin) else { return false };
    // Ends past 2^64 - 1 were refused before.
    low.end_of(first.size) > Some(high) && high.end_of(second.size) > Some(low)
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

/// Rejects pinned buffers that overlap, except at a pinned output's first step, which a hand-over may cover.
fn check_pins(instance: &Instance) -> Result<(), InstanceError> {
    if instance.buffers().iter().all(|buffer| buffer.pin.is_none()) {
        return Ok(());
    }
    let may_overwrite = instance.hand_over_outputs();
    let offsets: Vec<Offset> = instance.buffers().iter().map(|b| b.pin.unwrap_or_default()).collect();
    let mut all = rectangles(instance, &offsets, |id| may_overwrite[id.index()]);
    all.retain(|rectangle| instance.buffer(rectangle.id).pin.is_some());
    first_overlap(all).map_err(|Overlap { first, second, steps, .. }| InstanceError::PinConflict {
        first,
        second,
        step: steps.start(),
    })
}
