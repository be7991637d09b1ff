//! Sequences for restarts: Luby's says how long each lasts if nobody knows how long it should; van der Corput's fills
//! an interval evenly, however many numbers are drawn.
//!
//! # References
//!
//! 1. M. Luby, A. Sinclair and D. Zuckerman, *Optimal speedup of Las Vegas algorithms*, Information
//!    Processing Letters 47, 1993, doi:10.1016/0020-0190(93)90029-9.

/// Element number `index`, from 1 on, of Luby's sequence 1 1 2 1 1 2 4 1 ...
///
/// # Panics
///
/// If `index` is 0 or 2^64 - 1.
pub(crate) const fn luby_number(index: u64) -> u64 {
    assert!(index > 0 && index < u64::MAX, "the sequence has no such element");
    let mut index = index;
    loop {
        let bits = u64::BITS - index.leading_zeros();
        if index + 1 == 1 << bits {
            return 1 << (bits - 1);
        }
        index = index + 1 - (1 << (bits - 1));
    }
}

const PARTS: u64 = 4096;

/// Element number `index` of van der Corput's sequence from `least` to `most`: the bits of a counter, reversed.
pub(crate) fn van_der_corput(least: u64, most: u64, index: u64) -> u64 {
    let part = (index % PARTS).reverse_bits() >> (u64::BITS - PARTS.trailing_zeros());
    let range = most - least;
    least + range / PARTS * part + range % PARTS * part / PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_power_of_two_comes_after_two_copies_of_what_was() {
        let first: Vec<u64> = (1..=15).map(luby_number).collect();
        assert_eq!(first, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
        assert_eq!(luby_number((1 << 20) - 1), 1 << 19);
    }

    #[test]
    fn heights_are_spread() {
        let heights: Vec<u64> = (1..7).map(|index| van_der_corput(100, 116, index)).collect();
        assert_eq!(heights, [108, 104, 112, 102, 110, 106]);
        assert_eq!(van_der_corput(7, 7, 1), 7);
    }
}
