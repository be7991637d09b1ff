//! Saves the activations with the most seconds whose bytes fit the budget: a 0-1 program.
//!
//! ```text
//! maximise sum of seconds_i x_i   with   sum of bytes_i x_i <= budget * all bytes,   x_i 0 or 1
//! ```
//!
//! # References
//!
//! 1. PyTorch, `torch/_functorch/_activation_checkpointing/knapsack.py`: the solver `ilp`, which runs HiGHS, too.
//!
//! # Complexity
//!
//! Exponential; it ends at a gap of 1e-4, which is HiGHS's default, after a fixed number of nodes, or when the time is up.

use std::time::Duration;

use planlab_graph::{ScheduleError, ScheduleHalt};

use super::activations::{Activation, total_bytes};
use crate::milp::{LinearProgram, SolverLimits};
use crate::schedule::milp_solver::solve_program;

/// The relative gap at which the solver stops.
const GAP: f64 = 1e-4;
/// The most nodes of a search, so that it ends under a limit of work, too.
const NODES: i32 = 2_000;

/// When a search ends before it has proved an optimum: at a relative gap, at the limit of nodes, or when the time is up.
pub(super) const fn limit_solver(gap: f64, time: Option<Duration>) -> SolverLimits {
    SolverLimits { time, nodes: Some(NODES), gap }
}

/// For each activation, whether it is saved. The budget is a share of all bytes.
///
/// # Errors
///
/// [`ScheduleError::Failed`] if the solver fails, [`planlab_dsa::Stop::Deadline`] if it has no answer in time.
pub(super) fn choose_by_program(
    activations: &[Activation],
    budget: f64,
    time: Option<Duration>,
) -> Result<Vec<bool>, ScheduleHalt> {
    let total = total_bytes(activations) as f64;
    let seconds: f64 = activations.iter().map(|activation| activation.seconds).sum();
    if activations.is_empty() || seconds <= 0.0 {
        return Ok(vec![false; activations.len()]);
    }
    let mut program = LinearProgram::new();
    let mut bytes = Vec::with_capacity(activations.len());
    for activation in activations {
        let saved = program.add_column((0.0, 1.0), true, -activation.seconds / seconds);
        bytes.push((saved, activation.bytes.get() as f64 / total));
    }
    program.limit_sum(&bytes, budget);
    let (_, solution) = solve_program(program, limit_solver(GAP, time))?;
    let solution = solution.ok_or_else(|| ScheduleError::Failed("HiGHS finds no knapsack".to_owned()))?;
    Ok(bytes.iter().map(|&(saved, _)| solution.value(saved) > 0.5).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::knapsack::testing::activations;

    #[test]
    fn dense_item_gives_way_to_a_large_one() {
        let items = activations(&[(1, 2.0), (9, 9.0)]);
        assert_eq!(choose_by_program(&items, 0.9, None), Ok(vec![false, true]));
        assert_eq!(choose_by_program(&items, 0.1, None), Ok(vec![true, false]));
        assert_eq!(choose_by_program(&[], 0.1, None), Ok(Vec::new()));
    }
}
