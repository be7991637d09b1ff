//! `planlab run`: a program under libplanlab.so.

use std::path::Path;

use serde_json::Value;

use crate::common::{figure, json, planlab, run};

/// A periodic program that every machine has. A shell loop with `dd` would not work, as `dd` requests its buffers once;
/// awk builds and drops its strings in each round.
const PERIOD: &str = "BEGIN {
    for (round = 0; round < 400; round++) {
        text = \"0123456789abcdef\"
        for (step = 0; step < 15; step++) { text = text text; kept[step] = text }
        delete kept; text = \"\"
    }
    print \"done\"
}";

#[test]
fn the_programs_output_and_code_are_its_own() {
    let folder = tempfile::tempdir().expect("writable");
    let (stdout, stderr) =
        run(folder.path(), &["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"], 7);
    assert_eq!(stdout, "out\n");
    assert!(stderr.starts_with("err\n"), "{stderr}");
    let (_, _) = run(folder.path(), &["run", "sh", "-c", "kill -TERM $$"], 128 + 15);
}

#[test]
fn a_period_is_planned_and_told() {
    let folder = tempfile::tempdir().expect("writable");
    let words = ["run", "--report", "report.json", "--min-size", "1KiB", "--", "awk", PERIOD];
    let (stdout, stderr) = run(folder.path(), &words, 0);
    assert_eq!(stdout, "done\n");
    let text = std::fs::read_to_string(folder.path().join("report.json")).expect("written");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let count = |name: &str| report[name].as_u64().expect("a number");
    let missed: u64 = report["missed"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!(count("planned") + missed, count("requests"), "{report}");
    assert_eq!((report["min_size"].as_u64(), report["exit_code"].as_u64()), (Some(1024), Some(0)));
    assert!(stderr.contains(&format!("planned: {} ", count("planned"))), "{stderr}");
}

#[test]
fn a_recorded_trace_is_one_that_other_verbs_take() {
    let folder = tempfile::tempdir().expect("writable");
    let (stdout, _) = run(folder.path(), &["run", "--record-only", "trace.csv.zst", "--", "awk", PERIOD], 0);
    assert_eq!(stdout, "done\n");
    let planned = json(folder.path(), &["plan", "trace.csv.zst", "--planner", "best-fit"], 0);
    assert!(planned["buffers"].as_u64() > Some(1000), "{planned}");
    assert!(figure(&planned, "height") >= figure(&planned, "load"));
}

#[test]
fn what_cannot_be_run_is_said() {
    let folder = tempfile::tempdir().expect("writable");
    let (_, stderr) = run(folder.path(), &["run", "--", "/no/such/program"], 2);
    assert!(stderr.contains("/no/such/program"), "{stderr}");
    let (_, stderr) = run(folder.path(), &["run", "--library", "missing.so", "--", "true"], 2);
    assert!(stderr.contains("missing.so"), "{stderr}");
    let (_, stderr) =
        run(folder.path(), &["run", "--min-size", "1GiB", "--record-only", "t.csv", "--", "true"], 3);
    assert!(stderr.contains("no trace"), "{stderr}");
    assert!(!folder.path().join("t.csv").exists());
    let (_, stderr) = run(folder.path(), &["run", "--report", "no/such/folder", "--", "true"], 2);
    assert!(stderr.contains("no/such"), "{stderr}");
}

#[test]
fn a_preload_that_is_there_stays() {
    let folder = tempfile::tempdir().expect("writable");
    let mut command = planlab(folder.path());
    let words = ["run", "--", "sh", "-c", "echo $LD_PRELOAD"];
    let output = command.args(words).env("LD_PRELOAD", "libm.so.6").output().expect("it starts");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let (library, other) = stdout.trim().split_once(':').expect("two");
    assert!(Path::new(library).is_file() && other == "libm.so.6", "{stdout}");
}
