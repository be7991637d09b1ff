//! The reasons why a request is not served by its place, and their counters.

use planlab_dsa::performance::Missed;

/// Why a request is not served by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    Unknown,
    Larger,
    Taken,
    Outliving,
    NoMemory,
}

impl Miss {
    /// The counter of this reason.
    pub(super) fn counter_in(self, missed: &mut Missed) -> &mut u64 {
        match self {
            Self::Unknown => &mut missed.unknown,
            Self::Larger => &mut missed.larger,
            Self::Taken => &mut missed.taken,
            Self::Outliving => &mut missed.outliving,
            Self::NoMemory => &mut missed.no_memory,
        }
    }
}
