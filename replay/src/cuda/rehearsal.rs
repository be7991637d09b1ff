//! Prepares a device for the first turn.
//!
//! Drivers load parts of themselves at their first use, and keep memory for them. Each part is used once, so that this
//! memory is taken before the free memory is read. An idle device has slow clocks (345 MHz of a possible 1980), so it
//! then works until they have risen.

#![allow(unsafe_code, reason = "kernels run on memory that was just allocated")]

use std::time::{Duration, Instant};

use planlab_dsa::{Address, Bytes};

use super::driver::{Driver, DriverError, Kernel, Mark, WORD};

/// The bytes that each part is tried with.
const TRIAL: u64 = 1 << 20;

/// The most bytes that the device works on: more than any cache holds.
const WORKPLACE: u64 = 256 << 20;

/// The number of kernel pairs between two looks at the clock.
const PAIRS: u32 = 16;

/// Uses all parts once, then keeps the device busy for `work`.
///
/// # Errors
///
/// As [`Device::rehearse_turns`](super::Device::rehearse_turns).
pub(super) fn rehearse_driver(driver: &dyn Driver, work: Duration) -> Result<(), DriverError> {
    let parts = [rehearse_counters, rehearse_segment, rehearse_pool, rehearse_graph, rehearse_mapping];
    parts.into_iter().try_for_each(|part| or_answer(driver, part(driver)))?;
    or_answer(driver, keep_busy(driver, work))
}

/// Ignores a part that the device lacks or has no room for: contenders that need it fail later. A device that no
/// longer answers is an error.
fn or_answer(driver: &dyn Driver, end: Result<(), DriverError>) -> Result<(), DriverError> {
    if end.is_err() && driver.synchronise().and_then(|()| driver.device_memory()).is_ok() {
        Ok(())
    } else {
        end
    }
}

/// Clears the counters, sets the marks and reads both.
fn rehearse_counters(driver: &dyn Driver) -> Result<(), DriverError> {
    driver.clear_slots()?;
    driver.record_mark(Mark::Begin)?;
    driver.record_mark(Mark::End)?;
    driver.read_slots()?;
    driver.between_marks().map(drop)
}

/// Allocates memory by a call.
fn rehearse_segment(driver: &dyn Driver) -> Result<(), DriverError> {
    let at = driver.malloc(Bytes::new(TRIAL))?;
    let touched = touch_memory(driver, at, TRIAL).and_then(|()| driver.synchronise());
    driver.free(at).and(touched)
}

/// Allocates memory from the driver's pool.
fn rehearse_pool(driver: &dyn Driver) -> Result<(), DriverError> {
    driver.keep_in_pool(Bytes::ZERO)?;
    rehearse_stream_order(driver)?;
    driver.synchronise()?;
    driver.reset_pool()
}

/// Allocates memory in a graph.
fn rehearse_graph(driver: &dyn Driver) -> Result<(), DriverError> {
    driver.begin_capture()?;
    let captured = rehearse_stream_order(driver);
    // A capture is ended even if it failed.
    let graph = driver.end_capture();
    captured?;
    let graph = graph?;
    // SAFETY: its kernels touch only the graph's own memory.
    let launched = unsafe { driver.launch_graph(graph) }.and_then(|()| driver.synchronise());
    driver.drop_graph(graph).and(launched)
}

/// A request and its free in the stream's order, with kernels between them.
fn rehearse_stream_order(driver: &dyn Driver) -> Result<(), DriverError> {
    let at = driver.malloc_async(Bytes::new(TRIAL))?;
    let touched = touch_memory(driver, at, TRIAL);
    driver.free_async(at).and(touched)
}

/// Maps a range.
fn rehearse_mapping(driver: &dyn Driver) -> Result<(), DriverError> {
    let page = driver.page_size();
    let at = driver.reserve(page)?;
    let mapped = driver.map(at, page, page).and_then(|()| {
        let touched = touch_memory(driver, at, TRIAL.min(page.get()));
        driver.unmap(&[at]).and(touched)
    });
    driver.unreserve(at, page).and(mapped)
}

/// Writes and reads memory.
fn touch_memory(driver: &dyn Driver, at: Address, bytes: u64) -> Result<(), DriverError> {
    let words = bytes / WORD;
    // SAFETY: the caller has just allocated these bytes, and waits for the kernels before it frees them.
    unsafe {
        driver.launch_kernel(Kernel::Fill { at, words, seed: 1 })?;
        driver.launch_kernel(Kernel::Sum { at, words, slot: 0 })
    }
}

/// Keeps the device busy for `work`.
fn keep_busy(driver: &dyn Driver, work: Duration) -> Result<(), DriverError> {
    let bytes = (driver.device_memory()?.free.get() / 4).min(WORKPLACE) / WORD * WORD;
    if work.is_zero() || bytes == 0 {
        return Ok(());
    }
    let at = driver.malloc(Bytes::new(bytes))?;
    let start = Instant::now();
    let mut worked = Ok(());
    while worked.is_ok() && start.elapsed() < work {
        worked =
            (0..PAIRS).try_for_each(|_| touch_memory(driver, at, bytes)).and_then(|()| driver.synchronise());
    }
    driver.free(at).and(worked)
}
