//! The seconds that a module spends on recomputation, by the share of its activations that it discards.
//!
//! Activations are discarded in the order of their seconds per byte, cheapest first. The share of the seconds as a
//! function of the share of the bytes is then convex and piecewise linear: the largest of some lines.

use crate::schedule::knapsack::activations::{Activation, total_bytes};

/// A line of a convex curve from (0, 0) to (1, 1): the share of the seconds is at least `slope * share + intercept`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveLine {
    /// The seconds of the next bytes, in shares of all seconds and bytes.
    pub slope: f64,
    /// The value at 0.
    pub intercept: f64,
}

/// The lines of the curve of some activations; no lines if recomputing them takes no time.
pub(super) fn trade_off_lines(activations: &[Activation]) -> Vec<CurveLine> {
    let seconds: f64 = activations.iter().map(|activation| activation.seconds).sum();
    let bytes = total_bytes(activations) as f64;
    if seconds <= 0.0 {
        return Vec::new();
    }
    let shares =
        |activation: &Activation| (activation.bytes.get() as f64 / bytes, activation.seconds / seconds);
    let mut steps: Vec<(f64, f64)> = activations.iter().map(shares).collect();
    steps.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    let mut lines: Vec<CurveLine> = Vec::new();
    let (mut discarded, mut spent) = (0.0, 0.0);
    for (bytes, seconds) in steps {
        let slope = seconds / bytes;
        if lines.last().is_none_or(|line| slope > line.slope) {
            lines.push(CurveLine { slope, intercept: spent - slope * discarded });
        }
        discarded += bytes;
        spent += seconds;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::knapsack::testing::activations;

    #[test]
    fn cheapest_bytes_are_discarded_first() {
        // Seconds per byte: 3, 1 and 1.
        let lines = trade_off_lines(&activations(&[(2, 6.0), (1, 1.0), (1, 1.0)]));
        let expected = [(0.5, 0.0), (1.5, -0.5)].map(|(slope, intercept)| CurveLine { slope, intercept });
        assert_eq!(lines, expected);
        assert!(trade_off_lines(&activations(&[(2, 0.0)])).is_empty());
        assert!(trade_off_lines(&[]).is_empty());
    }
}
