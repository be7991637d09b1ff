//! The pattern that is written into a block, so that overwriting it is detected.
//!
//! Word i of the block with seed s holds the halves h = (s + i) · K and h + s, modulo 2^64, for a fixed odd K. Seeds
//! of different blocks lie far apart, so no word belongs to two blocks. The sum of a whole block has a closed form, so
//! a kernel's sum can be checked without the words.

/// The golden ratio's bits: odd, and so that neighbours differ in about half of their bits.
pub(crate) const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Seeds are multiples of this.
const STRIDE: u64 = 0xd1b5_4a32_d192_ed03;

/// The seed of a buffer's block in round `round`; different rounds have different seeds.
pub(crate) const fn block_seed(buffer: u32, round: u32) -> u64 {
    (((round as u64) << 32) | buffer as u64).wrapping_add(1).wrapping_mul(STRIDE)
}

/// The halves of a word.
pub(crate) const fn pattern_word(seed: u64, index: u64) -> [u64; 2] {
    let half = seed.wrapping_add(index).wrapping_mul(FACTOR);
    [half, half.wrapping_add(seed)]
}

/// The sum of the halves of the first `words` words.
pub(crate) const fn pattern_sum(seed: u64, words: u64) -> u64 {
    let pairs = if words.is_multiple_of(2) {
        (words / 2).wrapping_mul(words.wrapping_sub(1))
    } else {
        words.wrapping_mul((words - 1) / 2)
    };
    let halves = words.wrapping_mul(seed).wrapping_add(pairs).wrapping_mul(FACTOR);
    halves.wrapping_mul(2).wrapping_add(words.wrapping_mul(seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_the_sum() {
        for (buffer, words) in [(0, 0), (0, 1), (7, 2), (3, 1001), (u32::MAX, 4096)] {
            let seed = block_seed(buffer, 2);
            let added = (0..words).flat_map(|index| pattern_word(seed, index)).fold(0, u64::wrapping_add);
            assert_eq!(pattern_sum(seed, words), added, "{buffer} {words}");
        }
    }

    #[test]
    fn blocks_share_no_word() {
        let mut seen = std::collections::BTreeSet::new();
        for (buffer, round) in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)] {
            for index in 0..2000 {
                let word = pattern_word(block_seed(buffer, round), index);
                assert!(seen.insert(word), "{buffer} {round} {index}");
            }
        }
    }
}
