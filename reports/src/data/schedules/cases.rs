//! Groups schedule rows by question: a net on a machine, with a memory capacity, at several sizes.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::Digest;
use planlab_results::schedule::ScheduleRow;

use super::asked::{Net, Sweep, Variant, group_by_sweep, group_by_variant, limit_width, shown_problem};
use crate::data::natural::natural;
use crate::data::rows::group_by;
use crate::figures::Series;
use crate::format::{as_real, format_rounded};

/// All schedule rows of a store; independent of their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedules {
    pub(crate) rows: usize,
    pub(crate) digest: String,
    pub(crate) cases: Vec<Case>,
    /// Rows without an answer that should have one, even if a later run has it.
    pub(crate) failures: Vec<ScheduleRow>,
}

/// A net on a machine with a link and a capacity, to compare schedulers on. At one size, all runs have the same
/// problem.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The name: `resnet50`.
    pub(crate) net: String,
    pub(crate) sequence: Option<u64>,
    pub(crate) workspace: Option<String>,
    pub(crate) sweep: Sweep,
    pub(crate) machine: String,
    /// Bytes per second to the host and back.
    pub(crate) link: (f64, f64),
    pub(crate) capacity: u64,
    /// What its name does not say.
    pub(crate) variant: Variant,
    /// A text that distinguishes it from another case with the same name; usually empty.
    pub(crate) variant_words: String,
    /// The runs, by size, then by scheduler.
    pub(crate) runs: Vec<Run>,
}

/// The run of a scheduler at a size that counts: the last one with the widest limits.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) row: ScheduleRow,
    /// The batch or the size of the input, whichever varies in the case.
    pub(crate) size: u64,
    /// The scheduler's name, and its index among all of the store.
    pub(crate) series: Series,
}

impl Schedules {
    pub(crate) fn new(mut rows: Vec<ScheduleRow>) -> Self {
        rows.sort_by(|a, b| (&a.cell, a.repetition).cmp(&(&b.cell, b.repetition)));
        let digest = digest(&rows);
        let mut failures: Vec<ScheduleRow> = rows.iter().filter(|row| is_failure(row)).cloned().collect();
        failures.sort_by(|a, b| {
            let of = |row: &ScheduleRow| (!row.status.is_lie(), row.scheduler.clone());
            of(a).cmp(&of(b)).then_with(|| natural(&a.workload, &b.workload))
        });
        Self { rows: rows.len(), digest, cases: cases(&rows), failures }
    }

    pub(crate) fn all_runs(&self) -> impl Iterator<Item = (&Case, &Run)> {
        self.cases.iter().flat_map(|case| case.runs.iter().map(move |run| (case, run)))
    }
}

fn cases(rows: &[ScheduleRow]) -> Vec<Case> {
    let schedulers: BTreeSet<&str> = rows.iter().map(|row| row.scheduler.as_str()).collect();
    let schedulers: Vec<&str> = schedulers.into_iter().collect();
    let mut cases = Vec::new();
    for (shown, rows) in group_by(rows, |row| shown_problem(row)) {
        let variants = group_by_variant(&rows);
        for (variant, rows) in &variants {
            let words = variant_words(variant, &variants.keys().collect::<Vec<_>>());
            for (sweep, rows) in group_by_sweep(rows) {
                let (net, sequence, workspace, machine, out, back, capacity) = shown.clone();
                cases.push(Case {
                    net,
                    sequence,
                    workspace,
                    sweep,
                    machine,
                    link: (f64::from_bits(out), f64::from_bits(back)),
                    capacity,
                    variant: variant.clone(),
                    variant_words: words.clone(),
                    runs: runs(&rows, sweep, &schedulers),
                });
            }
        }
    }
    cases.sort_by(|a, b| natural(&a.net, &b.net));
    cases
}

fn runs(rows: &[&ScheduleRow], sweep: Sweep, schedulers: &[&str]) -> Vec<Run> {
    let mut chosen: BTreeMap<(u64, usize), &ScheduleRow> = BTreeMap::new();
    for row in rows {
        let number = schedulers.iter().position(|name| *name == row.scheduler).unwrap_or(0);
        let best = chosen.entry((sweep.varying_size(row), number)).or_insert(row);
        if (limit_width(row), row.started_ns) >= (limit_width(best), best.started_ns) {
            *best = row;
        }
    }
    let run = |((size, number), row): ((u64, usize), &ScheduleRow)| {
        let series = Series { label: schedulers[number].to_owned(), number };
        Run { row: row.clone(), size, series }
    };
    chosen.into_iter().map(run).collect()
}

/// The words that distinguish a variant from the others with its name.
pub(super) fn variant_words(variant: &Variant, all: &[&Variant]) -> String {
    let differs = |is_same: fn(&Variant, &Variant) -> bool| all.iter().any(|other| !is_same(other, variant));
    let mut words = Vec::new();
    match variant.times.as_deref() {
        Some("given") => words.push("given times".to_owned()),
        None if all.iter().any(|other| other.times.is_some()) => {
            words.push("rows of an older version".to_owned());
        }
        _ => {}
    }
    if let Some(rates) = variant.rates.as_deref().filter(|_| differs(|a, b| a.rates == b.rates)) {
        words.push(format!("machine {rates:.8}"));
    }
    if differs(|a, b| a.planner == b.planner) {
        words.push(format!("placed by {}", variant.planner));
    }
    if variant.age > 0 {
        words.push(format!("replaced problems {}", variant.age).trim_end_matches(" 1").to_owned());
    }
    words.join(", ")
}

/// Whether a scheduler broke its contract, or did not stop.
fn is_failure(row: &ScheduleRow) -> bool {
    row.status.is_failure() || row.status == planlab_results::Status::Timeout
}

fn digest(rows: &[ScheduleRow]) -> String {
    let lines = rows.iter().filter_map(|row| serde_json::to_string(row).ok());
    let text: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
    Digest::of_bytes(text.as_bytes()).short_text()
}

impl Case {
    /// `resnet50`, or `resnext101-3d at batch 1`: the net with the sizes that do not vary.
    pub(crate) fn subject_name(&self) -> String {
        let (batch, input) = match self.sweep {
            Sweep::Batch { input } => (None, input),
            Sweep::Input { batch } => (Some(batch), None),
        };
        let number = |name: &str, size: Option<u64>| size.map(|size| format!("{name} {size}"));
        let workspace = self.workspace.as_ref().map(|workspace| format!("workspace {workspace}"));
        let sizes =
            [number("batch", batch), number("sequence", self.sequence), number("input", input), workspace];
        let sizes: Vec<String> = sizes.into_iter().flatten().collect();
        if sizes.is_empty() { self.net.clone() } else { format!("{} at {}", self.net, sizes.join(", ")) }
    }

    /// For example `resnet50 on x86-pcie3 (12 GB/s, 14.95 GB)`.
    pub(crate) fn name(&self) -> String {
        format!("{} on {}", self.subject_name(), self.place())
    }

    /// For example `x86-pcie3 (12 GB/s, 14.95 GB)`.
    pub(crate) fn place(&self) -> String {
        self.machine_with(&[rate(self.link), gigabytes(self.capacity)], &self.variant_words)
    }

    /// For example `x86-pcie3 (12 GB/s)`: the machine without its memory, with words on its variant.
    pub(crate) fn machine_and_link(&self, words: &str) -> String {
        self.machine_with(&[rate(self.link)], words)
    }

    fn machine_with(&self, properties: &[String], words: &str) -> String {
        let words = Some(words).filter(|words| !words.is_empty());
        let properties: Vec<&str> = properties.iter().map(String::as_str).chain(words).collect();
        format!("{} ({})", self.machine, properties.join(", "))
    }

    /// Whether later runs used other problems of the same sizes.
    pub(crate) const fn is_replaced(&self) -> bool {
        self.variant.age > 0
    }

    /// The size that varies: `batch` or `input`.
    pub(crate) const fn size_noun(&self) -> &'static str {
        match self.sweep {
            Sweep::Batch { .. } => "batch",
            Sweep::Input { .. } => "input",
        }
    }

    pub(crate) fn sizes(&self) -> Vec<u64> {
        let sizes: BTreeSet<u64> = self.runs.iter().map(|run| run.size).collect();
        sizes.into_iter().collect()
    }

    pub(crate) fn schedulers(&self) -> Vec<&Series> {
        Series::distinct(self.runs.iter().map(|run| &run.series))
    }

    pub(crate) fn runs_at(&self, size: u64) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.size == size)
    }

    /// The runs of a scheduler, by size.
    pub(crate) fn runs_of(&self, scheduler: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.series.number == scheduler)
    }

    pub(crate) fn run_of(&self, scheduler: &str, size: u64) -> Option<&Run> {
        self.runs_at(size).find(|run| run.series.label == scheduler)
    }

    /// The fastest run at a size whose offsets fit; among equals in-core, otherwise the first.
    pub(crate) fn fastest_other(&self, size: u64) -> Option<&Run> {
        let fitting = self.runs_at(size).filter(|run| run.fits_memory() == Some(true));
        fitting.min_by_key(|run| (run.iteration_ns(), run.series.label != IN_CORE))
    }

    /// The largest size with a schedule whose offsets fit.
    pub(crate) fn largest_size(&self) -> Option<u64> {
        self.runs.iter().filter(|run| run.fits_memory() == Some(true)).map(|run| run.size).max()
    }

    /// The largest size with a schedule, whether or not its offsets fit.
    pub(crate) fn largest_scheduled(&self) -> Option<u64> {
        self.runs.iter().filter(|run| run.iteration_ns().is_some()).map(|run| run.size).max()
    }

    /// Sizes at which keeping everything was tried but does not fit.
    pub(crate) fn sizes_beyond_memory(&self) -> Vec<u64> {
        let in_core = self.runs.iter().filter(|run| run.series.label == IN_CORE);
        let is_beyond = |run: &&Run| run.fits_memory() != Some(true) && !is_failure(&run.row);
        in_core.filter(is_beyond).map(|run| run.size).collect()
    }
}

/// The scheduler that keeps everything.
pub(crate) const IN_CORE: &str = "in-core";

impl Run {
    /// Time of an iteration in nanoseconds, if there is a schedule that counts.
    pub(crate) fn iteration_ns(&self) -> Option<u64> {
        self.row.iteration_ns.filter(|_| self.row.status.is_answer())
    }

    /// The same, if the offsets of its buffers fit.
    pub(crate) fn placed_ns(&self) -> Option<u64> {
        self.iteration_ns().filter(|_| self.fits_memory() == Some(true))
    }

    /// Images per second, if there is a schedule that counts.
    pub(crate) fn images_per_second(&self) -> Option<f64> {
        self.iteration_ns().and_then(|_| self.row.images_per_second())
    }

    /// The slowdown compared with an iteration without waiting.
    pub(crate) fn speed_loss(&self) -> Option<f64> {
        self.iteration_ns().and_then(|_| self.row.speed_loss())
    }

    /// Whether the buffers fit with their offsets; `None` without a schedule or without a plan.
    pub(crate) fn fits_memory(&self) -> Option<bool> {
        self.iteration_ns().and_then(|_| self.row.fits_memory())
    }

    /// Kept, swapped, recomputed.
    pub(crate) fn class_counts(&self) -> Option<[u64; 3]> {
        self.iteration_ns()?;
        Some([self.row.kept?, self.row.swapped?, self.row.recomputed?])
    }

    /// Height and width of the images, if the key contains them.
    pub(crate) fn input_extent(&self) -> Option<u64> {
        Net::from_workload(&self.row.workload).input
    }

    /// Why there is no schedule, in a few words.
    pub(crate) fn end_reason(&self) -> &str {
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
    format!("{} GB", format_rounded(as_real(bytes) / 1e9, 3))
}

/// The rates of copies to the host and back, in words.
pub(crate) fn rate((out, back): (f64, f64)) -> String {
    let one = |rate: f64| format_rounded(rate / 1e9, 3);
    if out.to_bits() == back.to_bits() {
        format!("{} GB/s", one(out))
    } else {
        format!("{} GB/s out, {} GB/s in", one(out), one(back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_rates_are_decimal() {
        assert_eq!([14_950_000_000, 16_000_000_000, 0].map(gigabytes), ["14.95 GB", "16 GB", "0 GB"]);
    }
}
