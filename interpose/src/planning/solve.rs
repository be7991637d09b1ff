//! Plans a round and keeps the verified plan.

use std::time::{Duration, Instant};

use planlab_dsa::{Budget, Bytes, Instance, Plan, VerifiedPlan};
use planlab_solvers::placement::plan_in_any_case;

use crate::calls::Round;

/// A round with a plan of its transient requests.
#[derive(Debug)]
pub struct Solved {
    round: Round,
    instance: Instance,
    /// The index of each buffer's request in the round.
    numbers: Vec<usize>,
    plan: Plan,
    /// The bytes that the plan needs.
    pub height: Bytes,
    /// The most bytes live at once; no plan needs less.
    pub load: Bytes,
    /// The proven lower bound on the height, in bytes.
    pub bound: Bytes,
    /// The time that planning took.
    pub took: Duration,
}

/// Why a round has no plan.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsolved {
    /// Too little is live at once for a plan to be worthwhile.
    #[error("at most {load} transient bytes are live at once")]
    Small { load: Bytes },
    /// The requests do not form a placement problem.
    #[error("{0}")]
    Instance(String),
    /// There is no plan.
    #[error("no plan: {0}")]
    NoPlan(String),
}

/// A round that is worth a plan, as a placement problem.
#[derive(Debug)]
pub(crate) struct Problem {
    round: Round,
    instance: Instance,
    numbers: Vec<usize>,
    load: Bytes,
}

impl Problem {
    /// The problem of a round whose load is at least `least_load`.
    ///
    /// # Errors
    ///
    /// [`Unsolved`] if the round is not worth a plan, or has none.
    pub(crate) fn new(round: Round, least_load: Bytes) -> Result<Self, Unsolved> {
        let (instance, numbers) =
            round.placement_problem().map_err(|error| Unsolved::Instance(error.to_string()))?;
        let load = instance.load().bytes;
        if load < least_load || load == Bytes::ZERO {
            return Err(Unsolved::Small { load });
        }
        Ok(Self { round, instance, numbers, load })
    }

    pub(crate) const fn instance(&self) -> &Instance {
        &self.instance
    }

    pub(crate) fn into_round(self) -> Round {
        self.round
    }

    /// Plans it within `patience`, or as soon as there is any plan.
    ///
    /// # Errors
    ///
    /// [`Unsolved::NoPlan`] if there is no plan.
    pub(crate) fn solve_within(self, patience: Duration) -> Result<Solved, Unsolved> {
        let begin = Instant::now();
        let budget = Budget { wall: Some(patience), ..Budget::default() };
        let outcome = plan_in_any_case(&self.instance, budget);
        let bound = outcome.bound_claim().value;
        let end = outcome.end.clone();
        let best = outcome.best.ok_or_else(|| Unsolved::NoPlan(format!("{end:?}")))?;
        let plan = best.as_plan().clone();
        drop(best);
        self.accept_plan(plan, bound, begin.elapsed())
    }

    /// The round with a plan that somebody made.
    ///
    /// # Errors
    ///
    /// [`Unsolved::NoPlan`] if the plan is not valid.
    pub(crate) fn accept_plan(self, plan: Plan, bound: Bytes, took: Duration) -> Result<Solved, Unsolved> {
        let Self { round, instance, numbers, load } = self;
        let verified = instance.verify(plan.clone()).map_err(|error| Unsolved::NoPlan(error.to_string()))?;
        let height = verified.height();
        drop(verified);
        Ok(Solved { round, instance, numbers, plan, height, load, bound, took })
    }
}

/// Plans a round whose load is at least `least_load`, within `patience` or as soon as there is any plan.
///
/// # Errors
///
/// [`Unsolved`] if there is no plan, or the round is not worth one.
pub(crate) fn solve(round: Round, least_load: Bytes, patience: Duration) -> Result<Solved, Unsolved> {
    Problem::new(round, least_load)?.solve_within(patience)
}

impl Solved {
    /// The planned round.
    #[must_use]
    pub const fn round(&self) -> &Round {
        &self.round
    }

    /// The index of each planned buffer's request, in the order of the requests.
    #[must_use]
    pub fn request_numbers(&self) -> &[usize] {
        &self.numbers
    }

    /// The plan, verified once more; never `None`.
    #[must_use]
    pub fn verify_again(&self) -> Option<VerifiedPlan<'_>> {
        self.instance.verify(self.plan.clone()).ok()
    }

    /// The sizes of all planned requests together, in bytes.
    #[must_use]
    pub fn planned_bytes(&self) -> Bytes {
        self.instance.total_size()
    }

    /// The greatest alignment of an address of the plan, in bytes.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.instance.buffers().iter().map(|buffer| buffer.align.get()).max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Token;

    fn round(size: u64) -> Round {
        let request = |size| Token::from_request(size, 16).expect("in range");
        let calls = vec![
            request(size),
            request(2 * size),
            Token::from_free(2),
            request(size),
            Token::from_free(1),
            Token::from_free(2),
        ];
        Round::of_calls(calls).expect("a round")
    }

    #[test]
    fn a_round_has_a_verified_plan_as_high_as_its_load() {
        let solved = solve(round(4096), Bytes::ZERO, Duration::from_secs(5)).expect("a plan");
        assert_eq!([solved.height, solved.load, solved.bound], [Bytes::new(12288); 3]);
        assert_eq!(solved.verify_again().expect("valid").height(), solved.height);
        assert_eq!(solved.planned_bytes(), Bytes::new(16384));
        assert_eq!((solved.request_numbers(), solved.alignment()), (&[0, 1, 2][..], 64));
    }

    #[test]
    fn a_round_has_a_plan_when_there_was_no_time() {
        let solved = solve(round(4096), Bytes::ZERO, Duration::ZERO).expect("a plan");
        assert!(solved.height >= solved.load);
    }

    #[test]
    fn too_little_is_not_planned() {
        let small = solve(round(4096), Bytes::new(1 << 20), Duration::from_secs(5));
        assert_eq!(small.err(), Some(Unsolved::Small { load: Bytes::new(12288) }));
    }
}
