//! Lower bounds on the height, and those known before any search.

mod bound;
mod initial;

pub use bound::{Bound, Claim, Evidence};
pub use initial::{alignment_bound, highest_rounded_load, initial_bound, pin_bound};
