//! What tests of all profiles look at.

use crate::{MapId, SchedulingProblem};

/// The name and the bytes of each map.
pub(super) fn maps(problem: &SchedulingProblem) -> Vec<(&str, u64)> {
    problem.net.maps().iter().map(|map| (&map.name[..], map.bytes.get())).collect()
}

/// The inputs and the needs of each function.
pub(super) fn reads(problem: &SchedulingProblem) -> Vec<(Vec<usize>, Vec<usize>)> {
    let indices = |maps: &[MapId]| maps.iter().map(|map| map.index()).collect();
    let functions = problem.net.functions().iter();
    functions.map(|function| (indices(&function.inputs), indices(&function.needs))).collect()
}
