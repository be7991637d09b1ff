//! What may be joined, and how likely it belongs together.
//!
//! Each join has a *doubt*. For rows and wheels it is the part that they leave empty. A stack never leaves anything
//! empty, so the number of roots that share its columns counts instead: if only its two parts start or end there, they
//! probably lie side by side. A row is most certain if nothing else starts or ends between its parts. Random noise
//! changes the order of joins with similar doubts.

use std::cmp::Ordering;
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

#[derive(Clone, Copy, Debug)]
struct Candidate {
    doubt: f64,
    join: Join,
}

impl Ord for Candidate {
    /// The least doubt is greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.doubt.total_cmp(&self.doubt).then_with(|| other.join.parts().cmp(self.join.parts()))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

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
fn part(of: u64, whole: u64) -> f64 {
    of as f64 / whole as f64
}

impl Joins {
    /// Draws new noise.
    pub(super) fn vary(&mut self, rng: &mut impl Rng) {
        (self.noise, self.caution) = (rng.random(), rng.random_range(0.0..MOST_DOUBT));
    }

    /// Makes all joins of little doubt: of the roots in `new` with others, or of all roots if `new` is empty, and of
    /// the blocks that these become part of.
    pub(super) fn make(
        &mut self,
        forest: &mut Forest,
        new: &[u32],
        rng: &mut impl Rng,
        tick: &mut Tick<'_>,
    ) -> Result<(), Halt> {
        self.heap.clear();
        for &id in new {
            self.find(forest, id, rng);
            self.report(tick)?;
        }
        for at in 0..if new.is_empty() { forest.roots().len() } else { 0 } {
            self.find_later(forest, forest.roots()[at], rng);
            self.report(tick)?;
        }
        while let Some(Candidate { join, .. }) = self.heap.pop() {
            if join.parts().iter().any(|&part| !forest.is_root(part)) {
                continue;
            }
            let (block, looks) = forest.join(join);
            self.looks += looks / 8 + 1;
            if let Some(block) = block {
                self.find(forest, block, rng);
                self.find_lonely(forest, &join, rng);
            }
            self.report(tick)?;
        }
        tick(std::mem::take(&mut self.looks))
    }

    fn report(&mut self, tick: &mut Tick<'_>) -> Result<(), Halt> {
        if self.looks >= REPORT { tick(std::mem::take(&mut self.looks)) } else { Ok(()) }
    }

    fn push(&mut self, doubt: f64, join: Join, rng: &mut impl Rng) {
        self.looks += 1;
        let doubt = doubt * self.noise.mul_add(rng.random_range(-1.0..1.0), 1.0);
        if doubt <= MOST_DOUBT {
            self.heap.push(Candidate { doubt, join });
        }
    }

    /// Finds the joins of a root.
    fn find(&mut self, forest: &Forest, id: u32, rng: &mut impl Rng) {
        let block = forest.block(id);
        let before = seen(forest.ending(block.start));
        let after = seen(forest.starting(block.end));
        let beside = seen(forest.starting(block.start)).iter().copied().filter(|&other| other != id);
        let until = seen(forest.ending(block.end)).iter().copied().filter(|&other| other != id);
        for other in beside.clone().filter(|&other| forest.block(other).end == block.end) {
            self.stack(forest, id, other, rng);
        }
        before.iter().for_each(|&earlier| self.row(forest, earlier, id, rng));
        after.iter().for_each(|&later| self.row(forest, id, later, rng));
        self.wheels(forest, id, None, rng);
        // Where the root lies around a centre follows from the step that they share.
        before.iter().for_each(|&centre| self.wheels(forest, centre, Some((Around::Right, id)), rng));
        after.iter().for_each(|&centre| self.wheels(forest, centre, Some((Around::Left, id)), rng));
        beside.for_each(|centre| self.wheels(forest, centre, Some((Around::Top, id)), rng));
        until.for_each(|centre| self.wheels(forest, centre, Some((Around::Bottom, id)), rng));
    }

    /// Finds the joins of a root that no search from another root finds: called for all, it finds each join once.
    fn find_later(&mut self, forest: &Forest, id: u32, rng: &mut impl Rng) {
        let block = forest.block(id);
        for &other in seen(forest.starting(block.start)) {
            if id < other && forest.block(other).end == block.end {
                self.stack(forest, id, other, rng);
            }
        }
        seen(forest.starting(block.end)).iter().for_each(|&later| self.row(forest, id, later, rng));
        self.wheels(forest, id, None, rng);
    }

    /// Finds the joins at the columns of a join that have become certain by it.
    fn find_lonely(&mut self, forest: &Forest, join: &Join, rng: &mut impl Rng) {
        for &part in join.parts() {
            let block = forest.block(part);
            for column in [block.start, block.end] {
                if let &[low, high] = forest.starting(column)
                    && forest.block(low).end == forest.block(high).end
                {
                    self.stack(forest, low, high, rng);
                }
                if let &[low, high] = forest.ending(column)
                    && forest.block(low).start == forest.block(high).start
                {
                    self.stack(forest, low, high, rng);
                }
                if let (&[earlier], &[later]) = (forest.ending(column), forest.starting(column)) {
                    self.row(forest, earlier, later, rng);
                }
            }
        }
    }

    fn stack(&mut self, forest: &Forest, low: u32, high: u32, rng: &mut impl Rng) {
        let block = forest.block(low);
        let near = forest.ending(block.end).len().min(forest.starting(block.start).len());
        let crowd = u32::try_from(near.saturating_sub(2).min(CROWD)).unwrap_or(0);
        let doubt = f64::from(crowd).mul_add(CROWDED, self.caution * MOST_DOUBT);
        self.push(doubt, Join::stack(low, high), rng);
    }

    fn row(&mut self, forest: &Forest, earlier: u32, later: u32, rng: &mut impl Rng) {
        let sizes = [earlier, later].map(|id| forest.block(id).size);
        let smaller = if sizes[0] < sizes[1] { earlier } else { later };
        if sizes[0].abs_diff(sizes[1]) > forest.room(smaller) {
            self.looks += 1;
            return;
        }
        let empty = part(sizes[0].abs_diff(sizes[1]), sizes[0].max(sizes[1]));
        let column = forest.block(later).start;
        let is_only = [forest.ending(column), forest.starting(column)].map(|roots| roots.len() == 1);
        let doubt = match is_only {
            [true, true] => empty * LIKELY,
            [false, false] => empty + MOST_DOUBT / 100.0,
            _ => empty + self.caution,
        };
        self.push(doubt, Join::row(earlier, later), rng);
    }

    /// Finds the wheels around a centre: all, or those with a root at one of its sides.
    fn wheels(&mut self, forest: &Forest, centre: u32, with: Option<(Around, u32)>, rng: &mut impl Rng) {
        let middle = forest.block(centre);
        let only = with.map(|(_, id)| [id]);
        let at = |side: Around, all| match (&only, with) {
            (Some(only), Some((place, _))) if place == side => &only[..],
            _ => seen(all),
        };
        let left = at(Around::Left, forest.ending(middle.start));
        let right = at(Around::Right, forest.starting(middle.end));
        let top = at(Around::Top, forest.starting(middle.start));
        let bottom = at(Around::Bottom, forest.ending(middle.end));
        if [left, right, top, bottom].iter().any(|side| side.is_empty()) {
            return;
        }
        let room = forest.room(centre);
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
            let most = tall + forest.room(d);
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
                    below.clone().for_each(|&a| self.wheel(forest, Join::wheel([a, b, c, d, centre]), rng));
                }
            }
        }
    }

    fn wheel(&mut self, forest: &Forest, join: Join, rng: &mut impl Rng) {
        let waste = forest.waste(&join);
        if join.parts().iter().zip(waste).any(|(&part, waste)| waste > 0 && waste > forest.room(part)) {
            self.looks += 1;
            return;
        }
        let empty: u64 = waste.iter().sum();
        let doubt = part(empty, forest.size(&join)) / 3.0 * LIKELY;
        self.push(doubt, join, rng);
    }
}

fn seen(roots: &[u32]) -> &[u32] {
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
            .make(&mut forest, &[], &mut rng, &mut |units| {
                work += units;
                assert!(work < 10_000_000, "48 of each side are 5 million wheels around each centre");
                Ok(())
            })
            .expect("no limit");
        assert!(forest.roots().len() < before, "it joins what fits together");
    }
}
