//! Runs the planners of a suite.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use planlab_results::{Lane, Record, Status, Store};
use planlab_workloads::Trace;
use rand::SeedableRng;
use rand::seq::SliceRandom;

use super::book::{Book, Rule, Tally, lock};
use crate::cli::Retry;
use crate::inputs::{self, Source};
use crate::kinds::placement::{Cell, Judgement, Runner, Subject, record};
use crate::shell::clock::now_ns;
use crate::shell::exit::Failure;
use crate::shell::output::print_note;
use crate::shell::provenance;
use crate::shell::quantity::format_memory;

/// Cells of quick planners that share a child.
const BATCH: usize = 16;
/// Above this number of buffers every cell has a child of its own.
const BATCH_BUFFERS: usize = 20_000;

/// The cells of one workload.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) source: Source,
    pub(crate) cells: Vec<Cell>,
}

/// A request to run planners.
pub(crate) struct Planners<'a> {
    pub(crate) suite: &'a str,
    pub(crate) tasks: Vec<Task>,
    pub(crate) jobs: u32,
    pub(crate) rule: Rule,
    /// Seed of the order in which cells run.
    pub(crate) seed: u64,
    /// Whether each cell has a process of its own.
    pub(crate) alone: bool,
}

struct Running<'a> {
    planners: &'a Planners<'a>,
    store: Mutex<&'a mut Store>,
    runner: &'a Runner,
}

impl Planners<'_> {
    /// Runs every cell that has no row yet. `on_row` receives each row as it comes, including old ones.
    pub(crate) fn run(
        &self,
        store: &mut Store,
        runner: &Runner,
        on_row: &(dyn Fn(&Record) + Sync),
    ) -> Tally<Record> {
        let running = Running { planners: self, store: Mutex::new(store), runner };
        let mut tasks: Vec<&Task> = self.tasks.iter().collect();
        // Shuffled, so that a slow minute of the machine does not affect one family of nets alone.
        tasks.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(self.seed));
        let cells = self.tasks.iter().map(|task| task.cells.len()).sum();
        let book = Book::new((cells, "cells"), runner.cancel(), on_row);
        book.fill(tasks, self.jobs, |task, worker, book| running.perform(task, worker, book))
    }

    /// The cells still to be run, each with the longest wall time of its earlier rows (same planner and workload, any
    /// version), in nanoseconds.
    ///
    /// # Errors
    ///
    /// If a workload cannot be read.
    pub(crate) fn left(&self, rows: &[Record], folder: &Path) -> Result<Vec<(Cell, Option<u64>)>, Failure> {
        let known: BTreeMap<(&str, u32), &Record> =
            rows.iter().map(|row| ((row.cell.as_str(), row.repetition), row)).collect();
        let mut left = Vec::new();
        for task in &self.tasks {
            let digest = inputs::open_trace(&task.source)?.instance.digest();
            for cell in &task.cells {
                let key = cell.key(digest);
                let old = known.get(&(key.as_str(), cell.repetition));
                let first = known.get(&(key.as_str(), 0)).filter(|_| cell.repetition > 0);
                let is_done = old.is_some_and(|row| self.counts(row, folder))
                    || first.is_some_and(|row| is_unanswered(row));
                if self.rule.has(&key) && !is_done {
                    left.push((cell.clone(), earlier_time(cell, rows)));
                }
            }
        }
        Ok(left)
    }

    /// Whether an earlier row counts. If times are ranked, it does not if its time was taken beside other cells or with
    /// another build.
    fn counts(&self, row: &Record, folder: &Path) -> bool {
        let is_timed =
            || row.lane == Lane::Timing && row.provenance.flags == provenance::this_machine(1).flags;
        self.rule.counts(row.status)
            && (self.jobs > 1 || is_timed())
            && !(self.makes_plans_again() && is_plan_lost(row, folder))
    }

    /// Whether plans that are missing from the folder are made again.
    fn makes_plans_again(&self) -> bool {
        cfg!(feature = "reports") && self.rule.retry == Some(Retry::Failed)
    }
}

impl Running<'_> {
    fn perform(&self, task: &Task, worker: u32, book: &Book<'_, Record>) -> Result<(), Failure> {
        book.begin(&task.source.name);
        let trace = inputs::open_trace(&task.source);
        let Some(trace) = book.accept(&task.source.name, task.cells.len(), trace) else { return Ok(()) };
        let digest = trace.instance.digest();
        // A bench compares planners on the problem alone, so its cells get no hints.
        let subject = Subject { source: &task.source, instance: &trace.instance, digest, hints: None };
        let is_due = |cell: &&Cell| self.is_due(cell, &subject, book);
        let due: Vec<Cell> = task.cells.iter().filter(is_due).cloned().collect();
        if !due.is_empty() || self.planners.makes_plans_again() {
            self.keep_instance(&trace)?;
        }
        for batch in batches(due, trace.instance.len(), self.planners) {
            if book.is_over() {
                return Ok(());
            }
            match batch.as_slice() {
                [cell] if self.is_hopeless(cell, &subject) => book.pass(1),
                batch => self.run_batch(&subject, batch, worker, book)?,
            }
        }
        Ok(())
    }

    /// Whether a cell is due: in this shard, and without a row that counts, which is entered.
    fn is_due(&self, cell: &Cell, subject: &Subject<'_>, book: &Book<'_, Record>) -> bool {
        let key = cell.key(subject.digest);
        let mut shown = None;
        if self.planners.rule.has(&key) {
            let store = lock(&self.store);
            let old = store.record(&key, cell.repetition);
            let Some(old) = old.filter(|row| self.planners.counts(row, store.dir())) else { return true };
            // Workloads with the same content share a row, which is shown under the requested name.
            shown = Some(old.clone().with(|row| row.workload = cell.workload.as_str().into()));
        }
        book.skip(shown);
        false
    }

    /// Whether the cell's first repetition ended without an answer: each further one would take the whole limit again.
    fn is_hopeless(&self, cell: &Cell, subject: &Subject<'_>) -> bool {
        cell.repetition > 0
            && lock(&self.store).record(&cell.key(subject.digest), 0).is_some_and(is_unanswered)
    }

    #[cfg(feature = "reports")]
    fn keep_instance(&self, trace: &Trace) -> Result<(), Failure> {
        lock(&self.store).put_instance(&trace.instance, &trace.labels)?;
        Ok(())
    }

    #[cfg(not(feature = "reports"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the lean build keeps rows alone")]
    fn keep_instance(&self, _trace: &Trace) -> Result<(), Failure> {
        Ok(())
    }

    fn run_batch(
        &self,
        subject: &Subject<'_>,
        batch: &[Cell],
        worker: u32,
        book: &Book<'_, Record>,
    ) -> Result<(), Failure> {
        let started_ns = now_ns();
        let judgements = self.runner.run(subject, batch, core(worker, batch))?;
        let mut rows = Vec::with_capacity(batch.len());
        let mut kept = Ok(());
        for (cell, judgement) in batch.iter().zip(&judgements) {
            if judgement.ending.status == Status::Interrupted {
                tell_interrupted(cell, judgement);
                continue;
            }
            let plan = judgement.plan.as_ref().map(|plan| self.keep_plan(plan.as_plan())).transpose();
            let plan = plan.unwrap_or_else(|failure| {
                kept = Err(failure);
                None
            });
            let Planners { suite, jobs, .. } = *self.planners;
            let context = self.runner.supervisor().context(suite, jobs, started_ns);
            rows.push(record(cell, subject, judgement, plan.flatten(), context));
        }
        let kept = kept.and_then(|()| Ok(lock(&self.store).append_all(&rows)?));
        book.enter(rows, kept)
    }

    #[cfg(feature = "reports")]
    fn keep_plan(&self, plan: &planlab_dsa::Plan) -> Result<Option<planlab_dsa::Digest>, Failure> {
        Ok(Some(lock(&self.store).put_plan(plan)?))
    }

    #[cfg(not(feature = "reports"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the lean build keeps rows alone")]
    fn keep_plan(&self, _plan: &planlab_dsa::Plan) -> Result<Option<planlab_dsa::Digest>, Failure> {
        Ok(None)
    }
}

/// Reports what an interrupted cell had found; it gets no row.
fn tell_interrupted(cell: &Cell, judgement: &Judgement<'_>) {
    let height = judgement
        .height()
        .map_or_else(|| "no plan".to_owned(), |height| format!("height {}", format_memory(height.get())));
    let bound = format_memory(judgement.bound.value.get());
    print_note(&format!(
        "interrupted: {} on {}: {height}, bound {bound} so far",
        cell.planner, cell.workload
    ));
}

/// Whether a row's plan is missing from this folder.
#[cfg(feature = "reports")]
fn is_plan_lost(row: &Record, folder: &Path) -> bool {
    let is_lost =
        |plan: &String| !plan.parse().is_ok_and(|digest| planlab_results::load_plan(folder, digest).is_ok());
    row.plan.as_ref().is_some_and(is_lost)
}

#[cfg(not(feature = "reports"))]
const fn is_plan_lost(_row: &Record, _folder: &Path) -> bool {
    false
}

/// Whether the planner ran out of time or gave up before it had an answer.
fn is_unanswered(row: &Record) -> bool {
    matches!(row.status, Status::Unknown | Status::Timeout)
}

/// The core for a child: counted from the last, because the system uses the first ones most.
fn core(worker: u32, batch: &[Cell]) -> Option<usize> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let alone = batch.iter().all(|cell| cell.threads == 1);
    let worker = worker as usize;
    (alone && worker < cores && is_first_core_usable(cores)).then(|| cores - 1 - worker)
}

/// Whether all cores from 0 on may be used. If not, children are not pinned and the kernel places them.
fn is_first_core_usable(cores: usize) -> bool {
    rustix::thread::sched_getaffinity(None).is_ok_and(|set| (0..cores).all(|core| set.is_set(core)))
}

/// Groups cells by child, repetition by repetition, shuffled within each. Quick planners on small instances share a
/// child.
fn batches(mut cells: Vec<Cell>, buffers: usize, order: &Planners<'_>) -> Vec<Vec<Cell>> {
    cells.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(order.seed));
    let quick = |cell: &Cell| !order.alone && buffers <= BATCH_BUFFERS && is_quick(&cell.planner);
    let (together, mut alone): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(quick);
    // A stable sort: compared planners take turns, so a slow minute of the machine affects all of them.
    alone.sort_by_key(|cell| cell.repetition);
    let mut batches: Vec<Vec<Cell>> = together.chunks(BATCH).map(<[Cell]>::to_vec).collect();
    batches.extend(alone.into_iter().map(|cell| vec![cell]));
    batches.into_iter().flat_map(same_memory).collect()
}

/// Splits a batch by memory limit, as a child has one limit.
fn same_memory(batch: Vec<Cell>) -> Vec<Vec<Cell>> {
    if batch.windows(2).all(|pair| pair[0].memory == pair[1].memory) {
        return vec![batch];
    }
    batch.into_iter().map(|cell| vec![cell]).collect()
}

/// Whether a planner is quick at any size, so that batches use it.
fn is_quick(planner: &str) -> bool {
    let planner = planlab_solvers::find_planner(planner);
    planner.is_some_and(|planner| planner.descriptor().practical.is_none())
}

/// The planning time of all samples and the warm-up, from the last bench with this cell.
fn earlier_time(cell: &Cell, rows: &[Record]) -> Option<u64> {
    let same = rows.iter().filter(|row| row.planner == cell.planner && cell.workload == row.workload);
    let time =
        |row: &Record| row.samples_ns.iter().sum::<u64>() + row.samples_ns.first().copied().unwrap_or(0);
    same.map(time).max()
}
