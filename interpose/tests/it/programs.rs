//! A C program with a period, departures, threads and forks: the same under the library as without it.

use std::process::Command;

use crate::common::{Ran, built, library, preload, run_all, under};

/// Runs the program with and without the library, with the same output; the statistics are those without checks.
fn same(words: &[&str]) -> Ran {
    let [_, ran] = run_all("calls", words);
    ran
}

/// Asserts that at least the given number of rounds, of 81 requests each, were planned.
fn assert_planned(ran: &Ran, rounds: u64) {
    let planned = ran.count("planned");
    assert!(planned >= 81 * rounds, "{planned} planned, {:?}", ran.reports);
}

#[test]
fn a_period_is_found_and_planned() {
    let ran = same(&["period"]);
    // At most six of the 56 rounds come before the plan.
    assert_planned(&ran, 50);
    assert_eq!((ran.count("departures"), ran.count("wrong_frees")), (0, 0));
    let plan = &ran.reports[0]["plans"][0];
    assert_eq!((plan["requests"].as_u64(), plan["planned"].as_u64()), (Some(81), Some(81)));
    let bytes = |field: &str| plan[field].as_u64().expect("a number of bytes");
    assert!(bytes("height") >= bytes("load"), "{plan}");
}

#[test]
fn a_departure_costs_its_round_alone() {
    let ran = same(&["departure"]);
    assert!(ran.count("departures") > 0);
    // Of 30 rounds four in five go as planned, and in the fifth the layers before the tenth; a longer period may also
    // be found.
    assert_planned(&ran, 22);
}

#[test]
fn sequences_take_turns() {
    let ran = same(&["sequences"]);
    assert!(ran.count("plans") >= 3);
    assert_planned(&ran, 25);
}

#[test]
fn a_steady_round_takes_no_page_fault() {
    let ran = under("calls", &["faults"], &[]);
    let faults: u64 = ran.stdout.trim().parse().expect("a number");
    assert!(faults <= 5, "{faults} page faults in 100 rounds");
}

/// strace counts the calls, if it is installed.
#[test]
fn a_steady_round_makes_no_system_call() {
    let folder = tempfile::tempdir().expect("writable");
    let log = folder.path().join("log");
    let mut strace = Command::new("strace");
    let preload = format!("LD_PRELOAD={}", library().display());
    strace.arg("-E").arg(preload).arg("-o").arg(&log).arg(built("calls")).arg("calls");
    let Ok(output) = strace.output() else { return };
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    if !output.status.success() && !text.contains("getppid") {
        // Tracing is not permitted here.
        return;
    }
    let between: Vec<&str> = text.split("getppid").collect();
    assert_eq!(between.len(), 3, "two calls of getppid");
    // Only the rest of the first call's line.
    assert_eq!(between[1].lines().count(), 1, "{}", between[1]);
}

#[test]
fn blocks_are_resized() {
    let ran = same(&["reallocs"]);
    assert!(ran.count("planned") > 0);
}

#[test]
fn threads_free_the_blocks_of_each_other() {
    let ran = same(&["threads"]);
    assert!(ran.count("foreign_frees") > 0 && ran.count("planned") > 0, "{:?}", ran.reports);
    assert_eq!(ran.count("wrong_frees"), 0);
}

#[test]
fn a_thread_goes_on_with_the_plans_of_one_that_ended() {
    let ran = same(&["ends"]);
    assert_eq!(ran.reports[0]["threads"].as_u64(), Some(2));
    assert_planned(&ran, 60);
}

#[test]
fn parent_and_child_of_a_fork_go_on() {
    let ran = same(&["forks"]);
    assert_eq!(ran.reports.len(), 11, "a line for each process");
    assert_eq!(same(&["forks_busy"]).stdout, "ok\n");
}

#[test]
fn nothing_is_planned_where_nothing_repeats() {
    let ran = same(&["no_repeat"]);
    assert_eq!((ran.count("planned"), ran.count("plans")), (0, 0));
    assert_eq!(ran.count("unplanned"), ran.count("requests"));
}

#[test]
fn signals_between_calls_change_nothing() {
    let ran = same(&["handler"]);
    assert_planned(&ran, 190);
}

#[test]
fn marks_are_followed() {
    let found = same(&["marks"]);
    let marked = under("calls", &["marks"], &[("PLANLAB_MARKS", "1")]);
    assert_eq!(marked.stdout, found.stdout);
    // Three sizes take turns. With marks each has its own plan; without, all three share one.
    assert_eq!((marked.count("plans"), found.count("plans")), (3, 1));
    assert_planned(&marked, 38);
}

#[test]
fn a_write_to_freed_memory_is_found_with_checks() {
    let output = preload("calls", &["after_free"]).env("PLANLAB_CHECK", "1").output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("written to after it was freed"), "{stderr}");
}

#[test]
fn senseless_settings_are_taken_as_the_usual_ones() {
    let settings = [("PLANLAB_MIN_SIZE", "much"), ("PLANLAB_ROUNDS", "-1"), ("PLANLAB_PLAN_MS", "")];
    let ran = under("calls", &["period"], &settings);
    assert_eq!(ran.reports[0]["min_size"].as_u64(), Some(4096));
    assert_planned(&ran, 50);
}

/// With any address space that suffices for the program's blocks, the program runs as without the library. If there is
/// no space for a plan, there is no plan.
#[test]
fn the_library_goes_without_where_address_space_is_scarce() {
    let program = built("calls");
    let plain = same(&["period"]).stdout;
    let mut has_run = false;
    for kib in (12_000..=76_000).step_by(8_000) {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {kib}; LD_PRELOAD=$1 exec $0 period")]);
        let output = command.arg(&program).arg(library()).output().expect("it starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("memory allocation of"), "{kib} KiB: the library itself failed: {stderr}");
        assert!(output.status.success() || !has_run, "{kib} KiB: {:?} {stderr}", output.status);
        // An address space too small to load the library may suffice for the program alone.
        has_run |= output.status.success() && stderr.is_empty();
        assert!(!output.status.success() || output.stdout == plain.as_bytes(), "{kib} KiB");
    }
    assert!(has_run);
}
