//! An adversary of first fit by width, longest first.
//!
//! The outer lives of a path are the longest. Ordered by area, an inner one would come first, and the plan would be
//! optimal.

use super::super::parameters::{N, SEED};
use super::super::{Family, Made, ParameterError, Values};
use super::Path;

/// The family `adversary/first-fit-width`.
pub const FAMILY: Family = Family {
    name: "adversary/first-fit-width",
    summary: "paths whose outer lives are longest: 7/5 of the optimum for first-fit/width",
    parameters: &[N, SEED],
    make,
};

const PATH: Path = Path { lives: [(0, 10), (9, 17), (16, 19), (18, 28)], sizes: [2, 3, 2, 2] };

fn make(values: &Values) -> Result<Made, ParameterError> {
    PATH.make(values, FAMILY.name)
}
