//! Where placement problems come from: files, recorded nets, seeded families and public instances.
pub mod expected;
pub mod formats;
mod nearest;
pub mod recorded;
pub use formats::{Dialect, FormatError, ReadOptions, Trace};
pub use nearest::{did_you_mean, nearest};
