//! `bound`: proofs above the load, limits, and the result so far after a signal.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{ABOVE, json, run, write};
use tempfile::tempdir;

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

#[test]
fn the_time_limit_and_a_signal_leave_what_was_had() {
    let folder = tempdir().expect("a folder");
    let family = ["generate", "uniform", "n=400", "seed=1", "-o", "u.csv"];
    run(folder.path(), &family, 0);
    let before = Instant::now();
    let bound = json(folder.path(), &["bound", "u.csv", "--time-limit", "200ms"], 0);
    assert!(bound["bound"].as_u64() >= bound["load"].as_u64());
    assert!(before.elapsed() < Duration::from_secs(10), "{:?}", before.elapsed());
    let child = Command::new(env!("CARGO_BIN_EXE_planlab"))
        .args(["bound", "u.csv", "--time-limit", "60s", "--json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    std::thread::sleep(Duration::from_millis(600));
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().expect("kill runs");
    let output = child.wait_with_output().expect("it ends");
    // It may have ended before the signal came.
    assert!(!sent.success() || matches!(output.status.code(), Some(130 | 0)), "{:?}", output.status);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert!(object["bound"].as_u64() >= object["load"].as_u64());
}

#[test]
fn what_failed_is_one_line_and_what_was_cut_short_is_told() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.csv", ABOVE);
    let (text, _) = run(folder.path(), &["bound", "t.csv"], 0);
    assert!(text.contains("found nothing higher: "), "{text}");
    run(folder.path(), &["generate", "uniform", "n=3000", "seed=1", "-o", "u.csv"], 0);
    let (text, told) = run(folder.path(), &["bound", "u.csv", "--time-limit", "300ms"], 0);
    assert!(
        told.contains("the time limit came during the argument by ") && told.contains(" ran for "),
        "{told}"
    );
    assert!(text.contains("cut short; nothing above "), "{text}");
}
