//! A bench that is killed in the middle loses only the running cells, and continues by itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::common::{assert_tells, beside, json_lines, run, wait_for, words};

/// Quick cells, whose limit not even a busy machine reaches.
const BENCH: &str = "bench --out store --time-limit 1h --workload chainer/*/infer/b1 --workload torch/*/infer/b1 \
    --planner first-fit/* --planner best-fit*";

fn bench(folder: &Path) -> Vec<Value> {
    json_lines(&run(folder, &words(&format!("{BENCH} --json")), 0).0)
}

fn heights(rows: &[Value]) -> BTreeMap<(String, String), u64> {
    let text = |row: &Value, key: &str| row[key].as_str().expect("text").to_owned();
    rows.iter()
        .map(|row| ((text(row, "workload"), text(row, "planner")), row["height"].as_u64().expect("a height")))
        .collect()
}

fn journal_lines(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("store/journal.jsonl")).map_or(0, |text| text.lines().count())
}

/// Starts a bench and kills it with -9 once some cells have rows; returns their number. `None` if it had ended by then.
fn bench_and_kill(folder: &Path) -> Option<usize> {
    let mut child = beside(folder, &words(BENCH)).stdout(Stdio::null()).spawn().expect("the binary runs");
    wait_for("rows", || journal_lines(folder) >= 20 || child.try_wait().expect("a child").is_some());
    let has_ended = child.try_wait().expect("a child").is_some();
    child.kill().expect("killed");
    child.wait().expect("reaped");
    (!has_ended).then(|| journal_lines(folder))
}

/// A folder with the rows of a bench that was killed in the middle, and their number. On a busy machine a kill may come
/// too late, so there are several attempts.
fn killed_bench(all: usize) -> (TempDir, usize) {
    let mut attempts = (0..20).filter_map(|_| {
        let folder = tempdir().expect("a folder");
        let rows = bench_and_kill(folder.path()).filter(|&rows| rows < all)?;
        Some((folder, rows))
    });
    attempts.next().expect("one of twenty benches is killed before its end")
}

#[test]
fn a_killed_bench_goes_on_where_it_was() {
    let undisturbed = tempdir().expect("a folder");
    let expected = heights(&bench(undisturbed.path()));
    let (disturbed, before) = killed_bench(expected.len());
    assert!(before >= 20, "{before} rows");
    let rows = bench(disturbed.path());
    assert_eq!(rows.len(), expected.len(), "a cell was run twice, or lost");
    assert_eq!(heights(&rows), expected);
    // No cell is left.
    assert_tells(&disturbed, &words(BENCH), 0, &["0 run now"]);
}

#[test]
fn log_of_a_bench_has_progress_lines() {
    let lines = |seconds: &str| {
        let folder = tempdir().expect("a folder");
        let output = Command::new(env!("CARGO_BIN_EXE_planlab"))
            .current_dir(folder.path())
            .env("PLANLAB_PROGRESS_SECONDS", seconds)
            .args(words(
                "bench --out store --time-limit 1h --workload chainer/*/infer/b1 --planner first-fit/size",
            ))
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.lines()
            .filter(|line| line.contains('/') && line.contains(" cells"))
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let often = lines("0.002");
    let (done, all) = often
        .last()
        .and_then(|line| {
            let (done, rest) = line.strip_prefix("planlab: ")?.split_once('/')?;
            Some((done.parse::<u64>().ok()?, rest.split_once(" cells")?.0.parse::<u64>().ok()?))
        })
        .unwrap_or_else(|| panic!("no line of progress: {often:?}"));
    assert!(done <= all && all >= 4, "{often:?}");
    assert!(lines("0").is_empty() && lines("3600").is_empty());
}
