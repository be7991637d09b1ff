//! Sets of small numbers, one bit for each.

/// A set of numbers below a fixed length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    pub(crate) fn empty_set(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// All numbers below `len`.
    pub(crate) fn full_set(len: usize) -> Self {
        let mut bits = Self { words: vec![u64::MAX; len.div_ceil(64)], len };
        bits.clear_beyond_len();
        bits
    }

    pub(crate) fn multiples_of(step: usize, len: usize) -> Self {
        if step == 1 {
            return Self::full_set(len);
        }
        let mut bits = Self::empty_set(len);
        (0..len).step_by(step).for_each(|number| bits.insert(number));
        bits
    }

    fn clear_beyond_len(&mut self) {
        let rest = self.len % 64;
        if let (Some(last), true) = (self.words.last_mut(), rest > 0) {
            *last &= (1 << rest) - 1;
        }
    }

    /// The length: every number is below it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of machine words: the cost of one operation on the set.
    pub(crate) fn word_count(&self) -> u64 {
        self.words.len() as u64
    }

    /// Adds a number; ignores one that is not below the length.
    pub(crate) fn insert(&mut self, number: usize) {
        if number < self.len {
            self.words[number / 64] |= 1 << (number % 64);
        }
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        number < self.len && self.words[number / 64] >> (number % 64) & 1 == 1
    }

    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Adds every member plus `by`.
    pub(crate) fn or_shifted(&mut self, by: usize) {
        let (whole, part) = (by / 64, by % 64);
        for index in (whole..self.words.len()).rev() {
            let low = self.words[index - whole];
            let mut word = low << part;
            if part > 0 && index > whole {
                word |= self.words[index - whole - 1] >> (64 - part);
            }
            // From the top down, so that words are read before they change.
            self.words[index] |= word;
        }
        self.clear_beyond_len();
    }

    /// Adds, for every member x, all of x..=x + by.
    pub(crate) fn widen_by(&mut self, by: usize) {
        let mut done = 0;
        while done < by {
            let step = (done + 1).min(by - done);
            self.or_shifted(step);
            done += step;
        }
    }

    /// The members moved up by `by`; those at or above `len` are lost.
    pub(crate) fn moved_up(&self, by: usize, len: usize) -> Self {
        let mut moved = Self::empty_set(len);
        let (whole, part) = (by / 64, by % 64);
        for (index, &word) in self.words.iter().enumerate() {
            if let Some(low) = moved.words.get_mut(index + whole) {
                *low |= word << part;
            }
            if part > 0
                && let Some(high) = moved.words.get_mut(index + whole + 1)
            {
                *high |= word >> (64 - part);
            }
        }
        moved.clear_beyond_len();
        moved
    }

    pub(crate) fn union(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine |= theirs);
    }

    pub(crate) fn intersect(&mut self, other: &Self) {
        let theirs = other.words.iter().copied().chain(std::iter::repeat(0));
        self.words.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine &= theirs);
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine &= !theirs);
    }

    /// The words that `from..to` covers, each with the mask of its part.
    fn masks_of_range(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, u64)> + use<> {
        let to = to.min(self.len);
        let from = from.min(to);
        (from / 64..to.div_ceil(64)).map(move |word| {
            let (low, high) = (from.max(word * 64), to.min(word * 64 + 64));
            let mask = if high - low == 64 { u64::MAX } else { ((1 << (high - low)) - 1) << (low % 64) };
            (word, mask)
        })
    }

    pub(crate) fn clear_range(&mut self, from: usize, to: usize) {
        self.masks_of_range(from, to).for_each(|(word, mask)| self.words[word] &= !mask);
    }

    /// Adds all of `from..to` that is below the length.
    pub(crate) fn insert_range(&mut self, from: usize, to: usize) {
        self.masks_of_range(from, to).for_each(|(word, mask)| self.words[word] |= mask);
    }

    /// Whether it contains no number of `from..to`.
    pub(crate) fn is_clear(&self, from: usize, to: usize) -> bool {
        self.masks_of_range(from, to).all(|(word, mask)| self.words[word] & mask == 0)
    }

    /// The least member that is at least `from`.
    pub(crate) fn next_member(&self, from: usize) -> Option<usize> {
        let first = from / 64;
        let mut word = *self.words.get(first)? & (u64::MAX << (from % 64));
        let mut index = first;
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }

    pub(crate) fn first_member(&self) -> Option<usize> {
        self.next_member(0)
    }

    pub(crate) fn last_member(&self) -> Option<usize> {
        let (index, word) = self.words.iter().enumerate().rev().find(|&(_, &word)| word != 0)?;
        Some(index * 64 + 63 - word.leading_zeros() as usize)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.first_member(), |&at| self.next_member(at + 1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(bits: &Bits) -> BTreeSet<usize> {
        bits.iter().collect()
    }

    fn bits(len: usize, members: &[usize]) -> Bits {
        let mut bits = Bits::empty_set(len);
        members.iter().for_each(|&member| bits.insert(member));
        bits
    }

    proptest! {
        #[test]
        fn as_a_set_of_numbers_does_it(
            len in 1..300_usize,
            members in prop::collection::vec(0..300_usize, 0..20),
            others in prop::collection::vec(0..300_usize, 0..200),
            by in 0..310_usize,
            to in 0..310_usize,
        ) {
            let below = |list: &[usize]| list.iter().copied().filter(|&x| x < len).collect::<BTreeSet<_>>();
            let (mine, theirs) = (below(&members), below(&others));
            let (start, other) = (bits(len, &members), bits(len, &others));
            prop_assert_eq!(set(&start), mine.clone());
            prop_assert_eq!(start.count(), mine.len());
            prop_assert_eq!((start.first_member(), start.last_member()), (mine.first().copied(), mine.last().copied()));
            prop_assert_eq!(start.next_member(by), mine.range(by..).next().copied());
            prop_assert_eq!(start.contains(by), mine.contains(&by));
            let change = |f: &dyn Fn(&mut Bits)| { let mut bits = start.clone(); f(&mut bits); set(&bits) };
            let up = |by: usize| mine.iter().map(move |x| x + by).filter(|&x| x < len);
            prop_assert_eq!(change(&|b| b.or_shifted(by)), mine.iter().copied().chain(up(by)).collect());
            prop_assert_eq!(change(&|b| b.widen_by(by)), (0..=by).flat_map(up).collect());
            prop_assert_eq!(set(&start.moved_up(by, len)), up(by).collect());
            prop_assert_eq!(change(&|b| b.union(&other)), mine.union(&theirs).copied().collect());
            prop_assert_eq!(change(&|b| b.intersect(&other)), mine.intersection(&theirs).copied().collect());
            prop_assert_eq!(change(&|b| b.subtract(&other)), mine.difference(&theirs).copied().collect());
            let outside = mine.iter().copied().filter(|x| !(by..to.max(by)).contains(x)).collect();
            prop_assert_eq!(change(&|b| b.clear_range(by, to)), outside);
            let range: BTreeSet<usize> = (by..to.min(len)).collect();
            prop_assert_eq!(change(&|b| b.insert_range(by, to)), mine.union(&range).copied().collect());
            prop_assert_eq!(start.is_clear(by, to), mine.is_disjoint(&range));
        }
    }

    #[test]
    fn multiples_and_all() {
        assert_eq!(set(&Bits::multiples_of(3, 8)), BTreeSet::from([0, 3, 6]));
        assert_eq!(Bits::full_set(130).count(), 130);
        assert_eq!(Bits::multiples_of(1, 65), Bits::full_set(65));
    }
}
