//! Bytes in use over time, and the most of them.

use super::units::{Bytes, Step};

/// The most bytes in use at one step, and the first such step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Bytes.
    pub bytes: Bytes,
    /// The first step of the peak.
    pub step: Step,
}

/// The bytes in use over time, as a step function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadCurve {
    points: Vec<(Step, Bytes)>,
}

impl LoadCurve {
    /// The sums of changes of bytes, each at a step; ascending by step.
    pub(crate) fn from_changes(changes: &[(u32, i128)]) -> Self {
        let mut points: Vec<(Step, Bytes)> = Vec::new();
        let mut bytes = 0_i128;
        for group in changes.chunk_by(|a, b| a.0 == b.0) {
            bytes += group.iter().map(|&(_, change)| change).sum::<i128>();
            let now = Bytes::new(
                u64::try_from(bytes).expect("totals fit 64 bits, and nothing ends before it begins"),
            );
            if points.last().is_none_or(|&(_, before)| before != now) {
                points.push((Step::new(group[0].0), now));
            }
        }
        Self { points }
    }

    /// `(step, bytes)`: these bytes are in use from this step up to the next point's. Ascending by step; the last point
    /// has 0 bytes. Empty for an instance without buffers.
    #[must_use]
    pub fn points(&self) -> &[(Step, Bytes)] {
        &self.points
    }

    /// The highest point; the first if several are equal.
    #[must_use]
    pub fn peak(&self) -> Load {
        // Of several that are equal, `max_by_key` takes the last.
        let highest = self.points.iter().rev().max_by_key(|&&(_, bytes)| bytes);
        highest.map(|&(step, bytes)| Load { bytes, step }).unwrap_or_default()
    }

    /// The bytes in use at `step`.
    #[must_use]
    pub fn load_at(&self, step: Step) -> Bytes {
        let after = self.points.partition_point(|&(start, _)| start <= step);
        after.checked_sub(1).map_or(Bytes::ZERO, |index| self.points[index].1)
    }
}
