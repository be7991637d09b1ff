//! How far values lie from the middle of their group.

use super::{count, median};

/// Makes the median deviation of normal values their standard deviation.
const NORMAL: f64 = 1.4826;

/// The spread of values about the medians of their groups: the median absolute deviation over all groups, scaled so
/// that it is the standard deviation where the values are normal. Few outliers do not move it. In a group of odd size the
/// median's deviation from itself says nothing and is left out. `None` without two deviations.
///
/// ```
/// use planlab_results::statistics::spread;
/// let spread = spread(&[&[1.0, 2.0, 3.0, 4.0, 100.0]]).expect("five values");
/// assert!((spread - 1.4826 * 1.5).abs() < 1e-12);
/// ```
#[must_use]
pub fn spread(groups: &[&[f64]]) -> Option<f64> {
    let mut deviations = Vec::new();
    for group in groups {
        let Some(middle) = median(group) else { continue };
        let mut own: Vec<f64> = group.iter().map(|value| (value - middle).abs()).collect();
        own.sort_unstable_by(f64::total_cmp);
        deviations.extend(own.into_iter().skip(group.len() % 2));
    }
    if deviations.len() < 2 {
        return None;
    }
    median(&deviations).map(|deviation| NORMAL * deviation)
}

/// The standard error of the median of so many values with this spread.
#[must_use]
pub fn median_error(spread: f64, values: usize) -> f64 {
    // A median of many normal values strays sqrt(pi / 2) times as far as their mean; of two it is the mean.
    let factor = if values > 2 { std::f64::consts::FRAC_PI_2.sqrt() } else { 1.0 };
    factor * spread / count(values.max(1)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_centred_by_themselves() {
        // Deviations 1, 1 of either group: their middles, 5 and 50, are far apart.
        let found = spread(&[&[4.0, 5.0, 6.0], &[49.0, 50.0, 51.0]]).expect("four deviations");
        assert!((found - NORMAL).abs() < 1e-12, "{found}");
        assert_eq!(spread(&[&[1.0], &[2.0]]), None, "one value has no spread");
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[&[3.0, 3.0]]), Some(0.0));
    }

    #[test]
    fn errors_shrink_with_the_root_of_the_number() {
        assert!((median_error(1.0, 400) - 0.062_666).abs() < 1e-5);
        assert_eq!(median_error(1.0, 1), 1.0);
        assert_eq!(median_error(1.0, 0), 1.0);
    }
}
