//! What may be joined, and how likely it belongs together.
//!
//! Each join has a *doubt*. For rows and wheels it is the part that they leave empty. A stack never leaves anything
//! empty, so the number of roots that share its columns counts instead: if only its two parts start or end there, they
//! probably lie side by side. A row is most certain if nothing else starts or ends between its parts. Random noise
//! changes the order of joins with similar doubts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use planlab_dsa::Halt;
use rand::{Rng, RngExt};

use super::forest::{Forest, Join};
use crate::tick::Tick;

const MOST_DOUBT: f64 = 0.1;
/// Doubts of rows and wheels count this much if much speaks for them.
const LIKELY: f64 = 0.3;
/// The doubt of a stack for each further root at its columns, up to `CROWD` of these.
const CROWDED: f64 = 0.002;
const CROWD: usize = 6;
/// The most roots at one column that are looked at.
const MOST_SEEN: usize = 48;
/// The most candidates looked at for the wheels around a centre, and the most that wait: with k equal roots at each side there
/// are k^4 wheels, all alike.
const MOST_WHEELS: u64 = 1 << 12;
const MOST_WAITING: usize = 1 << 18;
/// Candidates between two reports of the work.
const REPORT: u64 = 1 << 12;

/// A side of the centre of a wheel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Left,
    Right,
    Top,
    Bottom,
}

/// The least doubt is greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// The bits of the doubt: floats that are not negative sort like their bits.
    doubt: Reverse<u64>,
    join: Reverse<Join>,
}

/// Possible joins, the least doubtful first.
#[derive(Clone, Debug, Default)]
pub(super) struct Joins {
    heap: BinaryHeap<Candidate>,
    /// How much noise changes doubts, from 0 to 1.
    noise: f64,
    /// The doubt of stacks and rows with other roots beside them.
    caution: f64,
    /// Candidates looked at.
    pub(super) looks: u64,
}

#[expect(clippy::cast_precision_loss, reason = "doubts need no exact sizes")]
fn part_of_whole(of: u64, whole: u64) -> f64 {
    of as f64 / whole as f64
}

impl Joins {
    /// Draws new noise.
    pub(super) fn vary_noise(&mut self, rng: &mut impl Rng) {
        (self.noise, self.caution) = (rng.random(), rng.random_range(0.0..MOST_DOUBT));
    }

    /// Makes all joins of little doubt: of the roots in `new` with others, or of all roots if `new` is empty, and of
    /// the blocks that these become part of.
    pub(super) fn make_joins(
        &mut self,
        forest: &mut Forest,
        new: &[u32],
        rng: &mut impl Rng,
        tick: &mut Tick<'_>,
    ) -> Result<(), Halt> {
        self.heap.clear();
        for &id in new {
            self.find_joins(forest, id, rng);
            self.report_work(tick)?;
        }
        for at in 0..if new.is_empty() { forest.roots().len() } else { 0 } {
            self.find_later(forest, forest.roots()[at], rng);
            self.report_work(tick)?;
        }
        while let Some(Candidate { join: Reverse(join), .. }) = self.heap.pop() {
            if join.parts().iter().any(|&part| !forest.is_root(part)) {
                continue;
            }
            let (block, looks) = forest.join_roots(join);
            self.looks += looks / 8 + 1;
            if let Some(block) = block {
                self.find_joins(forest, block, rng);
                self.find_lonely(forest, &join, rng);
            }
            self.report_work(tick)?;
        }
        tick(std::mem::take(&mut self.looks))
    }

    fn report_work(&mut self, tick: &mut Tick<'_>) -> Result<(), Halt> {
        if self.looks >= REPORT { tick(std::mem::take(&mut self.looks)) } else { Ok(()) }
    }

    fn push_join(&mut self, doubt: f64, join: Join, rng: &mut impl Rng) {
        self.looks += 1;
        let doubt = doubt * self.noise.mul_add(rng.random_range(-1.0..1.0), 1.0);
        if doubt <= MOST_DOUBT {
            self.heap.push(Candidate { doubt: Reverse(doubt.to_bits()), join: Reverse(join) });
        }
    }

    /// Finds the joins of a root.
    fn find_joins(&mut self, forest: &Forest, id: u32, rng: &mut impl Rng) {
        let block = forest.block(id);
        let before = seen_roots(forest.roots_ending(block.start));
        let after = seen_roots(forest.roots_starting(block.end));
        let beside =
            seen_roots(forest.roots_starting(block.start)).iter().copied().filter(|&other| other != id);
        let until = seen_roots(forest.roots_ending(block.end)).iter().copied().filter(|&other| other != id);
        for other in beside.clone().filter(|&other| forest.block(other).end == block.end) {
            self.try_stack(forest, id, other, rng);
        }
        before.iter().for_each(|&earlier| self.try_row(forest, earlier, id, rng));
        after.iter().for_each(|&later| self.try_row(forest, id, later, rng));
        self.find_wheels(forest, id, None, rng);
        // Where the root lies around a centre follows from the step that they share.
        before.iter().for_each(|&centre| self.find_wheels(forest, centre, Some((Around::Right, id)), rng));
        after.iter().for_each(|&centre| self.find_wheels(forest, centre, Some((Around::Left, id)), rng));
        beside.for_each(|centre| self.find_wheels(forest, centre, Some((Around::Top, id)), rng));
        until.for_each(|centre| self.find_wheels(forest, centre, Some((Around::Bottom, id)), rng));
    }

    /// Finds the joins of a root that no search from another root finds: called for all, it finds each join once.
    fn find_later(&mut self, forest: &Forest, id: u32, rng: &mut impl Rng) {
        let block = forest.block(id);
        for &other in seen_roots(forest.roots_starting(block.start)) {
            if id < other && forest.block(other).end == block.end {
                self.try_stack(forest, id, other, rng);
            }
        }
        seen_roots(forest.roots_starting(block.end))
            .iter()
            .for_each(|&later| self.try_row(forest, id, later, rng));
        self.find_wheels(forest, id, None, rng);
    }

    /// Finds the joins at the columns of a join that have become certain by it.
    fn find_lonely(&mut self, forest: &Forest, join: &Join, rng: &mut impl Rng) {
        for &part in join.parts() {
            let block = forest.block(part);
            for column in [block.start, block.end] {
                if let &[low, high] = forest.roots_starting(column)
                    && forest.block(low).end == forest.block(high).end
                {
                    self.try_stack(forest, low, high, rng);
                }
                if let &[low, high] = forest.roots_ending(column)
                    && forest.block(low).start == forest.block(high).start
                {
                    self.try_stack(forest, low, high, rng);
                }
                if let (&[earlier], &[later]) = (forest.roots_ending(column), forest.roots_starting(column)) {
                    self.try_row(forest, earlier, later, rng);
                }
            }
        }
    }

    fn try_stack(&mut self, forest: &Forest, low: u32, high: u32, rng: &mut impl Rng) {
        let block = forest.block(low);
        let near = forest.roots_ending(block.end).len().min(forest.roots_starting(block.start).len());
        let crowd = u32::try_from(near.saturating_sub(2).min(CROWD)).unwrap_or(0);
        let doubt = f64::from(crowd).mul_add(CROWDED, self.caution * MOST_DOUBT);
        self.push_join(doubt, Join::stack_of(low, high), rng);
    }

    fn try_row(&mut self, forest: &Forest, earlier: u32, later: u32, rng: &mut impl Rng) {
        let sizes = [earlier, later].map(|id| forest.block(id).size);
        let smaller = if sizes[0] < sizes[1] { earlier } else { later };
        if sizes[0].abs_diff(sizes[1]) > forest.room_beside(smaller) {
            self.looks += 1;
            return;
        }
        let empty = part_of_whole(sizes[0].abs_diff(sizes[1]), sizes[0].max(sizes[1]));
        let column = forest.block(later).start;
        let is_only =
            [forest.roots_ending(column), forest.roots_starting(column)].map(|roots| roots.len() == 1);
        let doubt = match is_only {
            [true, true] => empty * LIKELY,
            [false, false] => empty + MOST_DOUBT / 100.0,
            _ => empty + self.caution,
        };
        self.push_join(doubt, Join::row_of(earlier, later), rng);
    }

    /// Finds the wheels around a centre: all, or those with a root at one of its sides.
    fn find_wheels(&mut self, forest: &Forest, centre: u32, with: Option<(Around, u32)>, rng: &mut impl Rng) {
        let middle = forest.block(centre);
        let only = with.map(|(_, id)| [id]);
        let at = |side: Around, all| match (&only, with) {
            (Some(only), Some((place, _))) if place == side => &only[..],
            _ => seen_roots(all),
        };
        let left = at(Around::Left, forest.roots_ending(middle.start));
        let right = at(Around::Right, forest.roots_starting(middle.end));
        let top = at(Around::Top, forest.roots_starting(middle.start));
        let bottom = at(Around::Bottom, forest.roots_ending(middle.end));
        if [left, right, top, bottom].iter().any(|side| side.is_empty()) {
            return;
        }
        let room = forest.room_beside(centre);
        let last = self.looks + MOST_WHEELS;
        for &d in left {
            let start = forest.block(d).start;
            let mut below =
                bottom.iter().filter(|&&a| a != centre && forest.block(a).start == start).peekable();
            self.looks += 1;
            if below.peek().is_none() {
                continue;
            }
            let tall = forest.block(d).size;
            let most = tall + forest.room_beside(d);
            for &c in top.iter().filter(|&&c| forest.block(c).end > middle.end) {
                self.looks += 1;
                let low = forest.block(c).size + middle.size;
                if tall > low + room || low > most {
                    continue;
                }
                let end = forest.block(c).end;
                for &b in right.iter().filter(|&&b| forest.block(b).end == end) {
                    if self.looks >= last || self.heap.len() >= MOST_WAITING {
                        return;
                    }
                    below
                        .clone()
                        .for_each(|&a| self.try_wheel(forest, Join::wheel_of([a, b, c, d, centre]), rng));
                }
            }
        }
    }

    fn try_wheel(&mut self, forest: &Forest, join: Join, rng: &mut impl Rng) {
        let waste = forest.join_waste(&join);
        if join.parts().iter().zip(waste).any(|(&part, waste)| waste > 0 && waste > forest.room_beside(part))
        {
            self.looks += 1;
            return;
        }
        let empty: u64 = waste.iter().sum();
        let doubt = part_of_whole(empty, forest.joined_size(&join)) / 3.0 * LIKELY;
        self.push_join(doubt, join, rng);
    }
}

fn seen_roots(roots: &[u32]) -> &[u32] {
    &roots[..roots.len().min(MOST_SEEN)]
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn equal_wheels_cost_no_more_than_others() {
        let wheel = [(0, 2, 1), (2, 3, 2), (1, 3, 1), (0, 1, 2), (1, 2, 1)];
        let buffers: Vec<(u32, u32, u64)> = wheel.repeat(48);
        let load = 48 * 3;
        let mut forest = Forest::new(&buffers, 3, load);
        let (mut joins, mut work) = (Joins::default(), 0);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let before = forest.roots().len();
        joins
            .make_joins(&mut forest, &[], &mut rng, &mut |units| {
                work += units;
                assert!(work < 10_000_000, "48 of each side are 5 million wheels around each centre");
                Ok(())
            })
            .expect("no limit");
        assert!(forest.roots().len() < before, "it joins what fits together");
    }
}
