//! Pools that plan: they record a propagation, and serve the next ones from a plan of the record.

mod memory;
mod numbered;
mod scoped;

pub use numbered::ProfileGuided;
pub use scoped::ProfileGuidedScoped;

use planlab_dsa::LiveRange;
use planlab_dsa::performance::Missed;

/// A request of a propagation, and the step at which it was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request<K> {
    key: K,
    /// The size in bytes, a multiple of the unit.
    size: u64,
    start: u32,
    /// `None`: not freed within the propagation.
    end: Option<u32>,
}

impl<K> Request<K> {
    /// Its steps, if it is freed within the propagation: then it has a place in the plan.
    fn live_range(&self) -> Option<LiveRange> {
        LiveRange::new(self.start, self.end?).ok()
    }
}

/// Why a request is not served by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Miss {
    Unknown,
    Larger,
    Taken,
    Outliving,
    NoMemory,
}

impl Miss {
    fn counter_in(self, missed: &mut Missed) -> &mut u64 {
        match self {
            Self::Unknown => &mut missed.unknown,
            Self::Larger => &mut missed.larger,
            Self::Taken => &mut missed.taken,
            Self::Outliving => &mut missed.outliving,
            Self::NoMemory => &mut missed.no_memory,
        }
    }
}
