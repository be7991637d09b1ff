//! An instance as local search sees it: sizes in granules, and the neighbours of each buffer.

use planlab_dsa::{Halt, Instance, Offset, Plan, Run, Scope};

use crate::demands::can_stand;
use crate::tick::Tick;
use crate::trees::Neighbours;

/// What a buffer, or an active part of it, takes: steps `[start, end)` and granules `[low, high)`, counted from its
/// offset or from the lowest address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// An instance in granules: some optimal plan has only multiples of a granule as offsets (see
/// [`Instance::offset_granularity`]).
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) grain: u64,
    pub(crate) sizes: Vec<u64>,
    pub(crate) aligns: Vec<u64>,
    pub(crate) pins: Vec<Option<u64>>,
    /// The active parts of each buffer; empty if no buffer pauses.
    pub(crate) parts: Vec<Box<[Part]>>,
    pub(crate) neighbours: Neighbours,
    /// Whether every sum of offsets and sizes fits 32 bits.
    pub(crate) narrow: bool,
}

impl Model {
    /// `None` if no plan without hand-overs exists, because the pinned buffers need some.
    pub(crate) fn new(instance: &Instance, tick: &mut Tick<'_>) -> Result<Option<Self>, Halt> {
        if !can_stand(instance) {
            return Ok(None);
        }
        let neighbours = Neighbours::new(instance, tick)?;
        Ok(Some(Self::with_neighbours(instance, neighbours)))
    }

    pub(crate) fn with_neighbours(instance: &Instance, neighbours: Neighbours) -> Self {
        let grain = instance.offset_granularity();
        let buffers = instance.buffers();
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer.size.get() / grain).collect();
        let aligns: Vec<u64> = buffers.iter().map(|buffer| (buffer.align.get() / grain).max(1)).collect();
        let pins: Vec<Option<u64>> = buffers.iter().map(|b| b.pin.map(|pin| pin.get() / grain)).collect();
        let pauses = buffers.iter().any(|buffer| !buffer.pauses.is_empty());
        let parts = if pauses { buffer_parts(instance, grain) } else { Vec::new() };
        let highest_pin = pins.iter().flatten().max().copied().unwrap_or(0);
        let sum = |all: &[u64]| all.iter().map(|&one| u128::from(one)).sum::<u128>();
        let narrow = sum(&sizes) + sum(&aligns) + u128::from(highest_pin) < 1 << 31;
        Self { grain, sizes, aligns, pins, parts, neighbours, narrow }
    }

    pub(crate) fn len(&self) -> usize {
        self.sizes.len()
    }

    pub(crate) fn round_up(&self, id: u32, offset: u64) -> u64 {
        match self.aligns[id as usize] {
            1 => offset, // Spares the division in the innermost loop.
            align => offset.next_multiple_of(align),
        }
    }

    pub(crate) fn plan_of(&self, offsets: impl Iterator<Item = u64>) -> Plan {
        Plan::from_offsets(offsets.map(|offset| Offset::new(offset * self.grain)).collect::<Vec<_>>())
    }

    /// The highest bound known on plans without hand-overs, in granules, rounded up.
    pub(crate) fn known_bound(&self, run: &Run<'_>) -> u64 {
        run.bound().best_claim(Scope::NoHandOver).value.get().div_ceil(self.grain)
    }

    /// The height, in granules and at most `best`, of the lowest plan that any search has offered. Does not wait until
    /// that plan is verified, since the time of that varies.
    pub(crate) fn incumbent_height(&self, run: &Run<'_>, best: u64) -> u64 {
        run.height_to_beat().map_or(best, |height| height.get().div_ceil(self.grain).min(best))
    }

    /// The height to reach next, in granules: the target if there is one above the bound that is not reached yet, else
    /// one granule below `height`; never below the bound.
    pub(crate) fn next_ceiling(&self, run: &Run<'_>, height: u64) -> u64 {
        let below = height.saturating_sub(1).max(self.known_bound(run));
        run.target().map_or(below, |target| below.min((target.get() / self.grain).max(self.known_bound(run))))
    }
}

fn buffer_parts(instance: &Instance, grain: u64) -> Vec<Box<[Part]>> {
    let part = |piece: planlab_dsa::Piece| Part {
        start: piece.steps.start().get(),
        end: piece.steps.end().get(),
        low: piece.window.start.get() / grain,
        high: piece.window.end.get() / grain,
    };
    instance.buffers().iter().map(|buffer| buffer.active_pieces().map(part).collect()).collect()
}
