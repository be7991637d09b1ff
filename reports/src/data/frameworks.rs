//! Groups framework rows: the contenders on each net under the same conditions.

use std::collections::BTreeSet;

use planlab_dsa::performance::End;
use planlab_results::audit::audit_frameworks;
use planlab_results::framework::{FrameworkRow, PLANLAB};
use planlab_results::statistics::{quantile, shifted_geometric_mean};

use crate::data::budgets::{BudgetNet, group_nets};
use crate::data::rows::{digest, group_by};
use crate::figures::Series;
use crate::format::{as_real, format_counted};

/// The default allocator of a program.
pub(crate) const GLIBC: &str = "glibc";

/// All rows of a store; independent of their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frameworks {
    pub(crate) rows: usize,
    pub(crate) digest: String,
    /// One group per figure.
    pub(crate) groups: Vec<Group>,
    /// Rows without figures.
    pub(crate) failures: Vec<FrameworkRow>,
    /// Nets whose output depends on the allocator, in words.
    pub(crate) unequal: Vec<String>,
    /// Nets in training steps within a budget, which are in no group.
    pub(crate) budgets: Vec<BudgetNet>,
}

/// Nets under the same conditions on one machine.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) conditions: Conditions,
    /// By net.
    pub(crate) cases: Vec<Case>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Conditions {
    pub(crate) framework: String,
    pub(crate) mode: String,
    pub(crate) threads: u32,
    pub(crate) batch: u64,
    /// The machine's digest.
    host: String,
    /// That digest shortened, if there are several machines; otherwise empty.
    pub(crate) machine: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) net: String,
    /// The runs, by contender.
    pub(crate) runs: Vec<Run>,
}

/// A contender on a net: its processes.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) series: Series,
    /// The row of the last process.
    pub(crate) row: FrameworkRow,
    pub(crate) processes: usize,
    pub(crate) wall: Spread,
    pub(crate) cpu: Spread,
    pub(crate) faults: Spread,
    /// The most bytes resident in the steady state of any process.
    pub(crate) steady: Option<u64>,
    /// The most bytes ever resident.
    pub(crate) peak: Option<u64>,
}

/// The range of the middle half of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Median and quartiles; zeros if there are no samples.
    fn from_samples<'s>(samples: impl Iterator<Item = &'s u64>) -> Self {
        let mut sorted: Vec<f64> = samples.map(|&sample| as_real(sample)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share| quantile(&sorted, share).unwrap_or(0.0);
        Self { low: at(0.25), median: at(0.5), high: at(0.75) }
    }
}

impl Frameworks {
    pub(crate) fn new(rows: Vec<FrameworkRow>) -> Self {
        let (count, digest) = (rows.len(), digest(&rows));
        let (budgets, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.budget.is_some());
        let unequal = audit_frameworks(&rows).iter().map(ToString::to_string).collect();
        let (complete, failures): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.status == End::Complete);
        let names: BTreeSet<String> = complete.iter().map(|row| row.contender.clone()).collect();
        let hosts: BTreeSet<&str> = complete.iter().map(|row| &*row.provenance.host).collect();
        let asked = group_by(&complete, |row| Conditions::from_row(row, hosts.len() > 1));
        let case = |(net, rows): (&str, Vec<&FrameworkRow>)| {
            let run = |(number, name): (usize, &String)| {
                let own = rows.iter().copied().filter(|row| row.contender == *name).collect();
                Run::from_rows(Series { label: name.clone(), number }, own)
            };
            Case { net: net.to_owned(), runs: names.iter().enumerate().filter_map(run).collect() }
        };
        let groups = asked.into_iter().map(|(conditions, rows)| {
            let nets = group_by(rows, |row| row.net.as_str());
            Group { conditions, cases: nets.into_iter().map(case).collect() }
        });
        Self {
            rows: count,
            digest,
            groups: groups.collect(),
            failures,
            unequal,
            budgets: group_nets(budgets),
        }
    }
}

impl Conditions {
    fn from_row(row: &FrameworkRow, has_others: bool) -> Self {
        let host = row.provenance.host.clone();
        let machine = if has_others { host.get(..8).unwrap_or(&host).to_owned() } else { String::new() };
        let (framework, mode) = (row.framework.clone(), row.mode.clone());
        Self { framework, mode, threads: row.threads, batch: row.batch, host, machine }
    }

    /// For example `torch-1.13.0a0, inference, batch 16, 1 thread`.
    pub(crate) fn name(&self) -> String {
        let mode = if self.mode == "train" { "training" } else { "inference" };
        let threads = format_counted(u64::from(self.threads), "thread");
        let machine =
            if self.machine.is_empty() { String::new() } else { format!(", machine {}", self.machine) };
        format!("{}, {mode}, batch {}, {threads}{machine}", self.framework, self.batch)
    }
}

impl Run {
    /// The run from the processes of the newest build with the same number of propagations.
    fn from_rows(series: Series, mut rows: Vec<&FrameworkRow>) -> Option<Self> {
        let newest: FrameworkRow = (*rows.iter().max_by_key(|row| row.started_ns)?).clone();
        rows.retain(|row| row.cell == newest.cell);
        Some(Self {
            series,
            processes: rows.len(),
            wall: Spread::from_samples(rows.iter().flat_map(|row| &row.wall_ns)),
            cpu: Spread::from_samples(rows.iter().flat_map(|row| &row.cpu_ns)),
            faults: Spread::from_samples(rows.iter().flat_map(|row| &row.faults)),
            steady: rows.iter().filter_map(|row| row.steady_peak).max(),
            peak: rows.iter().filter_map(|row| row.resident_peak).max(),
            row: newest,
        })
    }
}

impl Case {
    pub(crate) fn run_of(&self, contender: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.series.label == contender)
    }

    pub(crate) fn our_run(&self) -> Option<&Run> {
        self.run_of(PLANLAB)
    }

    pub(crate) fn other_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.series.label != PLANLAB)
    }

    /// The contender besides planlab with the least CPU time.
    pub(crate) fn fastest_other(&self) -> Option<&Run> {
        self.other_runs().min_by(|a, b| a.cpu.median.total_cmp(&b.cpu.median))
    }

    /// The contender besides planlab with the least memory in the steady state.
    pub(crate) fn smallest_other(&self) -> Option<&Run> {
        self.other_runs().filter(|run| run.steady.is_some()).min_by_key(|run| run.steady)
    }

    /// The speed of planlab divided by that of another contender, by CPU time.
    pub(crate) fn speed_over(&self, other: &Run) -> Option<f64> {
        ratio_over(other.cpu.median, self.our_run()?.cpu.median)
    }

    /// The same ratio by wall time.
    pub(crate) fn wall_speed_over(&self, other: &Run) -> Option<f64> {
        ratio_over(other.wall.median, self.our_run()?.wall.median)
    }

    /// The memory of planlab divided by that of another contender, in the steady state.
    pub(crate) fn memory_over(&self, other: &Run) -> Option<f64> {
        ratio_over(as_real(self.our_run()?.steady?), as_real(other.steady?))
    }
}

fn ratio_over(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

#[derive(Clone, Debug)]
pub(crate) struct Ratios {
    /// The geometric mean.
    pub(crate) mean: f64,
    /// The least ratio, and its net.
    pub(crate) least: (f64, String),
    /// The greatest ratio, and its net.
    pub(crate) most: (f64, String),
    pub(crate) nets: usize,
}

impl Group {
    /// The ratios of all nets that have one; `None` if no net has one.
    pub(crate) fn ratios_of(&self, of: impl Fn(&Case) -> Option<f64>) -> Option<Ratios> {
        let mut all: Vec<(f64, String)> =
            self.cases.iter().filter_map(|case| Some((of(case)?, case.net.clone()))).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean = shifted_geometric_mean(all.iter().map(|(ratio, _)| Some(*ratio)), 0.0).mean?;
        Some(Ratios { mean, least: all.first()?.clone(), most: all.last()?.clone(), nets: all.len() })
    }

    pub(crate) fn contenders(&self) -> Vec<&Series> {
        Series::distinct(self.cases.iter().flat_map(|case| &case.runs).map(|run| &run.series))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_samples() {
        let spread = Spread::from_samples([40, 10, 20, 30, 100].iter());
        assert_eq!(spread, Spread { low: 20.0, median: 30.0, high: 40.0 });
        assert_eq!(Spread::from_samples([1, 2].iter()), Spread { low: 1.25, median: 1.5, high: 1.75 });
        assert_eq!(Spread::from_samples([7].iter()), Spread { low: 7.0, median: 7.0, high: 7.0 });
    }
}
