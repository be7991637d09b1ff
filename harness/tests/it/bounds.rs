//! `bound`: proofs above the load, limits, and the result so far after a signal.

use serde_json::Value;
use tempfile::tempdir;

use crate::common::{ABOVE, end, figure, interrupt, json, run, start, write};

#[test]
fn a_bound_above_the_load_says_how_it_was_had() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.csv", ABOVE);
    let bound = json(folder.path(), &["bound", "t.csv"], 0);
    assert_eq!((bound["load"].as_u64(), bound["bound"].as_u64()), (Some(20), Some(21)));
    assert!(matches!(bound["bound_evidence"].as_str(), Some("search" | "section")), "{bound}");
    let rows = bound["arguments"].as_array().expect("a list");
    let evidence: Vec<&str> = rows.iter().filter_map(|row| row["evidence"].as_str()).collect();
    for name in ["load", "alignment", "normal-pattern", "section", "search"] {
        assert!(evidence.contains(&name), "{name} is not in {evidence:?}");
    }
    let (text, _) = run(folder.path(), &["bound", "t.csv"], 0);
    assert!(text.contains("best: 21"), "{text}");
}

/// Bounds of 30,000 buffers take hours.
const ENDLESS: [&str; 5] = ["generate", "uniform", "n=30000", "seed=1", "-o"];

/// Checks what a bound that was cut short has.
fn assert_cut_short(object: &Value) {
    assert!(figure(object, "bound") >= figure(object, "load"), "{object}");
    let arguments = object["arguments"].as_array().expect("a list");
    let cut = arguments.iter().filter(|argument| argument["finished"] == false).count();
    let is_above = figure(object, "bound") > figure(object, "load");
    assert!(cut == 1 || is_above, "{object}");
}

#[test]
fn the_time_limit_leaves_what_was_proved() {
    let folder = tempdir().expect("a folder");
    run(folder.path(), &[&ENDLESS[..], &["u.csv"]].concat(), 0);
    assert_cut_short(&json(folder.path(), &["bound", "u.csv", "--time-limit", "200ms"], 0));
}

#[test]
fn a_signal_leaves_what_was_proved() {
    let folder = tempdir().expect("a folder");
    run(folder.path(), &[&ENDLESS[..], &["u.csv"]].concat(), 0);
    let child = start(folder.path(), &["bound", "u.csv", "--time-limit", "1h", "--json"]);
    interrupt(&child);
    let (code, stdout, stderr) = end(child);
    assert_eq!(code, Some(130), "{stderr}");
    assert_cut_short(&serde_json::from_str(&stdout).expect("one object"));
}

#[test]
fn what_failed_is_one_line_and_what_was_cut_short_is_told() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.csv", ABOVE);
    let (text, _) = run(folder.path(), &["bound", "t.csv"], 0);
    assert!(text.contains("found nothing higher: "), "{text}");
    run(folder.path(), &[&ENDLESS[..], &["u.csv"]].concat(), 0);
    let (text, told) = run(folder.path(), &["bound", "u.csv", "--time-limit", "300ms"], 0);
    assert!(
        told.contains("the time limit came during the argument by ") && told.contains(" ran for "),
        "{told}"
    );
    assert!(text.contains("cut short; nothing above "), "{text}");
}
