//! `query` on results, as a user calls it.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::{TempDir, tempdir};

use crate::common::{assert_tells, beside, children, interrupt, json, run, start, wait_for};

/// A folder with results of two planners on one workload.
fn results() -> TempDir {
    let folder = tempdir().expect("a folder");
    let bench =
        ["bench", "--workload", "synthetic/uniform/n10/s0", "--planner", "best-fit", "--planner", "bump"];
    run(folder.path(), &[&bench[..], &["--out", "results/store"]].concat(), 0);
    folder
}

const SQL: &str = "SELECT planner, gap FROM rows WHERE repetition = 0 ORDER BY planner";

#[test]
fn a_question_has_an_answer_as_text_csv_and_json() {
    let folder = results();
    let value = json(folder.path(), &["query", SQL], 0);
    assert_eq!(value["columns"], serde_json::json!(["planner", "gap"]));
    let rows = value["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["planner"], &rows[1]["planner"]), (&"best-fit".into(), &"bump".into()));
    let (text, _) = run(folder.path(), &["query", "results/store", SQL], 0);
    assert!(text.starts_with("planner") && text.lines().count() == 3, "{text}");
    let (csv, _) = run(folder.path(), &["query", "--csv", SQL], 0);
    let first = format!("planner,gap\nbest-fit,{}", rows[0]["gap"].as_f64().expect("a gap"));
    assert!(csv.starts_with(&first), "{csv}");
}

#[test]
fn what_cannot_be_answered_is_named_and_has_exit_code_2() {
    let folder = results();
    let refused = [
        ("SELECT nothing FROM rows", "\"nothing\""),
        ("SELECT * FROM nowhere", "'nowhere'"),
        ("SELEC", "SELEC"),
        ("DROP TABLE rows", "never changed"),
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
    ];
    for (sql, part) in refused {
        let (stdout, stderr) = run(folder.path(), &["query", sql], 2);
        assert!(
            stdout.is_empty() && stderr.contains(part) && !stderr.contains("panicked"),
            "{sql}: {stderr}"
        );
    }
    assert_tells(Path::new("/"), &["query", "/nonexistent", SQL], 2, &["/nonexistent"]);
    run(folder.path(), &["query"], 2);
}

#[test]
fn the_columns_are_listed() {
    let (text, _) = run(tempdir().expect("a folder").path(), &["query", "--columns"], 0);
    for word in ["rows", "replays", "instances", "fragmentation", "reserved_peak", "best_height", "bytes"] {
        assert!(text.contains(word), "{word}");
    }
}

/// A question whose answer has 2^24 rows of many columns: 12 GiB.
fn explosion() -> String {
    let joins: String = (0..23).map(|number| format!(" CROSS JOIN rows r{number}")).collect();
    format!("SELECT * FROM rows{joins}")
}

#[test]
fn query_past_its_memory_limit_is_one_error() {
    let folder = results();
    let (stdout, stderr) = run(folder.path(), &["query", &explosion(), "--memory-limit", "200MiB"], 3);
    assert!(stdout.is_empty(), "{stdout}");
    assert!(stderr.contains("more than 200 MiB") && stderr.contains("--memory-limit"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let value = json(folder.path(), &["query", &explosion(), "--memory-limit", "200MiB"], 3);
    assert_eq!(value["exit_code"], 3, "{value}");
}

#[test]
fn interrupted_query_ends_at_once() {
    let folder = results();
    let query =
        beside(folder.path(), &["query", &explosion()]).stdout(Stdio::null()).spawn().expect("it runs");
    wait_for("a child", || children(folder.path(), "run-query").len() == 1);
    // Stopped, so that it cannot run out of memory before the signal comes.
    let child = children(folder.path(), "run-query")[0];
    kill_process(Pid::from_raw(child).expect("a process"), Signal::STOP).expect("it runs");
    interrupt(query, "query");
    wait_for("the child's end", || children(folder.path(), "run-query").is_empty());
}

#[test]
fn reader_that_has_seen_enough_ends_a_query() {
    let folder = results();
    let joins: String = (0..11).map(|number| format!(" CROSS JOIN rows r{number}")).collect();
    let question = format!("SELECT rows.planner, rows.workload FROM rows{joins}");
    let mut query = start(folder.path(), &["query", "--csv", &question]);
    drop(query.stdout.take());
    let output = query.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
