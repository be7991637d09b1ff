//! Chooses which feature maps may be checkpoints.
//!
//! An articulation point is a map through which all later functions get their inputs: no other map is read on both
//! sides of it. If a net has some that can be recomputed, only these may be checkpoints. Of these, the patent takes
//! those with a high score
//!
//! ```text
//! score = lifetime in steps * seconds to recompute / bytes
//! ```
//!
//! A step is a pass of a function. A map lives from the step that makes it to the last step of the backward pass that
//! reads it. A map that lives long, is expensive to compute and is small is a good checkpoint: its score is at least
//! the median of all scores.
//!
//! # References
//!
//! 1. A Chinese patent on training with checkpoints and a free list (Zhejiang), its claims on candidates: they are
//!    chosen by lifetime, time to compute and size.
//!
//! # Complexity
//!
//! O(n log n).
//!
//! # Deviations from the claims
//!
//! The claims name the three properties but no formula. The product, the median and the articulation points are choices
//! made here.

use planlab_graph::{MapId, TrainingNet};

use crate::schedule::classes::Lab;

planlab_dsa::named_enum! {
    /// The rule for which feature maps may be checkpoints.
    #[derive(Default)]
    pub enum Candidates {
        /// Articulation points; all maps in a net without any.
        #[default]
        Articulation = "articulation",
        /// Of these, the half with the higher scores.
        Scored = "scored",
    }
}

impl Candidates {
    /// For each map of `maps`, which can be recomputed, whether it may be a checkpoint.
    pub(super) fn candidates_among(self, lab: &Lab<'_>, maps: &[MapId]) -> Vec<bool> {
        let carriers = carrier_maps(&lab.problem().net);
        let has_carrier = maps.iter().any(|map| carriers[map.index()]);
        let is_open: Vec<bool> = maps.iter().map(|map| !has_carrier || carriers[map.index()]).collect();
        match self {
            Self::Articulation => is_open,
            Self::Scored => {
                let scores = map_scores(lab, maps);
                let least =
                    median(is_open.iter().zip(&scores).filter_map(|(&open, &score)| open.then_some(score)));
                is_open.iter().zip(&scores).map(|(&open, &score)| open && score >= least).collect()
            }
        }
    }
}

/// For each map, whether every later function gets its inputs through it: no other map is read on both sides of it.
pub(in crate::schedule) fn carrier_maps(net: &TrainingNet) -> Vec<bool> {
    let mut carriers = vec![false; net.maps().len()];
    // The last function that reads an earlier map; inputs of the net exist from the start.
    let last = |map: MapId| net.last_use(map).map_or(0, |id| id.index() + 1);
    let mut latest = net.map_ids().filter(|&map| !net.has_gradient(map)).map(last).max().unwrap_or(0);
    for id in net.function_ids() {
        let output = net.function(id).output;
        carriers[output.index()] = latest <= id.index() + 1;
        latest = latest.max(last(output));
    }
    carriers
}

fn map_scores(lab: &Lab<'_>, maps: &[MapId]) -> Vec<f64> {
    let net = &lab.problem().net;
    let mut seconds = vec![0.0; net.maps().len()];
    lab.recompute_seconds().into_iter().for_each(|(map, of)| seconds[map.index()] = of);
    let steps = map_lifetimes(net);
    let score =
        |map: &MapId| f64::from(steps[map.index()]) * seconds[map.index()] / net.map(*map).bytes.get() as f64;
    maps.iter().map(score).collect()
}

/// For each map, the steps from the one that makes it to the last one of the backward pass that reads it; 0 if none
/// does.
fn map_lifetimes(net: &TrainingNet) -> Vec<u32> {
    let functions = net.functions().len();
    let mut lifetimes = vec![0; net.maps().len()];
    // The last reader in the backward pass is the first in the forward pass.
    for (place, function) in net.functions().iter().enumerate().rev() {
        for &map in &function.needs {
            let made = net.producer_of(map).map_or(0, |id| id.index());
            lifetimes[map.index()] = u32::try_from(2 * functions - 1 - place - made).unwrap_or(u32::MAX);
        }
    }
    lifetimes
}

/// The median; the mean of the two middle numbers of an even count, infinity for no numbers.
fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    let at = |place: usize| numbers.get(place).copied().unwrap_or(f64::INFINITY);
    let half = numbers.len() / 2;
    if numbers.len() % 2 == 1 { at(half) } else { f64::midpoint(at(half.saturating_sub(1)), at(half)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::classes::Policy;
    use crate::schedule::program::Prefetch;
    use crate::schedule::testing::shortcut_problem;

    #[test]
    fn a_map_beside_a_shortcut_carries_nothing() {
        let problem = shortcut_problem();
        let carriers = carrier_maps(&problem.net);
        let found: Vec<_> = (0..carriers.len()).filter(|&map| carriers[map]).collect();
        assert_eq!(found, [1, 2, 4, 5]);
    }

    #[test]
    fn what_lives_long_and_is_dear_and_small_has_a_high_score() {
        let problem = shortcut_problem();
        let lab = Lab::new(&problem, Policy::Retain, Prefetch::AsRoomPermits);
        // F0 F1 F2 F3 F4 B4 B3 B2 B1 B0: map 2 lives from F1 to B1, map 4 from F3 to B4, and each takes two functions
        // of 2 seconds from the nearest maps.
        assert_eq!(map_lifetimes(&problem.net), [9, 0, 7, 0, 2, 0]);
        let maps = [2, 4].map(MapId::from_index);
        assert_eq!(map_scores(&lab, &maps), [7.0 * 4.0 / 256.0, 2.0 * 4.0 / 256.0]);
        assert_eq!(Candidates::Articulation.candidates_among(&lab, &maps), [true, true]);
        assert_eq!(Candidates::Scored.candidates_among(&lab, &maps), [true, false]);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 8.0].into_iter()), 3.0);
        assert_eq!(median([5.0].into_iter()), 5.0);
        assert_eq!(median(std::iter::empty()), f64::INFINITY);
    }
}
