//! An adversary of the paper's best fit, which fills the lowest line with the longest-lived buffer that fits.
//!
//! The outer lives of a path are the longest, so both go to the bottom. The space left between them is one step too
//! narrow for either inner life, so the line is lifted. The inner two end up above each other: three sizes high instead
//! of two.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai, R. Raymond, "Profile-guided memory optimization for deep neural
//!    networks", 2018, arXiv:1804.10001: the heuristic.

use super::super::parameters::{N, SEED};
use super::super::{Family, Made, ParameterError, Values};
use super::Path;

/// The family `adversary/best-fit`.
pub const FAMILY: Family = Family {
    name: "adversary/best-fit",
    summary: "paths whose outer lives are longest: 3/2 of the optimum for best-fit",
    parameters: &[N, SEED],
    make,
};

const PATH: Path = Path { lives: [(0, 10), (9, 13), (12, 15), (14, 24)], sizes: [1, 1, 1, 1] };

fn make(values: &Values) -> Result<Made, ParameterError> {
    PATH.make(values, FAMILY.name)
}
