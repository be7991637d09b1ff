//! The profile-guided best fit, fast: the same plan as `best-fit/reference`.
//!
//! The lines are a linked list with a heap by (offset, left end) beside it. The query "which unplaced buffer with
//! `start >= left` and `end <= right` lives longest" goes to a k-d tree over the points (start, end). Each node stores
//! the bounding box of its unplaced points and the best of them. So a node inside the query's quadrant answers at once,
//! and a node that cannot improve on the best so far is skipped.
//!
//! ```text
//!       end ^
//!     right |-------+ . .        asked: the points at most `right` high and
//!           | x  x  |   x        at least `left` far to the right
//!           |   x   | x
//!           +-------+------> start
//!                 left   (mirrored: the quadrant lies to the right of `left`)
//! ```
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001.
//! 2. J. L. Bentley, *Multidimensional binary search trees used for associative searching*, Communications
//!    of the ACM 18(9), 1975, doi:10.1145/361002.361007.
//!
//! # Complexity
//!
//! At most 3 n queries, since every line that rises joins another and every buffer makes at most two. A query takes
//! O(log n) if buffers are short compared with the horizon, O(sqrt n) at worst; O(n) memory.
//!
//! # Deviations from the paper
//!
//! - As `best-fit/reference`: ties between lifetimes go to the larger size, then to the lower id; offsets are rounded
//!   up from the line to the alignment.
//! - Several arenas, which the paper does not have, are planned one by one. The capacity of an arena decides whether
//!   its plan counts, but does not change the plan.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use planlab_dsa::{Buffer, BufferId, Descriptor, Halt, Honours, Instance, Offset, Plan, Planner, Run};

use super::best_fit_reference::{HONOURS, REFERENCE, buffer_rank};
use super::longest_within::LongestWithin;
use crate::arenas::{has_arenas, plan_each_arena};

/// Longest lifetime on the lowest line of the skyline; key `best-fit`.
#[derive(Clone, Copy, Debug, Default)]
pub struct BestFit;

impl Planner for BestFit {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "best-fit".into(),
            summary: "longest lifetime on the lowest line of the skyline".into(),
            honours: Honours { arenas: true, ..HONOURS },
            reference: REFERENCE,
            complexity: "n log n, n sqrt n at worst",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        let plan = best_fit(run)?;
        run.offer(plan)
    }
}

/// The plan, before it is offered.
pub(crate) fn best_fit(run: &mut Run<'_>) -> Result<Plan, Halt> {
    let instance = run.instance();
    let ranked = rank_buffers(instance);
    let mut unplaced = LongestWithin::new(ranked.iter().map(|&id| instance.buffer(id).live));
    let mut offsets = vec![Offset::default(); instance.len()];
    let mut skyline = Skyline::new(instance.horizon().get());
    let mut left = instance.len();
    while left > 0 {
        let lowest = skyline.lowest_line();
        let Line { left: from, right: to, offset, .. } = skyline.lines[lowest as usize];
        let found = unplaced.take_longest(from, to);
        run.tick(unplaced.visited)?;
        if let Some(rank) = found {
            let id = ranked[rank as usize];
            let buffer = instance.buffer(id);
            let offset = buffer.align.round_up(offset).expect("an instance leaves room for all padding");
            offsets[id.index()] = Offset::new(offset);
            skyline.place_on_line(lowest, buffer, offset + buffer.size.get());
            left -= 1;
        } else {
            skyline.lift_line(lowest);
        }
    }
    #[cfg(feature = "debug-checks")]
    check_against_published(instance, &offsets);
    Ok(Plan::from_offsets(offsets))
}

/// Compares with the published text, on instances small enough for it.
#[cfg(feature = "debug-checks")]
fn check_against_published(instance: &Instance, offsets: &[Offset]) {
    if instance.len() <= 2_000 {
        let published = super::best_fit_reference::published_best_fit(instance, |_| Ok::<_, Halt>(()));
        assert_eq!(published.as_deref(), Ok(offsets), "best-fit differs from best-fit/reference");
    }
}

/// All buffers, in order of preference.
fn rank_buffers(instance: &Instance) -> Vec<BufferId> {
    let mut ranked: Vec<_> =
        instance.ids().map(|id| (Reverse(buffer_rank(instance.buffer(id), id)), id)).collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, id)| id).collect()
}

/// The number of a line; [`NONE`] at the ends of the list.
type LineId = u32;

const NONE: LineId = LineId::MAX;

/// During the steps `[left, right)`, memory is used up to `offset`.
#[derive(Clone, Copy, Debug)]
struct Line {
    left: u32,
    right: u32,
    offset: u64,
    previous: LineId,
    next: LineId,
}

/// All lines as a list from left to right; neighbours differ in height.
#[derive(Debug)]
struct Skyline {
    lines: Vec<Line>,
    /// Numbers of lines that have joined another, for reuse.
    spare: Vec<LineId>,
    /// Every line, and outdated entries of lines that have changed since.
    heap: BinaryHeap<Reverse<(u64, u32, LineId)>>,
}

impl Skyline {
    fn new(horizon: u32) -> Self {
        let all = Line { left: 0, right: horizon, offset: 0, previous: NONE, next: NONE };
        Self { lines: vec![all], spare: Vec::new(), heap: BinaryHeap::from([Reverse((0, 0, 0))]) }
    }

    /// The lowest line, the leftmost of equals.
    fn lowest_line(&mut self) -> LineId {
        while let Some(Reverse((offset, left, id))) = self.heap.pop() {
            let line = &self.lines[id as usize];
            if (line.offset, line.left) == (offset, left) && line.left < line.right {
                return id;
            }
        }
        unreachable!("every line is in the heap")
    }

    /// Puts a buffer that ends at `top` on a line that was just taken from the heap.
    fn place_on_line(&mut self, id: LineId, buffer: &Buffer, top: u64) {
        let (start, end) = buffer.live.into();
        let Line { left, right, offset, previous, next } = self.lines[id as usize];
        if left < start {
            let rest = self.insert_line(Line { left, right: start, offset, previous, next: id });
            self.link_lines(previous, rest);
            self.link_lines(rest, id);
        }
        if end < right {
            let rest = self.insert_line(Line { left: end, right, offset, previous: id, next });
            self.link_lines(rest, next);
            self.link_lines(id, rest);
        }
        let line = &mut self.lines[id as usize];
        (line.left, line.right, line.offset) = (start, end, top);
        self.join_equal_neighbours(id);
    }

    /// Raises a line that was just taken from the heap to its lower neighbour.
    fn lift_line(&mut self, id: LineId) {
        let Line { previous, next, .. } = self.lines[id as usize];
        let neighbours = [previous, next].into_iter().filter(|&line| line != NONE);
        let lower = neighbours.map(|line| self.lines[line as usize].offset).min();
        self.lines[id as usize].offset = lower.expect("a line over all time holds every buffer");
        self.join_equal_neighbours(id);
    }

    fn insert_line(&mut self, line: Line) -> LineId {
        let id = match self.spare.pop() {
            Some(id) => {
                self.lines[id as usize] = line;
                id
            }
            None => {
                self.lines.push(line);
                u32::try_from(self.lines.len() - 1).expect("there are at most as many lines as steps")
            }
        };
        self.heap.push(Reverse((line.offset, line.left, id)));
        id
    }

    fn link_lines(&mut self, previous: LineId, next: LineId) {
        if previous != NONE {
            self.lines[previous as usize].next = next;
        }
        if next != NONE {
            self.lines[next as usize].previous = previous;
        }
    }

    /// Joins a line whose height has changed with the neighbours at that height.
    fn join_equal_neighbours(&mut self, id: LineId) {
        let Line { previous, next, offset, .. } = self.lines[id as usize];
        if previous != NONE && self.lines[previous as usize].offset == offset {
            self.lines[id as usize].left = self.lines[previous as usize].left;
            let before = self.lines[previous as usize].previous;
            self.remove_line(previous);
            self.link_lines(before, id);
        }
        if next != NONE && self.lines[next as usize].offset == offset {
            self.lines[id as usize].right = self.lines[next as usize].right;
            let after = self.lines[next as usize].next;
            self.remove_line(next);
            self.link_lines(id, after);
        }
        let Line { left, offset, .. } = self.lines[id as usize];
        self.heap.push(Reverse((offset, left, id)));
    }

    /// Frees the number of a line. Heap entries of an empty line are ignored.
    fn remove_line(&mut self, id: LineId) {
        let line = &mut self.lines[id as usize];
        line.right = line.left;
        self.spare.push(id);
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{ArenaId, Budget, execute};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::skyline::BestFitReference;
    use crate::placement::testing::{aligned, place_buffers, planned_offsets, test_arena, test_buffer};

    #[test]
    fn each_arena_is_planned_alone() {
        let alone = [test_buffer(4, 0, 2), test_buffer(8, 1, 4), test_buffer(4, 2, 4)];
        let once = place_buffers(&BestFit, alone.to_vec());
        let two = |capacity: u64| {
            let both = [0, 1].map(|id| alone.clone().map(|buffer| buffer.in_arena(ArenaId::new(id))));
            let builder = Instance::builder().buffers(both.into_iter().flatten());
            builder.arenas([test_arena(None), test_arena(Some(capacity))]).build().expect("valid")
        };
        assert_eq!(planned_offsets(&BestFit, &two(12)), once.repeat(2));
        let beyond = two(11);
        let outcome = execute(&BestFit, &beyond, Budget::default(), 0);
        assert!(outcome.end.is_ok() && outcome.best.is_none(), "{:?}", outcome.end);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn it_gives_the_plan_of_the_reference(
            rows in prop_oneof![
                prop::collection::vec((1_u64..6, 0_u32..20, 1_u32..9, 1_u64..4), 0..40),
                prop::collection::vec((1_u64..1000, 0_u32..500, 1_u32..90, 1_u64..2), 100..400),
            ],
        ) {
            let buffers =
                rows.into_iter().map(|(size, start, width, align)| aligned(size, start, start + width, align));
            let instance = Instance::from_buffers(buffers.collect()).expect("valid");
            prop_assert_eq!(planned_offsets(&BestFit, &instance), planned_offsets(&BestFitReference, &instance));
        }
    }
}
