//! Groups the rows of training steps within a budget: the contenders on each net, by time and peak.

use std::collections::BTreeSet;

use planlab_dsa::performance::End;
use planlab_results::framework::{FrameworkRow, StepBudget, UNCONSTRAINED};
use planlab_results::statistics::{ShiftedMean, shifted_geometric_mean};

use crate::data::rows::group_by;
use crate::figures::Series;
use crate::format::as_real;

/// Peaks and times that differ by less than this factor count as equal.
const EQUAL: f64 = 1.01;

/// All contenders on a net, under the same conditions on one machine.
#[derive(Clone, Debug)]
pub(crate) struct BudgetNet {
    /// A row of the net, for its conditions.
    pub(crate) sample: FrameworkRow,
    /// Measured steps, by contender, then by settings.
    pub(crate) points: Vec<Point>,
    /// Steps of ours that do not fit their capacity.
    pub(crate) refusals: Vec<FrameworkRow>,
    /// Rows without an answer.
    pub(crate) failures: Vec<FrameworkRow>,
}

/// A contender with its settings on a net: its processes.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) series: Series,
    /// The row of the last process.
    pub(crate) row: FrameworkRow,
    /// The least CPU time of a step of any process.
    pub(crate) step_ns: u64,
    pub(crate) counted_peak: u64,
    pub(crate) measured_peak: u64,
    /// Whether losses and gradients are those without a limit, bit for bit.
    pub(crate) is_equal: bool,
}

impl Point {
    /// The point from the processes of the newest build; `None` if its row has no figures.
    fn from_rows(series: Series, mut rows: Vec<&FrameworkRow>, digest: Option<&str>) -> Option<Self> {
        let newest: FrameworkRow = (*rows.iter().max_by_key(|row| row.started_ns)?).clone();
        rows.retain(|row| row.cell == newest.cell);
        let most = |peak: fn(&StepBudget) -> Option<u64>| {
            rows.iter().filter_map(|row| peak(row.budget.as_ref()?)).max()
        };
        Some(Self {
            series,
            step_ns: *rows.iter().flat_map(|row| &row.cpu_ns).min()?,
            counted_peak: most(|budget| budget.counted_peak)?,
            measured_peak: most(|budget| budget.measured_peak)?,
            is_equal: digest.is_some() && rows.iter().all(|row| row.digest.as_deref() == digest),
            row: newest,
        })
    }

    pub(crate) fn capacity(&self) -> Option<u64> {
        capacity_of(&self.row)
    }
}

fn capacity_of(row: &FrameworkRow) -> Option<u64> {
    row.budget.as_ref()?.capacity
}

/// The nets of all rows within a budget.
pub(crate) fn group_nets(rows: Vec<FrameworkRow>) -> Vec<BudgetNet> {
    let names: BTreeSet<String> = rows.iter().map(|row| row.contender.clone()).collect();
    let series = |name: &str| Series {
        label: name.to_owned(),
        number: names.iter().position(|other| other == name).unwrap_or(0),
    };
    let conditions = |row: &FrameworkRow| {
        (row.net.clone(), row.batch, row.framework.clone(), row.threads, row.provenance.host.clone())
    };
    group_by(rows, conditions).into_values().map(|rows| BudgetNet::from_rows(&rows, series)).collect()
}

impl BudgetNet {
    fn from_rows(rows: &[FrameworkRow], series: impl Fn(&str) -> Series) -> Self {
        let sample = rows[0].clone();
        let of_end = |end: End| -> Vec<FrameworkRow> {
            rows.iter().filter(|row| row.status == end).cloned().collect()
        };
        let complete = of_end(End::Complete);
        let reference = complete.iter().filter(|row| row.contender == UNCONSTRAINED);
        let digest = reference.max_by_key(|row| row.started_ns).and_then(|row| row.digest.as_deref());
        let points = group_by(&complete, |row| (row.contender.as_str(), row.settings.as_str()));
        let points = points
            .into_iter()
            .filter_map(|((contender, _), rows)| Point::from_rows(series(contender), rows, digest));
        let points = points.collect();
        Self { sample, points, refusals: of_end(End::OutOfMemory), failures: of_end(End::Failed) }
    }

    /// For example `gpt, batch 16, torch-2.15.0`.
    pub(crate) fn name(&self) -> String {
        format!("{}, batch {}, {}", self.sample.net, self.sample.batch, self.sample.framework)
    }

    /// The step with no limit.
    pub(crate) fn reference(&self) -> Option<&Point> {
        self.points.iter().find(|point| point.row.contender == UNCONSTRAINED)
    }

    /// The capacities that were asked for, from the largest.
    pub(crate) fn capacities(&self) -> Vec<u64> {
        let rows = self.points.iter().map(|point| &point.row).chain(&self.refusals);
        let capacities: BTreeSet<u64> = rows.filter_map(capacity_of).collect();
        capacities.into_iter().rev().collect()
    }

    /// What each contender has within a capacity, by its counted peak: ours for this capacity, and of PyTorch's its fastest
    /// step that fits.
    pub(crate) fn answers_within(&self, capacity: u64) -> Vec<Answer<'_>> {
        let refused = self.refusals.iter().filter(|row| capacity_of(row) == Some(capacity));
        let refused = refused.map(|row| Answer {
            contender: &row.contender,
            point: None,
            least_peak: row.budget.as_ref().and_then(|budget| budget.least_peak),
        });
        let contenders = group_by(&self.points, |point| point.series.number);
        let measured = contenders.values().filter_map(|points| answer_within(points, capacity));
        let mut answers: Vec<Answer<'_>> = measured.chain(refused).collect();
        answers.sort_by_key(|answer| answer.contender);
        answers
    }

    fn equal_points(&self, is_ours: bool) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.is_equal && point.row.is_ours() == is_ours)
    }

    /// For each of our steps its time over that of PyTorch's fastest step with no greater measured peak; `None` if PyTorch
    /// has no such step.
    fn time_ratios(&self) -> impl Iterator<Item = Option<f64>> {
        self.equal_points(true).map(move |ours| {
            let is_small = |rival: &&Point| is_at_most(rival.measured_peak, ours.measured_peak);
            let fastest = self.equal_points(false).filter(is_small).map(|rival| rival.step_ns).min()?;
            Some(as_real(ours.step_ns) / as_real(fastest))
        })
    }

    /// For each of our steps its measured peak over the least peak of PyTorch's steps that take no longer; `None` if every
    /// step of PyTorch's takes longer.
    fn peak_ratios(&self) -> impl Iterator<Item = Option<f64>> {
        self.equal_points(true).map(move |ours| {
            let is_fast = |rival: &&Point| is_at_most(rival.step_ns, ours.step_ns);
            let least = self.equal_points(false).filter(is_fast).map(|rival| rival.measured_peak).min()?;
            Some(as_real(ours.measured_peak) / as_real(least))
        })
    }
}

fn is_at_most(value: u64, most: u64) -> bool {
    as_real(value) <= as_real(most) * EQUAL
}

/// A contender within a capacity.
#[derive(Clone, Debug)]
pub(crate) struct Answer<'b> {
    pub(crate) contender: &'b str,
    /// `None` if no step fits.
    pub(crate) point: Option<&'b Point>,
    /// The least counted peak, if no step fits.
    pub(crate) least_peak: Option<u64>,
}

/// The answer of a contender with these points; `None` if it is ours and ran with other capacities alone.
fn answer_within<'b>(points: &[&'b Point], capacity: u64) -> Option<Answer<'b>> {
    let contender = points.first()?.row.contender.as_str();
    if points[0].row.is_ours() {
        let point = points.iter().copied().find(|point| point.capacity() == Some(capacity))?;
        return Some(Answer { contender, point: Some(point), least_peak: None });
    }
    let fitting = points.iter().copied().filter(|point| point.counted_peak <= capacity);
    let point = fitting.min_by_key(|point| point.step_ns);
    let least_peak = points.iter().map(|point| point.counted_peak).min().filter(|_| point.is_none());
    Some(Answer { contender, point, least_peak })
}

/// Ours beside PyTorch's best over all nets, as geometric means over our steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BudgetSummary {
    /// Our time over theirs at an equal measured peak; failures are peaks that PyTorch does not reach.
    pub(crate) time: ShiftedMean,
    /// Our measured peak over theirs in an equal time; failures are steps faster than all of PyTorch's.
    pub(crate) peak: ShiftedMean,
}

impl BudgetSummary {
    pub(crate) fn new(nets: &[BudgetNet]) -> Self {
        Self {
            time: shifted_geometric_mean(nets.iter().flat_map(BudgetNet::time_ratios), 0.0),
            peak: shifted_geometric_mean(nets.iter().flat_map(BudgetNet::peak_ratios), 0.0),
        }
    }
}
