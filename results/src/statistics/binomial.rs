//! The probability of a number of successes by chance alone.

use super::count;

/// The probability of at least `least` successes in `trials` independent trials, each with success probability `share`.
///
/// ```
/// use planlab_results::statistics::binomial_tail;
/// assert!((binomial_tail(4, 3, 0.5) - 5.0 / 16.0).abs() < 1e-12);
/// ```
#[must_use]
pub fn binomial_tail(trials: usize, least: usize, share: f64) -> f64 {
    if least == 0 || share >= 1.0 {
        return 1.0;
    }
    if least > trials || share <= 0.0 {
        return 0.0;
    }
    // Logarithms avoid underflow of the powers of a small share.
    let (hit, miss) = (share.ln(), (-share).ln_1p());
    let (mut choices, mut sum) = (0.0, 0.0);
    for successes in 0..=trials {
        if successes > 0 {
            choices += (count(trials - successes + 1) / count(successes)).ln();
        }
        if successes >= least {
            sum += (choices + count(successes) * hit + count(trials - successes) * miss).exp();
        }
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_by_hand() {
        for (trials, least, share, expected) in [
            (3, 0, 0.2, 1.0),
            (3, 4, 0.2, 0.0),
            (3, 3, 0.2, 0.008),
            (3, 2, 0.2, 0.104),
            (5, 1, 0.0, 0.0),
            (5, 5, 1.0, 1.0),
        ] {
            let found = binomial_tail(trials, least, share);
            assert!((found - expected).abs() < 1e-12, "{trials} {least} {share}: {found}");
        }
    }

    #[test]
    fn many_trials_stay_in_range() {
        let half = binomial_tail(4001, 2001, 0.5);
        assert!((half - 0.5).abs() < 1e-9, "{half}");
        // By exact fractions: e^-335.3146293886624.
        let rare = binomial_tail(400, 200, 0.05);
        assert!((rare.ln() + 335.314_629_388_662_4).abs() < 1e-9, "{rare}");
    }
}
