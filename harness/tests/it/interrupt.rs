//! Ctrl-C: the best plan and bound so far are printed and written, with exit code 130.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{run, write};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::tempdir;

fn start(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("planlab"))
        .current_dir(folder)
        .env("PLANLAB_SABOTEURS", "1")
        .env_remove("PLANLAB_PLANNERS")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

/// Interrupts a process once it has begun to listen, which is the first thing that it does.
fn interrupt(child: &Child) {
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
    };
    let patience = Instant::now() + Duration::from_secs(20);
    while !listens() {
        assert!(Instant::now() < patience, "it does not listen");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::INT).expect("it runs");
}

/// Waits for the end; returns exit code, stdout and stderr.
fn end(mut child: Child) -> (Option<i32>, String, String) {
    let patience = Instant::now() + Duration::from_secs(30);
    while child.try_wait().expect("it is ours").is_none() {
        assert!(Instant::now() < patience, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut stdout).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("text");
    (child.wait().expect("ended").code(), stdout, stderr)
}

/// Interrupts a plan after `wait`, and checks its results.
fn interrupted_plan(planner: &str, workload: &str, wait: Duration) -> (Value, bool) {
    let folder = tempdir().expect("a folder");
    let all = ["plan", workload, "--planner", planner, "--time-limit", "60s", "--json", "-o", "plan.csv"];
    let child = start(folder.path(), &all);
    std::thread::sleep(wait);
    interrupt(&child);
    let (code, stdout, stderr) = end(child);
    assert_eq!(code, Some(130), "{planner}: {stdout}{stderr}");
    let row: Value = serde_json::from_str(&stdout).expect("one object");
    assert_eq!(row["detail"], "interrupted", "{row}");
    assert!(row["bound"].as_u64() >= row["load"].as_u64(), "{row}");
    let written = folder.path().join("plan.csv").exists();
    assert_eq!(written, !row["height"].is_null(), "{row}");
    if written {
        assert_eq!(row["status"], "feasible", "{row}");
        run(folder.path(), &["verify", workload, "plan.csv"], 0);
    }
    (row, written)
}

#[test]
fn a_planner_that_hangs_leaves_the_plan_that_it_had() {
    let workload = "synthetic/uniform/n40/s1";
    let (row, written) = interrupted_plan("saboteur/hang", workload, Duration::from_secs(2));
    assert!(written, "{row}");
}

#[test]
fn at_any_moment_there_is_an_answer() {
    // Quadratic on a hundred thousand buffers: it runs for minutes and has no plan until the end.
    for wait in [0, 50, 400, 2000] {
        let wait = Duration::from_millis(wait);
        interrupted_plan("best-fit/reference", "synthetic/uniform/n100000/s0", wait);
    }
}

#[test]
fn a_comparison_that_is_cut_short_says_so() {
    let folder = tempdir().expect("a folder");
    let workload = "synthetic/uniform/n100000/s0";
    for wait in [0, 1500] {
        let planners = ["--planner", "bump", "--planner", "best-fit/reference", "--planner", "saboteur/hang"];
        let child =
            start(folder.path(), &[&["compare", workload, "--time-limit", "60s"][..], &planners].concat());
        std::thread::sleep(Duration::from_millis(wait));
        interrupt(&child);
        let (code, stdout, stderr) = end(child);
        assert_eq!(code, Some(130), "{stdout}{stderr}");
    }
    // At many moments, some between two planners; the last planner never ends.
    for wait in (300..2000).step_by(250) {
        let planners = ["--planner", "first-fit/*", "--planner", "best-fit*", "--planner", "saboteur/hang"];
        let child =
            start(folder.path(), &[&["compare", workload, "--time-limit", "60s"][..], &planners].concat());
        std::thread::sleep(Duration::from_millis(wait));
        interrupt(&child);
        let (code, stdout, stderr) = end(child);
        assert_eq!(code, Some(130), "after {wait} ms: {stdout}{stderr}");
    }
}

#[test]
fn an_external_planner_that_writes_as_it_goes_leaves_its_best() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "trace.csv", "id,lower,upper,size\na,0,4,64\nb,2,6,32\nc,5,9,64\n");
    let script = "awk -F, 'NR == 1 { print \"id,offset\"; next } { print $1 \",\" top + 0; top += $4 }' \"$1\" > \"$2\"\n\
                  touch begun; exec sleep 1000\n";
    write(folder.path(), "peer.sh", script);
    let file = "[[planner]]\nkey = \"external/peer\"\ninstance = \"minimalloc\"\n\
                command = [\"sh\", \"peer.sh\", \"{instance}\", \"{output}\"]\n";
    write(folder.path(), "planners.toml", file);
    for more in [&[][..], &["--in-process"]] {
        let _ = std::fs::remove_file(folder.path().join("begun"));
        let all = [
            "plan",
            "trace.csv",
            "--planner",
            "external/peer",
            "--time-limit",
            "60s",
            "--json",
            "-o",
            "plan.csv",
        ];
        let child = start(folder.path(), &[&all[..], more].concat());
        let patience = Instant::now() + Duration::from_secs(20);
        while !folder.path().join("begun").exists() {
            assert!(Instant::now() < patience, "the program does not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
        interrupt(&child);
        let (code, stdout, stderr) = end(child);
        assert_eq!(code, Some(130), "{stdout}{stderr}");
        let row: Value = serde_json::from_str(&stdout).expect("one object");
        assert_eq!((row["height"].as_u64(), row["status"].as_str()), (Some(160), Some("feasible")), "{row}");
        run(folder.path(), &["verify", "trace.csv", "plan.csv"], 0);
    }
}

#[test]
fn a_bench_tells_what_the_cell_that_was_cut_short_had() {
    let folder = tempdir().expect("a folder");
    let cells = ["bench", "--workload", "synthetic/uniform/n40/s1", "--planner", "saboteur/hang"];
    let child = start(folder.path(), &[&cells[..], &["--time-limit", "60s", "--out", "store"]].concat());
    std::thread::sleep(Duration::from_secs(2));
    interrupt(&child);
    let (code, _, stderr) = end(child);
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stderr.contains("interrupted: saboteur/hang on synthetic/uniform/n40/s1: height "), "{stderr}");
    assert!(stderr.contains("0 cells, 0 run now"), "{stderr}");
}
