//! Checked units: bytes, offsets, steps and identifiers that cannot be confused.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($raw:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name($raw);

        impl $name {
            /// Wraps a raw number.
            #[must_use]
            pub const fn new(raw: $raw) -> Self {
                Self(raw)
            }

            /// The raw number.
            #[must_use]
            pub const fn get(self) -> $raw {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

unit! {
    /// A size, in bytes.
    Bytes(u64)
}
unit! {
    /// An address relative to the start of an arena, in bytes.
    Offset(u64)
}
unit! {
    /// A point of logical time: one allocation, release or operation.
    Step(u32)
}
unit! {
    /// The number of a buffer: its row in the instance, from 0.
    BufferId(u32)
}
unit! {
    /// The number of an arena of an instance, from 0.
    ArenaId(u16)
}
unit! {
    /// An address on a device, in bytes; 0 means no memory.
    Address(u64)
}
unit! {
    /// The number of a stream: operations on one stream run in order.
    Stream(u32)
}

impl Address {
    /// The address that a request for 0 bytes may get; no memory lies there.
    pub const NULL: Self = Self(0);
}

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// The sum, or `None` past 2^64 - 1.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }
}

impl Offset {
    /// The address just past `size` bytes at this offset, or `None` past 2^64 - 1.
    #[must_use]
    pub const fn end_of(self, size: Bytes) -> Option<Self> {
        match self.0.checked_add(size.0) {
            Some(end) => Some(Self(end)),
            None => None,
        }
    }
}

impl BufferId {
    /// The id of row `index`.
    ///
    /// # Panics
    ///
    /// If `index` does not fit in 32 bits; an [`Instance`](crate::Instance) never holds that many.
    #[must_use]
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("an instance holds at most 2^32 - 1 buffers"))
    }

    /// The row as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ArenaId {
    /// The arena's number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An alignment in bytes: offsets are multiples of it. Any positive number, not only powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Alignment(NonZeroU64);

impl Alignment {
    /// Every offset is a multiple of it.
    pub const ONE: Self = Self(NonZeroU64::MIN);

    /// An alignment of `bytes`, or `None` for 0.
    #[must_use]
    pub const fn new(bytes: u64) -> Option<Self> {
        match NonZeroU64::new(bytes) {
            Some(nonzero) => Some(Self(nonzero)),
            None => None,
        }
    }

    /// The alignment in bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The least multiple that is at least `value`, or `None` past 2^64 - 1.
    #[must_use]
    pub const fn round_up(self, value: u64) -> Option<u64> {
        let rest = value % self.get();
        if rest == 0 { Some(value) } else { value.checked_add(self.get() - rest) }
    }

    /// Whether `offset` is a multiple.
    #[must_use]
    pub const fn divides(self, offset: u64) -> bool {
        offset.is_multiple_of(self.get())
    }
}

impl Default for Alignment {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_up_keeps_multiples_and_refuses_overflow() {
        let align = Alignment::new(512).expect("positive");
        for (value, rounded) in [(0, Some(0)), (1, Some(512)), (512, Some(512)), (u64::MAX, None)] {
            assert_eq!(align.round_up(value), rounded, "{value}");
        }
        assert_eq!(Alignment::new(0), None);
    }
}
