//! The data of a report: records grouped, computed, and arranged in tables.

pub(crate) mod asked;
pub(crate) mod blocked;
pub(crate) mod chosen;
pub(crate) mod claims;
pub(crate) mod clock;
pub(crate) mod compare;
pub(crate) mod findings;
pub(crate) mod frameworks;
pub(crate) mod model;
pub(crate) mod models;
pub(crate) mod net_memory;
pub(crate) mod nets;
pub(crate) mod own;
pub(crate) mod paper;
pub(crate) mod pools;
pub(crate) mod published;
pub(crate) mod ratios;
pub(crate) mod replays;
pub(crate) mod schedules;
pub(crate) mod tables;
