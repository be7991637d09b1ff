//! A bench that is killed in the middle loses only the running cells, and continues by itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{json_lines, run};
use serde_json::Value;
use tempfile::tempdir;

const CELLS: [&str; 8] = [
    "--workload",
    "chainer/*/infer/b1",
    "--workload",
    "torch/*/infer/b1",
    "--planner",
    "first-fit/*",
    "--planner",
    "best-fit*",
];

fn bench(folder: &Path) -> Vec<Value> {
    let mut arguments = vec!["bench", "--json", "--out", "store"];
    arguments.extend(CELLS);
    json_lines(&run(folder, &arguments, 0).0)
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

/// Starts a bench and kills it with -9 once some cells have rows; returns their number.
fn bench_and_kill(folder: &Path) -> usize {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("planlab"))
        .current_dir(folder)
        .args(["bench", "--json", "--out", "store"])
        .args(CELLS)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let patience = Instant::now() + Duration::from_secs(60);
    while journal_lines(folder) < 20 {
        assert!(Instant::now() < patience, "no rows after a minute");
        assert_eq!(child.try_wait().expect("a child"), None, "it ended before it could be killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("killed");
    child.wait().expect("reaped");
    journal_lines(folder)
}

#[test]
fn a_killed_bench_goes_on_where_it_was() {
    let (undisturbed, disturbed) = (tempdir().expect("a folder"), tempdir().expect("a folder"));
    let expected = heights(&bench(undisturbed.path()));
    let before = bench_and_kill(disturbed.path());
    assert!(before < expected.len(), "killed too late: {before} rows");
    let rows = bench(disturbed.path());
    assert_eq!(rows.len(), expected.len(), "a cell was run twice, or lost");
    assert_eq!(heights(&rows), expected);
    // No cell is left.
    let (_, stderr) = run(disturbed.path(), &[&["bench", "--out", "store"], &CELLS[..]].concat(), 0);
    assert!(stderr.contains("0 run now"), "{stderr}");
}

#[test]
fn a_log_has_lines_that_say_how_far_a_bench_is() {
    let lines = |seconds: &str| {
        let folder = tempdir().expect("a folder");
        let output = Command::new(env!("CARGO_BIN_EXE_planlab"))
            .current_dir(folder.path())
            .env("PLANLAB_PROGRESS_SECONDS", seconds)
            .args([
                "bench",
                "--out",
                "store",
                "--workload",
                "chainer/*/infer/b1",
                "--planner",
                "first-fit/size",
            ])
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
