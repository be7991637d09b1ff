//! Constraint programming: the same decisions as the MIP's, given to a solver that learns from conflicts.

mod model;
mod pumpkin;
mod search;
mod switches;

pub use pumpkin::CpPumpkin;
pub use switches::Switches;
