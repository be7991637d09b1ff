//! Pages on allocators and replayed plans.

pub(crate) mod closeness;
pub(crate) mod frameworks;
mod gain;
pub(crate) mod iterations;
pub(crate) mod pytorch;
pub(crate) mod requests;
pub(crate) mod threads;
pub(crate) mod time;
