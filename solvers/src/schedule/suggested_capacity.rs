//! A capacity in which a quick scheduler finds a schedule, for a user whose capacity is too small.

use std::time::Duration;

use planlab_dsa::{Bytes, Stop};
use planlab_graph::{
    ScheduleBudget, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor, SchedulingProblem, Verified,
    bound_memory, execute_scheduler,
};

use super::quick::linear_schedulers;

/// The most time of a search whose work is not limited.
const WALL: Duration = Duration::from_secs(5);
/// The search ends once the last capacity that failed is below the least that sufficed by one of this many equal parts
/// of it.
const PARTS: u64 = 100;
/// The first capacity. Sums of bytes end at 2^64 - 1, so one that is cut off there does not fit.
const MOST: u64 = u64::MAX - 1;

/// A capacity, and a scheduler that finds a schedule in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuggestedCapacity {
    /// Bytes, base included.
    pub capacity: Bytes,
    /// The scheduler's key. Without limits, the fastest schedule that it finds in these bytes fits with its offsets.
    pub scheduler: String,
}

/// Searches for a small capacity by bisection: in each capacity, schedulers of linear time run until one has a schedule that
/// fits.
///
/// The limits of the budget count for the whole search, and it takes at most five seconds if work is not limited. At a
/// limit, the least capacity so far is the result: `None` if it is not known whether a schedule fits at all.
#[must_use]
pub fn suggest_capacity(problem: &SchedulingProblem, budget: &ScheduleBudget) -> Option<SuggestedCapacity> {
    let mut search = CapacitySearch::new(problem, budget);
    let unlimited = search.find_fitting(MOST).ok()??;
    // What is suggested has been tried.
    let mut most = unlimited.height().get();
    let mut fitting = search.find_fitting(most).ok()??;
    let mut least = bound_memory(problem).bytes.max(problem.capacity).get();
    while most.saturating_sub(least) > 1 + most / PARTS {
        let middle = u64::midpoint(least, most);
        match search.find_fitting(middle) {
            Ok(Some(schedule)) => (most, fitting) = (middle, schedule),
            Ok(None) => least = middle,
            Err(_) => break,
        }
    }
    let scheduler = fitting.schedule().scheduler.clone();
    Some(SuggestedCapacity { capacity: Bytes::new(most), scheduler })
}

/// Runs quick schedulers in several capacities within one budget.
struct CapacitySearch {
    problem: SchedulingProblem,
    budget: ScheduleBudget,
    start: Duration,
    /// Units of work done.
    work: u64,
}

impl CapacitySearch {
    fn new(problem: &SchedulingProblem, budget: &ScheduleBudget) -> Self {
        let wall = match budget.work {
            Some(_) => budget.wall,
            None => Some(budget.wall.map_or(WALL, |wall| wall.min(WALL))),
        };
        let budget = ScheduleBudget { wall, target: Some(f64::INFINITY), ..budget.clone() };
        Self { problem: problem.clone(), start: budget.clock.now(), budget, work: 0 }
    }

    /// The schedule of the first quick scheduler that has one which fits in this many bytes, if any has. The error is the
    /// limit that came first.
    fn find_fitting(&mut self, capacity: u64) -> Result<Option<Verified>, Stop> {
        let elapsed = self.budget.clock.now().saturating_sub(self.start);
        let budget = ScheduleBudget {
            wall: self.budget.wall.map(|wall| wall.saturating_sub(elapsed)),
            work: self.budget.work.map(|work| work.saturating_sub(self.work)),
            ..self.budget.clone()
        };
        self.problem.capacity = Bytes::new(capacity);
        let outcome = execute_scheduler(&FirstFitting, &self.problem, budget, 0);
        self.work = self.work.saturating_add(outcome.work);
        match outcome.end {
            Ok(limit @ (Stop::Deadline | Stop::WorkLimit | Stop::Cancelled)) => Err(limit),
            _ => Ok(outcome.best),
        }
    }
}

/// Offers the schedule of the first quick scheduler whose fastest one fits with its offsets.
struct FirstFitting;

impl Scheduler for FirstFitting {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor { key: "first-fitting".into(), ..SchedulerDescriptor::default() }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let capacity = run.problem().capacity;
        for scheduler in &linear_schedulers() {
            let (found, end) = run.consult_scheduler(scheduler);
            end?;
            if let Some(fastest) = found.last().filter(|fastest| fastest.height() <= capacity) {
                return run.offer(fastest.schedule().clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use planlab_graph::Machine;

    use super::*;
    use crate::schedule::find_scheduler;
    use crate::schedule::testing::{branching_problem, chain_problem, shortcut_problem};

    /// Runs the suggested scheduler in the suggested capacity; returns the capacity in bytes.
    fn try_suggestion(problem: &SchedulingProblem, budget: &ScheduleBudget) -> u64 {
        let SuggestedCapacity { capacity, scheduler } =
            suggest_capacity(problem, budget).expect("a capacity");
        let problem = problem.clone().with_capacity(capacity);
        let scheduler = find_scheduler(&scheduler).expect("a scheduler");
        let outcome = execute_scheduler(&scheduler, &problem, ScheduleBudget::default(), 0);
        let height = outcome.best.expect("a schedule").height();
        assert!(height <= capacity, "{height} of {capacity} bytes");
        capacity.get()
    }

    #[test]
    fn suggested_scheduler_fits_the_suggested_capacity() {
        let chain = chain_problem(&[1; 21]).with_capacity(Bytes::new(2));
        assert_eq!(bound_memory(&chain).bytes.get(), 3);
        let found = try_suggestion(&chain, &ScheduleBudget::default());
        assert!((3..11).contains(&found), "{found} bytes");
        for problem in [shortcut_problem(), branching_problem()] {
            let problem = problem.with_capacity(Bytes::new(1));
            let found = try_suggestion(&problem, &ScheduleBudget::default());
            assert!(found >= bound_memory(&problem).bytes.get(), "{found} bytes");
        }
    }

    #[test]
    fn limit_of_work_leaves_the_least_capacity_so_far() {
        let chain = chain_problem(&[1; 21]).with_capacity(Bytes::new(2));
        let least = try_suggestion(&chain, &ScheduleBudget::default());
        let budget = |work| ScheduleBudget { work: Some(work), ..ScheduleBudget::default() };
        // Everything is kept in one simulation, once without a limit of memory and once in what it takes.
        assert_eq!(suggest_capacity(&chain, &budget(1)), None);
        assert!(try_suggestion(&chain, &budget(2)) > least);
        assert_eq!(try_suggestion(&chain, &budget(100_000)), least);
    }

    #[test]
    fn search_without_time_suggests_nothing() {
        let budget = ScheduleBudget { wall: Some(Duration::ZERO), ..ScheduleBudget::default() };
        assert_eq!(suggest_capacity(&chain_problem(&[1; 21]), &budget), None);
    }

    #[test]
    fn base_of_nearly_all_bytes_leaves_a_capacity_if_the_rest_suffices() {
        let chain = chain_problem(&[1; 6]);
        for (spare, suffices) in [(0, false), (64, true)] {
            let machine = Machine { workspace: Bytes::new(u64::MAX - spare), ..chain.machine.clone() };
            let problem = SchedulingProblem { machine, ..chain.clone() }.with_capacity(Bytes::new(1));
            let found = suggest_capacity(&problem, &ScheduleBudget::default());
            assert_eq!(found.is_some(), suffices, "{spare} bytes: {found:?}");
        }
    }
}
