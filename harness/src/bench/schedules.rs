//! Runs the schedules of a suite that have no row yet, and keeps each row as it comes.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use planlab_results::schedule::ScheduleRow;
use planlab_results::{Status, Store};
use planlab_workloads::suites::SchedulePick;
use planlab_workloads::{Suite, glob};
use rand::SeedableRng;
use rand::seq::SliceRandom;

use crate::bench::run::{in_shard, is_retried};
use crate::cli::{BenchArgs, Retry};
use crate::kinds::schedule::{Cell, Judgement, Question, Runner, keep, known, matching};
use crate::shell::clock::now_ns;
use crate::shell::exit::Failure;
use crate::shell::output::{note, printable};
use crate::shell::progress::Progress;

/// Default wall time of a scheduler.
const WALL: Duration = Duration::from_secs(60);
/// Default wall time of the planner.
const PLANNER_WALL: Duration = Duration::from_secs(10);
const PLANNER: &str = "portfolio";

/// The cells of one problem.
pub(crate) struct Task {
    pub(crate) question: Question,
    pub(crate) cells: Vec<Cell>,
}

/// A request to run schedules.
pub(crate) struct Schedules<'a> {
    pub(crate) suite: &'a str,
    pub(crate) tasks: Vec<Task>,
    pub(crate) shard: Option<(u64, u64)>,
    pub(crate) retry: Option<Retry>,
    pub(crate) seed: u64,
    /// The number of cells that run at a time.
    pub(crate) jobs: u32,
}

/// The result of a request.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The rows of all requested cells, including those of earlier runs.
    pub(crate) rows: Vec<ScheduleRow>,
    /// The number of cells that were run now.
    pub(crate) ran: usize,
    pub(crate) interrupted: bool,
}

/// The schedules to run: those of the suite, unless planners are named.
pub(crate) fn tasks(args: &BenchArgs, suite: Option<&Suite>) -> Result<Vec<Task>, Failure> {
    let Some(suite) = suite.filter(|_| args.planners.is_empty()) else { return Ok(Vec::new()) };
    let chosen = matching(&args.schedulers)?;
    let mut tasks: Vec<Task> = Vec::new();
    // The picks of one problem follow each other, so the problem is built once.
    let mut last: Option<(SchedulePick, usize)> = None;
    for pick in suite.schedules(&known())? {
        let key = pick.spec.to_string();
        let is_wanted = args.workloads.is_empty() || args.workloads.iter().any(|pattern| glob(pattern, &key));
        if !is_wanted || !chosen.contains(&pick.scheduler) {
            continue;
        }
        let known = last.as_ref().filter(|(last, _)| is_of_one_problem(last, &pick)).map(|(_, at)| *at);
        let at = match known {
            Some(at) => at,
            None => place_of(question(&pick)?, &mut tasks),
        };
        last = Some((pick.clone(), at));
        for repetition in 0..args.reps.unwrap_or(pick.repetitions) {
            let cell = cell(args, &pick, repetition);
            if !tasks[at].cells.contains(&cell) {
                tasks[at].cells.push(cell);
            }
        }
    }
    Ok(tasks)
}

fn is_of_one_problem(one: &SchedulePick, other: &SchedulePick) -> bool {
    let problem = |pick: &SchedulePick| (pick.spec, pick.machine.clone(), pick.capacity, pick.peak_share);
    problem(one) == problem(other)
}

fn question(pick: &SchedulePick) -> Result<Question, Failure> {
    let question = Question::of_net(&pick.spec, pick.machine.clone())?.with(pick.capacity, None)?;
    Ok(match pick.peak_share {
        Some(share) => question.with_peak_share(share),
        None => question,
    })
}

/// The place of the question's task, which is added if it is new.
fn place_of(question: Question, tasks: &mut Vec<Task>) -> usize {
    let at = tasks.iter().position(|task| task.question.digest == question.digest);
    at.unwrap_or_else(|| {
        tasks.push(Task { question, cells: Vec::new() });
        tasks.len() - 1
    })
}

/// The cell of a pick. The command line decides, else the suite, else the default.
fn cell(args: &BenchArgs, pick: &SchedulePick, repetition: u32) -> Cell {
    Cell {
        scheduler: pick.scheduler.clone(),
        wall: Some(args.limits.time_limit.or(pick.time_limit).unwrap_or(WALL)),
        memory: Some(args.limits.memory_limit),
        work: args.limits.work_limit.or(pick.work_limit),
        target: None,
        seed: args.limits.seed,
        planner: pick.planner.clone().unwrap_or_else(|| PLANNER.to_owned()),
        planner_wall: Some(pick.planner_time_limit.unwrap_or(PLANNER_WALL)),
        repetition,
    }
}

/// A cell that was run.
struct Ran<'t> {
    question: &'t Question,
    cell: &'t Cell,
    started_ns: u64,
    judgement: Result<Judgement, Failure>,
}

/// Runs the next cell of a queue. Returns `None` if the queue is empty or the run was cancelled.
fn run_next<'t>(
    queue: &Mutex<std::vec::IntoIter<(&'t Question, &'t Cell)>>,
    runner: &Runner,
) -> Option<Ran<'t>> {
    if runner.cancel().is_cancelled() {
        return None;
    }
    let (question, cell) = queue.lock().unwrap_or_else(PoisonError::into_inner).next()?;
    let started_ns = now_ns();
    Some(Ran { question, cell, started_ns, judgement: runner.run(question, cell) })
}

impl Schedules<'_> {
    /// The cells still to be run.
    pub(crate) fn left<'s>(
        &'s self,
        row: &'s dyn Fn(&str, u32) -> Option<ScheduleRow>,
    ) -> impl Iterator<Item = (&'s Question, &'s Cell)> {
        let cells = self.tasks.iter().flat_map(|task| task.cells.iter().map(|cell| (&task.question, cell)));
        cells.filter(move |(question, cell)| {
            let key = cell.key(&question.digest);
            let old = row(&key, cell.repetition);
            in_shard(&key, self.shard) && old.is_none_or(|old| is_retried(old.status, self.retry))
        })
    }

    /// Runs every cell that has no row yet. `on_row` receives each row as it comes, including old ones.
    ///
    /// # Errors
    ///
    /// If the store cannot be written, or no child can be started.
    pub(crate) fn run(
        &self,
        store: &mut Store,
        runner: &Runner,
        on_row: &dyn Fn(&ScheduleRow),
    ) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        let known = |key: &str, repetition: u32| store.schedule(key, repetition).cloned();
        let due: BTreeSet<(String, u32)> =
            self.left(&known).map(|(question, cell)| (cell.key(&question.digest), cell.repetition)).collect();
        let mut cells: Vec<(&Question, &Cell)> = Vec::new();
        for task in &self.tasks {
            for cell in &task.cells {
                let key = cell.key(&task.question.digest);
                if due.contains(&(key.clone(), cell.repetition)) {
                    cells.push((&task.question, cell));
                } else if let Some(row) = store.schedule(&key, cell.repetition) {
                    on_row(row);
                    tally.rows.push(row.clone());
                }
            }
        }
        // Shuffled, so that a slow minute of the machine does not affect one net alone.
        cells.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(self.seed));
        let bar = Progress::new(cells.len() as u64, "schedules");
        let queue = Mutex::new(cells.into_iter());
        let (sender, judged) = mpsc::channel();
        std::thread::scope(|scope| -> Result<(), Failure> {
            for _ in 0..self.jobs.max(1) {
                let (sender, queue) = (sender.clone(), &queue);
                scope.spawn(move || {
                    while let Some(ran) = run_next(queue, runner)
                        && sender.send(ran).is_ok()
                    {}
                });
            }
            drop(sender);
            for Ran { question, cell, started_ns, judgement } in judged {
                let judgement = judgement?;
                if judgement.ending.status == Status::Interrupted {
                    note(&format!("interrupted: {} on {}", cell.scheduler, question.workload));
                    continue;
                }
                let context = runner.supervisor().context(self.suite, self.jobs, started_ns);
                let row = keep(store, question, cell, &judgement, context)?;
                on_row(&row);
                tally.ran += 1;
                tally.rows.push(row);
                bar.set_message(printable(&format!("{} {}", question.workload, cell.scheduler)).into_owned());
                bar.inc(1);
            }
            Ok(())
        })?;
        bar.finish_and_clear();
        tally.interrupted = runner.cancel().is_cancelled();
        Ok(tally)
    }
}
