//! Runs the cells of one trace and judges them.

use std::io;
use std::path::Path;
use std::time::Duration;

use planlab_dsa::CancelToken;
use planlab_results::Record;

use super::cell::{Cell, Subject};
use super::judge::{Judgement, judge};
use super::kind::{Placement, perform};
use super::mailbox;
use super::messages::{CellRequest, PlacementSource};
use super::row::record;
use crate::cells::{CellContext, CellEnd, Order, Supervisor};
use crate::shell::clock::now_ns;
use crate::shell::exit::{Exit, Failure};
use crate::shell::quantity::as_nanoseconds;

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
    supervisor: Supervisor,
    samples: Samples,
}

impl Runner {
    /// A runner whose cells end early once `cancel` is set.
    pub(crate) fn new(cancel: CancelToken, samples: Samples) -> io::Result<Self> {
        Ok(Self { supervisor: Supervisor::new(cancel)?, samples })
    }

    /// The supervisor of the children.
    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    pub(crate) fn cancel(&self) -> &CancelToken {
        self.supervisor.cancel()
    }

    /// Runs the cells (which share their memory limit) in one child, and judges each.
    pub(crate) fn run<'i>(
        &self,
        subject: &Subject<'i>,
        cells: &[Cell],
        core: Option<usize>,
    ) -> io::Result<Vec<Judgement<'i>>> {
        let is_hinted = cells.iter().any(|cell| cell.hints.is_some());
        let source = PlacementSource {
            source: subject.source.clone(),
            digest: subject.digest,
            buffers: subject.instance.len(),
            permissions: subject.instance.in_place().len(),
            hints: subject.hints.as_deref().filter(|_| is_hinted).map(<[_]>::to_vec),
        };
        let asked: Vec<CellRequest> = cells.iter().map(|cell| ask(cell, self.samples)).collect();
        let memory = cells.first().and_then(|cell| cell.memory);
        let order = Order { source: &source, cells: &asked, memory, core };
        let ends = self.supervisor.run::<Placement>(&order)?;
        let judged = ends.into_iter().zip(cells).map(|(end, cell)| judge(end, subject.instance, cell.target));
        Ok(judged.collect())
    }

    /// Runs one cell.
    pub(crate) fn run_one<'i>(&self, subject: &Subject<'i>, cell: &Cell) -> Result<Judgement<'i>, Failure> {
        let judged = self.run(subject, std::slice::from_ref(cell), None)?.pop();
        judged.ok_or_else(|| Failure::new(Exit::Incomplete, "the child did not answer for its cell"))
    }

    /// Runs one cell outside of a suite, and makes its row.
    pub(crate) fn run_alone<'i>(
        &self,
        subject: &Subject<'i>,
        cell: &Cell,
    ) -> Result<(Judgement<'i>, Record), Failure> {
        let started_ns = now_ns();
        let judged = self.run_one(subject, cell)?;
        let row = record(cell, subject, &judged, None, self.supervisor.context("", 1, started_ns));
        Ok((judged, row))
    }
}

/// The request to a child for a cell.
fn ask(cell: &Cell, samples: Samples) -> CellRequest {
    CellRequest {
        planner: cell.planner.clone(),
        seed: cell.seed,
        wall_ns: cell.wall.map(as_nanoseconds),
        work: cell.work,
        target: cell.target,
        threads: cell.threads,
        hinted: cell.hints.is_some(),
        repeats: samples.repeats,
        repeat_below_ns: as_nanoseconds(samples.single_above),
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
    let (path, instance) = (scratch.join("mailbox"), subject.instance);
    let mut context = CellContext { mailbox: &path, cancel, begin: &mut || Ok(()) };
    let answer = perform(instance, subject.hints.as_ref(), &ask(cell, Samples::ONCE), &mut context)?;
    let end = CellEnd::<Placement> {
        end: Ok(answer),
        kept: mailbox::read(&path, instance.len(), instance.in_place().len()),
        stderr_tail: String::new(),
        ran_out_of_memory: false,
        interrupted: cancel.is_cancelled(),
    };
    Ok(judge(end, instance, cell.target))
}
