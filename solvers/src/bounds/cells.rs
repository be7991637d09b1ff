//! Whether a few buffers fit a capacity: a depth-first search without pins, windows of pauses and pairs.
//!
//! Of the plans within the capacity take one whose offsets sum to the least: every buffer lies, rounded up
//! to its alignment, on the highest of the buffers before it (by offset, then rank) that are in use with it.
//! So the search places buffers in that order, each at the one offset that it can then have. A branch ends
//! when at some section what is there and what is still to come do not fit; a placement is skipped when
//! another buffer would fit wholly below it, or when a buffer of the same size, alignment and sections comes
//! first; a buffer without an open conflict is placed at once.
//!
//! Leaving pins, windows and pairs out asks for less, so an answer *none* holds with them, too.
//!
//! # References
//!
//! 1. M. D. Moffitt: *MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
//!    Learning*. ASPLOS 2023. doi:10.1145/3623278.3624752
//!
//! # Complexity
//!
//! n! in the worst case; O(n s) for a node with s sections.

use planlab_dsa::{Halt, Instance};

use super::Tick;
use super::view::sections;

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is a plan.
    Some,
    /// There is none.
    None,
    /// The nodes were not enough.
    Unknown,
}

struct Cell {
    size: u64,
    align: u64,
    sections: Vec<u32>,
    /// The one before it with the same size, alignment and sections.
    twin: Option<usize>,
}

/// The buffers, by rank.
pub(super) struct Cells {
    cells: Vec<Cell>,
    sections: usize,
}

impl Cells {
    pub(super) fn new(instance: &Instance) -> Self {
        let sections = sections(instance, usize::MAX).unwrap_or_default();
        let mut at = vec![Vec::new(); instance.len()];
        for (section, number) in sections.iter().zip(0_u32..) {
            section.members.iter().for_each(|&member| at[member as usize].push(number));
        }
        let cell = |(buffer, sections): (&planlab_dsa::Buffer, Vec<u32>)| Cell {
            size: buffer.size.get(),
            align: buffer.align.get(),
            sections,
            twin: None,
        };
        let mut cells: Vec<Cell> = instance.buffers().iter().zip(at).map(cell).collect();
        let weight = |cell: &Cell| cell.size.saturating_mul(cell.sections.len() as u64);
        cells.sort_by_key(|cell| std::cmp::Reverse((weight(cell), cell.size, cell.align)));
        for row in 1..cells.len() {
            let is_twin =
                |a: &Cell, b: &Cell| (a.size, a.align, &a.sections) == (b.size, b.align, &b.sections);
            cells[row].twin = (0..row).rev().find(|&before| is_twin(&cells[before], &cells[row]));
        }
        Self { cells, sections: sections.len() }
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether they fit `capacity` bytes.
    pub(super) fn decide(&self, capacity: u64, nodes: u64, tick: &mut Tick<'_>) -> Result<Answer, Halt> {
        if self.cells.iter().any(|cell| cell.size > capacity) {
            return Ok(Answer::None);
        }
        let mut open = vec![0; self.sections];
        for cell in &self.cells {
            cell.sections.iter().for_each(|&number| open[number as usize] += cell.size);
        }
        if open.iter().any(|&bytes| bytes > capacity) {
            return Ok(Answer::None);
        }
        let (tops, placed) = (vec![0; self.sections], vec![false; self.cells.len()]);
        let mut search =
            Search { cells: &self.cells, capacity, tops, open, placed, left: self.cells.len(), nodes };
        search.branch(0, 0, tick)
    }
}

struct Search<'c> {
    cells: &'c [Cell],
    capacity: u64,
    /// At each section, the highest end of what is placed.
    tops: Vec<u64>,
    /// At each section, the bytes of what is not.
    open: Vec<u64>,
    placed: Vec<bool>,
    left: usize,
    nodes: u64,
}

impl Search<'_> {
    /// Tries everything that may come after a placement of `last` at `floor`.
    fn branch(&mut self, floor: u64, last: usize, tick: &mut Tick<'_>) -> Result<Answer, Halt> {
        if self.left == 0 {
            return Ok(Answer::Some);
        }
        if self.nodes == 0 {
            return Ok(Answer::Unknown);
        }
        self.nodes -= 1;
        tick(self.left as u64)?;
        let Some((choices, alone)) = self.choices() else { return Ok(Answer::None) };
        if let Some((offset, row)) = alone {
            return self.follow(row, offset, (floor, last), tick);
        }
        for (offset, row) in choices {
            if (offset, row) < (floor, last) || self.cells[row].twin.is_some_and(|twin| !self.placed[twin]) {
                continue;
            }
            match self.follow(row, offset, (offset, row), tick)? {
                Answer::None => {}
                answer => return Ok(answer),
            }
        }
        Ok(Answer::None)
    }

    /// What may come next, by offset and rank, and one that stands in nobody's way; `None` where some section
    /// can no longer hold all.
    #[expect(clippy::type_complexity, reason = "the two halves of one answer")]
    fn choices(&self) -> Option<(Vec<(u64, usize)>, Option<(u64, usize)>)> {
        let mut all = Vec::with_capacity(self.left);
        let (mut floor, mut lowest_end, mut alone) = (u64::MAX, u64::MAX, None);
        for (row, cell) in self.cells.iter().enumerate().filter(|&(row, _)| !self.placed[row]) {
            let tops = cell.sections.iter().map(|&number| self.tops[number as usize]);
            let offset = tops.max().unwrap_or(0).next_multiple_of(cell.align);
            if offset + cell.size > self.capacity {
                return None;
            }
            floor = floor.min(offset);
            lowest_end = lowest_end.min(offset + cell.size);
            if cell.sections.iter().all(|&number| self.open[number as usize] == cell.size) {
                alone = Some((offset, row));
            }
            all.push((offset, row));
        }
        let fits = |(&top, &open): (&u64, &u64)| open == 0 || top.max(floor) + open <= self.capacity;
        if !self.tops.iter().zip(&self.open).all(fits) {
            return None;
        }
        // Another fits wholly below: it would have come first.
        all.retain(|&(offset, _)| offset < lowest_end);
        all.sort_unstable();
        Some((all, alone))
    }

    fn follow(
        &mut self,
        row: usize,
        offset: u64,
        at: (u64, usize),
        tick: &mut Tick<'_>,
    ) -> Result<Answer, Halt> {
        let cells = self.cells;
        let cell = &cells[row];
        let before: Vec<u64> = cell.sections.iter().map(|&number| self.tops[number as usize]).collect();
        for &number in &cell.sections {
            self.tops[number as usize] = offset + cell.size;
            self.open[number as usize] -= cell.size;
        }
        self.placed[row] = true;
        self.left -= 1;
        let answer = self.branch(at.0, at.1, tick)?;
        self.left += 1;
        self.placed[row] = false;
        for (&number, top) in cell.sections.iter().zip(before) {
            self.tops[number as usize] = top;
            self.open[number as usize] += cell.size;
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, brute_force, instances};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

        #[test]
        fn decides_as_brute_force_does(
            instance in instances(Shape::plain().with_alignment(true).with_pauses(true)),
        ) {
            let optimum = brute_force(&instance).expect("no capacity").get();
            let cells = Cells::new(&instance);
            for capacity in optimum.saturating_sub(2)..=optimum + 2 {
                let answer = cells.decide(capacity, u64::MAX, &mut |_| Ok(())).expect("no limit");
                let expected = if capacity < optimum { Answer::None } else { Answer::Some };
                prop_assert_eq!(answer, expected, "capacity {}", capacity);
            }
        }
    }
}
