//! Fits the growth of a value with the size: a straight line through the logarithms.

use super::summary::Interval;
use super::{count, student_quantile};

/// `value = factor * size ^ exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerFit {
    /// The slope of the line.
    pub exponent: f64,
    /// The 95 % confidence interval of the slope, assuming normal deviations of the logarithms from the line. `None`
    /// for two points, which always lie on a line.
    pub exponent_interval: Option<Interval>,
    /// The value at size 1.
    pub factor: f64,
    /// The share of the variance that the line explains, 0 to 1.
    pub r_squared: f64,
    /// The number of fitted points.
    pub points: usize,
}

impl PowerFit {
    /// The value of the fit at a size.
    #[must_use]
    pub fn value_at(&self, size: f64) -> f64 {
        self.factor * size.powf(self.exponent)
    }
}

/// Fits a power law to points `(size, value)` by least squares on the logarithms. Points that are not positive are
/// ignored; `None` unless two different sizes remain.
#[must_use]
pub fn fit_power(points: &[(f64, f64)]) -> Option<PowerFit> {
    let logs: Vec<(f64, f64)> =
        points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0).map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = count(logs.len());
    let mean_x = logs.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = logs.iter().map(|p| p.1).sum::<f64>() / n;
    let sum = |f: fn(f64, f64) -> f64| logs.iter().map(|p| f(p.0 - mean_x, p.1 - mean_y)).sum::<f64>();
    let (xx, xy, yy) = (sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y));
    // Equal sizes leave rounding errors, not an exact 0.
    if logs.len() < 2 || xx <= 1e-12 * n {
        return None;
    }
    let exponent = xy / xx;
    let r_squared = if yy <= 1e-24 { 1.0 } else { (xy * xy / (xx * yy)).clamp(0.0, 1.0) };
    let factor = (mean_y - exponent * mean_x).exp();
    let exponent_interval = slope_interval(exponent, (yy - exponent * xy).max(0.0), xx, logs.len());
    Some(PowerFit { exponent, exponent_interval, factor, r_squared, points: logs.len() })
}

/// The interval from `left`, the sum of the squared residuals.
fn slope_interval(slope: f64, left: f64, xx: f64, points: usize) -> Option<Interval> {
    let freedom = points.checked_sub(2).filter(|&freedom| freedom > 0)?;
    let reach = student_quantile(0.025, freedom) * (left / count(freedom) / xx).sqrt();
    Some(Interval { low: slope - reach, high: slope + reach })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_is_found_again() {
        let points: Vec<(f64, f64)> = [10.0, 100.0, 1e4].map(|n: f64| (n, 3.0 * n.powf(1.5))).to_vec();
        let fit = fit_power(&points).expect("three sizes");
        assert!((fit.exponent - 1.5).abs() < 1e-9 && (fit.factor - 3.0).abs() < 1e-9, "{fit:?}");
        assert!(fit.r_squared > 0.999_999 && fit.points == 3);
        assert!((fit.value_at(100.0) - 3000.0).abs() < 1e-6);
    }

    #[test]
    fn the_line_of_least_squares_by_hand() {
        // Logarithms (0, 0), (1, 0), (2, 3): slope 1.5, intercept -0.5, R^2 = 9 / (2 * 6).
        let e = std::f64::consts::E;
        let fit = fit_power(&[(1.0, 1.0), (e, 1.0), (e * e, e * e * e)]).expect("three sizes");
        assert!((fit.exponent - 1.5).abs() < 1e-12, "{fit:?}");
        assert!((fit.factor - (-0.5_f64).exp()).abs() < 1e-12, "{fit:?}");
        assert!((fit.r_squared - 0.75).abs() < 1e-12, "{fit:?}");
        // The residual sum is 1.5, with one degree of freedom: the error of the slope is sqrt(1.5 / 2).
        let interval = fit.exponent_interval.expect("three points");
        assert!((interval.high - 1.5 - 12.7062 * 0.75_f64.sqrt()).abs() < 1e-3, "{interval:?}");
        assert!((interval.low + interval.high - 3.0).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn two_points_have_a_slope_and_no_interval() {
        let fit = fit_power(&[(1.0, 1.0), (10.0, 100.0)]).expect("two sizes");
        assert!((fit.exponent - 2.0).abs() < 1e-12 && fit.exponent_interval.is_none(), "{fit:?}");
    }

    #[test]
    fn one_size_is_not_a_line() {
        assert_eq!(fit_power(&[]), None);
        assert_eq!(fit_power(&[(10.0, 1.0), (10.0, 2.0)]), None);
        assert_eq!(fit_power(&[(10.0, 1.0), (0.0, 2.0), (20.0, -1.0)]), None);
    }
}
