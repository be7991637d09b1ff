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
pub use paired::{holm_adjustment, wilcoxon_probability};
pub use student::student_quantile;
pub use summary::{
    Interval, ShiftedMean, bootstrap_interval, bootstrap_ratio, median, median_interval, quantile,
    shifted_geometric_mean,
};

pub(crate) use crate::show::format::{as_real, count_real as count};
