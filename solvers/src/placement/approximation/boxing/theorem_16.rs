//! Theorem 16: makes the heights of items alike, by boxing the small ones again and again.
//!
//! Let r be the highest over the lowest, l = (log2 r)^2 and mu = e / l. Everything of at most mu times H goes into
//! boxes of height H = mu^5 / l of the highest, by Corollary 15. That raises the lowest height; this repeats until
//! nothing is small enough.
//!
//! The theorem is for an e that tends to 0. In practice e has to be large, or nothing would ever be small enough. It is
//! at least (l^7 / r)^(1/6), for which mu times H is as high as the lowest. And mu is at most the inverse of the golden
//! ratio, up to which H holds an item of mu (1 + mu) H. If no e satisfies both, a dummy item that lives all the time
//! makes r large enough. The search takes the e that brings the heights closest together.
//!
//! # References
//!
//! 1. A. L. Buchsbaum, H. Karloff, C. Kenyon, N. Reingold and M. Thorup, *OPT versus LOAD in dynamic storage
//!    allocation*, SIAM Journal on Computing 33(3), 2004, doi:10.1137/S0097539703423941, Theorem 16.
//! 2. C. Lamprakos et al., idealloc, github.com/cappadokes/idealloc, 2024: the range of e, the dummy, the
//!    search for e.
//!
//! # Complexity
//!
//! That of Corollary 15 for each round; after a round the lowest item is at least as high as what it boxed.
//!
//! # Deviations from the paper
//!
//! - The theorem is applied recursively with a new e each time; here, as in reference 2, there is one e, and a loop.
//!   The proven ratio, (1 + O((h_max / load)^(1/7))) times the load, does not hold for an e as large as this.
//! - At most 64 rounds, and at most 100 values of e.

use planlab_dsa::{Halt, Run};

use super::corollary_15::corollary_15;
use super::item::{Boxed, Boxes, Item, round_down};

/// The inverse of the golden ratio: the largest x for which x (1 + x) is at most 1.
const LARGEST_MU: f64 = 0.618_033_988_749_894_9;
/// The least ratio of the highest to the lowest item for which there is an e.
const LEAST_RATIO: f64 = 2216.54;
/// The step of one trial, as a part of the way to the largest e.
const TRIAL_STEP: f64 = 0.01;
/// The most trials in a row without an improvement.
const MISSES: u32 = 3;
const TRIALS: u32 = 100;
const ROUNDS: u32 = 64;

/// The range of heights of some items.
#[derive(Clone, Copy, Debug)]
struct Spread {
    lowest: u64,
    highest: u64,
    /// The square of the binary logarithm of the ratio.
    log: f64,
}

impl Spread {
    fn from_items(items: &[Item]) -> Self {
        let lowest = items.iter().map(|item| item.height).min().unwrap_or(1);
        let highest = items.iter().map(|item| item.height).max().unwrap_or(1);
        let mut this = Self { lowest, highest, log: 0.0 };
        this.log = this.ratio().log2().powi(2);
        this
    }

    fn ratio(&self) -> f64 {
        self.highest as f64 / self.lowest as f64
    }

    /// The least e with which something is boxed.
    fn least_epsilon(&self) -> f64 {
        (self.log.powi(7) / self.ratio()).powf(1.0 / 6.0)
    }

    /// The e above which boxes are too low for their items.
    fn most_epsilon(&self) -> f64 {
        LARGEST_MU * self.log
    }

    /// The height of boxes and mu, if something is small enough.
    fn box_height(&self, epsilon: f64) -> Option<(u64, f64)> {
        let mu = epsilon / self.log;
        let height = (mu.powi(5) * self.highest as f64 / self.log).ceil();
        let is_small = mu < LARGEST_MU && round_down(mu * height) >= self.lowest;
        is_small.then(|| (round_down(height), mu))
    }
}

/// Adds the dummy if the heights are too close together; returns whether it did.
pub(super) fn add_dummy(items: &mut Vec<Item>) -> bool {
    let spread = Spread::from_items(items);
    let is_needed = spread.least_epsilon() >= spread.most_epsilon();
    if is_needed {
        items.push(Item {
            start: items.iter().map(|item| item.start).min().unwrap_or(0),
            end: items.iter().map(|item| item.end).max().unwrap_or(1),
            height: round_down((LEAST_RATIO * spread.lowest as f64).ceil()),
            number: items.len(),
        });
    }
    is_needed
}

/// Boxes small items until there are no more.
pub(super) fn theorem_16(run: &mut Run<'_>, items: &[Item], epsilon: f64) -> Result<Boxed, Halt> {
    let mut all = Boxed { boxes: Boxes::new(items.len()), items: items.to_vec() };
    for _ in 0..ROUNDS {
        let Some((height, mu)) = Spread::from_items(&all.items).box_height(epsilon) else { break };
        let limit = round_down(mu * height as f64);
        let (small, large): (Vec<Item>, Vec<Item>) =
            all.items.into_iter().partition(|item| item.height <= limit);
        let boxed = corollary_15(run, &mut all.boxes, small, height, mu)?;
        all.items = large;
        all.items.extend(boxed);
    }
    Ok(all)
}

/// The e that brings the heights closest together, and its result.
pub(super) fn find_epsilon(run: &mut Run<'_>, items: &[Item]) -> Result<(f64, Boxed), Halt> {
    let spread = Spread::from_items(items);
    let (mut epsilon, most) = (spread.least_epsilon(), spread.most_epsilon());
    let mut best = (epsilon, theorem_16(run, items, epsilon)?);
    let mut ratio = Spread::from_items(&best.1.items).ratio();
    let mut misses = 0;
    for _ in 1..TRIALS {
        epsilon += (most - epsilon) * TRIAL_STEP;
        let boxed = theorem_16(run, items, epsilon)?;
        let new = Spread::from_items(&boxed.items).ratio();
        if new < ratio {
            (best, ratio, misses) = ((epsilon, boxed), new, 0);
        } else {
            misses += 1;
        }
        if misses == MISSES {
            break;
        }
    }
    Ok(best)
}

/// Puts everything into boxes of one height.
pub(super) fn finish_boxes(run: &mut Run<'_>, boxed: Boxed, epsilon: f64) -> Result<Boxed, Halt> {
    let Boxed { mut boxes, items } = boxed;
    let spread = Spread::from_items(&items);
    let mu = epsilon / spread.log;
    let mu = if mu <= LARGEST_MU { mu } else { 0.99 * LARGEST_MU };
    let height = round_down(spread.highest as f64 / mu);
    let items = corollary_15(run, &mut boxes, items, height, mu)?;
    Ok(Boxed { boxes, items })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::placement::approximation::boxing::testing::{in_a_run, original_items};

    /// Items of heights from 1 to 2^20, so that there are some to box.
    fn wide_items() -> impl Strategy<Value = Vec<Item>> {
        prop::collection::vec((0_u32..60, 1_u32..30, 0_u32..=20), 2..80).prop_map(|rows| {
            let item = |(number, (start, width, log))| {
                let height = (1_u64 << log) + number as u64 % 2;
                Item { start, end: start + width, height, number }
            };
            rows.into_iter().enumerate().map(item).collect()
        })
    }

    proptest! {
        #[test]
        fn every_item_ends_up_in_one_box_of_one_height(items in wide_items(), seed in 0_u64..5) {
            let mut items = items;
            add_dummy(&mut items);
            let spread = Spread::from_items(&items);
            prop_assert!(spread.least_epsilon() < spread.most_epsilon());
            let (before, all) = in_a_run(seed, |run| {
                let (epsilon, boxed) = find_epsilon(run, &items)?;
                Ok((Spread::from_items(&boxed.items).ratio(), finish_boxes(run, boxed, epsilon)?))
            });
            prop_assert!(before <= spread.ratio());
            prop_assert!(all.items.windows(2).all(|pair| pair[0].height == pair[1].height));
            prop_assert_eq!(original_items(&all.boxes, &all.items), (0..items.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn heights_that_are_far_apart_need_no_dummy() {
        let item = |height, number| Item { start: 0, end: 4, height, number };
        let mut far = vec![item(1, 0), item(3000, 1)];
        assert!(!add_dummy(&mut far));
        let mut near = vec![item(10, 0), item(20, 1)];
        assert!(add_dummy(&mut near));
        assert_eq!(near[2], Item { start: 0, end: 4, height: 22_166, number: 2 });
    }

    #[test]
    fn small_items_are_boxed_until_none_is_small() {
        let items: Vec<Item> = (0..64)
            .map(|number| Item { start: 0, end: 4, height: if number < 60 { 1 } else { 1 << 20 }, number })
            .collect();
        let spread = Spread::from_items(&items);
        let epsilon = f64::midpoint(spread.least_epsilon(), spread.most_epsilon());
        let boxed = in_a_run(0, |run| theorem_16(run, &items, epsilon));
        assert!(boxed.items.len() < items.len());
        assert_eq!(Spread::from_items(&boxed.items).box_height(epsilon), None);
    }
}
