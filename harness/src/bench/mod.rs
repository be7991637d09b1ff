//! Which cells a bench runs, in which order, and how two builds take turns.

pub(crate) mod book;
pub(crate) mod planners;
pub(crate) mod pools;
pub(crate) mod schedules;
pub(crate) mod selection;
pub(crate) mod turns;
