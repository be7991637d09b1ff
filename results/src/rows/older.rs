//! Gives rows of older versions the bound on any plan, as new rows have it.

use std::collections::BTreeSet;

use planlab_dsa::{Evidence, Scope};

use super::placement::{PlannerRun, Record};
use super::status::Status;

/// Planners that use hand-overs where an instance permits some. In older rows they bounded any plan there, and plans
/// without hand-overs elsewhere.
pub(crate) const SEARCHES: [&str; 2] = ["exact", "portfolio"];

/// The rows with bounds on any plan. An older bound on plans without hand-overs is one on any plan if the instance
/// permits none.
pub(crate) fn against_any_plan(mut records: Vec<Record>) -> Vec<Record> {
    let is_older = |row: &Record| row.bound_scope == Scope::NoHandOver;
    if !records.iter().any(is_older) {
        return records;
    }
    let instances = |is: fn(&Record) -> bool| -> BTreeSet<String> {
        records.iter().filter(|row| is(row)).map(|row| row.instance.clone()).collect()
    };
    let mut permitting = instances(shows_permissions);
    let bounded_plain = instances(|row| is_by_search(row) && row.bound_scope == Scope::NoHandOver);
    let bounded_any =
        instances(|row| is_by_search(row) && row.bound_scope == Scope::Any && row.status.is_answer());
    permitting.extend(bounded_any.difference(&bounded_plain).cloned());
    for row in &mut records {
        if is_older(row) && permitting.contains(&row.instance) {
            bound_any_plan(row);
        }
    }
    records
}

/// Older versions measured a planner without hand-overs against the bound on plans without them, even if the instance
/// permits some. Such a row then states the load instead, and keeps its bound apart.
fn bound_any_plan(row: &mut PlannerRun) {
    let bound = std::mem::replace(&mut row.bound, row.relaxed_load);
    row.bound_without_in_place = Some(bound);
    (row.bound_evidence, row.bound_scope) = (Evidence::Load, Scope::Any);
    for point in &mut row.trajectory {
        point.bound = row.relaxed_load;
    }
    let was_capacity = row.target_bytes.is_some_and(|target| row.bound <= target && target < bound);
    match row.status {
        Status::Optimal if row.height > Some(row.bound) => row.status = Status::Feasible,
        Status::Infeasible if was_capacity => row.status = Status::Unknown,
        _ => {}
    }
}

/// Whether a row shows that its instance permits hand-overs.
fn shows_permissions(row: &Record) -> bool {
    row.relaxed_load < row.load || row.hand_overs > 0 || row.bound_without_in_place.is_some()
}

fn is_by_search(row: &Record) -> bool {
    SEARCHES.contains(&row.planner.as_str())
}
