//! Random numbers that are equal on every machine and in every version of the `rand` crates.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A seeded source of whole numbers. It avoids floating point, because logarithms differ between machines.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    /// A separate sequence for each seed and family.
    pub(crate) fn new(seed: u64, family: &str) -> Self {
        // FNV-1a, so that families with the same seed get different numbers.
        let name = family.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&name.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        let scaled = u128::from(self.0.next_u64()) * u128::from(limit);
        u64::try_from(scaled >> 64).expect("below the limit")
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Like [`Dice::between`], for steps.
    pub(super) fn steps_between(&mut self, low: u32, high: u32) -> u32 {
        u32::try_from(self.between(u64::from(low), u64::from(high))).expect("no more than the upper end")
    }

    /// True with a probability of `chance` percent.
    pub(super) fn roll_percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// A random element.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let at = self.below(from.len() as u64);
        from[usize::try_from(at).expect("an index")]
    }

    /// Reorders all items at random.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = self.below(end as u64 + 1);
            items.swap(end, usize::try_from(other).expect("an index"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_never_change() {
        let mut dice = Dice::new(7, "uniform");
        let numbers: Vec<u64> = (0..4).map(|_| dice.below(1000)).collect();
        assert_eq!(numbers, NUMBERS);
        let mut other = Dice::new(7, "chain");
        assert_ne!(numbers, (0..4).map(|_| other.below(1000)).collect::<Vec<_>>());
    }

    const NUMBERS: [u64; 4] = [349, 399, 262, 960];

    #[test]
    fn all_values_come_and_none_beyond() {
        let mut dice = Dice::new(0, "");
        let mut seen = [0_u32; 7];
        for _ in 0..7000 {
            seen[usize::try_from(dice.between(3, 9) - 3).expect("an index")] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }

    #[test]
    fn shuffling_keeps_everything() {
        let mut items: Vec<u32> = (0..100).collect();
        Dice::new(1, "").shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
