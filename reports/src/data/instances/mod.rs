//! What is computed from an instance and a placement of it.

pub(crate) mod blocked;
pub(crate) mod clock;
pub(crate) mod own;
