//! The time axis reduced to the steps at which most buffers are live.
//!
//! Between two steps at which something ends, the set of live buffers only grows. So two live ranges overlap exactly if
//! both are live at the last start before some end. Those steps are the *columns* (also known as sections). A live
//! range covers a contiguous, non-empty run of them.
//!
//! ```text
//!   a  ===
//!   b    ===          columns: 2 (a b) and 6 (c d);
//!   c       ===       not 0 and 5: nothing ends before the next start
//!   d        =
//! step 01234567
//! ```

use std::ops::Range;

use planlab_dsa::{Buffer, Instance, LiveRange};

/// Ascending steps that represent all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    steps: Vec<u32>,
}

impl Columns {
    /// The columns of ranges of steps, each `(start, end)`.
    pub(crate) fn new(ranges: impl Iterator<Item = (u32, u32)>) -> Self {
        let (mut starts, mut ends): (Vec<u32>, Vec<u32>) = ranges.unzip();
        starts.sort_unstable();
        starts.dedup();
        ends.sort_unstable();
        ends.dedup();
        let mut end = ends.into_iter().peekable();
        let mut steps = Vec::new();
        for (index, &start) in starts.iter().enumerate() {
            while end.next_if(|&end| end <= start).is_some() {}
            let next = starts.get(index + 1).copied().unwrap_or(u32::MAX);
            if end.peek().is_some_and(|&end| end <= next) {
                steps.push(start);
            }
        }
        Self { steps }
    }

    /// The columns of whole live ranges.
    pub(crate) fn of_live_ranges(instance: &Instance) -> Self {
        Self::new(instance.buffers().iter().map(|buffer| buffer.live.into()))
    }

    /// The columns of the parts of live ranges in which buffers are active.
    pub(crate) fn of_pieces(instance: &Instance) -> Self {
        let pieces = instance.buffers().iter().flat_map(Buffer::active_pieces);
        Self::new(pieces.map(|piece| piece.steps.into()))
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn columns_of(&self, steps: LiveRange) -> Range<usize> {
        let first = |step: u32| self.steps.partition_point(|&column| column < step);
        first(steps.start().get())..first(steps.end().get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_exactly_if_their_columns_do() {
        let ranges: Vec<(u32, u32)> = (0..7).flat_map(|s| (s + 1..8).map(move |e| (s, e))).collect();
        for take in [&ranges[..], &ranges[3..9], &[(0, 3), (2, 5), (5, 8), (6, 7)]] {
            let columns = Columns::new(take.iter().copied());
            for &(s, e) in take {
                let a = LiveRange::new(s, e).expect("not empty");
                assert!(!columns.columns_of(a).is_empty());
                for &(s, e) in take {
                    let b = LiveRange::new(s, e).expect("not empty");
                    let (p, q) = (columns.columns_of(a), columns.columns_of(b));
                    assert_eq!(a.overlaps(b), p.start < q.end && q.start < p.end, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn starts_without_an_end_between_them_are_one_column() {
        assert_eq!(Columns::new([(0, 9), (1, 9), (2, 9)].into_iter()).steps, [2]);
        assert_eq!(Columns::new([(0, 3), (2, 5), (5, 8), (6, 7)].into_iter()).steps, [2, 6]);
    }
}
