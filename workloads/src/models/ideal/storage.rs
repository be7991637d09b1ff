//! Where values are stored: views are parts of the storage of another value.

use crate::models::net::ValueId;

/// The storage of a value, and the part of it that the value occupies.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    /// The value that owns the storage: an input, or the output of a call.
    pub(super) root: ValueId,
    pub(super) part: Part,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// A block that starts at `start` within the value `of`, which fills the storage.
    Box {
        of: ValueId,
        start: Vec<u64>,
        extents: Vec<u64>,
    },
    /// A part of a part: its place is not tracked.
    Some,
}

impl Part {
    /// Whether the two parts certainly do not overlap.
    pub(super) fn is_apart(&self, other: &Self) -> bool {
        let (Self::Box { of, start, extents }, Self::Box { of: other_of, start: other, extents: reach }) =
            (self, other)
        else {
            return false;
        };
        let mut axes = start.iter().zip(extents).zip(other.iter().zip(reach));
        of == other_of && axes.any(|((a, long), (b, far))| a + long <= *b || b + far <= *a)
    }
}
