//! All planners: what each promises, and what independent programs say.

mod arenas;
mod clocks;
mod cp;
mod graphs;
mod hints;
mod independent;
mod milp;
mod mxnet_totals;
mod online;
mod plans;
mod schedules;
