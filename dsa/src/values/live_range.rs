//! Half-open, non-empty ranges of steps.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Step;

/// The steps `[start, end)` at which a buffer is live; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u32, u32)", into = "(u32, u32)")]
pub struct LiveRange {
    start: Step,
    end: Step,
}

/// The error for a range whose start is not below its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the live range [{start}, {end}) is empty: its start must be below its end")]
pub struct EmptyLiveRange {
    start: u32,
    end: u32,
}

impl LiveRange {
    /// The steps from `start` up to, not including, `end`.
    ///
    /// # Errors
    ///
    /// [`EmptyLiveRange`] unless `start < end`.
    pub const fn new(start: u32, end: u32) -> Result<Self, EmptyLiveRange> {
        if start < end {
            Ok(Self { start: Step::new(start), end: Step::new(end) })
        } else {
            Err(EmptyLiveRange { start, end })
        }
    }

    /// The first step.
    #[must_use]
    pub const fn start(self) -> Step {
        self.start
    }

    /// The first step after the range.
    #[must_use]
    pub const fn end(self) -> Step {
        self.end
    }

    /// The number of steps; at least 1.
    #[must_use]
    pub const fn width(self) -> u32 {
        self.end.get() - self.start.get()
    }

    /// Whether the two ranges share a step.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.start.get() < other.end.get() && other.start.get() < self.end.get()
    }

    /// Whether `step` lies in the range.
    #[must_use]
    pub const fn contains(self, step: Step) -> bool {
        self.start.get() <= step.get() && step.get() < self.end.get()
    }

    /// Whether all of `other` lies in the range.
    #[must_use]
    pub const fn encloses(self, other: Self) -> bool {
        self.start.get() <= other.start.get() && other.end.get() <= self.end.get()
    }

    /// The steps in both ranges; `None` if there is no such step.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start).get(), self.end.min(other.end).get()).ok()
    }
}

impl TryFrom<(u32, u32)> for LiveRange {
    type Error = EmptyLiveRange;

    fn try_from((start, end): (u32, u32)) -> Result<Self, Self::Error> {
        Self::new(start, end)
    }
}

impl From<LiveRange> for (u32, u32) {
    fn from(range: LiveRange) -> Self {
        (range.start.get(), range.end.get())
    }
}

impl fmt::Display for LiveRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_ranges_do_not_overlap() {
        let (a, b, c) = (range(0, 2), range(2, 4), range(1, 3));
        assert!(!a.overlaps(b) && !b.overlaps(a));
        assert!(a.overlaps(c) && c.overlaps(b));
        assert_eq!(a.intersection(b), None);
        assert_eq!(a.intersection(c), Some(range(1, 2)));
    }

    #[test]
    fn empty_and_reversed_ranges_are_refused() {
        assert!(LiveRange::new(3, 3).is_err());
        assert!(LiveRange::new(4, 3).is_err());
    }

    fn range(start: u32, end: u32) -> LiveRange {
        LiveRange::new(start, end).expect("test ranges are not empty")
    }
}
