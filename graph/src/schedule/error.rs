//! Why a scheduler fails, or ends.

use planlab_dsa::{Bytes, Halt};

use crate::{Stuck, Violation};

/// Why a scheduler failed.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The scheduler offered a schedule that does not run to its end.
    #[error("the schedule does not run: {0}")]
    Stuck(#[from] Stuck),
    /// The scheduler offered a schedule that the validator rejects.
    #[error("the schedule is invalid: {0}")]
    Invalid(#[from] Violation),
    /// A bound above the time of a valid schedule.
    #[error("a bound of {bound:e} s was claimed, but a valid schedule takes {seconds:e} s")]
    Refuted { bound: f64, seconds: f64 },
    /// A claim that no schedule fits, although one is valid.
    #[error("it was claimed that no schedule fits in {capacity} bytes, but one does")]
    Fits { capacity: Bytes },
    /// Any other error, in the scheduler's words.
    #[error("{0}")]
    Failed(String),
}

/// Ends a scheduler from any depth through `?`.
pub type ScheduleHalt = Halt<ScheduleError>;
