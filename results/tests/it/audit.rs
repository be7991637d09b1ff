//! The audit finds problems that no single row can show.

use std::path::Path;

use crate::common::{self, sole_finding};
use planlab_dsa::testing::test_instance;
use planlab_dsa::{Labels, Offset, Plan, Scope, Stop};
use planlab_results::audit::{Fault, Finding, audit};
use planlab_results::queries::Tables;
use planlab_results::{Record, Status, StoreError};

/// The problems with the plans that a folder keeps for these rows.
fn audit_plans(dir: &Path, rows: &[Record]) -> Result<Vec<Finding>, StoreError> {
    Tables::of_records(rows)?.audit_plans(dir)
}

/// A row of one instance without a false result.
fn row(planner: &str, height: u64, bound: u64) -> Record {
    let mut row = common::row(&format!("cell-{planner}"), 0);
    row.planner = planner.to_owned();
    (row.height, row.bound) = (Some(height), bound);
    row.status = if height == bound { Status::Optimal } else { Status::Feasible };
    row
}

#[test]
fn rows_that_agree_have_no_findings() {
    assert_eq!(audit(&[row("a", 120, 100), row("b", 110, 110), row("c", 115, 105)]), []);
}

#[test]
fn a_lower_plan_refutes_a_claimed_bound() {
    let claims = [row("honest", 110, 100), row("liar", 120, 115), row("liar", 120, 115)];
    let said = "liar claims that no plan is lower than 115 bytes (load), but honest has one of 110 bytes";
    let finding = sole_finding(audit(&claims), Fault::RefutedBound);
    assert!(finding.message.ends_with(said) && finding.is_refutation(), "{finding}");
}

#[test]
fn a_plan_with_hand_overs_refutes_only_bounds_on_any_plan() {
    let low = row("in-place", 90, 90).with(|row| (row.hand_overs, row.bound_scope) = (1, Scope::Any));
    let claim = row("exact", 100, 100);
    assert_eq!(audit(&[low.clone(), claim.clone()]), []);
    let any = claim.with(|row| row.bound_scope = Scope::Any);
    let finding = sole_finding(audit(&[low, any]), Fault::RefutedBound);
    assert!(finding.message.contains(" 100 bytes ") && finding.message.ends_with(" 90 bytes"));
}

#[test]
fn a_bound_that_its_own_row_gave_up_is_reported_once() {
    let liar = row("liar", 120, 130).with(|row| row.status = Status::BoundRefuted);
    let finding = sole_finding(audit(&[row("a", 110, 100), liar]), Fault::Refuted);
    assert!(finding.message.contains(": bound-refuted: "), "{finding}");
}

#[test]
fn statuses_that_contradict_their_row_are_found() {
    let with = |status, height, bound, target| {
        row("a", 0, bound).with(|row| (row.status, row.height, row.target_bytes) = (status, height, target))
    };
    let cases = [
        (with(Status::Feasible, None, 100, None), "no height"),
        (with(Status::Optimal, Some(120), 100, None), "is not its bound 100"),
        (with(Status::Feasible, Some(100), 100, None), "not above its bound"),
        (with(Status::Infeasible, None, 100, None), "not above a capacity (the row's: none)"),
        (with(Status::Infeasible, None, 100, Some(100)), "not above a capacity (the row's: 100)"),
        (with(Status::Feasible, Some(95), 90, None), "below the load 100"),
    ];
    for (row, reason) in cases {
        let finding = sole_finding(audit(&[row]), Fault::Inconsistent);
        assert!(finding.message.contains(reason) && !finding.is_refutation(), "{reason}: {finding}");
    }
    assert_eq!(audit(&[with(Status::Infeasible, None, 100, Some(99))]), []);
    assert_eq!(audit(&[with(Status::Timeout, None, 100, None)]), []);
}

#[test]
fn an_arena_that_cannot_keep_its_capacity_is_refuted_by_any_plan() {
    let (status, stop) = (Status::Infeasible, Some(Stop::Infeasible));
    let claim = |target_bytes| {
        row("exact", 0, 100).with(|row| {
            (row.status, row.stop) = (status, stop);
            (row.height, row.target_bytes) = (None, target_bytes);
        })
    };
    assert_eq!(audit(&[claim(None), claim(Some(200))]), []);
    let finding = sole_finding(audit(&[claim(None), row("a", 120, 100)]), Fault::Refuted);
    assert!(finding.message.contains(": infeasible: "), "{finding}");
    // This claim is about the given capacity.
    assert_eq!(audit(&[claim(Some(99)), row("a", 120, 100)]), []);
}

#[test]
fn rows_of_one_instance_agree_on_it() {
    let other = row("b", 120, 100).with(|row| (row.relaxed_load, row.bound) = (99, 99));
    let finding = sole_finding(audit(&[row("a", 120, 100), other]), Fault::InstanceMismatch);
    assert!(finding.message.ends_with("rows disagree on the load: 100, 99"), "{finding}");
    let moved = row("b", 120, 100).with(|row| row.instance = "cd".repeat(32));
    let finding = sole_finding(audit(&[row("a", 120, 100), moved]), Fault::InstanceMismatch);
    assert!(finding.message.contains("rows disagree on the instance: "), "{finding}");
}

#[test]
fn missing_repetitions_are_named() {
    let rows = [3, 1].map(|repetition| row("a", 120, 100).with(|row| row.repetition = repetition));
    let finding = sole_finding(audit(&rows), Fault::MissingRepetitions);
    assert!(finding.message.ends_with("no rows for repetitions 0, 2"), "{finding}");
}

#[test]
fn a_stored_plan_that_does_not_fit_its_row_is_false() {
    let (dir, store) = common::empty_store();
    let instance = test_instance(&[(8, 0, 2); 2]);
    let digest = store.put_instance(&instance, &Labels::from_numbers(2)).expect("kept");
    let plan = |offset| Plan::from_offsets([0, offset].map(Offset::new));
    let with = |offset, height| {
        let mut row = row("a", height, 16);
        row.instance = digest.to_string();
        row.plan = Some(store.put_plan(&plan(offset)).expect("kept").to_string());
        row
    };
    let check = |row| audit_plans(dir.path(), &[row]).expect("reads");
    assert_eq!(check(with(8, 16)), []);
    let findings = check(with(10, 16));
    assert!(findings[0].to_string().contains("its height is 18"), "{findings:?}");
    assert!(sole_finding(check(with(4, 16)), Fault::FalsePlan).is_refutation());
}

#[test]
fn files_that_are_missing_or_damaged_are_findings_and_the_others_are_checked() {
    let (dir, store) = common::empty_store();
    let mut rows = Vec::new();
    for size in [8, 16, 24] {
        let instance = test_instance(&[(size, 0, 2)]);
        let plan = store.put_plan(&Plan::from_offsets([Offset::new(size)])).expect("kept");
        for planner in ["a", "b"] {
            let mut row = row(planner, 2 * size, size);
            row.workload = format!("w{size}").into();
            row.instance = store.put_instance(&instance, &Labels::from_numbers(1)).expect("kept").to_string();
            row.plan = Some(plan.to_string());
            rows.push(row);
        }
    }
    assert_eq!(audit_plans(dir.path(), &rows).expect("reads"), []);
    let plan = dir.path().join("plans").join(format!("{}.parquet", rows[0].plan.as_deref().expect("kept")));
    std::fs::write(plan, "damaged").expect("writes");
    let instance = dir.path().join("instances").join(format!("{}.parquet", rows[2].instance));
    std::fs::remove_file(instance).expect("removes");
    rows[5].height = Some(47);
    let check = audit_plans(dir.path(), &rows).expect("reads");
    let missing = check.iter().filter(|finding| finding.fault == Fault::MissingFile);
    assert_eq!(missing.count(), 2, "{check:?}");
    for said in ["w8: 2 rows need this plan, ", "w16: 2 rows need this instance, "] {
        assert!(check.iter().any(|finding| finding.message.starts_with(said)), "{said}: {check:?}");
    }
    let wrong = check.iter().filter(|finding| finding.is_refutation());
    assert_eq!(wrong.count(), 1, "the plan of the third workload is checked: {check:?}");
    assert!(audit_plans(&dir.path().join("absent"), &rows).is_err());
}
