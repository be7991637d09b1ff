//! The order in which the search prefers items of equal offset.
//!
//! A ranking compares by three measures, one after the other. The load counts unplaced buffers only. A part that splits
//! off is ranked again, which gains a factor of ten or more. Every restart but the first few blurs the measures by a
//! random factor for each item.

use super::item::Item;
use super::problem::Problem;

/// A measure of an item; the larger value comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Steps of its live range.
    Width,
    /// Units times steps.
    Area,
    /// The most unplaced units in one of its sections.
    Load,
}

use Measure::{Area, Load, Width};

/// Three measures, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ranking([Measure; 3]);

impl Ranking {
    /// The rankings that a search uses in turn.
    pub(super) const ALL: [Self; 3] =
        [Self([Width, Area, Load]), Self([Load, Area, Width]), Self([Load, Width, Area])];
}

#[derive(Clone, Debug)]
pub(super) struct Preference {
    ranking: Ranking,
    /// A factor for each item and measure; empty: no blur.
    blur: Vec<[f64; 3]>,
}

/// Random factors lie between one minus this and one plus this.
const BLUR: f64 = 0.15;

impl Preference {
    pub(super) const fn from_ranking(ranking: Ranking) -> Self {
        Self { ranking, blur: Vec::new() }
    }

    pub(super) fn with_blur(ranking: Ranking, problem: &Problem, random: &mut Random) -> Self {
        let mut factor = || 1.0 + BLUR * random.between_minus_one_and_one();
        let blur = problem.items.iter().map(|_| [factor(), factor(), factor()]).collect();
        Self { ranking, blur }
    }

    /// Sorts items, the preferred first. `unplaced` has the number of unplaced units of each section.
    pub(super) fn sort_items(&self, problem: &Problem, unplaced: &[u64], items: &mut [u32]) {
        items.sort_by_cached_key(|&at| {
            let item = &problem.items[at as usize];
            let mut key = self.ranking.0.map(|measure| measure_of(measure, item, unplaced));
            if let Some(blur) = self.blur.get(at as usize) {
                key.iter_mut().zip(blur).for_each(|(value, factor)| *value *= factor);
            }
            // Positive floats sort like their bits.
            (key.map(|value| std::cmp::Reverse(value.to_bits())), item.buffer)
        });
    }
}

#[expect(clippy::cast_precision_loss, reason = "a preference, not a proof")]
fn measure_of(measure: Measure, item: &Item, unplaced: &[u64]) -> f64 {
    let load = || item.spans().iter().flat_map(|span| &unplaced[span.sections()]).copied().max().unwrap_or(0);
    match measure {
        Width => item.width as f64,
        Area => item.width as f64 * item.size as f64,
        Load => load() as f64,
    }
}

/// A small generator (splitmix64): quick to seed, the same on every platform.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a float")]
    fn between_minus_one_and_one(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}
