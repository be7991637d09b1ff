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
    #[must_use]
    pub fn active_pieces(&self) -> Pieces<'_> {
        Pieces {
            buffer: self,
            at: self.live.start().get(),
            pauses: self.pauses.iter(),
            window: None,
            done: false,
        }
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

/// The pieces of one buffer; see [`Buffer::active_pieces`].
#[derive(Clone, Debug)]
pub struct Pieces<'b> {
    buffer: &'b Buffer,
    at: u32,
    pauses: std::slice::Iter<'b, Pause>,
    window: Option<Piece>,
    done: bool,
}

impl Pieces<'_> {
    fn next_piece(&mut self, until: u32) -> Option<Piece> {
        let steps = LiveRange::new(self.at, until).ok()?;
        Some(Piece { steps, window: Bytes::ZERO..self.buffer.size })
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.window.take() {
                return Some(piece);
            }
            if self.done {
                return None;
            }
            let piece = if let Some(pause) = self.pauses.next() {
                let piece = self.next_piece(pause.steps.start().get());
                self.window = pause.window.clone().map(|window| Piece { steps: pause.steps, window });
                self.at = pause.steps.end().get();
                piece
            } else {
                self.done = true;
                self.next_piece(self.buffer.live.end().get())
            };
            if piece.is_some() {
                return piece;
            }
        }
    }
}

impl Piece {
    /// The number of bytes in use.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.window.end.get() - self.window.start.get()
    }
}
