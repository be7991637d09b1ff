//! Which cells a bench runs, in which order, and how two builds take turns.

pub(crate) mod baselines;
pub(crate) mod run;
pub(crate) mod schedules;
pub(crate) mod selection;
pub(crate) mod turns;
