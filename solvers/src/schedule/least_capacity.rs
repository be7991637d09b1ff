//! A capacity in which a schedule fits, for a user whose capacity is too small.

use planlab_dsa::Bytes;
use planlab_graph::{
    ScheduleBudget, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor, SchedulingProblem,
    bound_memory, execute_scheduler,
};

use super::quick::linear_schedulers;
use super::starts::consult_schedulers;

const KEY: &str = "quick";
/// The search ends once the last capacity that failed is below the least memory by one of this many equal parts of it.
const PARTS: u64 = 100;

/// Offers what schedulers of linear time find.
struct QuickSearch;

impl Scheduler for QuickSearch {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor { key: KEY.into(), ..SchedulerDescriptor::default() }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        consult_schedulers(run, KEY, &linear_schedulers()).map(drop)
    }
}

/// The least memory of the schedules that quick schedulers find in a bisection of the capacity, in bytes, base included.
/// The time limit of the budget counts for the whole bisection. `None` if there is no schedule, as in too little time.
#[must_use]
pub fn suggest_capacity(problem: &SchedulingProblem, budget: &ScheduleBudget) -> Option<Bytes> {
    let start = budget.clock.now();
    let find_height = |capacity: u64| {
        let elapsed = budget.clock.now().saturating_sub(start);
        let wall = budget.wall.map(|wall| wall.saturating_sub(elapsed));
        let budget = ScheduleBudget { wall, target: Some(f64::INFINITY), ..budget.clone() };
        let problem = problem.clone().with_capacity(Bytes::new(capacity));
        let best = execute_scheduler(&QuickSearch, &problem, budget, 0).best;
        best.map(|best| best.height().get()).filter(|&height| height <= capacity)
    };
    let mut most = find_height(u64::MAX)?;
    let mut least = bound_memory(problem).bytes.max(problem.capacity).get();
    while most.saturating_sub(least) > 1 + most / PARTS {
        let middle = u64::midpoint(least, most);
        match find_height(middle) {
            Some(height) => most = height,
            None => least = middle,
        }
    }
    Some(Bytes::new(most))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::schedule::testing::chain_problem;

    #[test]
    fn capacity_between_the_bound_and_that_of_everything_is_suggested() {
        let problem = chain_problem(&[1; 21]).with_capacity(Bytes::new(2));
        assert_eq!(bound_memory(&problem).bytes.get(), 3);
        let found = suggest_capacity(&problem, &ScheduleBudget::default()).expect("a capacity").get();
        assert!((3..11).contains(&found), "{found} bytes");
    }

    #[test]
    fn search_without_time_suggests_nothing() {
        let budget = ScheduleBudget { wall: Some(Duration::ZERO), ..ScheduleBudget::default() };
        assert_eq!(suggest_capacity(&chain_problem(&[1; 21]), &budget), None);
    }
}
