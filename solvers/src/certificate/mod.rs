//! Certificates: proofs that no plan fits a capacity, and a checker of them.
//!
//! The search that writes certificates uses this folder; nothing here uses the search, or anything else of this crate.

mod checker;
mod format;

pub use checker::{CertificateError, StepFault};
pub use format::{BadStep, Certificate, Step};
