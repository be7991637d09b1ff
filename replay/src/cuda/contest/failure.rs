//! Why a turn failed.

use planlab_dsa::AllocError;
use planlab_dsa::performance::End;

use super::contenders::{BuildError, Memory};
use super::player::Stop;
use crate::cuda::driver::DriverError;

/// How a turn ended, and why.
pub(super) type Broken = (End, String);

/// Why a turn failed, with what was not given back at its end.
pub(super) fn with_lost((end, reason): Broken, lost: Option<String>) -> Broken {
    match lost {
        Some(lost) => (end, format!("{reason}; {lost}")),
        None => (end, reason),
    }
}

pub(super) fn broken(stop: &Stop, memory: &Memory) -> Broken {
    if let Some(fault) = memory.book.fault() {
        return broken_device(fault);
    }
    let end = match stop {
        Stop::Alloc { error: AllocError::OutOfMemory { .. }, .. }
        | Stop::Device(DriverError::OutOfMemory { .. }) => End::OutOfMemory,
        Stop::Stray { .. } => End::Corrupt,
        _ => End::Failed,
    };
    (end, stop.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
pub(super) fn broken_device(error: DriverError) -> Broken {
    let is_full = matches!(error, DriverError::OutOfMemory { .. });
    (if is_full { End::OutOfMemory } else { End::Failed }, error.to_string())
}

pub(super) fn broken_build(error: BuildError) -> Broken {
    match error {
        BuildError::OutOfMemory(reason) => (End::OutOfMemory, reason),
        BuildError::Unavailable(reason) => (End::Unavailable, reason),
        BuildError::Failed(error) => broken_device(error),
    }
}
