//! Rows of schedules, by what was asked: a net on a machine, in so much memory, at several batches.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::Digest;
use planlab_results::schedule::ScheduleRow;

use super::model::natural;
use crate::figures::Series;
use crate::format::real;

/// All rows of schedules of a store; the same rows in any order give the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedules {
    /// How many rows there are.
    pub(crate) rows: usize,
    /// Digest of the rows.
    pub(crate) digest: String,
    pub(crate) cases: Vec<Case>,
    /// Rows without an answer that there should have been, whether or not a later run had one.
    pub(crate) failures: Vec<ScheduleRow>,
}

/// A net on a machine with a link and a capacity: what is compared.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// `resnet50`.
    pub(crate) net: String,
    pub(crate) machine: String,
    /// Bytes per second to the host, and back.
    pub(crate) link: (f64, f64),
    pub(crate) capacity: u64,
    /// By batch, then by scheduler: the last run of each.
    pub(crate) runs: Vec<Run>,
}

/// The last run of a scheduler at a batch.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) row: ScheduleRow,
    /// The scheduler's name, and its number among all of the store.
    pub(crate) series: Series,
}

impl Schedules {
    pub(crate) fn new(mut rows: Vec<ScheduleRow>) -> Self {
        rows.sort_by(|a, b| (&a.cell, a.repetition).cmp(&(&b.cell, b.repetition)));
        let digest = digest(&rows);
        let schedulers: BTreeSet<&str> = rows.iter().map(|row| row.scheduler.as_str()).collect();
        let schedulers: Vec<String> = schedulers.into_iter().map(str::to_owned).collect();
        let mut groups: BTreeMap<_, BTreeMap<(u64, usize), ScheduleRow>> = BTreeMap::new();
        for row in &rows {
            let number = schedulers.iter().position(|name| *name == row.scheduler).unwrap_or(0);
            let runs = groups.entry(asked(row)).or_default();
            let last = runs.entry((row.batch, number)).or_insert_with(|| row.clone());
            if row.started_ns >= last.started_ns {
                *last = row.clone();
            }
        }
        let series = |number: usize| Series { label: schedulers[number].clone(), number };
        let case = |((net, machine, out, back, capacity), runs): (Asked, BTreeMap<(u64, usize), _>)| {
            let runs =
                runs.into_iter().map(|((_, number), row)| Run { row, series: series(number) }).collect();
            Case { net, machine, link: (f64::from_bits(out), f64::from_bits(back)), capacity, runs }
        };
        let mut cases: Vec<Case> = groups.into_iter().map(case).collect();
        cases.sort_by(|a, b| natural(&a.net, &b.net));
        let mut failures: Vec<ScheduleRow> = rows.iter().filter(|row| is_failure(row)).cloned().collect();
        failures.sort_by(|a, b| {
            let of = |row: &ScheduleRow| (!row.status.is_lie(), row.scheduler.clone());
            of(a).cmp(&of(b)).then_with(|| natural(&a.workload, &b.workload))
        });
        Self { rows: rows.len(), digest, cases, failures }
    }

    /// The last runs of all cases, each with its case.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&Case, &Run)> {
        self.cases.iter().flat_map(|case| case.runs.iter().map(move |run| (case, run)))
    }
}

/// Net, machine, link to the host and back, capacity. Rates are positive, so that their bits are in their order.
type Asked = (String, String, u64, u64, u64);

fn asked(row: &ScheduleRow) -> Asked {
    (net(&row.workload), row.machine.clone(), row.copy_out.to_bits(), row.copy_in.to_bits(), row.capacity)
}

/// The workload without its batch: `model/resnet50/train/b512` is `resnet50`.
fn net(workload: &str) -> String {
    let is_batch = |part: &str| {
        part.strip_prefix('b').is_some_and(|digits| !digits.is_empty() && digits.parse::<u64>().is_ok())
    };
    let rest = workload.strip_prefix("model/").unwrap_or(workload);
    let parts: Vec<&str> = rest.split('/').filter(|part| *part != "train" && !is_batch(part)).collect();
    parts.join("/")
}

/// Whether a scheduler broke its contract, or did not stop.
fn is_failure(row: &ScheduleRow) -> bool {
    row.status.is_failure() || row.status == planlab_results::Status::Timeout
}

fn digest(rows: &[ScheduleRow]) -> String {
    let lines = rows.iter().filter_map(|row| serde_json::to_string(row).ok());
    let text: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
    Digest::of_bytes(text.as_bytes()).short()
}

impl Case {
    /// `resnet50 on x86-pcie3 (12 GB/s, 14.95 GB)`.
    pub(crate) fn name(&self) -> String {
        format!("{} on {} ({}, {})", self.net, self.machine, self.rate(), gigabytes(self.capacity))
    }

    /// The rate of copies, in words.
    pub(crate) fn rate(&self) -> String {
        let (out, back) = self.link;
        let one = |rate: f64| trimmed(rate / 1e9);
        if out.to_bits() == back.to_bits() {
            format!("{} GB/s", one(out))
        } else {
            format!("{} GB/s out, {} GB/s in", one(out), one(back))
        }
    }

    pub(crate) fn batches(&self) -> Vec<u64> {
        let batches: BTreeSet<u64> = self.runs.iter().map(|run| run.row.batch).collect();
        batches.into_iter().collect()
    }

    /// The schedulers that ran.
    pub(crate) fn schedulers(&self) -> Vec<&Series> {
        let by_number: BTreeMap<usize, &Series> =
            self.runs.iter().map(|run| (run.series.number, &run.series)).collect();
        by_number.into_values().collect()
    }

    pub(crate) fn at(&self, batch: u64) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.row.batch == batch)
    }

    /// The runs of a scheduler, by batch.
    pub(crate) fn of(&self, scheduler: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.series.number == scheduler)
    }

    pub(crate) fn run(&self, scheduler: &str, batch: u64) -> Option<&Run> {
        self.at(batch).find(|run| run.series.label == scheduler)
    }

    /// The fastest run at a batch whose offsets fit; of equals in-core, else the first.
    pub(crate) fn fastest(&self, batch: u64) -> Option<&Run> {
        let fitting = self.at(batch).filter(|run| run.fits() == Some(true));
        fitting.min_by_key(|run| (run.iteration(), run.series.label != IN_CORE))
    }

    /// The largest batch with a schedule whose offsets fit.
    pub(crate) fn largest(&self) -> Option<u64> {
        self.runs.iter().filter(|run| run.fits() == Some(true)).map(|run| run.row.batch).max()
    }

    /// The largest batch with a schedule, whether or not its offsets fit.
    pub(crate) fn largest_scheduled(&self) -> Option<u64> {
        self.runs.iter().filter(|run| run.iteration().is_some()).map(|run| run.row.batch).max()
    }

    /// Batches at which keeping everything was tried and does not fit.
    pub(crate) fn beyond(&self) -> Vec<u64> {
        let in_core = self.runs.iter().filter(|run| run.series.label == IN_CORE);
        let is_beyond = |run: &&Run| run.fits() != Some(true) && !is_failure(&run.row);
        in_core.filter(is_beyond).map(|run| run.row.batch).collect()
    }
}

/// The scheduler that keeps everything.
pub(crate) const IN_CORE: &str = "in-core";

impl Run {
    /// Nanoseconds of an iteration, where there is a schedule that counts.
    pub(crate) fn iteration(&self) -> Option<u64> {
        self.row.iteration_ns.filter(|_| self.row.status.is_answer())
    }

    /// Images per second, where there is a schedule that counts.
    pub(crate) fn speed(&self) -> Option<f64> {
        self.iteration().and_then(|_| self.row.images_per_second())
    }

    /// How much slower than if nothing waited.
    pub(crate) fn loss(&self) -> Option<f64> {
        self.iteration().and_then(|_| self.row.loss())
    }

    /// Whether the buffers fit with their offsets; `None` without a schedule or without a plan.
    pub(crate) fn fits(&self) -> Option<bool> {
        self.iteration().and_then(|_| self.row.fits())
    }

    /// Kept, swapped, recomputed.
    pub(crate) fn classes(&self) -> Option<[u64; 3]> {
        self.iteration()?;
        Some([self.row.kept?, self.row.swapped?, self.row.recomputed?])
    }

    /// Why there is no schedule, in a few words.
    pub(crate) fn end(&self) -> &str {
        let row = &self.row;
        match row.status {
            planlab_results::Status::Unknown if row.reason.starts_with("out of memory") => "does not fit",
            planlab_results::Status::Unknown => "no schedule",
            status => status.name(),
        }
    }
}

/// Bytes in units of 10^9, as devices are sold: `14.95 GB`.
pub(crate) fn gigabytes(bytes: u64) -> String {
    format!("{} GB", trimmed(real(bytes) / 1e9))
}

fn trimmed(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_net_is_its_workload_without_the_batch() {
        let nets = ["model/resnet50/train/b512", "model/bert-base/train/b8/s128", "mine.jsonl/b3", "b/bx"];
        assert_eq!(nets.map(net), ["resnet50", "bert-base/s128", "mine.jsonl", "b/bx"]);
    }

    #[test]
    fn bytes_and_rates_are_decimal() {
        assert_eq!([14_950_000_000, 16_000_000_000, 0].map(gigabytes), ["14.95 GB", "16 GB", "0 GB"]);
    }
}
