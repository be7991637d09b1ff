//! A work limit gives the same plan each time, and makes separate cells.

use crate::common::{json, json_lines, run};
use serde_json::Value;
use tempfile::tempdir;

const WORKLOAD: &str = "synthetic/uniform/n200/s2";

/// The plan and the row of one run.
fn plan(folder: &std::path::Path, planner: &str, work: &str, seed: &str) -> (String, Value) {
    let limits =
        ["--work-limit", work, "--seed", seed, "--threads", "1", "--time-limit", "5m", "-o", "p.csv"];
    let row = json(folder, &[&["plan", WORKLOAD, "--planner", planner], limits.as_slice()].concat(), 0);
    (std::fs::read_to_string(folder.join("p.csv")).expect("a plan"), row)
}

#[test]
fn equal_seed_and_work_limit_give_equal_plans() {
    let folder = tempdir().expect("a folder");
    for planner in ["portfolio", "exact", "lns"] {
        let (first, row) = plan(folder.path(), planner, "20000", "7");
        let (second, again) = plan(folder.path(), planner, "20000", "7");
        assert_eq!(first, second, "{planner}");
        assert_eq!((&row["height"], &row["work"]), (&again["height"], &again["work"]), "{planner}");
        assert_eq!((&row["stop"], &row["work_limit"]), (&"work-limit".into(), &20_000.into()), "{planner}");
    }
}

#[test]
fn more_work_is_another_cell() {
    let folder = tempdir().expect("a folder");
    let bench = |more: &[&str]| {
        let words = ["bench", "--json", "--out", "r", "--workload", WORKLOAD, "--planner", "lns"];
        let (stdout, stderr) = run(folder.path(), &[words.as_slice(), more].concat(), 0);
        (json_lines(&stdout), stderr)
    };
    let (rows, told) = bench(&["--work-limit", "100000"]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["stop"], "work-limit");
    assert!(told.contains("1 run now"), "{told}");
    assert!(bench(&["--work-limit", "100000"]).1.contains("0 run now"));
    let (rows, told) = bench(&["--work-limit", "200000"]);
    assert_eq!(rows[0]["work_limit"], 200_000);
    assert!(told.contains("1 run now"), "{told}");
}

#[test]
fn limit_without_effect_is_reported_and_omitted() {
    let folder = tempdir().expect("a folder");
    let words = ["plan", WORKLOAD, "--planner", "best-fit", "--threads", "2", "--json"];
    let (stdout, stderr) = run(folder.path(), &words, 0);
    let row: Value = serde_json::from_str(&stdout).expect("a row");
    assert_eq!((&row["threads"], &row["work_limit"]), (&1.into(), &Value::Null));
    assert!(stderr.contains("does not honour threads"), "{stderr}");
    let (text, _) = run(folder.path(), &["list", "planners"], 0);
    let honours =
        |key: &str| text.lines().any(|line| line.starts_with(key) && line.trim_end().ends_with('t'));
    assert!(honours("portfolio ") && !honours("best-fit "), "{text}");
}
