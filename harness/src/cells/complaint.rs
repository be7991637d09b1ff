//! What a child says of a run that failed.

use planlab_results::Status;
use serde::{Deserialize, Serialize};

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Complaint {
    /// The row's status. With [`Status::Unknown`] the best that was found decides.
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl Complaint {
    pub(crate) fn new(status: Status, error: &impl ToString) -> Self {
        Self { status, message: error.to_string() }
    }
}
