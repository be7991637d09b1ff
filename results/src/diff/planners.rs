//! What changed over all cells of a planner.

use std::collections::BTreeMap;

use super::DiffOptions;
use super::change::{Change, Sides, Verdict};
use super::timing::TimeChange;
use crate::statistics::{Interval, bootstrap, count, holm, real, shifted_geometric_mean, wilcoxon};

/// A change is taken for real below this probability, adjusted for the number of planners.
const LEVEL: f64 = 0.05;
/// 1 ms in nanoseconds: times far below it say little of a planner.
const SHIFT_NS: f64 = 1e6;

/// The ratios of one figure over the cells of a planner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Cells with a figure on both sides.
    pub cells: usize,
    /// Those of them that the ratios, the interval and the test are over: a height that a limit cut and nobody
    /// repeated says nothing.
    pub settled: usize,
    /// Cells that are better by themselves.
    pub better: usize,
    /// Cells that are worse by themselves.
    pub worse: usize,
    /// Cells whose change may be chance.
    pub undecided: usize,
    /// The geometric mean of the ratios B over A.
    pub ratio: Option<f64>,
    /// The same with 1 ms added to either time, so that short ones count less; of heights it is the ratio.
    pub shifted_ratio: Option<f64>,
    /// The 95 % bootstrap interval of the ratio over cells.
    pub interval: Option<Interval>,
    /// How likely ratios at least so one-sided are by chance: signed-rank test, adjusted by Holm over planners.
    pub p: Option<f64>,
    /// What it comes to.
    pub verdict: Verdict,
}

/// What changed over all cells of a planner.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannerChange {
    /// The planner with its parameters.
    pub label: String,
    /// Cells that both sides have.
    pub cells: usize,
    /// Its times.
    pub times: Summary,
    /// Its heights; cells that were asked for a capacity have none.
    pub heights: Summary,
    /// Cells whose status is better.
    pub status_better: usize,
    /// Cells whose status is worse.
    pub status_worse: usize,
    /// Cells in which one side proves what a plan of the other refutes.
    pub contradictions: usize,
}

impl PlannerChange {
    /// Whether its times or its heights are worse over all cells.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        [self.times.verdict, self.heights.verdict].contains(&Verdict::Worse)
    }
}

/// A figure of a cell on both sides.
#[derive(Clone, Copy)]
struct Figure {
    a: f64,
    b: f64,
    verdict: Verdict,
    is_settled: bool,
}

type Figures = Vec<Figure>;

pub(super) fn summarize(changes: &[Change], options: &DiffOptions) -> Vec<PlannerChange> {
    let mut by_planner: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    for change in changes {
        by_planner.entry(&change.cell.label).or_default().push(change);
    }
    let figures = |figures: fn(&[&Change]) -> Figures| -> Vec<Figures> {
        by_planner.values().map(|all| figures(all)).collect()
    };
    let threshold = if options.judge_times { Some(options.threshold) } else { None };
    let times = summaries(&figures(times), SHIFT_NS, threshold);
    // Settled heights are not higher by chance over many cells of one planner: any mean above 1 counts.
    let heights = summaries(&figures(heights), 0.0, Some(0.0));
    let statuses = |all: &[&Change], verdict| all.iter().filter(|c| c.status_verdict == verdict).count();
    by_planner
        .iter()
        .zip(times.into_iter().zip(heights))
        .map(|((label, all), (times, heights))| PlannerChange {
            label: (*label).to_owned(),
            cells: all.len(),
            times,
            heights,
            status_better: statuses(all, Verdict::Better),
            status_worse: statuses(all, Verdict::Worse),
            contradictions: statuses(all, Verdict::Contradiction),
        })
        .collect()
}

fn times(changes: &[&Change]) -> Figures {
    let times = changes.iter().filter_map(|change| change.time);
    let figure = |time: TimeChange| {
        let Sides { a, b } = time.median_ns;
        Figure { a, b, verdict: time.verdict, is_settled: true }
    };
    times.map(figure).collect()
}

fn heights(changes: &[&Change]) -> Figures {
    let figures = changes.iter().filter_map(|change| {
        let (a, b) = (change.height.a?, change.height.b?);
        let asked = change.cell.target_bytes.is_some();
        let (verdict, is_settled) = (change.height_verdict, change.is_height_settled);
        (a > 0 && b > 0 && !asked).then(|| Figure { a: real(a), b: real(b), verdict, is_settled })
    });
    figures.collect()
}

/// The summary of each planner; without a threshold nothing is judged.
fn summaries(figures: &[Figures], shift: f64, threshold: Option<f64>) -> Vec<Summary> {
    let of = |all: &Figures| settled(all).map(|figure| (figure.b / figure.a).ln()).collect();
    let logs: Vec<Vec<f64>> = figures.iter().map(of).collect();
    let tested: Vec<usize> = (0..logs.len()).filter(|&at| !logs[at].is_empty()).collect();
    let probabilities: Vec<f64> = tested.iter().map(|&at| wilcoxon(&logs[at]).p).collect();
    let mut adjusted = vec![None; logs.len()];
    for (&at, p) in tested.iter().zip(holm(&probabilities)) {
        adjusted[at] = Some(p);
    }
    let all = figures.iter().zip(logs.iter().zip(adjusted));
    all.map(|(figures, (logs, p))| summary(figures, logs, shift, p, threshold)).collect()
}

fn settled(figures: &[Figure]) -> impl Iterator<Item = &Figure> {
    figures.iter().filter(|figure| figure.is_settled)
}

fn summary(figures: &[Figure], logs: &[f64], shift: f64, p: Option<f64>, threshold: Option<f64>) -> Summary {
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / count(logs.len());
    let of = |verdict| figures.iter().filter(|figure| figure.verdict == verdict).count();
    let shifted = settled(figures).map(|Figure { a, b, .. }| Some((b + shift) / (a + shift)));
    let ratio = (!logs.is_empty()).then(|| mean(logs).exp());
    let interval = bootstrap(logs, mean, 0.95, 1000, 1);
    Summary {
        cells: figures.len(),
        settled: logs.len(),
        better: of(Verdict::Better),
        worse: of(Verdict::Worse),
        undecided: of(Verdict::Undecided),
        ratio,
        shifted_ratio: shifted_geometric_mean(shifted, 0.0).mean,
        interval: interval.map(|all| Interval { low: all.low.exp(), high: all.high.exp() }),
        p,
        verdict: match (ratio, p, threshold) {
            (Some(ratio), Some(p), Some(threshold)) if p < LEVEL => verdict(ratio, threshold),
            _ => Verdict::Same,
        },
    }
}

fn verdict(ratio: f64, threshold: f64) -> Verdict {
    if ratio > 1.0 + threshold {
        Verdict::Worse
    } else if ratio * (1.0 + threshold) < 1.0 {
        Verdict::Better
    } else {
        Verdict::Same
    }
}
