//! What chance alone makes of times: how far they stray, and how seldom many of them stray alike.
//!
//! One thing is assumed of how times are distributed: without a change, a measurement is as likely to come out faster
//! as slower, and varies as much as measurements that are known to have none.

use crate::statistics::binomial_tail;

/// How often a diff of equal sides may say that a time changed, in any of its cells or planners.
pub(super) const ERROR: f64 = 0.001;

/// Changes that chance made, without their signs: logarithms of ratios.
#[derive(Debug, Default)]
pub(super) struct Strays {
    sorted: Vec<f64>,
    /// How many of them are independent.
    independent: usize,
}

impl Strays {
    pub(super) fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().map(f64::abs).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let independent = sorted.len();
        Self { sorted, independent }
    }

    /// The same values, of which only `independent` are independent of each other.
    pub(super) fn with_independent(self, independent: usize) -> Self {
        Self { independent, ..self }
    }

    pub(super) const fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The share that reaches `change` on one side of 0.
    fn share(&self, change: f64) -> f64 {
        let below = self.sorted.partition_point(|&stray| stray < change);
        ratio(self.sorted.len() - below, self.sorted.len().max(1)) / 2.0
    }

    /// The least share that so few values can show.
    fn least_share(&self) -> f64 {
        ratio(1, self.independent + 1) / 2.0
    }

    /// What no more than this share exceeds on one side of 0; what none exceeded where the share is smaller than
    /// they can show.
    fn reach(&self, share: f64) -> f64 {
        let exceeds = |&&stray: &&f64| self.share(stray) > share;
        self.sorted.iter().rev().find(exceeds).copied().unwrap_or(0.0)
    }
}

fn ratio(part: usize, all: usize) -> f64 {
    crate::statistics::count(part) / crate::statistics::count(all)
}

/// Measurements of one change, and what chance makes of them.
pub(super) struct Evidence<'n> {
    /// Logarithms of ratios B over A, independent of each other.
    pub(super) changes: Vec<f64>,
    /// Strays of what is measured here: it may be noisier than the rest.
    pub(super) own: Strays,
    /// Strays of everything.
    pub(super) all: &'n Strays,
}

impl Evidence<'_> {
    /// The change that at least `needed` of the measurements reach or exceed in one direction; 0 where fewer agree.
    pub(super) fn agreed(&self, needed: usize) -> f64 {
        let mut sorted = self.changes.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(below) = needed.checked_sub(1).filter(|_| needed <= sorted.len()) else { return 0.0 };
        let (up, down) = (sorted[sorted.len() - needed], sorted[below]);
        if up > 0.0 { up } else { down.min(0.0) }
    }

    /// The probability that this many measurements agree on a change this large by chance, in either direction.
    pub(super) fn probability(&self, needed: usize) -> f64 {
        let change = self.agreed(needed).abs();
        if change == 0.0 {
            return 1.0;
        }
        let share = self.all.share(change).max(self.all.least_share()).max(self.own.share(change));
        chance(self.changes.len(), needed, share)
    }

    /// The change on which chance makes so many agree with this probability; `None` where there are too few
    /// measurements for it.
    pub(super) fn floor(&self, needed: usize, probability: f64) -> Option<f64> {
        let share = share_for(self.changes.len(), needed, probability);
        let known = self.all.least_share() <= share;
        known.then(|| self.all.reach(share).max(self.own.reach(share)))
    }
}

/// The probability that so many measurements agree, of which this share reaches the change on either side.
fn chance(measurements: usize, needed: usize, share: f64) -> f64 {
    (2.0 * binomial_tail(measurements, needed, share)).min(1.0)
}

/// The share by which the probability is reached.
fn share_for(measurements: usize, needed: usize, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 0.5);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if chance(measurements, needed, middle) <= probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// How many turns of one cell have to agree: nine of ten, so that a slow minute of the machine makes no change.
pub(super) const fn of_a_cell(turns: usize) -> usize {
    turns - turns / 10
}

/// How many measurements of a planner's cells have to agree: two of three.
pub(super) const fn of_a_planner(measurements: usize) -> usize {
    (2 * measurements).div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_what_they_reach() {
        let strays = Strays::new([0.1, -0.2, 0.3, -0.4]);
        assert_eq!((strays.share(0.25), strays.share(0.05), strays.share(0.5)), (0.25, 0.5, 0.0));
        assert_eq!(strays.least_share(), 0.1);
        // A quarter exceeds 0.2: the values 0.3 and 0.4 on either side.
        assert_eq!((strays.reach(0.25), strays.reach(0.01)), (0.2, 0.4));
        assert_eq!(Strays::default().reach(0.1), 0.0);
    }

    #[test]
    fn what_enough_agree_on_is_the_least_of_them() {
        let all = Strays::new([0.01; 100]);
        let of = |changes: &[f64]| Evidence { changes: changes.to_vec(), own: Strays::default(), all: &all };
        assert_eq!(of(&[0.2, 0.1, -0.3]).agreed(2), 0.1);
        assert_eq!(of(&[-0.2, -0.1, -0.3]).agreed(3), -0.1);
        assert_eq!(of(&[0.2, -0.1, 0.3]).agreed(3), 0.0);
        assert_eq!(of(&[0.2]).agreed(2), 0.0);
        let five = of(&[0.2; 5]);
        assert!(five.probability(5) < 1e-10 && of(&[0.005; 5]).probability(5) > 0.05);
        assert_eq!(five.floor(5, 1e-4), Some(0.01));
        assert_eq!(of(&[0.2]).floor(1, 1e-4), None, "one measurement cannot tell");
    }

    #[test]
    fn so_many_have_to_agree() {
        assert_eq!([1, 5, 10, 20].map(of_a_cell), [1, 5, 9, 18]);
        assert_eq!([1, 3, 5, 8, 40].map(of_a_planner), [1, 2, 4, 6, 27]);
    }
}
