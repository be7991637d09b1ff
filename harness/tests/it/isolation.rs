//! Saboteurs: each has one row with the right status, and no other cell is harmed.

use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::common::{assert_dies_with_parent, assert_tells, figure, json, sabotaged};

const WORKLOAD: &str = "synthetic/uniform/n40/s1";

fn bench(folder: &Path, planners: &[&str], limit: &str, code: i32) -> Vec<Value> {
    let mut arguments = vec!["bench", "--workload", WORKLOAD, "--out", "store"];
    arguments.extend(["--time-limit", limit, "--memory-limit", "512MiB"]);
    planners.iter().for_each(|planner| arguments.extend(["--planner", planner]));
    sabotaged(folder, &arguments, code).0
}

fn detail<'a>(rows: &'a [Value], planner: &str) -> &'a str {
    let row = rows.iter().find(|row| row["planner"] == planner);
    row.unwrap_or_else(|| panic!("no row of {planner}"))["detail"].as_str().expect("a status")
}

#[test]
fn saboteurs_cost_a_row_each_and_nothing_else() {
    let folder = tempdir().expect("a folder");
    let short = ["saboteur/c*", "saboteur/lie-*", "saboteur/panic", "saboteur/hang", "saboteur/overlap"];
    let honest = ["best-fit", "first-fit/*", "bump", "greedy-by-*"];
    let mut rows = bench(folder.path(), &[&short[..], &honest].concat(), "1s", 4);
    // A busy machine takes seconds to provide this much memory.
    rows.extend(bench(folder.path(), &["saboteur/eat-memory"], "60s", 3));
    for (planner, status) in [
        ("saboteur/crash", "crashed"),
        ("saboteur/panic", "crashed"),
        ("saboteur/hang", "timeout"),
        ("saboteur/eat-memory", "out-of-memory"),
        ("saboteur/overlap", "invalid-overlap"),
        ("saboteur/lie-about-height", "bad-output"),
        ("saboteur/lie-about-bound", "bound-refuted"),
        ("saboteur/claim-optimal", "feasible"),
    ] {
        assert_eq!(detail(&rows, planner), status, "{planner}");
    }
    let honest: Vec<&Value> = rows
        .iter()
        .filter(|row| !row["planner"].as_str().is_some_and(|p| p.starts_with("saboteur")))
        .collect();
    assert!(honest.len() >= 12, "{} honest rows", honest.len());
    for row in honest {
        assert!(["optimal", "feasible"].contains(&row["detail"].as_str().expect("a status")), "{row}");
        assert!(figure(row, "height") >= figure(row, "load"), "{row}");
    }
    // The hung planner had offered a plan, which the kill did not lose.
    let hung = rows.iter().find(|row| row["planner"] == "saboteur/hang").expect("a row");
    assert!(figure(hung, "height") >= figure(hung, "load"), "{hung}");
    // A failure is not run again unless requested, and is never served as a success.
    let again = bench(folder.path(), &["saboteur/crash"], "1s", 3);
    assert_eq!(detail(&again, "saboteur/crash"), "crashed");
    let audit = json(folder.path(), &["audit", "store"], 4);
    assert!(!audit["findings"].as_array().expect("findings").is_empty());
}

#[test]
fn a_child_does_not_outlive_a_killed_bench() {
    let folder = tempdir().expect("a folder");
    let cell = ["bench", "--workload", WORKLOAD, "--planner", "saboteur/hang", "--time-limit", "60s"];
    assert_dies_with_parent(folder.path(), "run-cells", &[&cell[..], &["--out", "store"]].concat());
}

#[test]
fn saboteurs_are_not_there_unless_they_are_let_in() {
    let folder = tempdir().expect("a folder");
    assert_tells(&folder, &["plan", WORKLOAD, "--planner", "saboteur/crash"], 2, &["no planner"]);
}
