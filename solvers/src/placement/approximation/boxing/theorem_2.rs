//! Theorem 2: boxes for items of height 1 with any live ranges.
//!
//! Some points of time are critical. Items that are live at one of them are shared out: to the middle point if they are
//! live there, else to the middle point of the half that they lie in, and so on. Each point's items go into boxes by
//! Lemma 1. The items left over are coloured, and every `capacity` rows form a box. Items between two critical points
//! are a separate problem. There, the points at which the gaps of the rows begin and end are critical, so that between
//! two of them every row is free or taken throughout.
//!
//! ```text
//!   row 2   ____     _______          b is live at the critical point t; the gaps of the rows make p,
//!   row 1  ___    b ____              q, ... critical for what lies wholly to the left of t
//!   --------p--q----t---------> time
//! ```
//!
//! # References
//!
//! 1. A. L. Buchsbaum, H. Karloff, C. Kenyon, N. Reingold and M. Thorup, *OPT versus LOAD in dynamic storage
//!    allocation*, SIAM Journal on Computing 33(3), 2004, doi:10.1137/S0097539703423941, Theorem 2.
//! 2. C. Lamprakos et al., idealloc, github.com/cappadokes/idealloc, 2024: how to draw the first point, and where to
//!    take points from if no gap gives one.
//!
//! # Complexity
//!
//! O(n log n) for each level of nested problems. A deeply nested problem has a random critical point beside those of
//! the gaps, so that there are O(log n) levels on average.
//!
//! # Deviations from the paper
//!
//! - The first critical point is a random one at which an item is live; so is one in a problem whose gaps give no such
//!   point (as in reference 2).
//! - From a depth of 32 on, every problem has a random point: gaps alone may cut off one item at a time.
//! - The two halves of the critical points are each shared out with the point that bounds them. Reference 2 uses the
//!   last point of a half as its bound, and so may ask Lemma 1 to box items that are not all live at one point.

use planlab_dsa::{Halt, Run};
use rand::RngExt;

use super::interval_colouring::interval_colouring;
use super::item::{Boxes, Item};
use super::lemma_1::lemma_1;

/// A point of time in half steps: between two steps, or in the middle of one. A buffer is live at the points inside its
/// live range, ends excluded.
type Point = u64;

/// From this depth on, a problem has a random critical point.
const DEEP: u32 = 32;

#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// The most items of height 1 that are live in one box at one step; positive.
    pub(super) capacity: usize,
    /// The true height of a box.
    pub(super) height: u64,
    pub(super) epsilon: f64,
}

/// Puts every item into a box.
pub(super) fn theorem_2(
    run: &mut Run<'_>,
    boxes: &mut Boxes,
    items: Vec<Item>,
    goal: Goal,
) -> Result<Vec<Item>, Halt> {
    let mut boxed = Vec::new();
    let mut problems = vec![Problem::whole_problem(run, items)];
    while let Some(problem) = problems.pop() {
        run.tick(problem.items.len() as u64)?;
        let (live, between) = problem.split_at_points();
        let mut unresolved = Vec::new();
        for group in live.chunk_by(|a, b| a.0 == b.0) {
            let group = group.iter().map(|&(_, item)| item).collect();
            let groups = lemma_1(group, goal.capacity, goal.epsilon);
            boxed.extend(groups.boxes.into_iter().map(|group| boxes.close_box(goal.height, group)));
            unresolved.extend(groups.unresolved);
        }
        let rows = interval_colouring(unresolved);
        let in_boxes = rows.chunks(goal.capacity);
        boxed.extend(in_boxes.map(|rows| boxes.close_box(goal.height, rows.iter().flatten().copied())));
        let gaps = gap_ends(&rows, problem.from);
        for part in between.chunk_by(|a, b| a.0 == b.0) {
            problems.push(problem.part_problem(run, part, &gaps));
        }
    }
    Ok(boxed)
}

/// Items that live between two points.
struct Problem {
    items: Vec<Item>,
    from: Point,
    to: Point,
    /// The critical points between the two, ascending.
    critical: Vec<Point>,
    depth: u32,
}

/// An item, and the number of the critical point at which it is live or before which it lies.
type Numbered = (usize, Item);

impl Problem {
    fn whole_problem(run: &mut Run<'_>, items: Vec<Item>) -> Self {
        let from = items.iter().map(birth_point).min().unwrap_or(0);
        let to = items.iter().map(death_point).max().unwrap_or(0);
        let critical = random_live_point(run, &items).into_iter().collect();
        Self { items, from, to, critical, depth: 0 }
    }

    /// The items live at a critical point, by the point that gets them; and the rest.
    fn split_at_points(&self) -> (Vec<Numbered>, Vec<Numbered>) {
        let (mut live, mut between) = (Vec::new(), Vec::new());
        for &item in &self.items {
            let (first, end) = points_hit(&self.critical, item);
            if first < end {
                live.push((shared_out(self.critical.len(), first, end), item));
            } else {
                between.push((first, item));
            }
        }
        live.sort_by_key(|&(point, _)| point);
        between.sort_by_key(|&(point, _)| point);
        (live, between)
    }

    /// The problem of the items before a critical point, given the ends of gaps.
    fn part_problem(&self, run: &mut Run<'_>, part: &[Numbered], gaps: &[Point]) -> Self {
        let before = part.first().map_or(0, |&(point, _)| point);
        let from = before.checked_sub(1).map_or(self.from, |last| self.critical[last]);
        let to = self.critical.get(before).copied().unwrap_or(self.to);
        let (low, high) = (gaps.partition_point(|&gap| gap <= from), gaps.partition_point(|&gap| gap < to));
        let mut critical = gaps[low..high].to_vec();
        let items: Vec<Item> = part.iter().map(|&(_, item)| item).collect();
        let is_hit = |&item: &Item| {
            let (first, end) = points_hit(&critical, item);
            first < end
        };
        if self.depth >= DEEP || !items.iter().any(is_hit) {
            critical.extend(random_live_point(run, &items));
            critical.sort_unstable();
            critical.dedup();
        }
        Self { items, from, to, critical, depth: self.depth + 1 }
    }
}

fn birth_point(item: &Item) -> Point {
    2 * Point::from(item.start)
}

fn death_point(item: &Item) -> Point {
    2 * Point::from(item.end)
}

/// The points at which an item is live, as numbers from the first to the one after the last.
fn points_hit(points: &[Point], item: Item) -> (usize, usize) {
    let first = points.partition_point(|&point| point <= birth_point(&item));
    (first, first + points[first..].partition_point(|&point| point < death_point(&item)))
}

/// The number of the point, of `count`, that gets an item live at those from `first` up to `end`: the middle one if it
/// is among them, else the middle one of a half, and so on.
fn shared_out(count: usize, first: usize, end: usize) -> usize {
    let (mut low, mut high) = (0, count);
    loop {
        let middle = low + (high - low - 1) / 2;
        if end <= middle {
            high = middle;
        } else if middle < first {
            low = middle + 1;
        } else {
            return middle;
        }
    }
}

/// The middle of the first or the last step of a random item; `None` if there are no items.
fn random_live_point(run: &mut Run<'_>, items: &[Item]) -> Option<Point> {
    if items.is_empty() {
        return None;
    }
    let drawn = run.rng().random_range(0..2 * items.len());
    let item = &items[drawn / 2];
    Some(if drawn.is_multiple_of(2) { birth_point(item) + 1 } else { death_point(item) - 1 })
}

/// The points at which gaps of rows begin and end, from `from` on; ascending.
fn gap_ends(rows: &[Vec<Item>], from: Point) -> Vec<Point> {
    let mut ends = Vec::new();
    for row in rows {
        let mut at = from;
        for item in row {
            if at < birth_point(item) {
                ends.extend([at, birth_point(item)]);
            }
            at = death_point(item);
        }
        ends.push(at);
    }
    ends.sort_unstable();
    ends.dedup();
    ends
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::placement::approximation::boxing::testing::{
        highest_load, in_a_run, item_strategy, original_items,
    };

    proptest! {
        #[test]
        fn every_item_lies_in_one_box_and_no_box_is_too_full(
            items in item_strategy(80),
            capacity in 1_usize..6,
            epsilon in 0.3_f64..0.62,
            seed in 0_u64..9,
        ) {
            let goal = Goal { capacity, height: 10, epsilon };
            let (boxes, boxed) = in_a_run(seed, |run| {
                let mut boxes = Boxes::new(items.len());
                let boxed = theorem_2(run, &mut boxes, items.clone(), goal)?;
                Ok((boxes, boxed))
            });
            for &item in &boxed {
                let inside = boxes.box_contents(item).expect("a box");
                prop_assert!(highest_load(inside, |_| 1) <= capacity as u64);
                prop_assert_eq!(item.height, 10);
            }
            prop_assert_eq!(original_items(&boxes, &boxed), (0..items.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn points_are_shared_out_by_halves() {
        assert_eq!(
            (0..7).map(|point| shared_out(7, point, point + 1)).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6]
        );
        assert_eq!(shared_out(7, 0, 7), 3);
        assert_eq!(shared_out(7, 0, 3), 1);
        assert_eq!(shared_out(7, 4, 7), 5);
        assert_eq!(shared_out(4, 2, 4), 2);
    }

    #[test]
    fn gaps_end_where_a_row_is_taken_again() {
        let item = |start, end| Item { start, end, height: 1, number: 0 };
        let rows = [vec![item(1, 2), item(2, 3), item(5, 6)], vec![item(0, 4)]];
        assert_eq!(gap_ends(&rows, 0), [0, 2, 6, 8, 10, 12]);
    }

    #[test]
    fn a_chain_of_many_short_items_is_cut_into_few_levels() {
        let chain: Vec<Item> =
            (0..20_000).map(|k| Item { start: k, end: k + 2, height: 1, number: k as usize }).collect();
        let goal = Goal { capacity: 2, height: 2, epsilon: 0.5 };
        let boxed = in_a_run(1, |run| theorem_2(run, &mut Boxes::new(chain.len()), chain.clone(), goal));
        assert!(!boxed.is_empty());
    }
}
