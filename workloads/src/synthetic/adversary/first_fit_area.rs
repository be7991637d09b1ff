//! An adversary of first fit by size times width, largest first.
//!
//! The outer lives of a path are long and thin and have the largest areas. Ordered by size, the inner ones would come
//! first, and the plan would be optimal.

use super::super::parameters::{N, SEED};
use super::super::{Family, Made, ParameterError, Values};
use super::Path;

/// The family `adversary/first-fit-area`.
pub const FAMILY: Family = Family {
    name: "adversary/first-fit-area",
    summary: "paths whose outer lives have the largest areas: 9/7 of the optimum for first-fit/area",
    parameters: &[N, SEED],
    make,
};

const PATH: Path = Path { lives: [(0, 8), (7, 10), (9, 12), (11, 19)], sizes: [2, 4, 3, 2] };

fn make(values: &Values) -> Result<Made, ParameterError> {
    PATH.make(values, FAMILY.name)
}
