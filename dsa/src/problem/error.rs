//! Why a problem is not well formed.

use crate::{Alignment, ArenaId, BufferId, InPlace, KeepApart, LiveRange, Offset, Step};

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
