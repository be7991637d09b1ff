//! What is done on a device before the first turn.
//!
//! Drivers load parts of themselves when these are first used, and keep memory for them: each part is used once, so
//! that this memory is gone before it is read how much is free. An idle device has slow clocks (345 MHz, where 1980 are
//! possible): it works for a while, until they have risen.

#![allow(unsafe_code, reason = "kernels run on memory that was just allocated")]

use std::time::{Duration, Instant};

use planlab_dsa::{Address, Bytes};

use super::driver::{Driver, DriverError, Kernel, Mark, WORD};

/// Bytes that each part is tried with.
const TRIAL: u64 = 1 << 20;

/// The most that the device works on, in bytes: more than any cache.
const WORKPLACE: u64 = 256 << 20;

/// Kernels between two looks at the clock, in pairs.
const PAIRS: u32 = 16;

/// Uses all parts once, then works for so long.
///
/// # Errors
///
/// As [`Device::rehearse`](super::Device::rehearse).
pub(super) fn rehearse(driver: &dyn Driver, work: Duration) -> Result<(), DriverError> {
    let parts = [counters, segment, pool, graph, ranges];
    parts.into_iter().try_for_each(|part| or_answer(driver, part(driver)))?;
    or_answer(driver, keep_busy(driver, work))
}

/// A part that the device does not have, or has no room for, is missed by those who need it, later. A device that does
/// not answer any more is an error.
fn or_answer(driver: &dyn Driver, end: Result<(), DriverError>) -> Result<(), DriverError> {
    if end.is_err() && driver.synchronise().and_then(|()| driver.memory()).is_ok() { Ok(()) } else { end }
}

/// Clears, marks and reads.
fn counters(driver: &dyn Driver) -> Result<(), DriverError> {
    driver.clear_slots()?;
    driver.record(Mark::Begin)?;
    driver.record(Mark::End)?;
    driver.slots()?;
    driver.between_marks().map(drop)
}

/// Memory by a call.
fn segment(driver: &dyn Driver) -> Result<(), DriverError> {
    let at = driver.malloc(Bytes::new(TRIAL))?;
    let touched = touch(driver, at, TRIAL).and_then(|()| driver.synchronise());
    driver.free(at).and(touched)
}

/// Memory of the driver's pool.
fn pool(driver: &dyn Driver) -> Result<(), DriverError> {
    driver.keep_in_pool(Bytes::ZERO)?;
    ordered(driver)?;
    driver.synchronise()?;
    driver.reset_pool()
}

/// Memory in a graph.
fn graph(driver: &dyn Driver) -> Result<(), DriverError> {
    driver.begin_capture()?;
    let captured = ordered(driver);
    // A capture is ended whatever became of it.
    let graph = driver.end_capture();
    captured?;
    let graph = graph?;
    // SAFETY: its kernels touch the graph's own memory.
    let launched = unsafe { driver.launch_graph(graph) }.and_then(|()| driver.synchronise());
    driver.drop_graph(graph).and(launched)
}

/// A request and its free in the stream's order, with kernels between them.
fn ordered(driver: &dyn Driver) -> Result<(), DriverError> {
    let at = driver.malloc_async(Bytes::new(TRIAL))?;
    let touched = touch(driver, at, TRIAL);
    driver.free_async(at).and(touched)
}

/// A mapped range.
fn ranges(driver: &dyn Driver) -> Result<(), DriverError> {
    let page = driver.page();
    let at = driver.reserve(page)?;
    let mapped = driver.map(at, page, page).and_then(|()| {
        let touched = touch(driver, at, TRIAL.min(page.get()));
        driver.unmap(&[at]).and(touched)
    });
    driver.unreserve(at, page).and(mapped)
}

/// Writes and reads.
fn touch(driver: &dyn Driver, at: Address, bytes: u64) -> Result<(), DriverError> {
    let words = bytes / WORD;
    // SAFETY: the caller has just allocated these bytes, and waits for the kernels before it frees them.
    unsafe {
        driver.launch(Kernel::Fill { at, words, seed: 1 })?;
        driver.launch(Kernel::Sum { at, words, slot: 0 })
    }
}

/// Lets the device work for so long.
fn keep_busy(driver: &dyn Driver, work: Duration) -> Result<(), DriverError> {
    let bytes = (driver.memory()?.free.get() / 4).min(WORKPLACE) / WORD * WORD;
    if work.is_zero() || bytes == 0 {
        return Ok(());
    }
    let at = driver.malloc(Bytes::new(bytes))?;
    let start = Instant::now();
    let mut worked = Ok(());
    while worked.is_ok() && start.elapsed() < work {
        worked = (0..PAIRS).try_for_each(|_| touch(driver, at, bytes)).and_then(|()| driver.synchronise());
    }
    driver.free(at).and(worked)
}
