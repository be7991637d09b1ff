//! The audit finds problems that no single row can show.

use std::path::Path;

use crate::common;
use planlab_dsa::{Scope, Stop};
use planlab_results::audit::{Fault, Finding, audit};
use planlab_results::queries::Tables;
use planlab_results::{Record, Status, StoreError};

/// The problems with the plans that a folder keeps for these rows.
fn audit_plans(dir: &Path, rows: &[Record]) -> Result<Vec<Finding>, StoreError> {
    Tables::of_records(rows)?.audit_plans(dir)
}

fn faults(findings: &[Finding]) -> Vec<Fault> {
    findings.iter().map(|finding| finding.fault).collect()
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
    let findings = audit(&[row("honest", 110, 100), row("liar", 120, 115), row("liar", 120, 115)]);
    let said = "liar claims that no plan is lower than 115 bytes (load), but honest has one of 110 bytes";
    assert_eq!(faults(&findings), [Fault::RefutedBound]);
    assert!(findings[0].message.ends_with(said) && findings[0].is_refutation(), "{findings:?}");
}

#[test]
fn a_plan_with_hand_overs_refutes_only_bounds_on_any_plan() {
    let mut low = row("in-place", 90, 90);
    (low.hand_overs, low.bound_scope) = (1, Scope::Any);
    let claim = row("exact", 100, 100);
    assert_eq!(audit(&[low.clone(), claim.clone()]), []);
    let any = Record { bound_scope: Scope::Any, ..claim };
    let findings = audit(&[low, any]);
    assert_eq!(faults(&findings), [Fault::RefutedBound]);
    assert!(findings[0].message.contains(" 100 bytes ") && findings[0].message.ends_with(" 90 bytes"));
}

#[test]
fn a_bound_that_its_own_row_gave_up_is_reported_once() {
    let mut liar = row("liar", 120, 130);
    liar.status = Status::BoundRefuted;
    let findings = audit(&[row("a", 110, 100), liar]);
    assert_eq!(faults(&findings), [Fault::Refuted]);
    assert!(findings[0].message.contains(": bound-refuted: "), "{findings:?}");
}

#[test]
fn statuses_that_contradict_their_row_are_found() {
    let with =
        |status, height, bound, target| Record { status, height, target_bytes: target, ..row("a", 0, bound) };
    let cases = [
        (with(Status::Feasible, None, 100, None), "no height"),
        (with(Status::Optimal, Some(120), 100, None), "is not its bound 100"),
        (with(Status::Feasible, Some(100), 100, None), "not above its bound"),
        (with(Status::Infeasible, None, 100, None), "not above a capacity (the row's: none)"),
        (with(Status::Infeasible, None, 100, Some(100)), "not above a capacity (the row's: 100)"),
        (with(Status::Feasible, Some(95), 90, None), "below the load 100"),
    ];
    for (row, reason) in cases {
        let findings = audit(&[row]);
        assert!(findings.len() == 1 && findings[0].to_string().contains(reason), "{reason}: {findings:?}");
        assert!(!findings[0].is_refutation());
    }
    assert_eq!(audit(&[with(Status::Infeasible, None, 100, Some(99))]), []);
    assert_eq!(audit(&[with(Status::Timeout, None, 100, None)]), []);
}

#[test]
fn an_arena_that_cannot_keep_its_capacity_is_refuted_by_any_plan() {
    let stop = Some(Stop::Infeasible);
    let claim = |target| Record {
        status: Status::Infeasible,
        stop,
        height: None,
        target_bytes: target,
        ..row("exact", 0, 100)
    };
    assert_eq!(audit(&[claim(None), claim(Some(200))]), []);
    let findings = audit(&[claim(None), row("a", 120, 100)]);
    assert_eq!(faults(&findings), [Fault::Refuted]);
    assert!(findings[0].message.contains(": infeasible: "), "{findings:?}");
    // This claim is about the given capacity.
    assert_eq!(audit(&[claim(Some(99)), row("a", 120, 100)]), []);
}

#[test]
fn rows_of_one_instance_agree_on_it() {
    let mut other = row("b", 120, 100);
    other.relaxed_load = 99;
    other.bound = 99;
    let findings = audit(&[row("a", 120, 100), other]);
    assert_eq!(faults(&findings), [Fault::InstanceMismatch]);
    assert!(findings[0].message.ends_with("rows disagree on the load: 100, 99"), "{findings:?}");
    let mut moved = row("b", 120, 100);
    moved.instance = "cd".repeat(32);
    let findings = audit(&[row("a", 120, 100), moved]);
    assert_eq!(faults(&findings), [Fault::InstanceMismatch]);
    assert!(findings[0].message.contains("rows disagree on the instance: "), "{findings:?}");
}

#[test]
fn missing_repetitions_are_named() {
    let mut last = row("a", 120, 100);
    last.repetition = 3;
    let mut first = last.clone();
    first.repetition = 1;
    let findings = audit(&[last, first]);
    assert_eq!(faults(&findings), [Fault::MissingRepetitions]);
    assert!(findings[0].message.ends_with("no rows for repetitions 0, 2"), "{findings:?}");
}

#[cfg(feature = "parquet")]
#[test]
fn a_stored_plan_that_does_not_fit_its_row_is_false() {
    use planlab_dsa::{Buffer, Bytes, Instance, Labels, LiveRange, Offset, Plan};
    use planlab_results::Store;

    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(dir.path()).expect("opens");
    let buffer = Buffer::new(Bytes::new(8), LiveRange::new(0, 2).expect("not empty"));
    let instance = Instance::from_buffers(vec![buffer.clone(), buffer]).expect("valid");
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
    let findings = check(with(4, 16));
    assert_eq!(faults(&findings), [Fault::FalsePlan]);
    assert!(findings[0].is_refutation());
}

#[cfg(feature = "parquet")]
#[test]
fn files_that_are_missing_or_damaged_are_findings_and_the_others_are_checked() {
    use planlab_dsa::{Buffer, Bytes, Instance, Labels, LiveRange, Offset, Plan};
    use planlab_results::Store;

    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(dir.path()).expect("opens");
    let mut rows = Vec::new();
    for size in [8, 16, 24] {
        let buffer = Buffer::new(Bytes::new(size), LiveRange::new(0, 2).expect("not empty"));
        let instance = Instance::from_buffers(vec![buffer]).expect("valid");
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
