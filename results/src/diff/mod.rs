//! Compares two sets of rows: times, heights, bounds and statuses, by cell and by planner.
//!
//! Cells are paired by planner, content of the workload, parameters, seed, capacity and limits; only the build differs.
//! [`DiffOptions`] defines when a change of a time counts. Many small changes of a planner's heights are judged by the
//! signed-rank test over its cells, adjusted for the number of planners.
//!
//! # References
//!
//! 1. T. Kalibera, R. Jones: Rigorous benchmarking in reasonable time. ISMM 2013. DOI 10.1145/2464157.2464160:
//!    samples of one process resemble each other, so that processes are repeated and resampled too.
//! 2. The tests are those of [`wilcoxon_probability`](crate::statistics::wilcoxon_probability) and [`holm_adjustment`](crate::statistics::holm_adjustment).

mod chance;
mod change;
mod mismatch;
mod options;
mod pairs;
mod planners;
mod timing;
mod verdict;

pub use change::Change;
pub use mismatch::{Mismatch, Remark};
pub use options::DiffOptions;
pub use pairs::CellName;
pub use planners::{PlannerChange, Summary};
pub use timing::TimeChange;
pub use verdict::{Sides, Verdict};

use crate::rows::Record;
use pairs::Pairing;
use timing::Times;

/// The changes from side A to side B.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diff {
    /// Every cell that both sides have, changed or not, by planner.
    pub changes: Vec<Change>,
    /// The changes summarised by planner.
    pub planners: Vec<PlannerChange>,
    /// Cells that only A has.
    pub only_a: Vec<CellName>,
    /// Cells that only B has.
    pub only_b: Vec<CellName>,
    /// Reasons why the sides cannot be compared fairly.
    pub mismatches: Vec<Mismatch>,
    /// Remarks for the reader.
    pub remarks: Vec<Remark>,
}

impl Diff {
    /// Compares the rows of side A with those of side B.
    #[must_use]
    pub fn new(a: &[Record], b: &[Record], options: &DiffOptions) -> Self {
        let pairing = Pairing::new(a, b, options.across_limits);
        let mismatches = mismatch::find_mismatches(&pairing);
        let (times, in_turns) = (Times::new(&pairing), pairing.in_turns());
        let of = |(at, pair)| Change::new(pair, times.time_change(at, options), in_turns);
        let changes: Vec<Change> = pairing.pairs.iter().enumerate().map(of).collect();
        let planners = planners::summarize_planners(&changes, &times, options);
        let remarks = mismatch::collect_remarks(&pairing, &changes, options);
        Self { changes, planners, only_a: pairing.only_a, only_b: pairing.only_b, mismatches, remarks }
    }

    /// Cells with a worse result, contradictions included.
    pub fn regressions(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_worse())
    }

    /// Cells in which one side has a proof that a verified plan of the other refutes.
    pub fn contradictions(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_contradiction())
    }

    /// Whether any cell is worse, or any planner over its cells.
    #[must_use]
    pub fn has_regression(&self) -> bool {
        self.regressions().next().is_some() || self.planners.iter().any(PlannerChange::is_worse)
    }
}
