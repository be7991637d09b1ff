//! A validated placement problem.

use std::sync::OnceLock;

use crate::{Arena, Buffer, BufferId, Bytes, InPlace, KeepApart, Load, Offset, Step};

/// A validated placement problem.
///
/// Sizes are positive, totals fit 64 bits, pins are aligned and do not conflict, hand-overs are
/// one-step and never grow, pauses lie inside their live range in order.
///
/// # Panics
///
/// All methods that take an id panic if there is no such buffer.
#[derive(Clone, Debug)]
pub struct Instance {
    pub(super) buffers: Vec<Buffer>,
    pub(super) in_place: Vec<InPlace>,
    pub(super) arenas: Vec<Arena>,
    pub(super) apart: Vec<KeepApart>,
    pub(super) load: OnceLock<Load>,
    pub(super) load_without_in_place: OnceLock<Load>,
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
    /// The buffers, by id.
    #[must_use]
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// One buffer.
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
    pub fn keep_apart_pairs(&self) -> &[KeepApart] {
        &self.apart
    }

    /// The first step after every live range; 0 if there is no buffer.
    #[must_use]
    pub fn horizon(&self) -> Step {
        self.buffers.iter().map(|buffer| buffer.live.end()).max().unwrap_or_default()
    }

    /// The sum of all sizes, in bytes: what `bump` needs.
    #[must_use]
    pub fn total_size(&self) -> Bytes {
        Bytes::new(self.buffers.iter().map(|buffer| buffer.size.get()).sum())
    }

    /// Whether a buffer counts towards the [load](Self::load) at a step: it is in use, and this is not its first step if it
    /// may overwrite another. O(number of permissions).
    #[must_use]
    pub fn counts_at(&self, id: BufferId, step: Step) -> bool {
        let buffer = self.buffer(id);
        let is_in_use = buffer.active_pieces().any(|piece| piece.steps.contains(step));
        let may_overwrite = || self.in_place.iter().any(|pair| pair.output == id);
        is_in_use && (buffer.live.start() != step || !may_overwrite())
    }

    /// A number such that some optimal plan has only multiples of it as offsets: the greatest that
    /// divides every size, pin and window, and divides or is a multiple of each alignment.
    /// 1 if there is no buffer.
    ///
    /// Offsets that are rounded down to multiples of it still keep every rule: differences that are
    /// multiples of it stay, an offset that an alignment above it asks for is one already, and an
    /// alignment below it divides what comes out.
    #[must_use]
    pub fn offset_granularity(&self) -> u64 {
        let mut divisor = 0;
        for buffer in &self.buffers {
            divisor = greatest_common_divisor(divisor, buffer.size.get());
            divisor = greatest_common_divisor(divisor, buffer.pin.map_or(0, Offset::get));
            for window in buffer.pauses.iter().filter_map(|pause| pause.window.as_ref()) {
                divisor = greatest_common_divisor(
                    greatest_common_divisor(divisor, window.start.get()),
                    window.end.get(),
                );
            }
            if divisor == 1 {
                return 1;
            }
        }
        self.fit_alignments(divisor.max(1))
    }

    /// The highest end of a pinned buffer in each arena, in bytes; 0 without pins.
    pub(crate) fn pinned_tops(&self) -> Vec<u64> {
        let mut tops = vec![0_u64; self.arenas.len()];
        for buffer in &self.buffers {
            if let Some(end) = buffer.pin.and_then(|pin| pin.end_of(buffer.size)) {
                let top = &mut tops[buffer.arena.index()];
                *top = (*top).max(end.get());
            }
        }
        tops
    }

    /// The greatest divisor of `grain` that divides or is a multiple of each alignment.
    fn fit_alignments(&self, mut grain: u64) -> u64 {
        loop {
            let is_misfit = |align: &u64| !grain.is_multiple_of(*align) && !align.is_multiple_of(grain);
            match self.buffers.iter().map(|buffer| buffer.align.get()).find(is_misfit) {
                Some(align) => grain = greatest_common_divisor(grain, align),
                None => return grain,
            }
        }
    }
}

/// The greatest common divisor; of 0 and a number, the number.
#[must_use]
pub const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
