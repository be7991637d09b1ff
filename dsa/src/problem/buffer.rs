//! One tensor storage, and the parts of its live range in which it is in use.

use std::ops::Range;

use crate::{Alignment, ArenaId, Bytes, LiveRange, Offset, Step};

/// One tensor storage: a size and the steps at which it is live.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Size in bytes; more than 0.
    pub size: Bytes,
    /// The steps at which it is live.
    pub live: LiveRange,
    /// Its offset is a multiple of this.
    pub align: Alignment,
    /// The offset that the caller requires, if any.
    pub pin: Option<Offset>,
    /// The arena that it lies in.
    pub arena: ArenaId,
    /// Parts of the live range in which the buffer is inactive or only partly in use; ascending, disjoint.
    pub pauses: Box<[Pause]>,
}

impl Buffer {
    /// A buffer of `size` bytes at any offset of the first arena.
    #[must_use]
    pub fn new(size: Bytes, live: LiveRange) -> Self {
        Self {
            size,
            live,
            align: Alignment::ONE,
            pin: None,
            arena: ArenaId::default(),
            pauses: Box::default(),
        }
    }

    /// Sets the alignment. Default: 1.
    #[must_use]
    pub fn with_align(mut self, align: Alignment) -> Self {
        self.align = align;
        self
    }

    /// Fixes the offset. Default: any offset.
    #[must_use]
    pub fn with_pin(mut self, offset: Offset) -> Self {
        self.pin = Some(offset);
        self
    }

    /// Sets the pauses. Default: no pauses.
    #[must_use]
    pub fn with_pauses(mut self, pauses: impl Into<Box<[Pause]>>) -> Self {
        self.pauses = pauses.into();
        self
    }

    /// Moves the buffer to another arena. Default: arena 0.
    #[must_use]
    pub fn in_arena(mut self, arena: ArenaId) -> Self {
        self.arena = arena;
        self
    }

    /// The active rectangles of the buffer, in step order: its live range less its pauses, and the
    /// windows of those pauses that keep one.
    pub fn active_pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let mut at = self.live.start();
        let around_pauses = self.pauses.iter().flat_map(move |pause| {
            let before = self.whole_piece(at, pause.steps.start());
            at = pause.steps.end();
            let kept = pause.window.clone().map(|window| Piece { steps: pause.steps, window });
            before.into_iter().chain(kept)
        });
        let last = self.pauses.last().map_or(self.live.start(), |pause| pause.steps.end());
        around_pauses.chain(self.whole_piece(last, self.live.end()))
    }

    /// All bytes at the steps `[from, to)`; `None` if there is no such step.
    fn whole_piece(&self, from: Step, to: Step) -> Option<Piece> {
        let steps = LiveRange::new(from.get(), to.get()).ok()?;
        Some(Piece { steps, window: Bytes::ZERO..self.size })
    }

    /// Whether the whole buffer is in use at `step`.
    #[must_use]
    pub fn is_whole_at(&self, step: Step) -> bool {
        self.live.contains(step) && !self.pauses.iter().any(|pause| pause.steps.contains(step))
    }
}

/// A part of the live range in which a buffer is inactive, or only a window of it is in use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pause {
    /// The steps of the pause; inside the live range.
    pub steps: LiveRange,
    /// The bytes that stay in use, relative to the buffer's offset; `None` if the buffer is inactive.
    pub window: Option<Range<Bytes>>,
}

/// An active rectangle of a buffer: a range of steps, and the bytes in use then, relative to its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The steps at which the bytes are in use.
    pub steps: LiveRange,
    /// The bytes, relative to the buffer's offset.
    pub window: Range<Bytes>,
}

impl Piece {
    /// The number of bytes in use.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.window.end.get() - self.window.start.get()
    }
}
