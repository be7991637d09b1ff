//! Programs that use their allocator roughly: nothing hangs, grows or breaks under the library.

use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::{compiled, library, preload, record, under};

/// Waits for a process to end; kills one that hangs, and fails the test.
fn end(mut child: Child, what: &str) -> ExitStatus {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(300) {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("a child");
    panic!("{what} hangs");
}

/// Whether the library is built as it is for users. In a build of the whole workspace it links HiGHS, whose destructors
/// free memory when a process ends.
fn is_lean() -> bool {
    let file = std::fs::read(library()).expect("the library");
    !file.windows(9).any(|bytes| bytes == b"libstdc++")
}

#[test]
fn a_handler_may_end_the_process_in_the_middle_of_malloc() {
    if !is_lean() {
        eprintln!(
            "skipped: the library links HiGHS; `cargo test --package planlab-interpose` tests it without"
        );
        return;
    }
    let folder = tempfile::tempdir().expect("writable");
    for (least, file) in [("1100", "PLANLAB_REPORT"), ("8192", "PLANLAB_REPORT"), ("8192", "PLANLAB_RECORD")]
    {
        for run in 0..12 {
            let mut command = preload("rough", &["exits", least]);
            command.env(file, folder.path().join("file")).stderr(Stdio::null());
            let child = command.spawn().expect("it starts");
            let what = format!("run {run} with {file}, {least} bytes");
            assert!(end(child, &what).success(), "{what}");
        }
    }
    let reports = std::fs::read_to_string(folder.path().join("file")).expect("reports");
    assert_eq!(reports.lines().count(), 24, "a line for each process");
}

#[test]
fn a_library_may_wait_for_a_thread_while_it_is_loaded() {
    let options = ["-DLIBRARY", "-shared", "-fPIC"];
    let opened = compiled("rough", "librough", &options);
    let mut command = preload("rough", &["opens"]);
    command.arg(opened).stdout(Stdio::null());
    assert!(end(command.spawn().expect("it starts"), "dlopen").success());
}

#[test]
fn memory_does_not_grow_where_many_threads_end() {
    let ran = under("rough", &["generations"], &[]);
    assert_eq!(ran.stdout, "ok\n");
    assert!(ran.reports[0]["threads"].as_u64().is_some_and(|threads| threads <= 81), "states are used again");
}

#[test]
fn a_request_of_another_size_in_each_round_costs_nothing() {
    for words in [&["strays"][..], &["strays", "held"]] {
        let share = under("rough", words, &[]).planned_share();
        assert!(share > 0.85, "{words:?}: {share}");
    }
}

#[test]
fn a_thread_that_only_frees_or_resizes_is_recorded_too() {
    for (word, allocs, frees) in [("frees", 1000, 1000), ("grows", 9, 9)] {
        let trace = record("rough", word).concat();
        let count = |event: &str| trace.lines().filter(|line| line.split(',').nth(1) == Some(event)).count();
        let (allocated, freed) = (count("alloc"), count("free"));
        assert!(allocated >= allocs && freed >= frees, "{word}: {allocated} {freed}");
    }
}

#[test]
fn no_call_is_a_cancellation_point() {
    let folder = tempfile::tempdir().expect("writable");
    let trace = folder.path().join("trace").display().to_string();
    for settings in [&[][..], &[("PLANLAB_RECORD", trace.as_str())]] {
        assert_eq!(under("rough", &["cancels"], settings).stdout, "ok\n");
    }
}

#[test]
fn a_handler_may_allocate_between_planned_calls() {
    let ran = under("rough", &["handles"], &[]);
    assert_eq!((ran.stdout.as_str(), ran.count("wrong_frees")), ("ok\n", 0));
    assert!(ran.count("planned") > 0);
}

#[test]
fn the_child_of_a_fork_goes_on_with_states_of_threads_that_ended() {
    let ran = under("rough", &["forks"], &[]);
    assert_eq!(ran.reports.len(), 6, "a line for each process");
    let children = ran.reports.iter().filter(|report| report["counts"]["requests"].as_u64() == Some(90_000));
    let planned: Vec<_> = children.map(|report| report["counts"]["planned"].as_u64()).collect();
    assert_eq!(planned.len(), 5);
    assert!(planned.iter().all(|&planned| planned > Some(45_000)), "{planned:?}");
}
