//! Programs that notice what else is in their process: they run under the library as without it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{built, compiled, library, preload, run_all};

fn run(program: &Path, words: &[&str], settings: &[(&str, &str)]) -> Output {
    Command::new(program).args(words).envs(settings.iter().copied()).output().expect("it starts")
}

/// Asserts that the program ends and prints as without the library. Returns the share of its requests that were planned,
/// with the library's checks and without.
fn assert_same(words: &[&str]) -> [f64; 2] {
    run_all("aside", words).map(|ran| ran.planned_share())
}

/// The most faults of five planned rounds. Each page of a round that is replaced at its free makes one a round.
const MOST_FAULTS: u32 = 500;

#[test]
fn a_handler_has_enough_of_a_small_stack() {
    // All requests in handlers: nothing is planned. One in three: planned rounds are left at that call.
    assert_same(&["stack", "8192", "1"]);
    assert_same(&["stack", "8192", "3"]);
    // A handler that allocates now and then, between planned calls.
    let shares = assert_same(&["stack", "8192", "100"]);
    assert!(shares.iter().all(|&share| share > 0.3), "{shares:?}");
}

#[test]
fn a_program_that_forbids_itself_system_calls_goes_on() {
    let raw = if cfg!(target_arch = "x86_64") { &["syscall", "raw-prctl"][..] } else { &[] };
    for how in ["strict", "prctl"].iter().chain(raw) {
        // Before it has any plan, and while it follows one.
        assert_same(&["forbids", how, "0"]);
        let shares = assert_same(&["forbids", how, "12"]);
        assert!(shares.iter().all(|&share| share > 0.2), "{how}: {shares:?}");
    }
}

/// Runs a program with large rounds, whose plan's memory goes back after a fifth of a second. Without the library's
/// checks, which write to all of it.
fn assert_same_when_idle(words: &[&str]) -> Output {
    let plain = run(&built("aside"), words, &[]);
    assert_eq!(plain.status.signal(), None, "{words:?}: {plain:?}");
    let under = preload("aside", words).env("PLANLAB_IDLE_MS", "200").output().expect("it starts");
    assert_eq!((under.status, &under.stdout), (plain.status, &plain.stdout), "{words:?}: {under:?}");
    under
}

#[test]
fn a_watched_program_that_forbids_itself_system_calls_goes_on() {
    for how in ["strict", "prctl", "syscall"] {
        let under = assert_same_when_idle(&["watched", how]);
        let stderr = String::from_utf8_lossy(&under.stderr);
        // The kernel may not say how many there are.
        assert!(["1 children", "-1 children"].contains(&stderr.trim()), "{how}: {stderr}");
    }
}

#[test]
fn no_watcher_leads_a_name_space() {
    assert_same_when_idle(&["leads"]);
}

#[test]
fn a_program_that_asks_for_filters_keeps_its_plans() {
    let shares = assert_same(&["asks"]);
    assert!(shares.iter().all(|&share| share > 0.3), "{shares:?}");
}

#[test]
fn what_is_done_to_a_blocks_pages_ends_with_the_block() {
    for how in ["dont-fork", "wipe-on-fork", "guard", "read-only", "lock", "hole", "file", "move"] {
        for ran in run_all("aside", &["treats", how]) {
            assert!(ran.planned_share() > 0.3, "{how}: {}", ran.planned_share());
            // Pages that were treated once are not replaced at each later free.
            let faults =
                ran.stderr.lines().find_map(|line| line.strip_suffix(" faults")?.parse::<u32>().ok());
            assert!(faults.expect("a figure") < MOST_FAULTS, "{how}: {faults:?}");
        }
    }
}

#[test]
fn a_sanitizer_keeps_its_allocator() {
    let flags = [("thread", "libtsan.so"), ("address", "libasan.so")];
    for (name, file) in flags {
        let runtime =
            Command::new("cc").arg(format!("-print-file-name={file}")).output().expect("a compiler");
        let runtime = PathBuf::from(String::from_utf8_lossy(&runtime.stdout).trim());
        if !runtime.is_file() {
            eprintln!("skipped: the compiler has no {file}");
            continue;
        }
        let runtime = std::fs::canonicalize(runtime).expect("a library");
        let sanitized = compiled("calls", &format!("calls-{name}"), &[&format!("-fsanitize={name}")]);
        let plain = run(&sanitized, &["period"], &[]);
        if !plain.status.success() {
            eprintln!("skipped: programs under {file} do not run here: {plain:?}");
            continue;
        }
        let both = format!("{}:{}", library().display(), runtime.display());
        let settings = [("LD_PRELOAD", both.as_str()), ("ASAN_OPTIONS", "verify_asan_link_order=0")];
        for program in [&sanitized, &built("calls")] {
            let under = run(program, &["period"], &settings);
            let stderr = String::from_utf8_lossy(&under.stderr);
            assert_eq!((under.status.code(), under.status.signal()), (Some(0), None), "{file}: {stderr}");
            assert_eq!(under.stdout, plain.stdout, "{file}");
            assert!(stderr.contains("a sanitizer is in this process"), "{file}: {stderr}");
        }
    }
}
