//! Finds the fastest schedule of a small net, and proves that it is.
//!
//! A state of the machine at a moment: the values on the device and on the host, the passes that are complete, and what
//! each engine runs until when. Whenever an operation completes, any engine that is idle may start any operation whose
//! operands are there, in the order and as often as it likes: passes of different branches, losses and directions
//! interleave, values are computed and copied again, and an engine may wait. Values leave the device only when room is
//! wanted, in every least set that makes it. States are looked at in the order of a bound on their end: what is left to
//! compute, without waiting. What is left includes each map that is lost, if a pass reads it or a map that is lost, too.
//!
//! The best schedule of quick schedulers comes first: states that end no earlier are left out, and a net that has a model
//! but is too large for a proof still gets a schedule and a bound. A net without a model gets neither.
//!
//! Memory is the number of live bytes, so the first end that is found is a bound on every schedule. The schedule counts
//! once offsets are found for it. If no offsets fit the fastest ones, the search goes on in less memory. Until
//! the search ends, the bound of the state that is next is a bound on every schedule, too. If it ends without any, no
//! schedule fits the capacity.
//!
//! # References
//!
//! 1. P. E. Hart, N. J. Nilsson, B. Raphael: A formal basis for the heuristic determination of minimum cost paths. IEEE
//!    Transactions on Systems Science and Cybernetics 4(2), 1968. doi:10.1109/TSSC.1968.300136.
//!
//! # Complexity
//!
//! Exponential in the number of maps. Nets have a model if they have at most 32 functions, 64 maps and parts and sums of
//! gradients, and 6 uses of a map.

mod emit;
mod model;
mod search;
mod state;

use planlab_graph::{
    ScheduleBound, ScheduleError, ScheduleEvidence, ScheduleHalt, ScheduleRun, Scheduler,
    SchedulerDescriptor, Verified, simulate_schedule,
};

use super::bound::claim_lp_bound;
use super::packing::{offer_verified, pack_offsets};
use super::starts::consult_quick_schedulers;
use super::work::CUT_OFF;
use emit::emit_schedule;
pub(super) use model::Model;
use search::{StateSearch, Step};

/// The scheduler's key.
const KEY: &str = "exact";
/// The most states of a search.
const STATES: usize = 1_000_000;
/// The states that count as one simulated iteration.
const STATES_PER_WORK: usize = 16;
/// The fastest iterations for which offsets are sought.
const MOST_ITERATIONS: usize = 50;
/// The smaller memories that are tried if there are no offsets for these.
const MOST_ROOMS: usize = 20;

/// Searches all schedules of a small net; key `exact`.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    states: usize,
}

impl Default for Exact {
    fn default() -> Self {
        Self { states: STATES }
    }
}

impl Exact {
    /// The most states of a search, above which the best schedule so far is the result. Default: 1,000,000.
    #[must_use]
    pub const fn with_states(mut self, states: usize) -> Self {
        self.states = states;
        self
    }
}

impl Scheduler for Exact {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "searches every order of passes, recomputations and copies; for small nets".into(),
            randomized: false,
            reference: "Hart, Nilsson and Raphael 1968",
            complexity: "exponential",
        }
    }

    fn searches_all_schedules(&self) -> bool {
        true
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let Some(model) = Model::new(run.problem()) else {
            run.fall_short("too large: more than 32 functions, 64 maps and gradients, or 6 uses of a map");
            return Ok(());
        };
        run.fall_short(CUT_OFF);
        claim_lp_bound(run)?;
        for offer in consult_quick_schedulers(run, KEY)? {
            offer_verified(run, KEY, &offer)?;
        }
        search_states(run, model, KEY, self.states)
    }
}

/// Searches up to `states` states of the problem's model for schedules that are faster than the best one, and offers those
/// that fit under a key.
pub(super) fn search_states(
    run: &mut ScheduleRun<'_>,
    mut model: Model<'_>,
    key: &str,
    states: usize,
) -> Result<(), ScheduleHalt> {
    let fastest = run.best_schedule().map_or(f64::INFINITY, Verified::seconds);
    let mut search = StateSearch::new(&model, fastest);
    let mut found = Found::default();
    let end = offer_iterations(run, key, &mut search, states, &mut found);
    if matches!(end, Err(ScheduleHalt::Error(_))) {
        return end;
    }
    let seconds = search.bound(found.seconds);
    if seconds.is_infinite() {
        return Err(run.claim_infeasible());
    }
    if run.best_schedule().is_none() {
        run.fall_short(match found.count {
            0 => format!("too large: no schedule was found in {} states", search.states()),
            count => format!("out of memory: no offsets were found for the {count} fastest schedules"),
        });
    }
    run.raise_bound(ScheduleBound { seconds, evidence: ScheduleEvidence::Search }).and(end)?;
    for _ in 0..MOST_ROOMS {
        if found.is_placed || found.peak == 0 {
            break;
        }
        model.room = found.peak - 1;
        let fastest = run.best_schedule().map_or(f64::INFINITY, Verified::seconds);
        found = Found::default();
        offer_iterations(run, key, &mut StateSearch::new(&model, fastest), states, &mut found)?;
    }
    Ok(())
}

/// The iterations that a search has found.
#[derive(Default)]
struct Found {
    count: usize,
    /// The seconds of the first one, which is the fastest.
    seconds: Option<f64>,
    /// The most bytes of any, the base not included.
    peak: u64,
    /// Whether offsets were found for one.
    is_placed: bool,
}

/// Offers the iterations that a search finds, until offsets are found for one.
fn offer_iterations(
    run: &mut ScheduleRun<'_>,
    key: &str,
    search: &mut StateSearch<'_, '_>,
    states: usize,
    found: &mut Found,
) -> Result<(), ScheduleHalt> {
    let mut steps = 0_usize;
    while search.states() < states && found.count < MOST_ITERATIONS {
        steps += 1;
        run.tick(u64::from(steps.is_multiple_of(STATES_PER_WORK)))?;
        match search.take_step() {
            Step::Expanded => {}
            Step::Found(starts, seconds) => {
                let draft = emit_schedule(search.model(), &starts, key);
                let timeline = simulate_schedule(&draft, None).map_err(ScheduleError::from)?;
                found.count += 1;
                found.seconds.get_or_insert(seconds);
                found.peak = found.peak.max(timeline.peak.get() - draft.base.get());
                if let Ok(offsets) = pack_offsets(run, &draft, &timeline) {
                    search.leave_out_from(seconds);
                    found.is_placed = true;
                    run.offer(draft.with_offsets(&timeline, &offsets))?;
                }
            }
            Step::Exhausted => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Bytes, Stop};
    use planlab_graph::{ScheduleBudget, ScheduleOutcome, SchedulingProblem, execute_scheduler};

    use super::*;
    use crate::schedule::testing::chain_problem;

    fn run(problem: &SchedulingProblem, states: usize, work: Option<u64>) -> ScheduleOutcome {
        let exact = Exact::default().with_states(states);
        let budget = ScheduleBudget { work, ..ScheduleBudget::default() };
        let outcome = execute_scheduler(&exact, problem, budget, 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        outcome
    }

    /// A chain of functions that take a second and write a byte. The link is too slow for any copy.
    fn recomputed_chain(functions: usize, room: u64) -> SchedulingProblem {
        let mut problem = chain_problem(&vec![1; functions + 1]).with_capacity(Bytes::new(room));
        (problem.machine.copy_out, problem.machine.copy_in) = (1e-6, 1e-6);
        problem
    }

    #[test]
    fn chain_that_is_too_long_for_a_proof_has_a_schedule_and_a_bound() {
        let problem = recomputed_chain(14, 6);
        let [start, few] = [0, 5_000].map(|states| run(&problem, states, None));
        let seconds = |outcome: &ScheduleOutcome| outcome.best.as_ref().map(Verified::seconds);
        let (first, later) = (seconds(&start).expect("a start"), seconds(&few).expect("a start"));
        assert!(later <= first && first < 100.0, "{later} after {first}");
        // Each pass runs once, and six bytes do not hold all maps.
        assert!(start.bound.seconds >= 28.0 && few.bound.seconds >= start.bound.seconds);
        assert!(few.bound.seconds <= later, "{} above {later}", few.bound.seconds);
        assert!(few.best.is_some_and(|best| best.height() <= problem.capacity));
    }
    #[test]
    fn net_without_a_model_is_too_large_at_once() {
        let outcome = run(&recomputed_chain(33, 100), 0, None);
        assert!(outcome.best.is_none() && outcome.work == 0, "{} units of work", outcome.work);
        let reason = outcome.shortfall.expect("a reason");
        assert!(reason.starts_with("too large: more than 32 functions"), "{reason}");
    }

    #[test]
    fn limit_before_the_first_schedule_is_the_reason() {
        let outcome = run(&recomputed_chain(14, 6), 0, Some(0));
        assert_eq!((outcome.end, outcome.best), (Ok(Stop::WorkLimit), None));
        assert_eq!(outcome.shortfall.as_deref(), Some(CUT_OFF));
    }
}
