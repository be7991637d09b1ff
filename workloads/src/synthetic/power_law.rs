//! Few large buffers and very many small ones, most of them short-lived.
//!
//! Models a training process from an allocator's view: parameters, statistics and indices of a few bytes beside
//! activations of hundreds of megabytes, and temporaries beside buffers that live for an iteration. A size doubles
//! again with probability `tail` %, so sizes of `2^k` granules and more have probability `(tail / 100)^k`: a discrete
//! Pareto law with exponent `-log2(tail / 100)`. Widths follow the same law.
//!
//! # References
//!
//! 1. P. R. Wilson, M. S. Johnstone, M. Neely, D. Boles, "Dynamic storage allocation: a survey and
//!    critical review", IWMM 1995, doi:10.1007/3-540-60368-9_19: skewed sizes and lives of real programs.

use planlab_dsa::{Buffer, Bytes};

use super::dice::Dice;
use super::family::{Family, Made};
use super::parameters::{N, Parameter, ParameterError, SEED, Values};
use super::uniform::Window;

/// The family `power-law`.
pub const FAMILY: Family = Family {
    name: "power-law",
    summary: "few large buffers, very many small ones, most of them short-lived",
    parameters: &[
        N,
        SEED,
        Parameter::from_number(
            "tail",
            "60",
            (1, 95),
            "chance in percent that a size, or a width, doubles again",
        ),
        Parameter::from_number("granule", "512", (1, 1 << 20), "bytes that every size is a multiple of"),
        Parameter::from_number(
            "live",
            "64",
            (1, 1 << 20),
            "sets the widths: doubles of 1, at most 16 times it",
        ),
    ],
    make,
};

/// The most doublings of a size: 512-byte granules then reach 8 GiB.
const MOST_DOUBLINGS: u32 = 24;

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let (n, granule, tail) = (values.number("n"), values.number("granule"), values.number("tail"));
    let window = Window::new(n, values.number("live"));
    let widest = u64::from(window.mean_width) * 16;
    let buffers = (0..n).map(|_| {
        let size = Bytes::new(granule * pareto_number(&mut dice, tail));
        let width = pareto_number(&mut dice, tail).min(widest);
        Buffer::new(size, window.random_life(&mut dice, u32::try_from(width).expect("at most the widest")))
    });
    Made::from_buffers(buffers.collect())
}

/// A number from 1 on; at least `2^k` with probability `(tail / 100)^k`, uniform within each doubling.
fn pareto_number(dice: &mut Dice, tail: u64) -> u64 {
    let mut low = 1;
    for _ in 0..MOST_DOUBLINGS {
        if !dice.roll_percent(tail) {
            break;
        }
        low *= 2;
    }
    dice.between(low, 2 * low - 1)
}
