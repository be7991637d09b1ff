//! The data of a report: records grouped, computed, and arranged in tables.

pub(crate) mod budgets;
pub(crate) mod findings;
pub(crate) mod frameworks;
pub(crate) mod instances;
pub(crate) mod natural;
pub(crate) mod nets;
pub(crate) mod papers;
pub(crate) mod planners;
pub(crate) mod replays;
pub(crate) mod rows;
pub(crate) mod schedules;
