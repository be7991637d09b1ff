//! Buffers and instances from plain numbers.

use crate::{Buffer, Bytes, Instance, LiveRange};

/// Returns a buffer of `size` bytes, live at the steps `[start, end)`.
///
/// # Panics
///
/// If there is no such step.
#[must_use]
pub fn test_buffer(size: u64, start: u32, end: u32) -> Buffer {
    Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
}

/// Returns the instance of buffers by size, start and end.
///
/// # Panics
///
/// If they are not a valid instance.
#[must_use]
pub fn test_instance(rows: &[(u64, u32, u32)]) -> Instance {
    let buffers = rows.iter().map(|&(size, start, end)| test_buffer(size, start, end));
    Instance::from_buffers(buffers.collect()).expect("valid")
}

/// Draws pseudo-random numbers below the argument: a linear congruential generator, the same for the same seed.
pub fn pseudo_random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}
