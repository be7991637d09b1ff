//! Runs the cells of one trace: starts children, judges them, makes rows.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use planlab_dsa::{Bytes, CancelToken, Digest, Instance, Scope};
use planlab_files::TemporaryFolder;
use planlab_results::{Lane, Provenance, Record, SCHEMA};

use super::cell::Cell;
use super::judge::{Judgement, judge};
use super::protocol::{CellRequest, Request};
use super::supervisor::{self, CellEnd, Watch};
use super::{child, mailbox};
use crate::inputs::{Hints, Source};
use crate::process::limits::Mechanism;
use crate::shell::exit::Failure;
use crate::shell::provenance;
use crate::shell::quantity::nanoseconds;
use crate::shell::target::scratch_in_memory;

/// How often a cell is timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Samples {
    /// Timed runs of a quick cell after the first, which warms up.
    repeats: u32,
    /// A cell whose first run takes longer is not repeated.
    single_above: Duration,
}

impl Samples {
    /// One timed run.
    pub(crate) const ONCE: Self = Self { repeats: 0, single_above: Duration::ZERO };

    /// `count` runs after a warm-up, or only the first one if it takes longer than `single_above` seconds.
    pub(crate) fn new(count: u32, single_above: f64) -> Self {
        let single_above = Duration::try_from_secs_f64(single_above).unwrap_or(Duration::MAX);
        Self { repeats: count, single_above }
    }
}

/// Starts children and judges their answers.
pub(crate) struct Runner {
    mailboxes: TemporaryFolder,
    next: AtomicU64,
    mechanism: Mechanism,
    cancel: CancelToken,
    samples: Samples,
}

/// One trace, ready for cells.
pub(crate) struct Subject<'i> {
    pub(crate) source: &'i Source,
    pub(crate) instance: &'i Instance,
    pub(crate) digest: Digest,
    /// Offsets to start from, for the cells with hints.
    pub(crate) hints: Option<Hints>,
}

impl Runner {
    /// A runner whose cells end early once `cancel` is set.
    pub(crate) fn new(cancel: CancelToken, samples: Samples) -> io::Result<Self> {
        let mailboxes = scratch_in_memory()?;
        Ok(Self { mailboxes, next: AtomicU64::new(0), mechanism: Mechanism::detect(), cancel, samples })
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    pub(crate) fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// Runs the cells (which share their memory limit) in one child, and judges each.
    pub(crate) fn run<'i>(
        &self,
        subject: &Subject<'i>,
        cells: &[Cell],
        core: Option<usize>,
    ) -> io::Result<Vec<Judgement<'i>>> {
        let folder = self.mailboxes.path().join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir(&folder)?;
        let request = Request {
            source: subject.source.clone(),
            parent: std::process::id(),
            mailboxes: folder.clone(),
            address_space: None,
            core,
            hints: subject.hints.as_deref().filter(|_| cells.iter().any(is_hinted)).map(<[_]>::to_vec),
            cells: cells.iter().map(|cell| ask(cell, self.samples)).collect(),
        };
        let memory = cells.first().and_then(|cell| cell.memory);
        let watch = Watch { memory, mechanism: self.mechanism, cancel: self.cancel.clone() };
        let ends = supervisor::run(&request, subject.instance, &watch)?;
        // A program may have moved it, or filled it with what cannot be removed: the folder around it goes at the end.
        let _ = std::fs::remove_dir_all(&folder);
        let judged = ends.into_iter().zip(cells).map(|(end, cell)| judge(end, subject.instance, cell.target));
        Ok(judged.collect())
    }
}

fn is_hinted(cell: &Cell) -> bool {
    cell.hints.is_some()
}

/// The request to a child for a cell.
pub(crate) fn ask(cell: &Cell, samples: Samples) -> CellRequest {
    CellRequest {
        planner: cell.planner.clone(),
        seed: cell.seed,
        wall_ns: cell.wall.map(nanoseconds),
        work: cell.work,
        target: cell.target,
        threads: cell.threads,
        hinted: is_hinted(cell),
        repeats: samples.repeats,
        repeat_below_ns: nanoseconds(samples.single_above),
    }
}

/// Runs a cell in this process, without isolation. `scratch`: a folder for its mailbox.
///
/// # Errors
///
/// If there is no such planner, or the mailbox cannot be written.
pub(crate) fn in_process<'i>(
    cell: &Cell,
    subject: &Subject<'i>,
    cancel: &CancelToken,
    scratch: &Path,
) -> Result<Judgement<'i>, Failure> {
    let path = scratch.join("mailbox");
    let instance = subject.instance;
    let asked = ask(cell, Samples::ONCE);
    let answer = child::perform(instance, &asked, subject.hints.as_ref(), &path, cancel, &mut || Ok(()))?;
    let (plan, bound) = mailbox::read(&path, instance.len(), instance.in_place().len());
    let end = CellEnd {
        end: Ok(answer),
        plan,
        bound,
        stderr_tail: String::new(),
        interrupted: cancel.is_cancelled(),
    };
    Ok(judge(end, instance, cell.target))
}

/// The row's fields besides the judgement.
pub(crate) struct RowContext<'a> {
    pub(crate) lane: Lane,
    pub(crate) suite: &'a str,
    pub(crate) mechanism: Mechanism,
    pub(crate) started_ns: u64,
    pub(crate) provenance: Provenance,
}

impl RowContext<'static> {
    /// The context of a cell without a suite.
    pub(crate) fn of(runner: &Runner, started_ns: u64) -> Self {
        Self {
            lane: Lane::Timing,
            suite: "",
            mechanism: runner.mechanism(),
            started_ns,
            provenance: provenance::here(1),
        }
    }
}

/// The row of a judged cell; `plan` is the digest under which its plan is kept.
pub(crate) fn record(
    cell: &Cell,
    subject: &Subject<'_>,
    judgement: &Judgement<'_>,
    plan: Option<Digest>,
    context: RowContext<'_>,
) -> Record {
    Record {
        schema: SCHEMA,
        cell: cell.key(subject.digest),
        repetition: cell.repetition,
        lane: context.lane,
        suite: context.suite.to_owned(),
        workload: cell.workload.as_str().into(),
        instance: subject.digest.to_string(),
        buffers: subject.instance.len() as u64,
        planner: cell.planner.clone(),
        planner_version: cell.planner_version(),
        parameters: cell.parameters(),
        seed: cell.seed,
        wall_limit_ns: cell.wall.map(nanoseconds),
        memory_limit_bytes: cell.memory,
        work_limit: cell.work,
        target_bytes: cell.target,
        mechanism: context.mechanism.name().to_owned(),
        status: judgement.status,
        stop: judgement.stop,
        reason: judgement.reason.clone(),
        exit_code: judgement.exit_code,
        signal: judgement.signal,
        stderr_tail: judgement.stderr_tail.clone(),
        height: judgement.height().map(|height| height.get()),
        load: subject.instance.load_without_in_place().bytes.get(),
        relaxed_load: subject.instance.load().bytes.get(),
        bound: judgement.bound.value.get(),
        bound_evidence: judgement.bound.evidence,
        bound_scope: Scope::Any,
        hand_overs: judgement.plan.as_ref().map_or(0, |plan| plan.in_place().len() as u64),
        samples_ns: judgement.samples_ns.clone(),
        reported_ns: judgement.reported_ns,
        orders_run: None,
        orders_failed: None,
        order_bound: None,
        bound_without_in_place: judgement.without_in_place.map(Bytes::get),
        cpu_ns: judgement.cpu_ns,
        work: judgement.work,
        peak_rss_bytes: judgement.peak_rss_bytes,
        trajectory: judgement.trajectory.clone(),
        plan: plan.map(|digest| digest.to_string()),
        started_ns: context.started_ns,
        provenance: context.provenance,
    }
}
