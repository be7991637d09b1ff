//! Numbers that fill an interval evenly, however many are drawn: the van der Corput sequence.

const PARTS: u64 = 4096;

/// Element number `index` of the sequence from `least` to `most`: the bits of a counter, reversed.
pub(crate) fn van_der_corput(least: u64, most: u64, index: u64) -> u64 {
    let part = (index % PARTS).reverse_bits() >> (u64::BITS - PARTS.trailing_zeros());
    let range = most - least;
    least + range / PARTS * part + range % PARTS * part / PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_spread() {
        let heights: Vec<u64> = (1..7).map(|index| van_der_corput(100, 116, index)).collect();
        assert_eq!(heights, [108, 104, 112, 102, 110, 106]);
        assert_eq!(van_der_corput(7, 7, 1), 7);
    }
}
