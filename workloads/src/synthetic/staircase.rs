//! A sliding window: every buffer starts one step after the previous one and ends one step after it.
//!
//! Models pipelines and streaming decoders. Sizes grow slightly from buffer to buffer, so that freed memory is always
//! slightly too small for the next buffer; after `period` buffers they fall back. First fit in start order leaves a
//! hole behind each step.
//!
//! ```text
//!  address
//!    |         +-----+
//!    |     +---+--+  |
//!    | +---+-+ |  |  |
//!    | +-----+ +--+--+
//!    +------------------> step
//! ```
//!
//! # References
//!
//! 1. J. M. Robson, "Worst case fragmentation of first fit and best fit storage allocation strategies",
//!    Computer Journal 20(3), 1977, doi:10.1093/comjnl/20.3.242.

use planlab_dsa::{Buffer, Bytes};

use super::dice::Dice;
use super::family::{Family, Made, life};
use super::parameters::{N, Parameter, ParameterError, SEED, Values};

/// The family `staircase`.
pub const FAMILY: Family = Family {
    name: "staircase",
    summary: "a sliding window of lives whose sizes climb step by step",
    parameters: &[
        N,
        SEED,
        Parameter::from_number("window", "8", (1, 1_000_000), "steps that each buffer lives"),
        Parameter::from_number("period", "32", (1, 1_000_000), "buffers after which the sizes fall back"),
    ],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    const GRANULE: u64 = 512;
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let (window, period) = (values.steps("window"), values.number("period"));
    let buffers = (0..values.steps("n")).map(|start| {
        let climb = 64 + 4 * (u64::from(start) % period) + dice.below(4);
        Buffer::new(Bytes::new(climb * GRANULE), life(start, start + window))
    });
    Made::from_buffers(buffers.collect())
}
