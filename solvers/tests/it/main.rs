//! Tests of all planners: what each promises, and comparisons with independent programs.

mod arenas;
mod clocks;
mod cp;
mod example;
mod graphs;
mod hints;
mod independent;
mod milp;
mod mxnet_totals;
mod online;
mod plans;
mod schedules;
