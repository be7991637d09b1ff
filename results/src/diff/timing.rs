//! The times of a cell on both sides.

use super::DiffOptions;
use super::change::{Sides, Verdict};
use super::pairs::Pair;
use crate::record::{Lane, Record};
use crate::statistics::{Interval, bootstrap_ratio, count, median, median_error, spread, student_quantile};

/// So many values make a spread that is worth something.
const ENOUGH: usize = 3;
/// How often all cells of a diff together may be taken for changed by chance.
const ERROR: f64 = 0.05;
const LEVEL: f64 = 0.95;
const RESAMPLES: usize = 1000;

/// How the time of a cell changed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimeChange {
    /// The median of all samples, nanoseconds.
    pub median_ns: Sides<f64>,
    /// How many samples there are.
    pub samples: Sides<usize>,
    /// In how many repetitions, each a process of its own.
    pub repetitions: Sides<usize>,
    /// The median of B over that of A.
    pub ratio: f64,
    /// The 95 % bootstrap interval of the ratio.
    pub interval: Option<Interval>,
    /// Ratios up to 1 plus this, or down to 1 over it, are what the spread of the samples makes by chance. `None`
    /// where there are too few samples to tell.
    pub noise: Option<f64>,
    /// What it comes to.
    pub verdict: Verdict,
}

/// The samples of a cell, by repetition, in nanoseconds; no side is empty.
pub(super) struct Samples {
    groups: Sides<Vec<Vec<f64>>>,
}

impl Samples {
    /// The samples of runs that were alone and have an answer. `None` where a side has none, and where the time
    /// limit ended the run on both sides: such times are the limit's.
    pub(super) fn of(pair: &Pair<'_>) -> Option<Self> {
        if [&pair.a, &pair.b].iter().all(|rows| rows.iter().all(|row| row.is_cut())) {
            return None;
        }
        let groups = Sides { a: groups(&pair.a), b: groups(&pair.b) };
        (!groups.a.is_empty() && !groups.b.is_empty()).then_some(Self { groups })
    }

    /// The logarithms of what is taken for independent: the medians of repetitions where either side has enough of
    /// those, else all samples.
    fn logs(&self) -> Sides<Vec<f64>> {
        let by_repetition = self.groups.a.len() >= ENOUGH && self.groups.b.len() >= ENOUGH;
        let logs = |groups: &Vec<Vec<f64>>| -> Vec<f64> {
            let values: Vec<f64> = if by_repetition {
                groups.iter().filter_map(|group| median(group)).collect()
            } else {
                groups.concat()
            };
            values.iter().map(|value| value.ln()).collect()
        };
        Sides { a: logs(&self.groups.a), b: logs(&self.groups.b) }
    }

    fn spread(&self) -> Option<f64> {
        let logs = self.logs();
        let enough = logs.a.len() >= ENOUGH && logs.b.len() >= ENOUGH;
        if enough { spread(&[&logs.a, &logs.b]) } else { None }
    }

    /// How the time changed, judged by the noise of all cells.
    pub(super) fn change(&self, noise: &Noise, options: &DiffOptions) -> TimeChange {
        let middle = |groups: &Vec<Vec<f64>>| median(&groups.concat()).unwrap_or(1.0);
        let median_ns = Sides { a: middle(&self.groups.a), b: middle(&self.groups.b) };
        let ratio = median_ns.b / median_ns.a;
        let interval = bootstrap_ratio(&self.groups.a, &self.groups.b, LEVEL, RESAMPLES, 1);
        let noise = noise.floor(self);
        let samples = |groups: &Vec<Vec<f64>>| groups.iter().map(Vec::len).sum();
        TimeChange {
            median_ns,
            samples: Sides { a: samples(&self.groups.a), b: samples(&self.groups.b) },
            repetitions: Sides { a: self.groups.a.len(), b: self.groups.b.len() },
            ratio,
            interval,
            noise,
            verdict: match verdict(ratio, interval, noise, options.threshold) {
                Verdict::Better | Verdict::Worse if !options.judge_times => Verdict::Undecided,
                verdict => verdict,
            },
        }
    }
}

fn groups(rows: &[&Record]) -> Vec<Vec<f64>> {
    let counts = |row: &&&Record| row.lane == Lane::Timing && row.status.is_answer();
    let samples = |row: &&Record| -> Vec<f64> {
        // No time is 0: its logarithm is taken.
        row.samples_ns.iter().map(|&ns| crate::statistics::real(ns).max(1.0)).collect()
    };
    rows.iter().filter(counts).map(samples).filter(|samples| !samples.is_empty()).collect()
}

fn verdict(ratio: f64, interval: Option<Interval>, noise: Option<f64>, threshold: f64) -> Verdict {
    let factor = ratio.max(1.0 / ratio);
    if factor <= 1.0 + threshold {
        return Verdict::Same;
    }
    let Some(noise) = noise else { return Verdict::Undecided };
    let holds_one = interval.is_none_or(|interval| interval.low <= 1.0 && interval.high >= 1.0);
    match factor > 1.0 + noise && !holds_one {
        true if ratio > 1.0 => Verdict::Worse,
        true => Verdict::Better,
        false => Verdict::Same,
    }
}

/// The noise of all cells of a diff.
pub(super) struct Noise {
    /// The median spread of logarithms; 0 where no cell has one.
    typical: f64,
    /// How many cells are judged.
    cells: usize,
}

impl Noise {
    pub(super) fn new<'s>(all: impl Iterator<Item = &'s Samples>) -> Self {
        let spreads: Vec<f64> = all.filter_map(Samples::spread).collect();
        Self { typical: median(&spreads).unwrap_or(0.0), cells: spreads.len().max(1) }
    }

    /// The change that chance alone may make.
    fn floor(&self, samples: &Samples) -> Option<f64> {
        let spread = samples.spread()?.max(self.typical);
        let logs = samples.logs();
        let error = median_error(spread, logs.a.len()).hypot(median_error(spread, logs.b.len()));
        let reach = student_quantile(ERROR / 2.0 / count(self.cells), logs.a.len() + logs.b.len() - 2);
        Some((reach * error).exp_m1())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(a: &[&[f64]], b: &[&[f64]]) -> Samples {
        let side = |groups: &[&[f64]]| groups.iter().map(|group| group.to_vec()).collect();
        Samples { groups: Sides { a: side(a), b: side(b) } }
    }

    fn judged(samples: &Samples) -> TimeChange {
        samples.change(&Noise::new([samples].into_iter()), &DiffOptions::default())
    }

    #[test]
    fn a_change_beyond_threshold_and_noise_counts() {
        let quiet = [99.0, 100.0, 101.0, 100.5, 99.5];
        let slow = quiet.map(|time| 1.2 * time);
        let change = judged(&samples(&[&quiet], &[&slow]));
        assert_eq!(change.verdict, Verdict::Worse, "{change:?}");
        assert!((change.ratio - 1.2).abs() < 1e-9 && change.noise.is_some_and(|noise| noise < 0.05));
        assert_eq!(judged(&samples(&[&slow], &[&quiet])).verdict, Verdict::Better);
        assert_eq!(judged(&samples(&[&quiet], &[&quiet])).verdict, Verdict::Same);
        let little = quiet.map(|time| 1.04 * time);
        assert_eq!(judged(&samples(&[&quiet], &[&little])).verdict, Verdict::Same, "below the threshold");
    }

    #[test]
    fn what_the_spread_makes_is_noise() {
        let loud = [60.0, 140.0, 100.0, 75.0, 130.0];
        let change = judged(&samples(&[&loud], &[&loud.map(|time| 1.2 * time)]));
        assert_eq!(change.verdict, Verdict::Same, "{change:?}");
        assert!(change.noise.is_some_and(|noise| noise > 0.3), "{change:?}");
    }

    #[test]
    fn repetitions_count_where_there_are_enough() {
        // Within a process nothing moves; between processes everything does.
        let process = |time: f64| [time; 5];
        let a = [80.0, 120.0, 100.0].map(process);
        let b = [96.0, 144.0, 120.0].map(process);
        let side = |processes: &[[f64; 5]; 3]| processes.iter().map(|p| p.to_vec()).collect();
        let change = judged(&Samples { groups: Sides { a: side(&a), b: side(&b) } });
        assert_eq!(change.verdict, Verdict::Same, "{change:?}");
        assert_eq!((change.samples.a, change.repetitions.b), (15, 3));
    }

    #[test]
    fn one_sample_is_too_few_to_judge() {
        let change = judged(&samples(&[&[100.0]], &[&[200.0]]));
        assert_eq!((change.verdict, change.noise), (Verdict::Undecided, None));
        assert_eq!(judged(&samples(&[&[100.0]], &[&[101.0]])).verdict, Verdict::Same);
    }

    #[test]
    fn a_cell_that_is_quiet_by_chance_has_the_noise_of_the_others() {
        let loud = samples(&[&[90.0, 100.0, 110.0]], &[&[90.0, 100.0, 110.0]]);
        let quiet = samples(&[&[100.0, 100.0, 100.0]], &[&[108.0, 108.0, 108.0]]);
        let options = DiffOptions::default();
        let alone = Noise::new([&quiet].into_iter());
        assert_eq!(quiet.change(&alone, &options).verdict, Verdict::Worse);
        let together = Noise::new([&loud, &loud, &quiet].into_iter());
        assert_eq!(quiet.change(&together, &options).verdict, Verdict::Same);
    }
}
