//! Profiles of nets: layers or operators with measured times and sizes, at a batch that the file does not contain.

mod format;
mod measured;
mod partitioning;
mod pipedream;
#[cfg(test)]
mod testing;

pub use format::ProfileFormat;
pub use measured::{MeasuredNet, ProfileError};
