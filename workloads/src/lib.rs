//! Where placement problems come from: files, recorded nets, seeded families and public instances.
mod catalog;
pub mod expected;
pub mod external;
pub mod formats;
mod nearest;
pub mod recorded;
pub mod suites;
pub mod synthetic;
pub use catalog::{Catalog, WorkloadError};
pub use formats::{Dialect, FormatError, ReadOptions, Trace};
pub use nearest::{did_you_mean, nearest};
