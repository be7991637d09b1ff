//! `query` on results, as a user calls it.

use std::path::Path;

use tempfile::{TempDir, tempdir};

use crate::common::{json, run};

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
    let (_, stderr) = run(Path::new("/"), &["query", "/nonexistent", SQL], 2);
    assert!(stderr.contains("/nonexistent"), "{stderr}");
    run(folder.path(), &["query"], 2);
}

#[test]
fn the_columns_are_listed() {
    let (text, _) = run(tempdir().expect("a folder").path(), &["query", "--columns"], 0);
    for word in ["rows", "replays", "instances", "fragmentation", "reserved_peak", "best_height", "bytes"] {
        assert!(text.contains(word), "{word}");
    }
}
