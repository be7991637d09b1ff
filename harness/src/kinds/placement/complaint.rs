//! The status of a row whose planner failed.

use planlab_dsa::{PlanError, Violation};
use planlab_results::Status;

/// [`Status::Unknown`] for an error that says nothing of the plan.
pub(super) const fn status_of(error: &PlanError) -> Status {
    match error {
        PlanError::Unsupported(_) => Status::Unsupported,
        PlanError::Invalid(violation) => status_of_violation(violation),
        PlanError::Refuted { .. } => Status::BoundRefuted,
        _ => Status::Unknown,
    }
}

pub(super) const fn status_of_violation(violation: &Violation) -> Status {
    match violation {
        Violation::Misaligned { .. } => Status::Misaligned,
        Violation::OverCapacity { .. } => Status::OverCapacity,
        Violation::Overlap { .. } => Status::InvalidOverlap,
        _ => Status::InvalidPlan,
    }
}
