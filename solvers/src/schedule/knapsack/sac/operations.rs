//! The knapsack in a module: which outputs of its operations are saved within a budget of bytes.
//!
//! ```text
//! maximise sum of seconds_i x_i   with   sum of bytes_i x_i <= ceil(budget * all bytes),   x_i 0 or 1
//! ```
//!
//! Views are recomputed, what overwrites an input of the module is saved, and an operation in place is saved with the
//! operation whose output it overwrites.
//!
//! # References
//!
//! 1. PyTorch, `torch/distributed/_tools/sac_ilp.py`: the policy of a module, from xFormers.
//!
//! # Complexity
//!
//! Exponential.
//!
//! # Deviations from the paper
//!
//! The optimum is proved; there, the solver ends at a gap of 5 %.

use std::time::Duration;

use planlab_graph::{ScheduleError, ScheduleHalt};

use crate::milp::LinearProgram;
use crate::schedule::knapsack::activations::{Activation, total_bytes};
use crate::schedule::knapsack::ilp::limit_solver;
use crate::schedule::milp_solver::solve_program;
use crate::schedule::solver_time::error_of_halt;

/// Whether an operation's output may be saved and recomputed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaveRule {
    /// Both.
    #[default]
    Free,
    /// It is saved.
    Saved,
    /// It is recomputed: a view.
    Recomputed,
    /// It is saved if the output of this operation is: it is computed in place, or random, too.
    With(usize),
}

/// An operation of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SacOperation {
    /// Its output.
    pub output: Activation,
    /// Whether the output may be saved and recomputed.
    pub rule: SaveRule,
}

/// For each operation, whether its output is saved, if saved outputs take at most `budget` of the bytes of all. The
/// budget is from 0 to 1.
///
/// # Errors
///
/// [`ScheduleError::Failed`] if what has to be saved exceeds the budget, or the solver fails.
///
/// # Panics
///
/// If an operation's rule names an operation that does not exist.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_solvers::schedule::knapsack::{Activation, SacOperation, SaveRule, choose_operations};
///
/// let operation = |bytes, seconds| {
///     SacOperation { output: Activation { bytes: Bytes::new(bytes), seconds }, rule: SaveRule::Free }
/// };
/// let saved = choose_operations(&[operation(2, 5.0), operation(1, 3.0), operation(1, 3.0)], 0.5)?;
/// assert_eq!(saved, [false, true, true]);
/// # Ok::<(), planlab_graph::ScheduleError>(())
/// ```
pub fn choose_operations(operations: &[SacOperation], budget: f64) -> Result<Vec<bool>, ScheduleError> {
    choose_operations_within(operations, budget, None).map_err(error_of_halt)
}

/// As [`choose_operations`], or the best choice that the solver finds in this time; [`planlab_dsa::Stop::Deadline`] if it
/// finds no choice.
pub(super) fn choose_operations_within(
    operations: &[SacOperation],
    budget: f64,
    time: Option<Duration>,
) -> Result<Vec<bool>, ScheduleHalt> {
    if operations.is_empty() {
        return Ok(Vec::new());
    }
    let outputs: Vec<Activation> = operations.iter().map(|operation| operation.output).collect();
    let total = (total_bytes(&outputs) as f64).max(1.0);
    let seconds: f64 = outputs.iter().map(|output| output.seconds).sum();
    let mut program = LinearProgram::new();
    let mut bytes = Vec::with_capacity(operations.len());
    for (operation, output) in operations.iter().zip(&outputs) {
        let cost = -output.seconds / seconds.max(f64::MIN_POSITIVE);
        let saved = program.add_column(operation.rule.range(), true, cost);
        bytes.push((saved, output.bytes.get() as f64 / total));
    }
    program.limit_sum(&bytes, (budget * total).ceil() / total);
    for (&(own, _), operation) in bytes.iter().zip(operations) {
        if let SaveRule::With(other) = operation.rule {
            program.fix_sum(&[(own, 1.0), (bytes[other].0, -1.0)], 0.0);
        }
    }
    let (_, solution) = solve_program(program, limit_solver(0.0, time))?;
    let solution = solution.ok_or_else(|| {
        ScheduleError::Failed(format!("what has to be saved exceeds {budget} of a module's bytes"))
    })?;
    Ok(bytes.iter().map(|&(saved, _)| solution.value(saved) > 0.5).collect())
}

impl SaveRule {
    /// The least and the greatest value of the column that is 1 if the output is saved.
    const fn range(self) -> (f64, f64) {
        match self {
            Self::Free | Self::With(_) => (0.0, 1.0),
            Self::Saved => (1.0, 1.0),
            Self::Recomputed => (0.0, 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::knapsack::testing::activations;

    /// The operations of a test of PyTorch: seconds and bytes of copy in place, add, div, mm, dropout, linear, t, and relu
    /// in place of the linear layer's output.
    fn published_operations() -> Vec<SacOperation> {
        let outputs =
            [(0, 5.0), (100, 5.0), (100, 8.0), (120, 15.0), (0, 15.0), (100, 9.0), (0, 1.0), (0, 5.0)];
        let mut operations: Vec<_> = activations(&outputs)
            .into_iter()
            .map(|output| SacOperation { output, rule: SaveRule::Free })
            .collect();
        operations[0].rule = SaveRule::Saved;
        operations[6].rule = SaveRule::Recomputed;
        operations[7].rule = SaveRule::With(5);
        operations
    }

    /// The golden of PyTorch's test: seven budgets out of 420 bytes, and what each saves.
    #[test]
    fn published_budgets_save_the_published_operations() {
        let operations = published_operations();
        for (bytes, expected) in [
            (0.0, [1, 0, 0, 0, 1, 0, 0, 0]),
            (100.0, [1, 0, 0, 0, 1, 1, 0, 1]),
            (120.0, [1, 0, 0, 1, 1, 0, 0, 0]),
            (200.0, [1, 0, 1, 0, 1, 1, 0, 1]),
            (220.0, [1, 0, 0, 1, 1, 1, 0, 1]),
            (320.0, [1, 0, 1, 1, 1, 1, 0, 1]),
            (420.0, [1, 1, 1, 1, 1, 1, 0, 1]),
        ] {
            let saved = choose_operations(&operations, bytes / 420.0).expect("a choice");
            assert_eq!(saved, expected.map(|saved| saved == 1), "{bytes} bytes");
        }
    }

    #[test]
    fn output_that_must_be_saved_may_exceed_the_budget() {
        let mut operations = published_operations();
        operations[3].rule = SaveRule::Saved;
        let refused = choose_operations(&operations, 0.25).expect_err("120 of 420 bytes are too many");
        assert!(refused.to_string().starts_with("what has to be saved exceeds"), "{refused}");
        assert_eq!(choose_operations(&[], 0.0), Ok(Vec::new()));
    }
}
