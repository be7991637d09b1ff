//! The profile-guided best fit, as its authors describe it.
//!
//! Offset lines cut the time axis into pieces, each with the address up to which memory is used there; at first one
//! line at 0 spans all time. The planner always takes the lowest line (the leftmost of equals). Among the unplaced
//! buffers that live within its time, it places the longest-lived on the line, and the line splits: the covered part
//! rises to the buffer's end. If no buffer fits, the line rises to its lower neighbour. Neighbours at one height become
//! one line.
//!
//! ```text
//!      address
//!        ^    +----+
//!        |    |    |        lines: [0,2) at 0, [2,5) at 8, [5,9) at 3
//!      3 |    |    +-----   lowest: [0,2); if nothing lives within it,
//!        |____|             it rises to 8 and joins [2,5)
//!        +----------------> step
//! ```
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001.
//! 2. E. K. Burke, G. Kendall and G. Whitwell, *A new placement heuristic for the orthogonal
//!    stock-cutting problem*, Operations Research 52(4), 2004, doi:10.1287/opre.1040.0109.
//!
//! # Complexity
//!
//! O(n^2): every step scans every unplaced buffer. `best-fit` gives the same plan faster.
//!
//! # Deviations from the paper
//!
//! - Ties between lifetimes, which the paper leaves open: the larger size, then the lower id.
//! - A buffer with an alignment lies at the line's offset rounded up to it.

use planlab_dsa::{Buffer, BufferId, Descriptor, Halt, Honours, Instance, Offset, Plan, Planner, Run};

/// The published text of the profile-guided best fit; key `best-fit/reference`.
#[derive(Clone, Copy, Debug, Default)]
pub struct BestFitReference;

/// What both forms of the best fit support.
pub(super) const HONOURS: Honours = Honours { alignment: true, work_limit: true, ..Honours::NONE };

/// The publication of both forms of the best fit.
pub(super) const REFERENCE: &str = "Sekiyama et al. 2018, arXiv:1804.10001";

impl Planner for BestFitReference {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "best-fit/reference".into(),
            summary: "longest lifetime on the lowest line of the skyline, as published".into(),
            honours: HONOURS,
            reference: REFERENCE,
            complexity: "n^2",
            practical: Some(10_000),
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let offsets = published_best_fit(run.instance(), |work| run.tick(work))?;
        run.offer(Plan::from_offsets(offsets))
    }
}

/// The offsets; calls back for every scan of all unplaced buffers.
pub(super) fn published_best_fit<E>(
    instance: &Instance,
    mut tick: impl FnMut(u64) -> Result<(), E>,
) -> Result<Vec<Offset>, E> {
    let mut offsets = vec![Offset::default(); instance.len()];
    let mut unplaced: Vec<BufferId> = instance.ids().collect();
    let mut skyline = Skyline::new(instance.horizon().get());
    while !unplaced.is_empty() {
        tick(unplaced.len() as u64)?;
        let lowest = skyline.lowest_line();
        let line = skyline.lines[lowest];
        let fits = |id: &&BufferId| line.spans_buffer(instance.buffer(**id));
        let rank = |id: &&BufferId| buffer_rank(instance.buffer(**id), **id);
        if let Some(&id) = unplaced.iter().filter(fits).max_by_key(rank) {
            let buffer = instance.buffer(id);
            let offset = buffer.align.round_up(line.offset).expect("an instance leaves room for all padding");
            offsets[id.index()] = Offset::new(offset);
            skyline.place_on_line(lowest, buffer, offset + buffer.size.get());
            unplaced.retain(|&other| other != id);
        } else {
            skyline.lift_line(lowest);
        }
    }
    Ok(offsets)
}

/// The buffer with the largest rank is placed first.
pub(super) fn buffer_rank(buffer: &Buffer, id: BufferId) -> impl Ord + use<> {
    (buffer.live.width(), buffer.size, std::cmp::Reverse(id))
}

/// During the steps `[left, right)`, memory is used up to `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    left: u32,
    right: u32,
    offset: u64,
}

impl Line {
    const fn spans_buffer(&self, buffer: &Buffer) -> bool {
        self.left <= buffer.live.start().get() && buffer.live.end().get() <= self.right
    }
}

/// All lines, from left to right; neighbours differ in height.
#[derive(Debug)]
struct Skyline {
    lines: Vec<Line>,
}

impl Skyline {
    fn new(horizon: u32) -> Self {
        Self { lines: vec![Line { left: 0, right: horizon, offset: 0 }] }
    }

    /// The index of the lowest line, the leftmost of equals.
    fn lowest_line(&self) -> usize {
        let indices = 0..self.lines.len();
        indices.min_by_key(|&index| self.lines[index].offset).expect("there is always a line")
    }

    /// Puts a buffer that ends at `top` on a line.
    fn place_on_line(&mut self, index: usize, buffer: &Buffer, top: u64) {
        let (start, end) = buffer.live.into();
        let Line { left, right, offset } = self.lines[index];
        let parts = [
            Line { left, right: start, offset },
            Line { left: start, right: end, offset: top },
            Line { left: end, right, offset },
        ];
        self.lines.splice(index..=index, parts.into_iter().filter(|part| part.left < part.right));
        self.merge_equal_lines();
    }

    /// Raises a line to its lower neighbour.
    fn lift_line(&mut self, index: usize) {
        let left = index.checked_sub(1).map(|left| self.lines[left].offset);
        let right = self.lines.get(index + 1).map(|right| right.offset);
        let lower = left.into_iter().chain(right).min();
        self.lines[index].offset = lower.expect("a line over all time holds every buffer");
        self.merge_equal_lines();
    }

    fn merge_equal_lines(&mut self) {
        self.lines.dedup_by(|next, last| {
            let is_level = next.offset == last.offset;
            if is_level {
                last.right = next.right;
            }
            is_level
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::testing::{aligned, place_buffers, planned_offsets, test_buffer, test_instance};

    #[test]
    fn ties_levels_and_alignments_decide_as_said() {
        let ties = test_instance(&[(2, 0, 2), (3, 0, 2), (3, 0, 2)]);
        assert_eq!(planned_offsets(&BestFitReference, &ties), [6, 0, 3], "the larger, then the lower id");
        // The long one first, then the one that fits beside it; [2, 6) has to wait until the lines are level.
        let levels = test_instance(&[(5, 0, 5), (3, 5, 8), (4, 2, 6), (1, 6, 8)]);
        assert_eq!(planned_offsets(&BestFitReference, &levels), [0, 0, 5, 3], "up to the lower neighbour");
        let rounded = vec![test_buffer(3, 0, 3), aligned(4, 0, 2, 8)];
        assert_eq!(place_buffers(&BestFitReference, rounded), [0, 8], "rounded up from the line");
    }

    #[test]
    fn neighbours_at_one_height_merge() {
        let mut skyline = Skyline::new(9);
        skyline.place_on_line(0, &test_buffer(4, 3, 6), 4);
        skyline.place_on_line(0, &test_buffer(4, 0, 3), 4);
        assert_eq!(skyline.lines.len(), 2);
        skyline.lift_line(1);
        assert_eq!(skyline.lines, [Line { left: 0, right: 9, offset: 4 }]);
    }
}
