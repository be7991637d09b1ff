//! The places of requests, and the part of them that is in use.
//!
//! The places of a plan cut its height into cells: each place is a run of cells, and a bit for each cell marks it as in
//! use.
//!
//! ```text
//!   place      |----a----|        |---d---|
//!              |--b--|-----c------|
//!   cells      |  0  | 1 |   2    |   3   |
//! ```

use std::ops::Range;

use super::keys::Key;
use crate::bounds::Bits;

/// The place of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedPlace {
    /// In bytes from the base of the segment.
    pub(super) offset: u64,
    /// In bytes.
    pub(super) size: u64,
    pub(super) cells: Range<usize>,
}

/// A plan, with places by key.
pub(super) struct Layout {
    places: Vec<Option<PlannedPlace>>,
    /// The start of each cell, and the end of the last one.
    bounds: Vec<u64>,
    taken: Bits,
}

impl Layout {
    /// Places with these keys, offsets and sizes, in bytes, all free.
    pub(super) fn new(places: &[(Key, u64, u64)], keys: usize) -> Self {
        let ends = places.iter().map(|&(_, offset, size)| offset + size);
        let mut bounds: Vec<u64> = places.iter().map(|place| place.1).chain(ends).chain([0]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let cell = |at: u64| bounds.partition_point(|&bound| bound < at);
        let mut by_key = vec![None; keys];
        for &(key, offset, size) in places {
            let cells = cell(offset)..cell(offset + size);
            by_key[key as usize] = Some(PlannedPlace { offset, size, cells });
        }
        Self { places: by_key, taken: Bits::empty_set(bounds.len() - 1), bounds }
    }

    pub(super) fn place_of(&self, key: Key) -> Option<&PlannedPlace> {
        self.places.get(key as usize)?.as_ref()
    }

    /// Bytes that the plan needs.
    pub(super) fn height(&self) -> u64 {
        self.bounds.last().copied().unwrap_or(0)
    }

    pub(super) fn is_free(&self, cells: &Range<usize>) -> bool {
        self.taken.is_clear(cells.start, cells.end)
    }

    pub(super) fn take_cells(&mut self, cells: &Range<usize>) {
        self.taken.insert_range(cells.start, cells.end);
    }

    pub(super) fn give_back(&mut self, cells: &Range<usize>) {
        self.taken.clear_range(cells.start, cells.end);
    }

    /// The smallest hole that holds `size` bytes (more than 0), the lowest of equals: the offset, and the cells.
    pub(super) fn smallest_hole(&self, size: u64) -> Option<(u64, Range<usize>)> {
        let count = self.bounds.len() - 1;
        let (mut best, mut at) = (None, 0);
        while at < count {
            let end = self.taken.next_member(at).unwrap_or(count);
            let bytes = self.bounds[end] - self.bounds[at];
            if bytes >= size && best.is_none_or(|(least, _)| bytes < least) {
                best = Some((bytes, at));
            }
            at = (end..count).find(|&cell| !self.taken.contains(cell)).unwrap_or(count);
        }
        let (_, first) = best?;
        let offset = self.bounds[first];
        let end = self.bounds.partition_point(|&bound| bound < offset + size);
        Some((offset, first..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_share_an_address_share_a_cell() {
        let layout = Layout::new(&[(0, 0, 10), (1, 0, 6), (2, 6, 14), (4, 20, 8)], 5);
        let cells = |key| layout.place_of(key).expect("a place").cells.clone();
        assert_eq!([cells(0), cells(1), cells(2), cells(4)], [0..2, 0..1, 1..3, 3..4]);
        assert_eq!((layout.height(), layout.place_of(3), layout.place_of(9)), (28, None, None));
    }

    #[test]
    fn what_is_taken_is_not_free_and_holes_are_best_fits() {
        let mut layout = Layout::new(&[(0, 0, 10), (1, 10, 4), (2, 14, 6), (3, 20, 30)], 4);
        assert_eq!(layout.smallest_hole(50), Some((0, 0..4)));
        layout.take_cells(&(1..2));
        assert!(!layout.is_free(&(0..2)) && layout.is_free(&(2..4)));
        // 0..10 is the smaller of the two holes.
        assert_eq!((layout.smallest_hole(8), layout.smallest_hole(11)), (Some((0, 0..1)), Some((14, 2..4))));
        assert_eq!((layout.smallest_hole(6), layout.smallest_hole(37)), (Some((0, 0..1)), None));
        layout.give_back(&(1..2));
        assert!(layout.is_free(&(0..4)));
    }
}
