//! The result of a run: why it ended, what it found, and when.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Bound, Bytes, Claim, Feature, Scope, VerifiedPlan, Violation};

crate::named_enum! {
    /// Why a run ended; never an error.
    pub enum Stop {
        /// The planner has finished, or has the lowest plan that it can make: one without hand-overs, if it uses none.
        Finished = "finished",
        /// The incumbent's height equals the bound.
        Proved = "proved",
        /// A plan fits the target.
        TargetReached = "target-reached",
        /// The bound lies above the target.
        Infeasible = "infeasible",
        /// The wall time is up.
        Deadline = "deadline",
        /// The work is used up.
        WorkLimit = "work-limit",
        /// Ended from outside.
        Cancelled = "cancelled",
    }
}

/// Why a planner failed.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The instance demands a feature that the planner does not honour.
    #[error("the planner does not honour {0}")]
    Unsupported(Feature),
    /// The planner offered a plan that the verifier rejects.
    #[error("the planner offered an invalid plan: {0}")]
    Invalid(#[from] Violation),
    /// A claimed bound above the height of a verified plan.
    #[error("a bound of {bound} ({}) was claimed, but a verified plan has height {height}", bound.evidence)]
    Refuted { bound: Claim, height: Bytes },
    /// Any other error, in the planner's words.
    #[error("{0}")]
    Failed(String),
}

/// Ends a planner from any depth through `?`; other kinds of runs have errors of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt<E = PlanError> {
    /// The run is over.
    Stop(Stop),
    /// The planner cannot go on.
    Error(E),
}

impl<E> From<E> for Halt<E> {
    fn from(error: E) -> Self {
        Self::Error(error)
    }
}

/// A point of the trajectory: incumbent and bound at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Units of work done until then.
    pub work: u64,
    /// The incumbent's height.
    pub height: Option<Bytes>,
    /// The bound on any plan.
    pub bound: Bytes,
}

/// What an observer of a run receives.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A better plan was verified.
    Incumbent(&'a VerifiedPlan<'a>),
    /// The bound rose.
    Bound(Bound),
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome<'i> {
    /// The best verified plan.
    pub best: Option<Arc<VerifiedPlan<'i>>>,
    /// The best proven bounds.
    pub bound: Bound,
    /// The plans that counted: any plan, if the planner uses hand-overs and the instance permits some.
    pub scope: Scope,
    /// Why the run ended.
    pub end: Result<Stop, PlanError>,
    /// Incumbent and bound over time, ascending.
    pub trajectory: Vec<Mark>,
    /// Time from start to end, including verification.
    pub elapsed: Duration,
    /// The planner's own time, without the initial bounds and verification. For a planner with several threads,
    /// verification that ran alongside planning is subtracted too.
    pub planning: Duration,
    /// Units of work done.
    pub work: u64,
}

impl Outcome<'_> {
    /// The height of the best plan.
    #[must_use]
    pub fn height(&self) -> Option<Bytes> {
        self.best.as_ref().map(|plan| plan.height())
    }

    /// The bound on any plan: what every height is measured against, whether the planner uses hand-overs or not.
    #[must_use]
    pub const fn bound_claim(&self) -> Claim {
        self.bound.best_claim(Scope::Any)
    }

    /// Whether no plan is lower than the best one: its height equals the bound on any plan.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        self.height().is_some_and(|height| height == self.bound_claim().value)
    }
}
