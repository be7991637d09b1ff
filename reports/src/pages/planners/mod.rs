//! Pages on planners: which is best, how close, how fast.

pub(crate) mod boards;
pub(crate) mod claims;
pub(crate) mod gaps;
pub(crate) mod planner;
pub(crate) mod ratios;
pub(crate) mod scale;
