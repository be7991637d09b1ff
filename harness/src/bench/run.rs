//! Runs the cells of a suite that have no row yet, and keeps each row as it comes.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use planlab_dsa::Descriptor;
use planlab_results::{Lane, Record, Status, Store};
use planlab_workloads::Trace;
use rand::SeedableRng;
use rand::seq::SliceRandom;

use crate::cli::Retry;
use crate::inputs::{self, Source};
use crate::kinds::placement::Cell;
use crate::kinds::placement::Judgement;
use crate::kinds::placement::{Runner, Subject, record};
use crate::shell::clock::now_ns;
use crate::shell::exit::Failure;
use crate::shell::output::{note, printable};
use crate::shell::progress::Progress;
use crate::shell::provenance;
use crate::shell::quantity::memory;

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

/// A request to run cells.
pub(crate) struct Order<'a> {
    pub(crate) suite: &'a str,
    pub(crate) tasks: Vec<Task>,
    pub(crate) jobs: u32,
    pub(crate) shard: Option<(u64, u64)>,
    pub(crate) retry: Option<Retry>,
    /// Seed of the order in which cells run.
    pub(crate) seed: u64,
    /// Whether each cell has a process of its own.
    pub(crate) alone: bool,
}

/// The result of a bench.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The rows of all requested cells, including those of earlier runs.
    pub(crate) rows: Vec<Record>,
    /// The number of cells that were run now.
    pub(crate) ran: usize,
    pub(crate) interrupted: bool,
    /// Workloads that could not be read, and why.
    pub(crate) unreadable: Vec<(String, String)>,
    /// Why the bench stopped: the store cannot be written, or no child can be started.
    pub(crate) failure: Option<Failure>,
    /// Rows of this run that could not be stored.
    pub(crate) lost: Vec<Record>,
}

struct Shared<'a> {
    order: &'a Order<'a>,
    store: Mutex<&'a mut Store>,
    queue: Mutex<VecDeque<&'a Task>>,
    tally: Mutex<Tally>,
    failure: Mutex<Option<Failure>>,
    runner: &'a Runner,
    bar: Progress,
    on_row: &'a (dyn Fn(&Record) + Sync),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs every cell that has no row yet. `on_row` receives each row as it comes, including old ones.
pub(crate) fn run(
    order: &Order<'_>,
    store: &mut Store,
    runner: &Runner,
    on_row: &(dyn Fn(&Record) + Sync),
) -> Tally {
    let mut queue: Vec<&Task> = order.tasks.iter().collect();
    // Shuffled, so that a slow minute of the machine does not affect one family of nets alone.
    queue.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(order.seed));
    let cells = order.tasks.iter().map(|task| task.cells.len() as u64).sum();
    let shared = Shared {
        order,
        store: Mutex::new(store),
        queue: Mutex::new(queue.into()),
        tally: Mutex::new(Tally::default()),
        failure: Mutex::new(None),
        runner,
        bar: Progress::new(cells, "cells"),
        on_row,
    };
    thread::scope(|scope| {
        for worker in 0..order.jobs {
            let shared = &shared;
            scope.spawn(move || work(shared, worker));
        }
    });
    shared.bar.finish_and_clear();
    let mut tally = shared.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.interrupted = runner.cancel().is_cancelled();
    tally.failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally
}

fn work(shared: &Shared<'_>, worker: u32) {
    loop {
        let stopped = shared.runner.cancel().is_cancelled() || lock(&shared.failure).is_some();
        let task = if stopped { None } else { lock(&shared.queue).pop_front() };
        let Some(task) = task else { return };
        if let Err(failure) = perform(shared, task, worker) {
            lock(&shared.failure).get_or_insert(failure);
            return;
        }
    }
}

fn perform(shared: &Shared<'_>, task: &Task, worker: u32) -> Result<(), Failure> {
    shared.bar.set_message(printable(&task.source.name).into_owned());
    let trace = match inputs::open(&task.source) {
        Ok(trace) => trace,
        Err(failure) => {
            let reason = format!("{:#}", failure.error);
            lock(&shared.tally).unreadable.push((task.source.name.clone(), reason));
            shared.bar.inc(task.cells.len() as u64);
            return Ok(());
        }
    };
    let digest = trace.instance.digest();
    // A bench compares planners on the problem alone, so its cells get no hints.
    let subject = Subject { source: &task.source, instance: &trace.instance, digest, hints: None };
    let fresh: Vec<Cell> = task.cells.iter().filter(|cell| shared.is_due(cell, &subject)).cloned().collect();
    if !fresh.is_empty() || shared.order.retry == Some(Retry::Failed) {
        shared.keep_instance(&trace)?;
    }
    for batch in batches(fresh, trace.instance.len(), shared.order) {
        if shared.runner.cancel().is_cancelled() {
            return Ok(());
        }
        if let [cell] = batch.as_slice()
            && shared.is_hopeless(cell, &subject)
        {
            shared.bar.inc(1);
            continue;
        }
        shared.run_batch(&subject, &batch, worker)?;
    }
    Ok(())
}

impl Shared<'_> {
    /// Whether a cell is due: in this shard, and without a row that counts. An old row goes to `on_row`.
    fn is_due(&self, cell: &Cell, subject: &Subject<'_>) -> bool {
        let key = cell.key(subject.digest);
        if !in_shard(&key, self.order.shard) {
            self.bar.skip();
            return false;
        }
        let old = lock(&self.store).record(&key, cell.repetition).cloned();
        let folder = lock(&self.store).dir().to_path_buf();
        let serves = |row: &Record| is_served(row, self.order) && !is_plan_lost(row, self.order, &folder);
        let Some(old) = old.filter(serves) else { return true };
        self.bar.skip();
        // Workloads with the same content share a row, which is shown under the requested name.
        let old = Record { workload: cell.workload.as_str().into(), ..old };
        (self.on_row)(&old);
        lock(&self.tally).rows.push(old);
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

    fn run_batch(&self, subject: &Subject<'_>, batch: &[Cell], worker: u32) -> Result<(), Failure> {
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
            let context = self.runner.supervisor().context(self.order.suite, self.order.jobs, started_ns);
            rows.push(record(cell, subject, judgement, plan.flatten(), context));
        }
        let kept = kept.and_then(|()| Ok(lock(&self.store).append_all(&rows)?));
        self.bar.inc(rows.len() as u64);
        rows.iter().for_each(|row| (self.on_row)(row));
        let mut tally = lock(&self.tally);
        if kept.is_err() {
            tally.lost.extend(rows);
            return kept;
        }
        tally.ran += rows.len();
        tally.rows.extend(rows);
        Ok(())
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
        .map_or_else(|| "no plan".to_owned(), |height| format!("height {}", memory(height.get())));
    let bound = memory(judgement.bound.value.get());
    note(&format!("interrupted: {} on {}: {height}, bound {bound} so far", cell.planner, cell.workload));
}

/// Whether a cell belongs to part i of n. Its key decides, so all machines agree.
pub(crate) fn in_shard(key: &str, shard: Option<(u64, u64)>) -> bool {
    let Some((i, n)) = shard else { return true };
    u64::from_str_radix(&key[..16], 16).is_ok_and(|number| number % n == i - 1)
}

/// Whether an earlier row counts. It does not if it is to be retried. If times are ranked, it also does not if its time
/// was taken beside other cells or with another build.
fn is_served(row: &Record, order: &Order<'_>) -> bool {
    let timed = row.lane == Lane::Timing && row.provenance.flags == provenance::here(1).flags;
    !is_retried(row.status, order.retry) && (order.jobs > 1 || timed)
}

/// Whether a row's plan is missing from this folder and has to be made again.
#[cfg(feature = "reports")]
fn is_plan_lost(row: &Record, order: &Order<'_>, folder: &Path) -> bool {
    let is_lost =
        |plan: &String| !plan.parse().is_ok_and(|digest| planlab_results::load_plan(folder, digest).is_ok());
    order.retry == Some(Retry::Failed) && row.plan.as_ref().is_some_and(is_lost)
}

#[cfg(not(feature = "reports"))]
const fn is_plan_lost(_row: &Record, _order: &Order<'_>, _folder: &Path) -> bool {
    false
}

/// Whether the planner ran out of time or gave up before it had an answer.
fn is_unanswered(row: &Record) -> bool {
    matches!(row.status, Status::Unknown | Status::Timeout)
}

pub(crate) fn is_retried(status: Status, retry: Option<Retry>) -> bool {
    match retry {
        _ if status == Status::Interrupted => true,
        Some(Retry::Failed) => status.is_failure(),
        Some(Retry::Timeout) => status == Status::Timeout,
        None => false,
    }
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
fn batches(cells: Vec<Cell>, buffers: usize, order: &Order<'_>) -> Vec<Vec<Cell>> {
    let mut cells = cells;
    cells.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(order.seed));
    let quick = |cell: &Cell| !order.alone && buffers <= BATCH_BUFFERS && is_quick(&cell.planner);
    let (together, alone): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(quick);
    let mut alone = alone;
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

fn is_quick(planner: &str) -> bool {
    let descriptor = planlab_solvers::planner(planner).map(|planner| planner.descriptor());
    descriptor.is_some_and(|descriptor| is_quick_planner(&descriptor))
}

/// Whether a planner is quick at any size, so that `compare` and batches use it.
pub(crate) fn is_quick_planner(descriptor: &Descriptor) -> bool {
    descriptor.practical.is_none()
}

/// The cells still to be run, each with the longest wall time of its earlier rows (same planner and workload, any
/// version), in nanoseconds.
///
/// # Errors
///
/// If a workload cannot be read.
pub(crate) fn left(
    order: &Order<'_>,
    rows: &[Record],
    folder: &Path,
) -> Result<Vec<(Cell, Option<u64>)>, Failure> {
    let known: BTreeMap<(&str, u32), &Record> =
        rows.iter().map(|row| ((row.cell.as_str(), row.repetition), row)).collect();
    let mut left = Vec::new();
    for task in &order.tasks {
        let digest = inputs::open(&task.source)?.instance.digest();
        for cell in &task.cells {
            let key = cell.key(digest);
            let old = known.get(&(key.as_str(), cell.repetition));
            let first = known.get(&(key.as_str(), 0)).filter(|_| cell.repetition > 0);
            let serves = |row: &&&Record| is_served(row, order) && !is_plan_lost(row, order, folder);
            let done = old.filter(serves).is_some() || first.is_some_and(|row| is_unanswered(row));
            if in_shard(&key, order.shard) && !done {
                left.push((cell.clone(), earlier_time(cell, rows)));
            }
        }
    }
    Ok(left)
}

/// The planning time of all samples and the warm-up, from the last bench with this cell.
fn earlier_time(cell: &Cell, rows: &[Record]) -> Option<u64> {
    let same = rows.iter().filter(|row| row.planner == cell.planner && cell.workload == row.workload);
    let time =
        |row: &Record| row.samples_ns.iter().sum::<u64>() + row.samples_ns.first().copied().unwrap_or(0);
    same.map(time).max()
}

/// Opens the store and reports its notices.
pub(crate) fn open_store(folder: &Path, notice: &dyn Fn(&str)) -> Result<Store, Failure> {
    let store = Store::open(folder)?;
    store.notices().iter().for_each(|text| notice(&text.to_string()));
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_belongs_to_exactly_one_shard() {
        for number in 0..100_u64 {
            let key = planlab_dsa::Digest::of_bytes(&number.to_le_bytes()).to_string();
            let shards = (1..=7).filter(|&i| in_shard(&key, Some((i, 7)))).count();
            assert_eq!(shards, 1, "{key}");
        }
    }

    #[test]
    fn only_what_is_asked_for_is_retried() {
        assert!(is_retried(Status::Interrupted, None));
        assert!(!is_retried(Status::Crashed, None));
        assert!(is_retried(Status::Crashed, Some(Retry::Failed)));
        assert!(!is_retried(Status::Timeout, Some(Retry::Failed)));
        assert!(is_retried(Status::Timeout, Some(Retry::Timeout)));
        assert!(!is_retried(Status::Optimal, Some(Retry::Failed)));
    }
}
