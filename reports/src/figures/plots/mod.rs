//! The charts, each a function from its values to a figure.

pub(crate) mod bars;
pub(crate) mod classes;
pub(crate) mod curves;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod pareto;
pub(crate) mod profile;
pub(crate) mod savings;
pub(crate) mod sizes;
pub(crate) mod strip;
pub(crate) mod time;
