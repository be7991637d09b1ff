//! Ctrl-C: the best plan and bound so far are printed and written, with exit code 130.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;
use tempfile::tempdir;

use crate::common::{
    STACK, beside, figure, folder_with, interrupt, planner_entry, run, wait_for, words, write,
};

/// The file that `saboteur/hang` writes once it has offered its plan.
const HANGS: &str = "hangs";
/// No plan of it is found within any test, and the reference planner is quadratic.
const LARGE: &str = "synthetic/uniform/n100000/s0";

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = beside(folder, arguments);
    command.env("PLANLAB_SABOTEURS", "1").env("PLANLAB_SABOTEUR_HANGS", folder.join(HANGS));
    command.spawn().expect("the binary runs")
}

/// Interrupts a plan once it is `ready`, and checks its results.
fn interrupted_plan(planner: &str, workload: &str, ready: impl Fn(&Path)) -> (Value, bool) {
    let folder = tempdir().expect("a folder");
    let all = ["plan", workload, "--planner", planner, "--time-limit", "1h", "--json", "-o", "plan.csv"];
    let child = start(folder.path(), &all);
    ready(folder.path());
    let (stdout, _) = interrupt(child, planner);
    let row: Value = serde_json::from_str(&stdout).expect("one object");
    assert_eq!(row["detail"], "interrupted", "{row}");
    assert!(figure(&row, "bound") >= figure(&row, "load"), "{row}");
    let written = folder.path().join("plan.csv").exists();
    assert_eq!(written, !row["height"].is_null(), "{row}");
    if written {
        assert_eq!(row["status"], "feasible", "{row}");
        run(folder.path(), &["verify", workload, "plan.csv"], 0);
    }
    (row, written)
}

/// Waits until `saboteur/hang` has offered its plan.
fn hangs(folder: &Path) {
    wait_for("the saboteur's plan", || folder.join(HANGS).exists());
}

#[test]
fn a_planner_that_hangs_leaves_the_plan_that_it_had() {
    let (row, written) = interrupted_plan("saboteur/hang", "synthetic/uniform/n40/s1", hangs);
    assert!(written, "{row}");
}

/// The planner has no plan until its end, which no moment reaches: it would take minutes.
#[test]
fn at_any_moment_there_is_an_answer() {
    for wait in [0, 50, 400, 2000] {
        let ready = |_: &Path| std::thread::sleep(Duration::from_millis(wait));
        interrupted_plan("best-fit/reference", LARGE, ready);
    }
}

#[test]
fn interrupted_comparison_is_reported() {
    let compare = |planners: [&str; 3], moment: Option<u64>| {
        let folder = tempdir().expect("a folder");
        let mut all = vec!["compare", LARGE, "--time-limit", "1h"];
        planners.iter().for_each(|planner| all.extend(["--planner", planner]));
        let child = start(folder.path(), &all);
        match moment {
            Some(moment) => std::thread::sleep(Duration::from_millis(moment)),
            None => hangs(folder.path()),
        }
        interrupt(child, &format!("after {moment:?} ms"));
    };
    // At some moments, some between two planners; the last planner never ends.
    for moment in (0..2000).step_by(250) {
        compare(["first-fit/*", "best-fit*", "saboteur/hang"], Some(moment));
    }
    compare(["bump", "first-fit/size", "saboteur/hang"], None);
}

#[test]
fn an_external_planner_that_writes_as_it_goes_leaves_its_best() {
    let folder = folder_with("trace.csv", "id,lower,upper,size\na,0,4,64\nb,2,6,32\nc,5,9,64\n");
    write(folder.path(), "peer.sh", format!("{STACK}touch begun; exec sleep 1000\n"));
    let entry = planner_entry("peer", &["peer.sh", "{instance}", "{output}"], "");
    write(folder.path(), "planners.toml", entry);
    for more in [&[][..], &["--in-process"]] {
        let _ = std::fs::remove_file(folder.path().join("begun"));
        let all = words("plan trace.csv --planner external/peer --time-limit 1h --json -o plan.csv");
        let child = start(folder.path(), &[&all[..], more].concat());
        wait_for("the program", || folder.path().join("begun").exists());
        let (stdout, _) = interrupt(child, "external/peer");
        let row: Value = serde_json::from_str(&stdout).expect("one object");
        assert_eq!((row["height"].as_u64(), row["status"].as_str()), (Some(160), Some("feasible")), "{row}");
        run(folder.path(), &["verify", "trace.csv", "plan.csv"], 0);
    }
}

#[test]
fn a_bench_tells_what_the_cell_that_was_cut_short_had() {
    let folder = tempdir().expect("a folder");
    let cells = ["bench", "--workload", "synthetic/uniform/n40/s1", "--planner", "saboteur/hang"];
    let child = start(folder.path(), &[&cells[..], &["--time-limit", "1h", "--out", "store"]].concat());
    hangs(folder.path());
    let (_, stderr) = interrupt(child, "bench");
    assert!(stderr.contains("interrupted: saboteur/hang on synthetic/uniform/n40/s1: height "), "{stderr}");
    assert!(stderr.contains("0 cells, 0 run now"), "{stderr}");
}
