//! Student's distribution: the deviation of a mean of few values by chance.
//!
//! # References
//!
//! 1. M. Abramowitz, I. A. Stegun: Handbook of Mathematical Functions (1964), 26.7: the finite series for whole
//!    degrees of freedom.

use super::count;

/// More degrees of freedom do not change any displayed digit.
const MOST: usize = 400;

/// The number of standard errors that is exceeded with probability `tail` on one side, with `freedom` degrees of
/// freedom.
///
/// `tail` lies between 0 and one half; a `freedom` of 0 counts as 1.
///
/// ```
/// use planlab_results::statistics::student_quantile;
/// assert!((student_quantile(0.025, 8) - 2.306).abs() < 1e-3);
/// ```
#[must_use]
pub fn student_quantile(tail: f64, freedom: usize) -> f64 {
    let freedom = freedom.clamp(1, MOST);
    let tail = tail.clamp(1e-12, 0.5);
    let exceeds = |t: f64| (1.0 - share_within(t, freedom)) / 2.0 > tail;
    let mut high = 1.0;
    while exceeds(high) {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if exceeds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The share of the distribution within `t` of 0: a series in the angle whose tangent is `t / sqrt(freedom)`.
fn share_within(t: f64, freedom: usize) -> f64 {
    let angle = (t / count(freedom).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = (if is_odd { cos } else { 1.0 }, 0.0);
    for i in 1..=freedom / 2 {
        sum += term;
        let twice = 2.0 * count(i);
        let ratio = if is_odd { twice / (twice + 1.0) } else { (twice - 1.0) / twice };
        term *= ratio * cos * cos;
    }
    if is_odd { (angle + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_tables() {
        let known = [
            (0.025, 1, 12.7062),
            (0.025, 2, 4.302_65),
            (0.025, 8, 2.306),
            (0.025, 30, 2.042_27),
            (0.005, 5, 4.032_14),
            (0.000_5, 10, 4.586_89),
        ];
        for (tail, freedom, expected) in known {
            let found = student_quantile(tail, freedom);
            assert!((found - expected).abs() < 2e-4, "{tail} {freedom}: {found}");
        }
    }

    #[test]
    fn many_degrees_are_nearly_normal_and_extremes_are_finite() {
        assert!((student_quantile(0.025, 100_000) - 1.96).abs() < 0.01);
        assert!(student_quantile(0.0, 0).is_finite());
        assert!(student_quantile(0.5, 3).abs() < 1e-6);
    }
}
