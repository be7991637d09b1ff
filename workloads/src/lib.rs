//! Where placement problems come from: files, recorded nets, seeded families and public instances.
//!
//! [`formats`] reads and writes traces and plans.

pub mod formats;

pub use formats::{Dialect, FormatError, ReadOptions, Trace};
