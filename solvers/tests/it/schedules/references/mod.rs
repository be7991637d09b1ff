//! References that share no code with what they check.

pub(super) mod mirror;
pub(super) mod optimum;
pub(super) mod recomputation;
pub(super) mod slow;
