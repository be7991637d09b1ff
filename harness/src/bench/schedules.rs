//! Runs the schedules of a suite.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Mutex;

use planlab_results::schedule::ScheduleRow;
use planlab_results::{Status, Store};
use planlab_workloads::suites::SchedulePick;
use planlab_workloads::{Suite, matches_glob};
use rand::SeedableRng;
use rand::seq::SliceRandom;

use super::book::{Book, Rule, Tally, lock};
use crate::cli::BenchArgs;
use crate::kinds::schedule::{
    Cell, PLANNER_WALL, Question, Runner, WALL, keep, known_schedulers, matching_schedulers, usable_threads,
};
use crate::shell::clock::now_ns;
use crate::shell::exit::Failure;
use crate::shell::output::print_note;

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
    pub(crate) rule: Rule,
    pub(crate) seed: u64,
    /// The number of cells that run at a time.
    pub(crate) jobs: u32,
}

/// The schedules to run: those of the suite, unless planners are named.
pub(crate) fn tasks(args: &BenchArgs, suite: Option<&Suite>) -> Result<Vec<Task>, Failure> {
    let Some(suite) = suite.filter(|_| args.planners.is_empty()) else { return Ok(Vec::new()) };
    let chosen = matching_schedulers(&args.schedulers)?;
    let mut tasks: Vec<Task> = Vec::new();
    // The picks of one problem follow each other, so the problem is built once.
    let mut last: Option<(SchedulePick, usize)> = None;
    for pick in suite.schedule_cells(&known_schedulers())? {
        let key = pick.spec.to_string();
        let is_wanted =
            args.workloads.is_empty() || args.workloads.iter().any(|pattern| matches_glob(pattern, &key));
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
    let question = Question::of_net(&pick.spec, pick.machine.clone())?.with_changes(pick.capacity, None)?;
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
        threads: usable_threads(&pick.scheduler, args.limits.threads.or(Some(NonZeroUsize::MIN))),
        planner: pick.planner.clone().unwrap_or_else(|| PLANNER.to_owned()),
        planner_wall: Some(pick.planner_time_limit.unwrap_or(PLANNER_WALL)),
        repetition,
    }
}

type Pair<'a> = (&'a Question, &'a Cell);

/// A cell and its repetition, as rows name them.
fn place((question, cell): Pair<'_>) -> (String, u32) {
    (cell.key(&question.digest), cell.repetition)
}

impl Schedules<'_> {
    fn cells(&self) -> impl Iterator<Item = Pair<'_>> {
        self.tasks.iter().flat_map(|task| task.cells.iter().map(|cell| (&task.question, cell)))
    }

    /// The cells still to be run.
    pub(crate) fn left(&self, status: &dyn Fn(&str, u32) -> Option<Status>) -> Vec<Pair<'_>> {
        let is_left = |&pair: &Pair<'_>| {
            let (key, repetition) = place(pair);
            self.rule.has(&key) && status(&key, repetition).is_none_or(|old| !self.rule.counts(old))
        };
        self.cells().filter(is_left).collect()
    }

    /// Runs every cell that has no row yet. `on_row` receives each row as it comes, first all old ones.
    pub(crate) fn run(
        &self,
        store: &mut Store,
        runner: &Runner,
        on_row: &(dyn Fn(&ScheduleRow) + Sync),
    ) -> Tally<ScheduleRow> {
        let mut due = self.left(&|key, repetition| Some(store.schedule(key, repetition)?.status));
        let book = Book::new((self.cells().count(), "schedules"), runner.cancel(), on_row);
        let places: BTreeSet<(String, u32)> = due.iter().map(|&pair| place(pair)).collect();
        for (key, repetition) in self.cells().map(place).filter(|place| !places.contains(place)) {
            book.skip(store.schedule(&key, repetition).cloned());
        }
        // Shuffled, so that a slow minute of the machine does not affect one net alone.
        due.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(self.seed));
        let store = Mutex::new(store);
        book.fill(due, self.jobs, |(question, cell), _, book| {
            book.begin(&format!("{} {}", question.workload, cell.scheduler));
            let started_ns = now_ns();
            let judgement = runner.run(question, cell)?;
            if judgement.ending.status == Status::Interrupted {
                print_note(&format!("interrupted: {} on {}", cell.scheduler, question.workload));
                return Ok(());
            }
            let context = runner.supervisor().context(self.suite, self.jobs, started_ns);
            let row = keep(&mut lock(&store), question, cell, &judgement, context)?;
            book.enter(vec![row], Ok(()))
        })
    }
}
