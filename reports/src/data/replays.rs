//! The rows of replays, grouped for pages.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::performance::{CallTime, End, Performance, Sample, Work};
use planlab_results::replay::{ReplayRow, ReplayRun};
use planlab_results::statistics::{Interval, bootstrap_interval, median};
use planlab_results::{Provenance, Row};

use crate::data::natural::natural;
use crate::data::rows::{digest, group_by};
use crate::figures::Series;
use crate::format::as_real;

/// With fewer samples there is no interval.
const SAMPLES: usize = 20;
/// The number of bootstrap draws.
const DRAWS: usize = 1000;
/// The number of digits shown of a machine's digest.
const DIGITS: usize = 8;
/// The contender that hands out no memory.
const EMPTY_LOOP: &str = "empty-loop";

/// A contender under one set of conditions on one workload, with one row per process.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The rows, by repetition; never empty.
    pub(crate) rows: Vec<ReplayRow>,
    /// One row that represents all of them.
    summary: ReplayRow,
    pub(crate) place: ReplayPlace,
    pub(crate) series: Series,
}

/// All cases; independent of the order of the rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replays {
    /// The cases, by workload, contender, device, machine, work, threads and capacity.
    pub(crate) cases: Vec<Case>,
    /// The number of rows of the latest builds.
    pub(crate) rows: usize,
    pub(crate) digest: String,
}

/// A median with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) median: f64,
    /// `None` if there are too few samples.
    pub(crate) interval: Option<Interval>,
}

/// A device, and the work done to the memory; all cases of a figure have the same place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReplayPlace {
    pub(crate) device: String,
    machine: Machine,
    /// The text that distinguishes the machine from others with such a device; empty if there is only one.
    among: String,
    pub(crate) work: Work,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Machine {
    /// The device's own name.
    device_name: String,
    cpu: String,
    /// The digest of the machine.
    host: String,
}

impl Machine {
    fn from_row(row: &ReplayRow) -> Self {
        let (cpu, host) = (row.provenance.cpu.clone(), row.provenance.host.clone());
        Self { device_name: row.device_name.clone(), cpu, host }
    }

    /// The name that people know: the device's own name, or on the host the CPU.
    fn name(&self) -> &str {
        if self.device_name.is_empty() { &self.cpu } else { &self.device_name }
    }

    /// The text that distinguishes it from others: its name, plus its digest if another has the same name or it has no
    /// name.
    fn distinguishing_name(&self, others: &BTreeSet<Self>) -> String {
        let digest = self.host.get(..DIGITS).unwrap_or(&self.host);
        let alike = others.iter().filter(|other| other.name() == self.name()).count();
        match (self.name(), alike) {
            _ if others.len() < 2 => String::new(),
            ("", _) => format!("machine {digest}"),
            (name, 1) => name.to_owned(),
            (name, _) => format!("{name}, machine {digest}"),
        }
    }
}

impl ReplayPlace {
    /// The place of a row; `machines` are those of its device.
    fn new(row: &ReplayRow, machines: &BTreeSet<Machine>) -> Self {
        let machine = Machine::from_row(row);
        let among = machine.distinguishing_name(machines);
        Self { device: row.device.clone(), machine, among, work: row.work }
    }

    pub(crate) fn name(&self) -> String {
        let device = match self.among.as_str() {
            "" => self.device.clone(),
            among => format!("{} ({among})", self.device),
        };
        match self.work {
            Work::None => device,
            work => format!("{device}, {}", work.name()),
        }
    }

    /// The device with its own name, and with the text that distinguishes its machine from others.
    pub(crate) fn device_in_full(&self) -> String {
        let told = if self.among.is_empty() { &self.machine.device_name } else { &self.among };
        if told.is_empty() { self.device.clone() } else { format!("{} ({told})", self.device) }
    }

    /// What the times include.
    pub(crate) const fn meaning_of_times(&self) -> &'static str {
        match self.work {
            Work::None => "addresses alone, no byte is touched",
            Work::Pages => "a byte of each page is written",
            Work::Pattern => "every byte is written and checked",
            Work::Kernels => "kernels write and read every buffer",
            Work::Operations => "kernels, and the device is busy as long as the operations take",
        }
    }
}

impl Replays {
    pub(crate) fn new(rows: Vec<ReplayRow>) -> Self {
        let groups = latest_builds(rows);
        let labels: BTreeSet<String> = groups.iter().map(|rows| contender_label(&rows[0])).collect();
        let mut machines: BTreeMap<String, BTreeSet<Machine>> = BTreeMap::new();
        for row in groups.iter().flatten() {
            machines.entry(row.device.clone()).or_default().insert(Machine::from_row(row));
        }
        let digest = digest(groups.iter().flatten());
        let case = |rows: Vec<ReplayRow>| {
            let label = contender_label(&rows[0]);
            let number = labels.iter().position(|known| *known == label).unwrap_or(0);
            let place = ReplayPlace::new(&rows[0], &machines[&rows[0].device]);
            Case { series: Series { number, label }, summary: summarize_rows(&rows), place, rows }
        };
        let mut cases: Vec<Case> = groups.into_iter().map(case).collect();
        cases.sort_by(|a, b| {
            natural(a.workload(), b.workload())
                .then_with(|| sort_key(a.summary_row()).cmp(&sort_key(b.summary_row())))
                .then_with(|| a.place.cmp(&b.place))
        });
        Self { rows: cases.iter().map(|case| case.rows.len()).sum(), cases, digest }
    }

    /// Cases over single workloads, in one thread, without a memory limit.
    pub(crate) fn plain_cases(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| {
            let row = case.summary_row();
            row.sequence.is_empty() && row.capacity.is_none() && row.threads == 1
        })
    }

    /// Plain cases over simulated memory.
    pub(crate) fn simulated_cases(&self) -> impl Iterator<Item = &Case> {
        self.plain_cases().filter(|case| case.summary_row().device == "simulated")
    }

    /// The plain case of a contender over simulated memory that served the whole workload.
    pub(crate) fn served_case(&self, workload: &str, contender: &str) -> Option<&Case> {
        self.simulated_cases().find(|case| {
            let row = case.summary_row();
            row.workload == workload && row.contender == contender && row.performance.status == End::Complete
        })
    }

    pub(crate) fn by_place<'c>(
        cases: impl Iterator<Item = &'c Case>,
    ) -> BTreeMap<ReplayPlace, Vec<&'c Case>> {
        group_by(cases, |case| case.place.clone())
    }
}

impl Case {
    /// The combined result of all processes: the worst status, the most memory, medians of the times for calls. The
    /// samples are those of the first process that was served.
    pub(crate) fn summary_row(&self) -> &ReplayRow {
        &self.summary
    }

    pub(crate) fn failures_by_reason(&self) -> BTreeMap<&str, usize> {
        let mut failures: BTreeMap<&str, usize> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.performance.status == End::Failed) {
            *failures.entry(row.performance.reason.as_str()).or_default() += 1;
        }
        failures
    }

    pub(crate) fn workload(&self) -> &str {
        &self.summary_row().workload
    }

    /// The most bytes held in the last measured propagation. If the peak was not measured, the bytes reserved at its
    /// end. `None` if a single propagation was played without a warm-up.
    pub(crate) fn settled_bytes(&self) -> Option<u64> {
        let row = self.summary_row();
        let has_settled = row.performance.warm_up > 0 || row.performance.samples.len() > 1;
        let held = |sample: &Sample| sample.reserved_peak.or(sample.reserved);
        row.performance.samples.iter().rev().find_map(held).filter(|_| has_settled)
    }

    /// The number of propagations after which the reserved bytes were measured.
    pub(crate) fn looked_at(&self) -> usize {
        self.summary_row().performance.samples.iter().filter(|sample| sample.reserved.is_some()).count()
    }

    /// The bytes held, each with its name in tables. For a pool that is the most it reserved. A profile-guided
    /// allocator has two entries: its steady state, and its first propagation, which a pool serves.
    pub(crate) fn held_bytes(&self) -> Vec<(String, u64)> {
        let (row, label) = (self.summary_row(), &self.series.label);
        match self.settled_bytes().filter(|_| row.contender.starts_with("profile-guided")) {
            Some(settled) => {
                vec![
                    (label.clone(), settled),
                    (format!("{label} (first propagation)"), row.performance.reserved_peak),
                ]
            }
            None => vec![(label.clone(), row.performance.reserved_peak)],
        }
    }

    /// The samples whose times count: all but the first propagation from an empty pool, so that a single propagation
    /// has no times.
    fn timed_samples(row: &ReplayRow) -> &[Sample] {
        match row.performance.samples.as_slice() {
            [_, rest @ ..] if row.performance.warm_up == 0 && row.sequence.is_empty() => rest,
            all => all,
        }
    }

    /// The completed processes, each with its times; `time` maps a sample to its time.
    fn processes(
        &self,
        time: &dyn Fn(&Sample) -> Option<f64>,
    ) -> impl Iterator<Item = (&ReplayRow, Vec<f64>)> {
        let completed = self.rows.iter().filter(|row| row.performance.status == End::Complete);
        let timed =
            completed.map(move |row| (row, Self::timed_samples(row).iter().filter_map(time).collect()));
        timed.filter(|(_, times): &(_, Vec<f64>)| !times.is_empty())
    }

    /// The number of timed samples of all processes.
    pub(crate) fn sample_count(&self) -> usize {
        self.processes(&|sample| Some(as_real(sample.wall_ns))).map(|(_, times)| times.len()).sum()
    }

    /// Wall time of one propagation in nanoseconds; `None` if no propagation was completed. The interval is over the
    /// medians of processes if there are at least three, otherwise over samples.
    pub(crate) fn propagation_ns(&self) -> Option<Measured> {
        self.measured_time(&wall)
    }

    /// Median wall time of a propagation in nanoseconds for each completed process, by its repetition. On devices also
    /// by its start, as contenders of one repetition take turns there.
    pub(crate) fn process_ns(&self) -> BTreeMap<(u32, u64), f64> {
        let turn = |row: &ReplayRow| {
            let began = if row.device_name.is_empty() { 0 } else { row.started_ns };
            (row.repetition, began)
        };
        let timed = self.processes(&wall);
        timed.filter_map(|(row, times)| Some((turn(row), median(&times)?))).collect()
    }

    /// The host's time until all work of a propagation was enqueued, in nanoseconds.
    pub(crate) fn enqueue_ns(&self) -> Option<Measured> {
        self.measured_time(&|sample| per_propagation(sample, sample.enqueue_ns))
    }

    /// The device's time from the first to the last work of a propagation, in nanoseconds.
    pub(crate) fn device_ns(&self) -> Option<Measured> {
        self.measured_time(&|sample| per_propagation(sample, sample.device_ns))
    }

    /// CPU time of all threads for one propagation of one of them, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> Option<Measured> {
        self.measured_time(&|sample| self.cpu_of_thread(sample))
    }

    fn cpu_of_thread(&self, sample: &Sample) -> Option<f64> {
        let threads = f64::from(self.summary_row().threads.max(1));
        per_propagation(sample, sample.cpu_ns).map(|time| time / threads)
    }

    fn measured_time(&self, time: &dyn Fn(&Sample) -> Option<f64>) -> Option<Measured> {
        let values = self.process_medians(time);
        let center = median(&values)?;
        let samples: usize = self.processes(time).map(|(_, times)| times.len()).sum();
        let interval = || bootstrap_interval(&values, |draw| median(draw).unwrap_or(center), 0.95, DRAWS, 1);
        Some(Measured { median: center, interval: if samples < SAMPLES { None } else { interval() } })
    }

    /// The medians of processes if there are at least three, otherwise the samples.
    fn process_medians(&self, time: &dyn Fn(&Sample) -> Option<f64>) -> Vec<f64> {
        let processes: Vec<Vec<f64>> = self.processes(time).map(|(_, times)| times).collect();
        match processes.len() {
            0..3 => processes.concat(),
            _ => processes.iter().filter_map(|times| median(times)).collect(),
        }
    }

    /// Time of the calls for a request and its free in nanoseconds, if calls were timed separately.
    pub(crate) fn calls_ns(&self) -> Option<f64> {
        let Performance { alloc, free, .. } = self.summary_row().performance;
        Some(as_real(alloc?.median_ps + free?.median_ps) / 1e3)
    }

    /// Wall time of a propagation divided by its requests, in nanoseconds.
    pub(crate) fn wall_request_ns(&self) -> Option<f64> {
        self.per_request(&wall)
    }

    /// CPU time for a request and its free in one thread, in nanoseconds, including the work done to the memory.
    pub(crate) fn cpu_request_ns(&self) -> Option<f64> {
        self.per_request(&|sample| self.cpu_of_thread(sample))
    }

    fn per_request(&self, time: &dyn Fn(&Sample) -> Option<f64>) -> Option<f64> {
        median(&self.process_medians(time)).map(|time| time / as_real(self.summary_row().requests.max(1)))
    }

    /// The same without that of the empty loop of the same run, which it includes.
    pub(crate) fn cpu_above_loop_ns(&self, replays: &Replays) -> Option<f64> {
        let row = self.summary_row();
        let is_own = |other: &&Case| {
            let of = other.summary_row();
            let is_same_work = (&of.workload, &of.sequence, &of.instance, of.threads)
                == (&row.workload, &row.sequence, &row.instance, row.threads);
            let (device, machine) = (&other.place.device, &other.place.machine);
            let is_same_device = (device, machine) == (&self.place.device, &self.place.machine);
            is_same_work && is_same_device && run_of(of) == run_of(row)
        };
        let mut loops = replays.cases.iter().filter(|case| case.summary_row().contender == EMPTY_LOOP);
        let empty_loop = loops.find(is_own).filter(|_| row.contender != EMPTY_LOOP)?;
        Some(self.cpu_request_ns()? - empty_loop.cpu_request_ns()?)
    }

    /// Time that a thread waited for locks per request, in nanoseconds, if known: the median of the processes.
    pub(crate) fn lock_wait_ns(&self) -> Option<f64> {
        let waits: Vec<f64> = self.rows.iter().filter_map(lock_wait).collect();
        median(&waits)
    }
}

/// What identifies a run besides the machine, as far as rows show: the suite and the build.
fn run_of(row: &ReplayRow) -> (&str, &str, bool, &str, &str) {
    let Provenance { git_commit, git_dirty, rustc, flags, .. } = &row.provenance;
    (&row.suite, git_commit, *git_dirty, rustc, flags)
}

/// Time that a thread of a process waited for locks per request, in nanoseconds.
fn lock_wait(row: &ReplayRow) -> Option<f64> {
    let propagations = row.performance.timed_propagations() + u64::from(row.performance.warm_up);
    let requests = as_real(row.requests * propagations * u64::from(row.threads));
    row.performance.lock_wait_ns.filter(|_| requests > 0.0).map(|wait| as_real(wait) / requests)
}

/// How bad a status is: one corrupt process makes the whole case corrupt.
const fn status_badness(status: End) -> u8 {
    match status {
        End::Complete => 0,
        End::Unavailable => 1,
        End::OutOfMemory => 2,
        End::Failed => 3,
        End::Corrupt => 4,
    }
}

/// The row that represents the processes of a case; there is at least one.
fn summarize_rows(rows: &[ReplayRow]) -> ReplayRow {
    let served = rows.iter().find(|row| row.performance.status == End::Complete);
    let worst =
        rows.iter().rev().max_by_key(|row| status_badness(row.performance.status)).unwrap_or(&rows[0]);
    let most = |value: fn(&ReplayRow) -> u64| rows.iter().map(value).max().unwrap_or(0);
    let row = served.unwrap_or(&rows[0]).clone();
    let performance = Performance {
        status: worst.performance.status,
        reason: worst.performance.reason.clone(),
        is_steady: rows.iter().all(|row| row.performance.is_steady),
        alloc: call_time(rows, |row| row.performance.alloc),
        free: call_time(rows, |row| row.performance.free),
        reserved_peak: most(|row| row.performance.reserved_peak),
        used_peak: rows.iter().filter_map(|row| row.performance.used_peak).max(),
        physical_peak: rows.iter().filter_map(|row| row.performance.physical_peak).max(),
        device_allocations: most(|row| row.performance.device_allocations),
        search_steps: most(|row| row.performance.search_steps),
        ..row.run.performance
    };
    Row { run: ReplayRun { performance, ..row.run }, ..row }
}

/// Medians over the processes with timed calls.
fn call_time(rows: &[ReplayRow], calls: fn(&ReplayRow) -> Option<CallTime>) -> Option<CallTime> {
    let timed: Vec<CallTime> = rows.iter().filter_map(calls).collect();
    let middle = |value: fn(&CallTime) -> u64| {
        let mut values: Vec<u64> = timed.iter().map(value).collect();
        values.sort_unstable();
        // The upper median.
        values.get(values.len() / 2).copied()
    };
    Some(CallTime {
        median_ps: middle(|time| time.median_ps)?,
        p99_ps: middle(|time| time.p99_ps)?,
        batches: timed.iter().map(|time| time.batches).sum(),
    })
}

fn per_propagation(sample: &Sample, time: Option<u64>) -> Option<f64> {
    time.map(|time| as_real(time) / f64::from(sample.propagations.max(1)))
}

fn wall(sample: &Sample) -> Option<f64> {
    per_propagation(sample, Some(sample.wall_ns))
}

/// The contender, with its planner unless it plans by itself.
fn contender_label(row: &ReplayRow) -> String {
    match &row.planner {
        Some(planner) if !row.contender.starts_with("profile-guided") => {
            format!("{} ({planner})", row.contender)
        }
        _ => row.contender.clone(),
    }
}

type Order<'r> = (&'r str, Option<&'r str>, &'r str, Work, u32, Option<u64>, &'r [String]);

fn sort_key(row: &ReplayRow) -> Order<'_> {
    let planner = row.planner.as_deref();
    (&row.contender, planner, &row.device, row.work, row.threads, row.capacity, &row.sequence)
}

/// Everything that defines a case. On simulated memory, every machine holds the same bytes.
fn subject(row: &ReplayRow) -> (&str, &str, &str, Order<'_>) {
    let host = if row.device == "simulated" { "" } else { &row.provenance.host };
    (&row.instance, &row.device_name, host, sort_key(row))
}

/// After this many propagations an allocator has reached its steady state.
const ENOUGH: u64 = 5;

/// Ranks several plays of a subject: those from a suite, of whole propagations, and of enough propagations come first;
/// among these the one that ran last.
fn play_weight(rows: &[ReplayRow]) -> (bool, bool, bool, Option<u64>) {
    (
        rows.iter().any(|row| !row.suite.is_empty()),
        rows.iter().all(|row| row.until.is_none()),
        rows.iter()
            .any(|row| row.performance.timed_propagations() + u64::from(row.performance.warm_up) >= ENOUGH),
        rows.iter().map(|row| row.started_ns).max(),
    )
}

/// Rows by subject and repetition; with several builds or lengths, those with the highest weight.
fn latest_builds(mut rows: Vec<ReplayRow>) -> Vec<Vec<ReplayRow>> {
    rows.sort_by(|a, b| {
        let by_subject = (&*a.workload, subject(a)).cmp(&(&*b.workload, subject(b)));
        by_subject.then_with(|| (&a.cell, a.repetition).cmp(&(&b.cell, b.repetition)))
    });
    let subjects = rows.chunk_by(|a, b| a.workload == b.workload && subject(a) == subject(b));
    let latest =
        subjects.filter_map(|own| own.chunk_by(|a, b| a.cell == b.cell).max_by_key(|rows| play_weight(rows)));
    latest.map(<[ReplayRow]>::to_vec).collect()
}
