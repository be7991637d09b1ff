//! Nets: what their memory takes with plans, with pools, and by batch.

pub(crate) mod models;
pub(crate) mod net_memory;
pub(crate) mod parts;
pub(crate) mod pools;
