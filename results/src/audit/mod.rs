//! Checks rows across planners and repetitions, and the files of a store.

mod checks;
mod files;
mod finding;
mod frameworks;
mod placements;
mod replays;
mod schedules;

#[cfg(feature = "parquet")]
pub(crate) use checks::or_none;
pub use files::{audit_ends, audit_shards};
pub use finding::{Fault, Finding};
pub use frameworks::audit_frameworks;
pub use placements::audit;
#[cfg(feature = "parquet")]
pub(crate) use placements::{Claim, audit_claims};
pub use replays::audit_replays;
pub use schedules::audit_schedules;
