//! The native half of the Python package `planlab`: what needs the planners, the schedulers and the readers of traces.
//!
//! The other half, in `planlab/`, turns what a caller has into arrays of the right type and gives results their form.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod planning;
mod scheduling;
mod trace;
mod worker;

/// What Python sees as `planlab._native`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::planning::{plan_columns, planners};
    #[pymodule_export]
    use crate::scheduling::schedule_net;
    #[pymodule_export]
    use crate::trace::{NativeTrace, is_file_name, write_file};

    /// The version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python has it by")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
