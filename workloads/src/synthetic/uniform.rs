//! Uniformly drawn sizes, starts and widths: no structure at all.
//!
//! It does not model a net; it is the null hypothesis of the placement literature, and most published comparisons of
//! heuristics use it.
//!
//! # References
//!
//! 1. J. M. Robson, "Bounds for some functions concerning dynamic storage allocation", J. ACM 21(3), 1974,
//!    doi:10.1145/321832.321846: why the *order* of requests and not their mean is what hurts.

use planlab_dsa::{Buffer, Bytes};

use super::dice::Dice;
use super::family::{Family, Made, life};
use super::parameters::{N, Parameter, ParameterError, SEED, Values};

/// The family `uniform`.
pub const FAMILY: Family = Family {
    name: "uniform",
    summary: "sizes, starts and widths drawn evenly: no structure at all",
    parameters: &[
        N,
        SEED,
        Parameter::from_number("max-size", "2048", (1, 1 << 40), "largest size, in granules"),
        Parameter::from_number("granule", "512", (1, 1 << 20), "bytes that every size is a multiple of"),
        Parameter::from_number(
            "live",
            "64",
            (1, 1 << 20),
            "buffers live at one step, on average (at most n / 4)",
        ),
    ],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let (n, granule, most) = (values.number("n"), values.number("granule"), values.number("max-size"));
    let window = Window::new(n, values.number("live"));
    let buffers = (0..n).map(|_| {
        let width = dice.steps_between(1, 2 * window.mean_width);
        let size = Bytes::new(granule * dice.between(1, most));
        Buffer::new(size, window.random_life(&mut dice, width))
    });
    Made::from_buffers(buffers.collect())
}

/// A range of steps in which `live` buffers are live on average.
pub(super) struct Window {
    horizon: u32,
    pub(super) mean_width: u32,
}

impl Window {
    /// For `n` buffers, with one start per step on average.
    pub(super) fn new(n: u64, live: u64) -> Self {
        let horizon = u32::try_from(n.max(8)).expect("n is bounded");
        let mean_width = u32::try_from(live.min(n / 4).max(1)).expect("no more than n");
        Self { horizon, mean_width }
    }

    /// A life of this width anywhere in the window.
    pub(super) fn random_life(&self, dice: &mut Dice, width: u32) -> planlab_dsa::LiveRange {
        let width = width.min(self.horizon);
        let start = dice.steps_between(0, self.horizon - width);
        life(start, start + width)
    }
}
