//! Luby's sequence: how long each restart of a search lasts if nobody knows how long it should.
//!
//! # References
//!
//! 1. M. Luby, A. Sinclair and D. Zuckerman, *Optimal speedup of Las Vegas algorithms*, Information
//!    Processing Letters 47, 1993, doi:10.1016/0020-0190(93)90029-9.

/// Element number `index`, from 1 on, of the sequence 1 1 2 1 1 2 4 1 ...
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_power_of_two_comes_after_two_copies_of_what_was() {
        let first: Vec<u64> = (1..=15).map(luby_number).collect();
        assert_eq!(first, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
        assert_eq!(luby_number((1 << 20) - 1), 1 << 19);
    }
}
