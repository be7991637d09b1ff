//! Why a problem is not well formed.

use crate::{Alignment, ArenaId, BufferId, InPlace, KeepApart, LiveRange, Offset, Step};

/// Why a problem is not well formed.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// More than 2^32 - 1 buffers.
    #[error("{count} buffers are more than an instance can hold (4294967295)")]
    TooMany { count: usize },
    /// More than 2^16 - 1 arenas.
    #[error("{count} arenas are more than an instance can hold (65535)")]
    TooManyArenas { count: usize },
    /// A buffer without bytes.
    #[error("buffer {buffer}: its size is 0; a buffer has at least one byte")]
    ZeroSize { buffer: BufferId },
    /// The sum of all sizes, each with its alignment, leaves 64 bits at this buffer.
    #[error("buffer {buffer}: with it the sizes (and their alignments) sum to more than 2^64 - 1 bytes")]
    TotalOverflow { buffer: BufferId },
    /// A pin that is not a multiple of the alignment.
    #[error("buffer {buffer}: pinned at offset {pin}, which is not a multiple of its alignment {align}")]
    MisalignedPin { buffer: BufferId, pin: Offset, align: Alignment },
    /// A pin so high that the buffer's end does not fit 64 bits.
    #[error("buffer {buffer}: pinned at offset {pin}, its end lies past 2^64 - 1")]
    PinOverflow { buffer: BufferId, pin: Offset },
    /// Two pinned buffers that overlap; both are active at `step`.
    #[error("buffers {first} and {second}: both are pinned, and they overlap at step {step}")]
    PinConflict { first: BufferId, second: BufferId, step: Step },
    /// Pauses out of order, outside the live range, or with a bad window.
    #[error("buffer {buffer}: pause {steps} {reason}")]
    BadPause { buffer: BufferId, steps: LiveRange, reason: &'static str },
    /// A permission or pair that names no buffer.
    #[error("{what} names buffer {buffer}, but there are only {count} buffers")]
    UnknownBuffer { what: &'static str, buffer: BufferId, count: usize },
    /// A hand-over that can never be valid.
    #[error("buffer {} may not overwrite buffer {}: {reason}", permission.output, permission.input)]
    BadInPlace { permission: InPlace, reason: &'static str },
    /// A buffer that is kept apart from itself, from a buffer of another arena, or from one that is pinned
    /// into its place.
    #[error("buffers {} and {} cannot be kept apart: {reason}", pair.first, pair.second)]
    BadPair { pair: KeepApart, reason: &'static str },
    /// A buffer in an arena that was not declared.
    #[error("buffer {buffer}: it lies in arena {arena}, but there are only {count} arenas")]
    UnknownArena { buffer: BufferId, arena: ArenaId, count: usize },
}

impl InstanceError {
    /// The buffer that is at fault; of two, the one that came later. `None` if no single buffer is at fault.
    #[must_use]
    pub fn faulty_buffer(&self) -> Option<BufferId> {
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
