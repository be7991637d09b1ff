//! Plans: claimed, verified, digested, and split by arenas.

mod arena_part;
mod digest;
mod plan;
#[cfg(feature = "debug-checks")]
mod recheck;
mod verify;
mod violation;

pub use arena_part::ArenaPart;
pub use digest::Digest;
pub use plan::{Plan, VerifiedPlan};
pub use violation::Violation;
