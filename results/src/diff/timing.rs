//! Compares the times of cells and planners on both sides.

use std::collections::{BTreeMap, BTreeSet};

use super::chance::{ERROR, Evidence, Strays, of_a_cell, of_a_planner};
use super::options::DiffOptions;
use super::pairs::{Pair, Pairing};
use super::verdict::{Sides, Verdict};
use crate::rows::{Lane, Record};
use crate::statistics::{Interval, bootstrap_ratio, count, median};

const LEVEL: f64 = 0.95;
const RESAMPLES: usize = 1000;
/// This many cells of other planners with similar times show the machine's effect.
const NEIGHBOURS: usize = 24;
/// Without repeated turns, fewer neighbours or fewer cells of a planner prove nothing.
const ENOUGH: usize = 5;
/// The effect that a change of the machine's load may have on all cells of one planner, but not on their neighbours.
const ALLOWANCE: f64 = 0.1;

/// The change of a cell's time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimeChange {
    /// The median of all samples in nanoseconds.
    pub median_ns: Sides<f64>,
    /// The number of samples.
    pub samples: Sides<usize>,
    /// The number of repetitions, each in its own process.
    pub repetitions: Sides<usize>,
    /// The median of B divided by that of A.
    pub ratio: f64,
    /// The 95 % bootstrap interval of the ratio.
    pub interval: Option<Interval>,
    /// The machine causes ratios between 1 / (1 + noise) and 1 + noise by chance. `None` if there are too few
    /// repetitions to estimate it.
    pub noise: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The samples of a cell by repetition, in nanoseconds; neither side is empty.
type Samples = Sides<BTreeMap<u32, Vec<f64>>>;

impl Samples {
    /// The samples of runs that ran alone and have an answer. `None` if a side has no such run, or if the time limit
    /// ended the runs on both sides, as such times only reflect the limit.
    fn from_pair(pair: &Pair<'_>) -> Option<Self> {
        if [&pair.a, &pair.b].iter().all(|rows| rows.iter().all(|row| row.is_cut())) {
            return None;
        }
        let samples = Self { a: samples_by_repetition(&pair.a), b: samples_by_repetition(&pair.b) };
        (!samples.a.is_empty() && !samples.b.is_empty()).then_some(samples)
    }

    fn side_medians(&self) -> Sides<f64> {
        let middle = |groups: &BTreeMap<u32, Vec<f64>>| {
            let all: Vec<f64> = groups.values().flatten().copied().collect();
            median(&all).unwrap_or(1.0)
        };
        Sides { a: middle(&self.a), b: middle(&self.b) }
    }

    /// The change from A to B in each repetition that both have: the logarithm of the ratio of medians.
    fn paired_changes(&self) -> Vec<f64> {
        let (a, b) = (median_logarithms(&self.a), median_logarithms(&self.b));
        a.iter().filter_map(|(repetition, a)| Some(b.get(repetition)? - a)).collect()
    }

    /// The changes from each repetition of a side to its next: what happens without a change.
    fn stray_changes(&self) -> Vec<f64> {
        let of = |groups| -> Vec<f64> {
            let logs: Vec<f64> = median_logarithms(groups).into_values().collect();
            logs.windows(2).map(|pair| pair[1] - pair[0]).collect()
        };
        [of(&self.a), of(&self.b)].concat()
    }
}

/// The logarithm of each repetition's median.
fn median_logarithms(groups: &BTreeMap<u32, Vec<f64>>) -> BTreeMap<u32, f64> {
    groups.iter().filter_map(|(&repetition, group)| Some((repetition, median(group)?.ln()))).collect()
}

fn samples_by_repetition(rows: &[&Record]) -> BTreeMap<u32, Vec<f64>> {
    let counts = |row: &&&Record| row.lane == Lane::Timing && row.status.is_answer();
    let samples = |row: &&Record| -> (u32, Vec<f64>) {
        // At least 1 ns, as the logarithm follows.
        let samples = row.samples_ns.iter().map(|&ns| crate::statistics::as_real(ns).max(1.0));
        (row.repetition, samples.collect())
    };
    rows.iter().filter(counts).map(samples).filter(|(_, samples)| !samples.is_empty()).collect()
}

/// A cell with times on both sides.
struct Timed<'p> {
    label: &'p str,
    samples: Samples,
    medians: Sides<f64>,
}

impl Timed<'_> {
    /// The median of B divided by that of A.
    fn ratio(&self) -> f64 {
        self.medians.b / self.medians.a
    }

    /// Its position among other cells by time.
    fn time_rank(&self) -> f64 {
        (self.medians.a * self.medians.b).ln() / 2.0
    }
}

/// A planner's times compared with chance.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannerEvidence {
    /// The probability that as many of its measurements agree by chance.
    pub(super) p: f64,
    /// The geometric mean of ratios B over A, without the change that all cells of similar time share.
    pub(super) ratio: f64,
    /// The possible effect of the machine on that ratio.
    pub(super) allowance: f64,
}

pub(super) struct Times<'p> {
    /// One entry for each pair.
    cells: Vec<Option<Timed<'p>>>,
    in_turns: bool,
    /// The strays of all cells; empty unless turns were repeated.
    strays: Strays,
}

impl<'p> Times<'p> {
    pub(super) fn new(pairing: &'p Pairing<'_>) -> Self {
        let timed = |pair: &'p Pair<'_>| {
            let samples = Samples::from_pair(pair)?;
            Some(Timed { label: &pair.name.label, medians: samples.side_medians(), samples })
        };
        let cells: Vec<Option<Timed<'p>>> = pairing.pairs.iter().map(timed).collect();
        let in_turns = pairing.in_turns();
        let all = cells.iter().flatten().filter(|_| in_turns);
        let strays = Strays::new(all.flat_map(|cell| cell.samples.stray_changes()));
        Self { cells, in_turns, strays }
    }

    /// Whether turns were repeated, so that each side alone shows the effect of chance.
    const fn is_repeated(&self) -> bool {
        self.strays.len() >= ENOUGH
    }

    /// The change of the time in the cell of this pair.
    pub(super) fn time_change(&self, at: usize, options: &DiffOptions) -> Option<TimeChange> {
        let cell = self.cells.get(at)?.as_ref()?;
        let lists = |side: &BTreeMap<u32, Vec<f64>>| -> Vec<Vec<f64>> { side.values().cloned().collect() };
        let (a, b) = (lists(&cell.samples.a), lists(&cell.samples.b));
        let samples = |groups: &[Vec<f64>]| groups.iter().map(Vec::len).sum();
        let interval = bootstrap_ratio(&a, &b, LEVEL, RESAMPLES, 1);
        let (floor, verdict) = if self.is_repeated() {
            self.by_turns(cell, interval, options.threshold)
        } else {
            self.by_neighbours(at, cell, options.threshold)
        };
        Some(TimeChange {
            median_ns: cell.medians,
            samples: Sides { a: samples(&a), b: samples(&b) },
            repetitions: Sides { a: a.len(), b: b.len() },
            ratio: cell.ratio(),
            interval,
            noise: floor.map(f64::exp_m1),
            verdict: match verdict {
                Verdict::Better | Verdict::Worse if !options.judge_times => Verdict::Undecided,
                verdict => verdict,
            },
        })
    }

    /// A verdict on a cell from its own turns, if they were repeated often enough.
    fn by_turns(
        &self,
        cell: &Timed<'_>,
        interval: Option<Interval>,
        threshold: f64,
    ) -> (Option<f64>, Verdict) {
        let evidence = self.of_turns(&[cell]);
        let needed = of_a_cell(evidence.changes.len());
        let tested = self.cells.iter().flatten().count();
        let floor = evidence.floor_change(needed, ERROR / 2.0 / count(tested.max(1)));
        let by_ratio = judge_ratio(cell.ratio(), threshold);
        let agreed = evidence.agreed_change(needed);
        let holds_one = interval.is_none_or(|interval| interval.low <= 1.0 && interval.high >= 1.0);
        let verdict = match floor {
            _ if by_ratio == Verdict::Same => Verdict::Same,
            None => Verdict::Undecided,
            Some(floor)
                if agreed.abs() > floor && !holds_one && judge_ratio(agreed.exp(), 0.0) == by_ratio =>
            {
                by_ratio
            }
            Some(_) => Verdict::Same,
        };
        (floor, verdict)
    }

    /// No verdict on a cell from one measurement per side: one process may be slow by chance.
    fn by_neighbours(&self, at: usize, cell: &Timed<'_>, threshold: f64) -> (Option<f64>, Verdict) {
        let near = self.nearest_cells(at);
        let (drift, strays) = shared_drift(&near);
        let floor = strays.into_iter().map(f64::abs).max_by(f64::total_cmp).filter(|_| near.len() >= ENOUGH);
        let is_noise = floor.is_some_and(|floor| (cell.ratio().ln() - drift).abs() <= floor);
        let is_little = judge_ratio(cell.ratio(), threshold) == Verdict::Same;
        (floor, if is_little || is_noise { Verdict::Same } else { Verdict::Undecided })
    }

    /// The evidence from a planner's times.
    pub(super) fn of_planner(&self, label: &str) -> Option<PlannerEvidence> {
        let own = |cell: &Option<Timed<'_>>| cell.as_ref().is_some_and(|cell| cell.label == label);
        let cells: Vec<usize> = (0..self.cells.len()).filter(|&at| own(&self.cells[at])).collect();
        if cells.is_empty() {
            return None;
        }
        if self.is_repeated() {
            let cells: Vec<&Timed<'_>> = cells.iter().filter_map(|&at| self.cells[at].as_ref()).collect();
            let evidence = self.of_turns(&cells);
            let p = evidence.chance_probability(of_a_planner(evidence.changes.len()));
            let mean = cells.iter().map(|cell| cell.ratio().ln()).sum::<f64>() / count(cells.len());
            return Some(PlannerEvidence { p, ratio: mean.exp(), allowance: 0.0 });
        }
        Some(self.beside_neighbours(&cells))
    }

    fn of_turns(&self, cells: &[&Timed<'_>]) -> Evidence<'_> {
        Evidence {
            changes: cells.iter().flat_map(|cell| cell.samples.paired_changes()).collect(),
            own: Strays::new(cells.iter().flat_map(|cell| cell.samples.stray_changes())),
            all: &self.strays,
        }
    }

    /// Compares cells with those of other planners that take as long; a shared change comes from the machine.
    fn beside_neighbours(&self, cells: &[usize]) -> PlannerEvidence {
        let (mut changes, mut strays, mut distinct) = (Vec::new(), Vec::new(), BTreeSet::new());
        for &at in cells {
            let near = self.nearest_cells(at);
            let (drift, own) = shared_drift(&near);
            changes.extend(self.cells[at].as_ref().map(|cell| cell.ratio().ln() - drift));
            strays.extend(own);
            distinct.extend(near.into_iter().map(|(at, _)| at));
        }
        let mean = changes.iter().sum::<f64>() / count(changes.len().max(1));
        let is_enough = changes.len().min(distinct.len()) >= ENOUGH;
        let all = Strays::new(strays).with_independent(distinct.len());
        let needed = of_a_planner(changes.len());
        let evidence = Evidence { changes, own: Strays::default(), all: &all };
        let p = if is_enough { evidence.chance_probability(needed) } else { 1.0 };
        let allowance = if self.in_turns { 0.0 } else { ALLOWANCE };
        PlannerEvidence { p, ratio: mean.exp(), allowance }
    }

    /// The cells of other planners with the times nearest to a cell's, and their changes.
    fn nearest_cells(&self, at: usize) -> Vec<(usize, f64)> {
        let Some(own) = self.cells[at].as_ref() else { return Vec::new() };
        let others = self.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, cell.as_ref()?)));
        let mut near: Vec<(f64, usize, f64)> = others
            .filter(|(_, cell)| cell.label != own.label)
            .map(|(at, cell)| ((cell.time_rank() - own.time_rank()).abs(), at, cell.ratio().ln()))
            .collect();
        if near.len() > NEIGHBOURS {
            near.select_nth_unstable_by(NEIGHBOURS, |x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1)));
            near.truncate(NEIGHBOURS);
        }
        near.into_iter().map(|(_, at, change)| (at, change)).collect()
    }
}

/// The change that the neighbours share, and how far each strays from it.
fn shared_drift(near: &[(usize, f64)]) -> (f64, Vec<f64>) {
    let changes: Vec<f64> = near.iter().map(|&(_, change)| change).collect();
    let drift = median(&changes).unwrap_or(0.0);
    (drift, changes.iter().map(|change| change - drift).collect())
}

/// Whether a ratio exceeds a threshold, and on which side.
pub(super) fn judge_ratio(ratio: f64, threshold: f64) -> Verdict {
    if ratio > 1.0 + threshold {
        Verdict::Worse
    } else if ratio * (1.0 + threshold) < 1.0 {
        Verdict::Better
    } else {
        Verdict::Same
    }
}
