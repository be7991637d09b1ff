//! Tests of all planners: what each promises, and comparisons with other programs.

#[cfg(any(feature = "cp", feature = "mip"))]
mod above_load;
mod arenas;
mod branching;
mod clocks;
mod cp;
mod example;
mod graphs;
mod hints;
mod milp;
mod mxnet_totals;
mod online;
mod plans;
mod schedules;
