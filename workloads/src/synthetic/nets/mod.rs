//! Families that look like nets: lists of operations, lowered to lives.

pub mod chain;
pub mod lstm;
pub mod multi_stream;
pub mod skip;
mod tape;
pub mod transformer;
