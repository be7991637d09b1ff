//! Writes what the process leaves, at its end or before it forbids itself system calls.

use super::segments::idle;
use super::settings::{Settings, settings};
use super::system::{self, is_frozen, real};
use super::{heap, record, report};

/// Writes the statistics, and makes no system call from now on: the program is about to forbid them. Known plans are
/// still followed, and the real allocator has the memory that it would have without them.
#[cold]
pub(super) fn freeze() {
    if let Some(settings) = settings().filter(|_| !system::freeze()) {
        idle::start_no_more();
        write(settings);
        real::untrim();
    }
}

/// Called at the end of the process.
pub(super) extern "C" fn at_exit() {
    let Some(settings) = settings().filter(|_| !is_frozen()) else { return };
    heap::end();
    write(settings);
}

/// Writes what the process leaves: its statistics, or the rest of its trace.
fn write(settings: &Settings) {
    record::flush();
    if let Some(file) = &settings.report {
        report::append(file);
    }
}
