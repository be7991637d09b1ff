//! The effect of chance on times: how far they stray, and how rarely many stray in one direction.
//!
//! The model makes one assumption about the distribution of times. Without a change, a measurement is as likely to be
//! faster as slower, and varies as much as measurements that are known to have no change.

use crate::statistics::binomial_tail;

/// The accepted probability that a diff of equal sides reports a changed time, over all its cells and planners.
pub(super) const ERROR: f64 = 0.001;

/// Changes that chance caused, as logarithms of ratios without their signs.
#[derive(Debug, Default)]
pub(super) struct Strays {
    sorted: Vec<f64>,
    /// The number of independent values.
    independent: usize,
}

impl Strays {
    pub(super) fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().map(f64::abs).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let independent = sorted.len();
        Self { sorted, independent }
    }

    /// The same values, with only `independent` of them independent of each other.
    pub(super) fn with_independent(self, independent: usize) -> Self {
        Self { independent, ..self }
    }

    pub(super) const fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The share of values that reach `change` on one side of 0.
    fn share_reaching(&self, change: f64) -> f64 {
        let below = self.sorted.partition_point(|&stray| stray < change);
        share_of(self.sorted.len() - below, self.sorted.len().max(1)) / 2.0
    }

    /// The smallest share that this number of values can show.
    fn least_share(&self) -> f64 {
        share_of(1, self.independent + 1) / 2.0
    }

    /// The change that at most this share exceeds on one side of 0. If the share is too small for the number of values,
    /// the largest value.
    fn change_at_share(&self, share: f64) -> f64 {
        let exceeds = |&&stray: &&f64| self.share_reaching(stray) > share;
        self.sorted.iter().rev().find(exceeds).copied().unwrap_or(0.0)
    }
}

fn share_of(part: usize, all: usize) -> f64 {
    crate::statistics::count(part) / crate::statistics::count(all)
}

/// Measurements of one change, and the effect of chance on them.
pub(super) struct Evidence<'n> {
    /// Logarithms of ratios B over A, independent of each other.
    pub(super) changes: Vec<f64>,
    /// Strays of the cells under comparison, which may be noisier than the rest.
    pub(super) own: Strays,
    /// Strays of all cells.
    pub(super) all: &'n Strays,
}

impl Evidence<'_> {
    /// The change that at least `needed` measurements reach or exceed in one direction; 0 if fewer agree.
    pub(super) fn agreed_change(&self, needed: usize) -> f64 {
        let mut sorted = self.changes.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(below) = needed.checked_sub(1).filter(|_| needed <= sorted.len()) else { return 0.0 };
        let (up, down) = (sorted[sorted.len() - needed], sorted[below]);
        if up > 0.0 { up } else { down.min(0.0) }
    }

    /// The probability that this many measurements agree on a change this large by chance, in either direction.
    pub(super) fn chance_probability(&self, needed: usize) -> f64 {
        let change = self.agreed_change(needed).abs();
        if change == 0.0 {
            return 1.0;
        }
        let share =
            self.all.share_reaching(change).max(self.all.least_share()).max(self.own.share_reaching(change));
        chance_of_agreement(self.changes.len(), needed, share)
    }

    /// The change at which this many measurements agree by chance with this probability; `None` if there are too few
    /// measurements.
    pub(super) fn floor_change(&self, needed: usize, probability: f64) -> Option<f64> {
        let share = share_for(self.changes.len(), needed, probability);
        let known = self.all.least_share() <= share;
        known.then(|| self.all.change_at_share(share).max(self.own.change_at_share(share)))
    }
}

/// The probability that `needed` measurements agree, if this share of them reaches the change on either side.
fn chance_of_agreement(measurements: usize, needed: usize, share: f64) -> f64 {
    (2.0 * binomial_tail(measurements, needed, share)).min(1.0)
}

/// The largest share at which the chance is at most `probability`.
fn share_for(measurements: usize, needed: usize, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 0.5);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if chance_of_agreement(measurements, needed, middle) <= probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// How many turns of one cell must agree: nine of ten, so that a slow minute of the machine does not count as a change.
pub(super) const fn of_a_cell(turns: usize) -> usize {
    turns - turns / 10
}

/// How many measurements over a planner's cells must agree: two of three.
pub(super) const fn of_a_planner(measurements: usize) -> usize {
    (2 * measurements).div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_what_they_reach() {
        let strays = Strays::new([0.1, -0.2, 0.3, -0.4]);
        assert_eq!([0.25, 0.05, 0.5].map(|change| strays.share_reaching(change)), [0.25, 0.5, 0.0]);
        assert_eq!(strays.least_share(), 0.1);
        // A quarter exceeds 0.2: the values 0.3 and 0.4 on either side.
        assert_eq!((strays.change_at_share(0.25), strays.change_at_share(0.01)), (0.2, 0.4));
        assert_eq!(Strays::default().change_at_share(0.1), 0.0);
    }

    #[test]
    fn what_enough_agree_on_is_the_least_of_them() {
        let all = Strays::new([0.01; 100]);
        let of = |changes: &[f64]| Evidence { changes: changes.to_vec(), own: Strays::default(), all: &all };
        assert_eq!(of(&[0.2, 0.1, -0.3]).agreed_change(2), 0.1);
        assert_eq!(of(&[-0.2, -0.1, -0.3]).agreed_change(3), -0.1);
        assert_eq!(of(&[0.2, -0.1, 0.3]).agreed_change(3), 0.0);
        assert_eq!(of(&[0.2]).agreed_change(2), 0.0);
        let five = of(&[0.2; 5]);
        assert!(five.chance_probability(5) < 1e-10 && of(&[0.005; 5]).chance_probability(5) > 0.05);
        assert_eq!(five.floor_change(5, 1e-4), Some(0.01));
        assert_eq!(of(&[0.2]).floor_change(1, 1e-4), None, "one measurement cannot tell");
    }

    #[test]
    fn so_many_have_to_agree() {
        assert_eq!([1, 5, 10, 20].map(of_a_cell), [1, 5, 9, 18]);
        assert_eq!([1, 3, 5, 8, 40].map(of_a_planner), [1, 2, 4, 6, 27]);
    }
}
