//! Summarises many numbers in one: means, medians, penalised averages, intervals.

use super::{binomial_tail, count};

/// A shifted geometric mean, with the number of values that it lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShiftedMean {
    /// `exp(mean(ln(v + shift))) - shift`; `None` without values.
    pub mean: Option<f64>,
    /// The number of values.
    pub count: usize,
    /// The number of missing values.
    pub failures: usize,
}

/// The geometric mean of `v + shift`, less `shift`: the shift prevents values near 0 from dominating.
///
/// Values below `-shift` have no logarithm; they count as `-shift` plus the smallest positive number.
///
/// ```
/// use planlab_results::statistics::shifted_geometric_mean;
/// let mean = shifted_geometric_mean([Some(0.0), Some(3.0), None], 1.0);
/// assert_eq!((mean.mean, mean.count, mean.failures), (Some(1.0), 2, 1));
/// ```
#[must_use]
pub fn shifted_geometric_mean(values: impl IntoIterator<Item = Option<f64>>, shift: f64) -> ShiftedMean {
    let (mut sum, mut there, mut failures) = (0.0, 0, 0);
    for value in values {
        match value {
            Some(value) => {
                sum += (value + shift).max(f64::MIN_POSITIVE).ln();
                there += 1;
            }
            None => failures += 1,
        }
    }
    let mean = (there > 0).then(|| (sum / count(there)).exp() - shift);
    // Logarithm and power leave a rounding error if every value is 0.
    let mean = mean.map(|mean| if mean.abs() < shift * 1e-12 { 0.0 } else { mean });
    ShiftedMean { mean, count: there, failures }
}

/// The median; for an even number of values, the mean of the two in the middle.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    median_of(&mut values.to_vec())
}

/// The median; may reorder the values.
fn median_of(values: &mut [f64]) -> Option<f64> {
    let at = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let is_even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(at, f64::total_cmp);
    let upper = *upper;
    let lower = if is_even { below.iter().copied().max_by(f64::total_cmp) } else { None };
    Some(lower.unwrap_or(upper).midpoint(upper))
}

/// An interval with a confidence level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// An interval between two of the values that contains the median of their distribution with probability at least
/// `level`, for any distribution. It is the narrowest one with equal distance from both ends. `None` if there are too
/// few values: fewer than 6 for a `level` of 0.95.
///
/// ```
/// use planlab_results::statistics::median_interval;
/// let six = median_interval(&[6.0, 1.0, 4.0, 2.0, 5.0, 3.0], 0.95);
/// assert!(six.is_some_and(|interval| interval.low == 1.0 && interval.high == 6.0));
/// assert!(median_interval(&[1.0; 5], 0.95).is_none());
/// ```
///
/// # References
///
/// 1. W. R. Thompson: On confidence ranges for the median and other expectation distributions. Annals of Mathematical
///    Statistics 7 (1936). DOI 10.1214/aoms/1177732502.
#[must_use]
pub fn median_interval(values: &[f64], level: f64) -> Option<Interval> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // The median lies below the value of a rank only if all values from that rank on exceed the median.
    let misses = |rank: usize| 2.0 * binomial_tail(sorted.len(), sorted.len() - rank, 0.5);
    let rank = (0..sorted.len().div_ceil(2)).take_while(|&rank| misses(rank) <= 1.0 - level).last()?;
    Some(Interval { low: sorted[rank], high: sorted[sorted.len() - 1 - rank] })
}

/// The percentile bootstrap interval of `statistic` over instances, resampled with replacement. A generator seeded by
/// `seed` makes equal input give equal intervals. `None` without values.
///
/// `level` is the confidence, such as 0.95.
#[must_use]
pub fn bootstrap_interval(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    level: f64,
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    if values.is_empty() || resamples == 0 {
        return None;
    }
    let mut random = SplitMix(seed);
    let mut sample = vec![0.0; values.len()];
    let results = (0..resamples).map(|_| {
        sample.fill_with(|| values[random.next_below(values.len())]);
        statistic(&sample)
    });
    Some(middle_part(results.collect(), level))
}

/// The percentile bootstrap interval of `median(b) / median(a)`, for samples in groups (those of one process, say).
/// Groups are drawn with replacement, then samples within each, so that the interval includes differences between
/// groups. Equal input gives equal intervals. `None` if a side has no sample.
#[must_use]
pub fn bootstrap_ratio(
    a: &[Vec<f64>],
    b: &[Vec<f64>],
    level: f64,
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    let is_empty = |side: &[Vec<f64>]| side.iter().all(Vec::is_empty);
    if is_empty(a) || is_empty(b) || resamples == 0 {
        return None;
    }
    let mut random = SplitMix(seed);
    let mut sample = Vec::new();
    let mut one = |side: &[Vec<f64>]| {
        sample.clear();
        // Groups may be empty: then draw again.
        while sample.is_empty() {
            for _ in side {
                let group = &side[random.next_below(side.len())];
                sample.extend(group.iter().map(|_| group[random.next_below(group.len())]));
            }
        }
        median_of(&mut sample).unwrap_or_default()
    };
    let results = (0..resamples).map(|_| {
        let below = one(a);
        one(b) / below
    });
    Some(middle_part(results.collect(), level))
}

/// The middle interval of these results that contains the share `level` of them.
fn middle_part(mut results: Vec<f64>, level: f64) -> Interval {
    results.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    let end = |share| quantile(&results, share).unwrap_or_default();
    Interval { low: end(tail), high: end(1.0 - tail) }
}

/// The quantile of sorted values, interpolated linearly; `None` without values.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the slice's indices")]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = (share.clamp(0.0, 1.0) * count(last)).min(count(last));
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (at - at.floor()))
}

/// SplitMix64: good enough for resampling, and equal on every machine.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the product's high half is below the limit")]
    fn next_below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifted_means_by_hand() {
        // sqrt((2 + 2) * (14 + 2)) - 2 = 6
        let mean = shifted_geometric_mean([Some(2.0), Some(14.0)], 2.0).mean.expect("two values");
        assert!((mean - 6.0).abs() < 1e-12, "{mean}");
        assert_eq!(shifted_geometric_mean([Some(0.0); 3], 0.01).mean, Some(0.0));
        let plain = shifted_geometric_mean([1.0, 10.0, 100.0].map(Some), 0.0).mean.expect("three values");
        assert!((plain - 10.0).abs() < 1e-12, "{plain}");
        let nothing = ShiftedMean { mean: None, count: 0, failures: 2 };
        assert_eq!(shifted_geometric_mean([None, None], 0.01), nothing);
    }

    #[test]
    fn medians_by_hand() {
        let cases: [(&[f64], Option<f64>); 4] = [
            (&[], None),
            (&[7.0], Some(7.0)),
            (&[3.0, 1.0, 2.0], Some(2.0)),
            (&[4.0, 1.0, 3.0, 2.0], Some(2.5)),
        ];
        for (values, expected) in cases {
            assert_eq!(median(values), expected, "{values:?}");
        }
    }

    #[test]
    fn intervals_of_medians_have_the_ranks_of_the_tables() {
        // The ranks, from 1, for 95 % in published tables of the sign test.
        for (count, lower) in [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8), (40, 14)]
        {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let interval = median_interval(&values, 0.95).expect("enough values");
            let expected = (f64::from(lower), f64::from(count + 1 - lower));
            assert_eq!((interval.low, interval.high), expected, "{count}");
        }
        assert!((0..6).all(|count| median_interval(&vec![1.0; count], 0.95).is_none()));
    }

    #[test]
    fn a_bootstrap_interval_holds_the_mean_and_repeats() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let mean = |sample: &[f64]| sample.iter().sum::<f64>() / count(sample.len());
        let interval = bootstrap_interval(&values, mean, 0.95, 2000, 7).expect("values");
        // The standard error of the mean is 2.89; 1.96 of them on either side of 49.5.
        assert!((interval.low - 43.8).abs() < 0.6, "{interval:?}");
        assert!((interval.high - 55.2).abs() < 0.6, "{interval:?}");
        assert_eq!(bootstrap_interval(&values, mean, 0.95, 2000, 7), Some(interval));
        assert_eq!(
            bootstrap_interval(&[3.0, 3.0], mean, 0.95, 10, 1),
            Some(Interval { low: 3.0, high: 3.0 })
        );
        assert_eq!(bootstrap_interval(&[], mean, 0.95, 10, 1), None);
    }

    #[test]
    fn the_ratio_of_medians_has_an_interval_that_groups_widen() {
        let group = |middle: f64| (0..5_u32).map(|n| middle + f64::from(n) - 2.0).collect::<Vec<f64>>();
        let (a, b) = ([group(100.0)], [group(120.0)]);
        let narrow = bootstrap_ratio(&a, &b, 0.95, 1000, 3).expect("samples");
        assert!(
            narrow.low > 1.16 && narrow.low < 1.2 && narrow.high > 1.2 && narrow.high < 1.24,
            "{narrow:?}"
        );
        assert_eq!(bootstrap_ratio(&a, &b, 0.95, 1000, 3), Some(narrow));
        let apart: Vec<Vec<f64>> = [80.0, 100.0, 120.0].map(group).to_vec();
        let wide = bootstrap_ratio(&apart, &apart, 0.95, 1000, 3).expect("samples");
        assert!(wide.low < 0.9 && wide.high > 1.1, "{wide:?}");
        assert_eq!(bootstrap_ratio(&[vec![]], &b, 0.95, 1000, 3), None);
    }
}
