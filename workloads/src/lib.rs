//! Where placement problems come from: files, recorded nets, seeded families and public instances.
//!
//! [`Catalog`] finds a workload by its key, wherever it comes from; [`formats`] reads and writes traces
//! and plans; [`suites`] say which planners run on which workloads.

pub mod batch;
pub mod catalog;
pub mod expected;
pub mod external;
pub mod files;
pub mod formats;
mod glob;
pub mod models;
mod nearest;
pub mod process;
pub mod recorded;
pub mod suites;
pub mod synthetic;
pub mod waste;

pub use catalog::{Catalog, WorkloadError};
pub use files::{FileOptions, FileWorkload};
pub use formats::{Dialect, FormatError, ReadOptions, Trace};
pub use glob::matches_glob;
pub use nearest::{did_you_mean, nearest};
pub use suites::{Suite, SuiteError};
