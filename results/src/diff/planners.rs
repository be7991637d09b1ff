//! Summarises the changes over all cells of a planner.

use std::collections::BTreeMap;

use super::chance::ERROR;
use super::change::Change;
use super::options::DiffOptions;
use super::timing::{PlannerEvidence, TimeChange, Times, judge_ratio};
use super::verdict::{Sides, Verdict};
use crate::rows::group_by;
use crate::statistics::{
    Interval, as_real, bootstrap_interval, count, holm_adjustment, shifted_geometric_mean,
    wilcoxon_probability,
};

/// A change of heights counts as real below this probability, adjusted for the number of planners.
const LEVEL: f64 = 0.05;
/// The same level for times, and for heights that depend on chance: half of the total error, as cells use the other
/// half.
const STRICT: f64 = ERROR / 2.0;
/// 1 ms in nanoseconds: times far below it reveal little about a planner.
const SHIFT_NS: f64 = 1e6;

/// The ratios of one figure over the cells of a planner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Cells with a figure on both sides.
    pub cells: usize,
    /// The cells behind the ratios, the interval and the test. Excludes heights that a limit cut short and nobody
    /// repeated.
    pub settled: usize,
    /// Cells that are better on their own.
    pub better: usize,
    /// Cells that are worse on their own.
    pub worse: usize,
    /// Cells whose change may be chance.
    pub undecided: usize,
    /// The geometric mean of the ratios B over A.
    pub ratio: Option<f64>,
    /// The same with 1 ms added to each time, so that short times count less; for heights it equals the ratio.
    pub shifted_ratio: Option<f64>,
    /// The 95 % bootstrap interval of the ratio over cells.
    pub interval: Option<Interval>,
    /// The probability of ratios at least this one-sided by chance, adjusted by Holm over the planners. Heights use the
    /// signed-rank test; times use how many measurements agree on a change of this size.
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The changes over all cells of a planner.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannerChange {
    /// The planner with its parameters.
    pub label: String,
    /// Cells that both sides have.
    pub cells: usize,
    /// Its times.
    pub times: Summary,
    /// Its heights; cells with a given capacity are left out.
    pub heights: Summary,
    /// Cells whose status is better.
    pub status_better: usize,
    /// Cells whose status is worse.
    pub status_worse: usize,
    /// Cells in which one side has a proof that a plan of the other refutes.
    pub contradictions: usize,
}

impl PlannerChange {
    /// Whether its times or heights are worse over all cells.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        [self.times.verdict, self.heights.verdict].contains(&Verdict::Worse)
    }
}

/// A figure of one cell on both sides.
#[derive(Clone, Copy)]
struct Figure {
    a: f64,
    b: f64,
    verdict: Verdict,
    is_settled: bool,
    /// Whether the same build gives the same figure again.
    is_certain: bool,
}

impl Figure {
    fn log_ratio(&self) -> f64 {
        (self.b / self.a).ln()
    }
}

type Figures = Vec<Figure>;

pub(super) fn summarize_planners(
    changes: &[Change],
    times: &Times<'_>,
    options: &DiffOptions,
) -> Vec<PlannerChange> {
    let by_planner = group_by(changes, |change| change.cell.label.as_str());
    let heights = height_summaries(&by_planner.values().map(|all| height_figures(all)).collect::<Vec<_>>());
    let times = time_summaries(&by_planner, times, options);
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

fn time_figures(changes: &[&Change]) -> Figures {
    let times = changes.iter().filter_map(|change| change.time);
    let figure = |time: TimeChange| {
        let Sides { a, b } = time.median_ns;
        Figure { a, b, verdict: time.verdict, is_settled: true, is_certain: false }
    };
    times.map(figure).collect()
}

fn height_figures(changes: &[&Change]) -> Figures {
    let figures = changes.iter().filter_map(|change| {
        let (a, b) = (change.height.a?, change.height.b?);
        let asked = change.cell.target_bytes.is_some();
        let (verdict, is_settled) = (change.height_verdict, change.is_height_settled);
        let (a, b, is_certain) = (as_real(a), as_real(b), change.is_height_certain);
        (a > 0.0 && b > 0.0 && !asked).then_some(Figure { a, b, verdict, is_settled, is_certain })
    });
    figures.collect()
}

fn height_summaries(figures: &[Figures]) -> Vec<Summary> {
    let probability = |all: &Figures| {
        let logs: Vec<f64> = settled_figures(all).map(Figure::log_ratio).collect();
        (!logs.is_empty()).then(|| wilcoxon_probability(&logs))
    };
    let adjusted = adjust_probabilities(figures.iter().map(probability).collect());
    let judged = figures.iter().zip(adjusted).map(|(figures, p)| {
        let summary = summarize_figures(figures, 0.0, p);
        let level = if settled_figures(figures).all(|figure| figure.is_certain) { LEVEL } else { STRICT };
        // Settled heights do not increase by chance over many cells of one planner, so any mean above 1 counts.
        let verdict =
            summary.ratio.filter(|_| p.is_some_and(|p| p < level)).map(|ratio| judge_ratio(ratio, 0.0));
        Summary { verdict: verdict.unwrap_or_default(), ..summary }
    });
    judged.collect()
}

fn time_summaries(
    by_planner: &BTreeMap<&str, Vec<&Change>>,
    times: &Times<'_>,
    options: &DiffOptions,
) -> Vec<Summary> {
    let evidence: Vec<Option<PlannerEvidence>> =
        by_planner.keys().map(|label| times.of_planner(label)).collect();
    let adjusted = adjust_probabilities(evidence.iter().map(|evidence| Some(evidence.as_ref()?.p)).collect());
    let all = by_planner.values().zip(evidence).zip(adjusted);
    let judged = all.map(|((changes, evidence), p)| {
        let summary = summarize_figures(&time_figures(changes), SHIFT_NS, p);
        let is_sure = options.judge_times && p.is_some_and(|p| p < STRICT);
        let verdict = evidence.filter(|_| is_sure).zip(summary.ratio).map(|(evidence, ratio)| {
            // Both the measured ratio and the ratio without the machine's share must exceed the threshold.
            let own = judge_ratio(evidence.ratio, options.threshold + evidence.allowance);
            if judge_ratio(ratio, options.threshold) == own { own } else { Verdict::Same }
        });
        Summary { verdict: verdict.unwrap_or_default(), ..summary }
    });
    judged.collect()
}

/// Holm's adjustment of the probabilities that exist.
fn adjust_probabilities(probabilities: Vec<Option<f64>>) -> Vec<Option<f64>> {
    let known: Vec<f64> = probabilities.iter().copied().flatten().collect();
    let mut adjusted = holm_adjustment(&known).into_iter();
    probabilities.into_iter().map(|p| p.and_then(|_| adjusted.next())).collect()
}

fn settled_figures(figures: &[Figure]) -> impl Iterator<Item = &Figure> {
    figures.iter().filter(|figure| figure.is_settled)
}

/// The summary of a planner's figures, without a verdict.
fn summarize_figures(figures: &[Figure], shift: f64, p: Option<f64>) -> Summary {
    let logs: Vec<f64> = settled_figures(figures).map(Figure::log_ratio).collect();
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / count(logs.len());
    let of = |verdict| figures.iter().filter(|figure| figure.verdict == verdict).count();
    let shifted = settled_figures(figures).map(|Figure { a, b, .. }| Some((b + shift) / (a + shift)));
    let interval = bootstrap_interval(&logs, mean, 0.95, 1000, 1);
    Summary {
        cells: figures.len(),
        settled: logs.len(),
        better: of(Verdict::Better),
        worse: of(Verdict::Worse),
        undecided: of(Verdict::Undecided),
        ratio: (!logs.is_empty()).then(|| mean(&logs).exp()),
        shifted_ratio: shifted_geometric_mean(shifted, 0.0).mean,
        interval: interval.map(|all| Interval { low: all.low.exp(), high: all.high.exp() }),
        p,
        verdict: Verdict::Same,
    }
}
