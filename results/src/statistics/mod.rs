//! Statistics of planners over instances.
//!
//! A missing value (`None`) is a failure: it is always counted, never silently ignored.

mod binomial;
mod fit;
mod paired;
mod student;
mod summary;

pub use binomial::binomial_tail;
pub use fit::{PowerFit, fit_power};
pub use paired::{holm, wilcoxon};
pub use student::student_quantile;
pub use summary::{
    Interval, ShiftedMean, bootstrap, bootstrap_ratio, median, median_interval, shifted_geometric_mean,
};

#[expect(clippy::cast_precision_loss, reason = "counts of rows are far below 2^52")]
pub(crate) const fn count(number: usize) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "for ratios of bytes and nanoseconds")]
pub(crate) const fn real(number: u64) -> f64 {
    number as f64
}
