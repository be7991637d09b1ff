//! Planners: their cells grouped, compared and arranged in tables.

pub(crate) mod chosen;
pub(crate) mod compare;
pub(crate) mod model;
pub(crate) mod ratios;
pub(crate) mod tables;
