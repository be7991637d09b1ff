//! Why a plan is not valid.

use crate::{Alignment, ArenaId, BufferId, Bytes, InPlace, KeepApart, LiveRange, Offset, Step};

/// Why a plan is not valid.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The number of offsets is not the number of buffers.
    #[error("the plan has {got} offsets, but the instance has {expected} buffers")]
    WrongCount { expected: usize, got: usize },
    /// An end, or the sum of the arenas' heights, past 2^64 - 1.
    #[error("buffer {buffer} at offset {offset}: its end lies past 2^64 - 1")]
    Overflow { buffer: BufferId, offset: Offset },
    /// An offset that is not a multiple of the alignment.
    #[error("buffer {buffer} at offset {offset}: not a multiple of its alignment {align}")]
    Misaligned { buffer: BufferId, offset: Offset, align: Alignment },
    /// A pinned buffer at another offset.
    #[error("buffer {buffer} at offset {offset}: it is pinned at {pin}")]
    OffPin { buffer: BufferId, offset: Offset, pin: Offset },
    /// A hand-over, at `step`, that is forbidden, used twice, or whose output exceeds the input's bytes.
    #[error("buffer {} takes the place of buffer {}: {reason}", pair.output, pair.input)]
    HandOver { pair: InPlace, step: Step, reason: &'static str },
    /// Two buffers that must be kept apart share an address.
    #[error("buffers {} and {} share an address, but must be kept apart", pair.first, pair.second)]
    Together { pair: KeepApart },
    /// Two buffers in use at one step share an address; `first` was placed first. `steps` and `bytes` are those that both
    /// use: the first shared address, and the end of the shared range.
    #[error("buffers {first} and {second} overlap at steps {steps}, addresses [{}, {})", bytes.0, bytes.1)]
    Overlap { first: BufferId, second: BufferId, steps: LiveRange, bytes: (Offset, Offset) },
    /// An arena that exceeds its capacity.
    #[error("arena {arena} needs {height} bytes, but its capacity is {capacity}")]
    OverCapacity { arena: ArenaId, height: Bytes, capacity: Bytes },
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
