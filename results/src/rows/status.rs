//! How a cell ended, and whether its times count.

use crate::columns::names;

planlab_dsa::named_enum! {
    /// How the cell of a planner or a scheduler ended, by the judges of the harness; each of their rows has exactly one.
    #[derive(PartialOrd, Ord)]
    pub enum Status {
        /// A verified plan whose height equals a proven bound.
        Optimal = "optimal",
        /// A verified plan.
        Feasible = "feasible",
        /// A proven bound above the given capacity, or above that of an arena.
        Infeasible = "infeasible",
        /// Neither a plan nor a proof that none exists.
        Unknown = "unknown",
        /// The planner does not honour a demand of the instance.
        Unsupported = "unsupported",
        /// The time limit was reached without a plan, or the planner did not stop and was killed (its last plan is
        /// kept).
        Timeout = "timeout",
        /// The memory limit was reached without a plan.
        OutOfMemory = "out-of-memory",
        /// The child panicked or died from a signal that it caused itself.
        Crashed = "crashed",
        /// The child was killed from outside.
        Killed = "killed",
        /// The plan overlaps. Rows from before `invalid-plan` existed also use it for plans that break another rule.
        InvalidOverlap = "invalid-overlap",
        /// The plan breaks another rule of placement: a buffer has no row, moves from its pin, or ends past 2^64 - 1.
        InvalidPlan = "invalid-plan",
        /// The plan is not aligned.
        Misaligned = "misaligned",
        /// The plan needs more than an arena's capacity.
        OverCapacity = "over-capacity",
        /// The bound lies above the height of a verified plan.
        BoundRefuted = "bound-refuted",
        /// The child's output is not an answer, or contradicts its own plan (a false height).
        BadOutput = "bad-output",
        /// The bench was interrupted.
        Interrupted = "interrupted",
    }
}

impl Status {
    /// Whether the row has an answer: a plan that counts, or a proof that no plan exists.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Optimal | Self::Feasible | Self::Infeasible)
    }

    /// Whether the planner broke its contract: it crashed, was killed, gave a false result, or wrote nonsense.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        !self.is_answer()
            && !matches!(self, Self::Unknown | Self::Unsupported | Self::Timeout | Self::Interrupted)
    }

    /// Whether an answer was expected but is missing: the run failed, found nothing or ran out of time. None is expected
    /// of a planner that does not support the instance, or of a run that a user ended.
    #[must_use]
    pub const fn lacks_answer(self) -> bool {
        !self.is_answer() && !matches!(self, Self::Unsupported | Self::Interrupted)
    }

    /// How much a row counts beside another of its cell: an answer of another run never hides a false result.
    pub(crate) const fn row_worth(self) -> u8 {
        match self {
            status if status.is_lie() => 3,
            Self::Interrupted => 0,
            status if status.is_answer() => 2,
            _ => 1,
        }
    }

    /// Whether a plan or a bound was refuted.
    #[must_use]
    pub const fn is_lie(self) -> bool {
        matches!(
            self,
            Self::InvalidOverlap
                | Self::InvalidPlan
                | Self::Misaligned
                | Self::OverCapacity
                | Self::BoundRefuted
        )
    }
}

planlab_dsa::named_enum! {
    /// Whether a row's times may be ranked.
    pub enum Lane {
        /// Heights and gaps; may have run alongside other cells, so its time is shown but never ranked.
        Quality = "quality",
        /// The cell ran alone.
        Timing = "timing",
    }
}

names!(Status::name, Lane::name);
