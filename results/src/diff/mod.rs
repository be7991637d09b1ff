//! What changed between two sets of rows: times, heights, bounds and statuses, by cell and by planner.
//!
//! Cells are paired by planner, content of the workload, parameters, seed, capacity and limits; the build differs
//! by purpose. [`DiffOptions`] says when a change of a time counts. Whether many small changes of one planner's
//! heights are chance is asked of the signed-rank test over its cells, adjusted for the number of planners.
//!
//! # References
//!
//! 1. T. Kalibera, R. Jones: Rigorous benchmarking in reasonable time. ISMM 2013. DOI 10.1145/2464157.2464160:
//!    samples of one process resemble each other, so that processes are repeated and resampled too.
//! 2. The tests are those of [`wilcoxon`](crate::statistics::wilcoxon) and [`holm`](crate::statistics::holm).

mod chance;
mod change;
mod mismatch;
mod pairs;
mod planners;
mod timing;
mod verdict;

use std::fmt;

pub use change::Change;
pub use mismatch::{Mismatch, Remark};
pub use pairs::CellName;
pub use planners::{PlannerChange, Summary};
pub use timing::TimeChange;
pub use verdict::{Sides, Verdict};

use crate::record::Record;
use pairs::Pairing;
use timing::Times;

/// When a change counts.
///
/// A time is worse, of a cell or of a planner over its cells, where the ratio is beyond the threshold and a change this
/// large, shared by this many measurements, would arise by chance in fewer than 1 of 1000 diffs, counting all cells
/// and planners of the diff. What chance does is read from the rows: where turns were repeated, from what changes between the
/// repetitions of one side; else from the cells of other planners that take as long, and then a planner alone is
/// judged. See `docs/METHODOLOGY.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DiffOptions {
    /// Changes of a time up to this share are none.
    pub threshold: f64,
    /// Whether times are judged, or only shown.
    pub judge_times: bool,
    /// Whether cells that differ in their limits alone are paired all the same.
    pub across_limits: bool,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { threshold: 0.05, judge_times: true, across_limits: false }
    }
}

/// What changed from side A to side B.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diff {
    /// Every cell that both sides have, changed or not, by planner.
    pub changes: Vec<Change>,
    /// The same by planner.
    pub planners: Vec<PlannerChange>,
    /// Cells that A alone has.
    pub only_a: Vec<CellName>,
    /// Cells that B alone has.
    pub only_b: Vec<CellName>,
    /// What makes the sides no fair comparison.
    pub mismatches: Vec<Mismatch>,
    /// What a reader should know.
    pub remarks: Vec<Remark>,
}

impl Diff {
    /// Compares the rows of side A with those of side B.
    #[must_use]
    pub fn new(a: &[Record], b: &[Record], options: &DiffOptions) -> Self {
        let pairing = Pairing::new(a, b, options.across_limits);
        let mismatches = mismatch::mismatches(&pairing);
        let (times, in_turns) = (Times::new(&pairing), pairing.in_turns());
        let of = |(at, pair)| Change::new(pair, times.change(at, options), in_turns);
        let changes: Vec<Change> = pairing.pairs.iter().enumerate().map(of).collect();
        let planners = planners::summarize(&changes, &times, options);
        let remarks = mismatch::remarks(&pairing, &changes, options);
        Self { changes, planners, only_a: pairing.only_a, only_b: pairing.only_b, mismatches, remarks }
    }

    /// Cells in which something is worse, contradictions included.
    pub fn regressions(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_worse())
    }

    /// Cells in which one side proves what a verified plan of the other refutes.
    pub fn contradictions(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_contradiction())
    }

    /// Whether some cell is worse, or some planner over its cells.
    #[must_use]
    pub fn has_regression(&self) -> bool {
        self.regressions().next().is_some() || self.planners.iter().any(PlannerChange::is_worse)
    }
}

impl fmt::Display for CellName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.label, self.workload)?;
        if self.seed != 0 {
            write!(f, ", seed {}", self.seed)?;
        }
        match self.target_bytes {
            Some(bytes) => write!(f, ", capacity {bytes}"),
            None => Ok(()),
        }
    }
}
