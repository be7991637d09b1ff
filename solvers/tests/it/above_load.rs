//! What the tests of the solvers of mathematical models share.

use std::time::Duration;

use planlab_dsa::testing::{Case, corpus};
use planlab_dsa::{Budget, Instance, Outcome, Planner, execute};

pub(crate) fn run<'i>(planner: &dyn Planner, instance: &'i Instance) -> Outcome<'i> {
    // Proofs take seconds; the limit ends a search that hangs.
    let wall = Some(Duration::from_secs(3600));
    execute(planner, instance, Budget { wall, ..Budget::default() }, 0)
}

pub(crate) fn above_load(most: usize) -> impl Iterator<Item = Case> {
    let plain = move |case: &Case| case.instance.in_place().is_empty() && case.instance.len() <= most;
    let above = |case: &Case| case.optimum.is_some_and(|optimum| optimum > case.instance.load().bytes);
    corpus().into_iter().filter(move |case| case.name.starts_with("above-load") && plain(case) && above(case))
}
