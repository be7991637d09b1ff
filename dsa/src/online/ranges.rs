//! Disjoint ranges of addresses.

use std::collections::BTreeMap;

/// First address and end of each range; adjacent ranges are joined.
#[derive(Clone, Debug, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range that overlaps no other.
    pub fn add_range(&mut self, start: u64, end: u64) {
        let (mut start, mut end) = (start, end);
        if let Some((&low, _)) = self.0.range(..start).next_back().filter(|&(_, &stop)| stop == start) {
            self.0.remove(&low);
            start = low;
        }
        if let Some(stop) = self.0.remove(&end) {
            end = stop;
        }
        self.0.insert(start, end);
    }

    /// Takes a part out of one range.
    ///
    /// # Panics
    ///
    /// If the part is empty or does not lie in one range.
    pub fn take_part(&mut self, start: u64, end: u64) {
        let (low, stop) =
            self.range_around(start).filter(|&(_, stop)| end <= stop).expect("memory that is mapped");
        self.0.remove(&low);
        let parts = [(low, start), (end, stop)];
        self.0.extend(parts.into_iter().filter(|&(from, to)| from < to));
    }

    /// The range that contains an address.
    #[must_use]
    pub fn range_around(&self, at: u64) -> Option<(u64, u64)> {
        let found = self.0.range(..=at).next_back().map(|(&low, &stop)| (low, stop));
        found.filter(|&(_, stop)| at < stop)
    }

    /// Whether no address from `at` to `end` lies in a range.
    #[must_use]
    pub fn is_bare(&self, at: u64, end: u64) -> bool {
        self.0.range(..end).next_back().is_none_or(|(_, &stop)| stop <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_is_joined_and_a_part_can_be_taken() {
        let mut ranges = Ranges::default();
        [(10, 20), (30, 40), (20, 30)].into_iter().for_each(|(start, end)| ranges.add_range(start, end));
        assert_eq!(
            [9, 10, 39, 40].map(|at| ranges.range_around(at)),
            [None, Some((10, 40)), Some((10, 40)), None]
        );
        ranges.take_part(15, 35);
        assert_eq!([14, 15, 35].map(|at| ranges.range_around(at)), [Some((10, 15)), None, Some((35, 40))]);
        assert!(ranges.is_bare(15, 35) && !ranges.is_bare(14, 35) && !ranges.is_bare(15, 36));
    }
}
