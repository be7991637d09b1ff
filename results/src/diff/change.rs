//! The changes in one cell.

use super::pairs::{CellName, Pair};
use super::timing::TimeChange;
use super::verdict::{Sides, Verdict};
use crate::rows::{Record, Status};

/// The number of repetitions that distinguishes a change from chance.
const ENOUGH: usize = 5;

/// The changes in one cell from side A to side B.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Change {
    /// The cell.
    pub cell: CellName,
    /// The status of the middle repetition.
    pub status: Sides<Status>,
    /// A status is worse if it is further from a proof. A contradiction between the sides is a verdict of its own: at
    /// least one of them is false.
    pub status_verdict: Verdict,
    /// The height of the middle repetition with an answer, in bytes.
    pub height: Sides<Option<u64>>,
    /// Worse means higher.
    pub height_verdict: Verdict,
    /// Whether the heights may count for the planner over many cells: they are equal on every run, or each is the
    /// middle of at least five runs in turns.
    pub is_height_settled: bool,
    /// Whether the heights are equal on every run.
    pub is_height_certain: bool,
    /// The bound of the middle repetition in bytes. It is only shown, without a verdict.
    pub bound: Sides<u64>,
    /// The change of the time; `None` if a side has no time to compare.
    pub time: Option<TimeChange>,
}

impl Change {
    pub(super) fn new(pair: &Pair<'_>, time: Option<TimeChange>, in_turns: bool) -> Self {
        let (a, b) = (pair.a.as_slice(), pair.b.as_slice());
        let is_height_certain = is_repeatable(a) && is_repeatable(b);
        let is_often = [a, b].iter().all(|rows| is_repeatable(rows) || row_heights(rows).len() >= ENOUGH);
        Self {
            cell: pair.name.clone(),
            status: Sides { a: middle_status(a), b: middle_status(b) },
            status_verdict: status_verdict(a, b, in_turns),
            height: Sides { a: lower_median(&row_heights(a)), b: lower_median(&row_heights(b)) },
            height_verdict: height_verdict(a, b, in_turns),
            is_height_settled: is_height_certain || (in_turns && is_often),
            is_height_certain,
            bound: Sides { a: middle_bound(a), b: middle_bound(b) },
            time,
        }
    }

    /// The verdicts on status, height and time.
    pub(crate) fn verdicts(&self) -> [Verdict; 3] {
        [self.status_verdict, self.height_verdict, self.time.map(|time| time.verdict).unwrap_or_default()]
    }

    /// Whether anything is worse, or the sides contradict each other.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.verdicts().contains(&Verdict::Worse) || self.is_contradiction()
    }

    /// Whether one side has a proof that a verified plan of the other refutes.
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        self.status_verdict == Verdict::Contradiction
    }

    /// Whether nothing is worse and something is better.
    #[must_use]
    pub fn is_better(&self) -> bool {
        !self.is_worse() && self.verdicts().contains(&Verdict::Better)
    }

    /// Whether anything, the bound included, differs by possibly more than chance.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.verdicts() != [Verdict::Same; 3] || self.bound.a != self.bound.b
    }
}

fn lower_median<T: Copy + Ord>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

fn row_heights(rows: &[&Record]) -> Vec<u64> {
    rows.iter().filter(|row| row.status.is_answer()).filter_map(|row| row.height).collect()
}

fn middle_bound(rows: &[&Record]) -> u64 {
    lower_median(&rows.iter().map(|row| row.bound).collect::<Vec<_>>()).unwrap_or(0)
}

/// The distance of a status from the best: a proof, an answer, no answer, a failure, a false result.
const fn status_distance(status: Status, at_capacity: bool) -> u8 {
    match status {
        Status::Optimal | Status::Infeasible => 0,
        // With a given capacity, a plan that fits is a full answer.
        Status::Feasible if at_capacity => 0,
        Status::Feasible => 1,
        Status::Unknown | Status::Unsupported | Status::Timeout | Status::Interrupted => 2,
        Status::OutOfMemory | Status::Crashed | Status::Killed | Status::BadOutput => 3,
        Status::InvalidOverlap
        | Status::InvalidPlan
        | Status::Misaligned
        | Status::OverCapacity
        | Status::BoundRefuted => 4,
    }
}

fn status_distances(rows: &[&Record]) -> Vec<(u8, Status)> {
    rows.iter().map(|row| (status_distance(row.status, row.target_bytes.is_some()), row.status)).collect()
}

fn ranks(rows: &[&Record]) -> Vec<u8> {
    status_distances(rows).into_iter().map(|(rank, _)| rank).collect()
}

fn middle_status(rows: &[&Record]) -> Status {
    lower_median(&status_distances(rows)).map_or(Status::Unknown, |(_, status)| status)
}

fn status_verdict(a: &[&Record], b: &[&Record], in_turns: bool) -> Verdict {
    if plan_refutes_proof(a, b) || plan_refutes_proof(b, a) {
        return Verdict::Contradiction;
    }
    let (of_a, of_b) = (ranks(a), ranks(b));
    let verdict = Verdict::from_values(&lower_median(&of_a), &lower_median(&of_b));
    let by_limit = match verdict {
        Verdict::Worse => !is_well_below_limit(a) && is_without_failure(&of_b),
        Verdict::Better => !is_well_below_limit(b) && is_without_failure(&of_a),
        _ => false,
    };
    let is_certain = in_turns && is_apart(&of_a, &of_b);
    if by_limit && !is_certain { Verdict::Undecided } else { verdict }
}

fn is_without_failure(distances: &[u8]) -> bool {
    distances.iter().all(|&own| own <= status_distance(Status::Timeout, false))
}

/// Whether a plan of one side refutes a proof of the other.
fn plan_refutes_proof(plans: &[&Record], proofs: &[&Record]) -> bool {
    proofs.iter().any(|proof| plans.iter().any(|plan| is_refuted(proof, plan)))
}

/// Whether a plan in the proof's scope lies below its bound, or exists although the proof excludes it.
fn is_refuted(proof: &Record, plan: &Record) -> bool {
    let in_scope = proof.bound_scope.includes_hand_overs(plan.hand_overs);
    // If the row itself shows that its bound is false, the failure concerns only that row.
    let is_proof = proof.status != Status::BoundRefuted;
    let is_lower_than = |bound: u64| is_proof && plan.height.is_some_and(|height| height < bound);
    let is_plan = matches!(plan.status, Status::Optimal | Status::Feasible);
    let is_lower_alike = plan.hand_overs == 0 && proof.bound_without_in_place.is_some_and(is_lower_than);
    let is_lower = in_scope && is_lower_than(proof.bound);
    is_lower || is_lower_alike || (in_scope && is_plan && proof.status == Status::Infeasible)
}

/// Whether a side has its middle status or better in every repetition, well before the time limit: within a tenth of
/// it, or a quarter with five repetitions. If the other side then ran into the limit, that was not chance, even on a
/// busy machine and with few rows. Cells without an answer are not repeated.
fn is_well_below_limit(rows: &[&Record]) -> bool {
    let ranks = ranks(rows);
    let Some(own) = lower_median(&ranks) else { return false };
    let times = if rows.len() >= ENOUGH { 4 } else { 10 };
    let is_early = |row: &&Record| match (time_to_result(row), row.wall_limit_ns) {
        (Some(needed), Some(limit)) => u128::from(needed) * times <= u128::from(limit),
        _ => true,
    };
    ranks.iter().all(|&rank| rank <= own) && rows.iter().all(is_early)
}

/// The time to the first plan or to the proof, in nanoseconds.
fn time_to_result(row: &Record) -> Option<u64> {
    let found = row.trajectory.iter().find(|point| point.height.is_some());
    let whole = row.samples_ns.iter().copied().max();
    match row.status {
        Status::Feasible => found.map(|point| point.elapsed_ns).or(whole),
        _ => whole,
    }
}

fn height_verdict(a: &[&Record], b: &[&Record], in_turns: bool) -> Verdict {
    let is_asked = |rows: &[&Record]| rows.iter().any(|row| row.target_bytes.is_some());
    let (of_a, of_b) = (row_heights(a), row_heights(b));
    let (Some(middle_a), Some(middle_b)) = (lower_median(&of_a), lower_median(&of_b)) else {
        return Verdict::Same;
    };
    // With a given capacity, any plan that fits will do.
    if is_asked(a) || is_asked(b) {
        return Verdict::Same;
    }
    let verdict = Verdict::from_values(&middle_a, &middle_b);
    let certain = verdict == Verdict::Same
        || is_repeatable(a) && is_repeatable(b)
        || in_turns && is_far_apart(&of_a, &of_b);
    if certain { verdict } else { Verdict::Undecided }
}

/// Whether the same build gives the same plan again: no run was cut short, each used one thread, and the repetitions
/// agree.
fn is_repeatable(rows: &[&Record]) -> bool {
    let heights = row_heights(rows);
    heights.windows(2).all(|pair| pair[0] == pair[1])
        && rows.iter().all(|row| !row.is_cut() && row.threads() == 1)
}

/// Whether all values of one side lie on one side of the other's, with enough values on both.
fn is_apart<T: Copy + Ord>(a: &[T], b: &[T]) -> bool {
    let (Some(of_a), Some(of_b)) = (minimum_and_maximum(a), minimum_and_maximum(b)) else { return false };
    a.len() >= ENOUGH && b.len() >= ENOUGH && (of_a.1 < of_b.0 || of_b.1 < of_a.0)
}

/// Whether the gap between the sides exceeds the spread within each. With five values per side, one pair in 126 is
/// apart by chance alone, and a diff has many cells.
fn is_far_apart(a: &[u64], b: &[u64]) -> bool {
    let (Some(of_a), Some(of_b)) = (minimum_and_maximum(a), minimum_and_maximum(b)) else { return false };
    let between = of_a.0.max(of_b.0).saturating_sub(of_a.1.min(of_b.1));
    is_apart(a, b) && between > (of_a.1 - of_a.0).max(of_b.1 - of_b.0)
}

fn minimum_and_maximum<T: Copy + Ord>(values: &[T]) -> Option<(T, T)> {
    Some((*values.iter().min()?, *values.iter().max()?))
}
