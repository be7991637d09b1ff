//! Tests whether one planner is better than another on the same instances.
//!
//! # References
//!
//! 1. F. Wilcoxon: Individual comparisons by ranking methods. Biometrics Bulletin 1 (1945).
//!    DOI 10.2307/3001968.
//! 2. S. Holm: A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics
//!    6 (1979).

use super::count;

/// Above this many pairs the normal approximation is used.
const EXACT: usize = 50;

/// The probability of differences at least this unequal if neither side is better: the two-sided signed-rank test of paired
/// differences (`a - b` for each instance). Differences of 0 are ignored; equal ones share the mean of
/// their ranks. Exact up to 50 pairs, ties included; beyond that, the normal distribution with corrections for ties and
/// continuity.
#[must_use]
pub fn wilcoxon_probability(differences: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    sorted.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let doubled = doubled_ranks(&sorted);
    let sum = |keep: fn(f64) -> bool| -> usize {
        doubled.iter().zip(&sorted).filter(|(_, d)| keep(**d)).map(|(rank, _)| *rank).sum()
    };
    let least = sum(|d| d > 0.0).min(sum(|d| d < 0.0));
    if sorted.len() <= EXACT {
        exact_probability(&doubled, least)
    } else {
        normal_probability(&doubled, least)
    }
}

/// Twice the rank of each value of a list sorted by size: whole numbers, ties included.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for group in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        // The ranks are before + 1 ..= before + k; twice their mean is 2 * before + k + 1.
        let rank = 2 * ranks.len() + group.len() + 1;
        ranks.extend(std::iter::repeat_n(rank, group.len()));
    }
    ranks
}

/// The share of all choices of signs for which the smaller sum is at most `least`.
fn exact_probability(doubled: &[usize], least: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    let mut share = vec![0.0; total + 1];
    share[0] = 1.0;
    for &rank in doubled {
        for sum in (0..=total).rev() {
            let with = if sum >= rank { share[sum - rank] } else { 0.0 };
            share[sum] = (share[sum] + with) / 2.0;
        }
    }
    let tail: f64 = share[..=least].iter().sum();
    (2.0 * tail).min(1.0)
}

fn normal_probability(doubled: &[usize], least: usize) -> f64 {
    let mean = count(doubled.iter().sum::<usize>()) / 4.0;
    // The variance of a sum of independent signs: a quarter of the squared ranks, which already include ties.
    let variance = doubled.iter().map(|&rank| (count(rank) / 2.0).powi(2)).sum::<f64>() / 4.0;
    let z = (mean - count(least) / 2.0 - 0.5).max(0.0) / variance.sqrt();
    complementary_error(z / std::f64::consts::SQRT_2).min(1.0)
}

/// The complementary error function for `x >= 0`: a series below 2, a continued fraction above.
fn complementary_error(x: f64) -> f64 {
    if x < 2.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            let n = f64::from(n);
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return 1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let fraction = (1..=80).rev().fold(x, |tail, k| x + f64::from(k) / 2.0 / tail);
    (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / fraction
}

/// Holm's adjusted probabilities, in the given order: reject those below the level of the whole family.
#[must_use]
pub fn holm_adjustment(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    let mut adjusted = vec![0.0; probabilities.len()];
    let mut least = 0.0_f64;
    for (rank, &at) in order.iter().enumerate() {
        least = least.max((probabilities[at] * count(probabilities.len() - rank)).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples_are_exact() {
        // All of n positive: 2 of 2^n choices of signs are as extreme.
        for (n, expected) in [(1, 1.0), (5, 0.0625), (6, 0.031_25)] {
            let differences: Vec<f64> = (1..=n).map(f64::from).collect();
            let p = wilcoxon_probability(&differences);
            assert!((p - expected).abs() < 1e-12, "{n}: {p}");
        }
        // Ranks 1 and 2 negative: sums up to 3 are {}, {1}, {2}, {3}, {1,2}: 2 * 5 / 2^5.
        let p = wilcoxon_probability(&[-1.0, -2.0, 3.0, 4.0, 5.0]);
        assert!((p - 0.3125).abs() < 1e-12, "{p}");
    }

    #[test]
    fn ties_share_their_rank_and_zeros_are_left_out() {
        let p = wilcoxon_probability(&[0.0, 1.0, -1.0, 2.0]);
        // Sums of {1.5, 1.5, 3} up to 1.5: {}, two of {1.5}: 2 * 3 / 8.
        assert!((p - 0.75).abs() < 1e-12, "{p}");
        assert_eq!(wilcoxon_probability(&[0.0, 0.0]), 1.0);
    }

    #[test]
    fn large_samples_agree_with_the_exact_distribution() {
        let differences: Vec<f64> =
            (1..=50).map(|i| if i % 3 == 0 { -f64::from(i) } else { f64::from(i) }).collect();
        let exact_p = wilcoxon_probability(&differences);
        let ranks: Vec<usize> = (1..=50).map(|rank| 2 * rank).collect();
        let negative: usize = (1..=50).filter(|i| i % 3 == 0).map(|i| 2 * i).sum();
        let normal_p = normal_probability(&ranks, negative);
        assert!((exact_p - normal_p).abs() < 2e-3, "{exact_p} {normal_p}");
    }

    #[test]
    fn the_error_function_at_known_points() {
        let known = [
            (0.0, 1.0),
            (0.5, 0.479_500_122),
            (1.0, 0.157_299_207),
            (2.0, 0.004_677_735),
            (3.0, 2.209_05e-5),
        ];
        for (x, expected) in known {
            assert!((complementary_error(x) - expected).abs() < 1e-8, "{x}: {}", complementary_error(x));
        }
    }

    #[test]
    fn holm_by_hand() {
        let adjusted = holm_adjustment(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm_adjustment(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
