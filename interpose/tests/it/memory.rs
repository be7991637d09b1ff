//! Programs whose memory is easily wasted: what they have at most and in the end, under the library and without it.

use std::process::{Command, Stdio};

use crate::common::{built, preload};

/// A program's output, and its memory at most and in the end, in KiB.
#[derive(Debug)]
struct Ran {
    stdout: String,
    peak: u64,
    end: u64,
}

fn ran(words: &[&str], is_under: bool) -> Ran {
    let mut command = if is_under { preload("memory", &[]) } else { Command::new(built("memory")) };
    command.args(words).env("PLANLAB_IDLE_MS", "300").stdin(Stdio::null());
    let output = command.output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {:?} {stderr}", output.status);
    let line = stderr.lines().find_map(|line| line.strip_prefix("memory: ")).expect("a line");
    let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().expect("KiB")).collect();
    Ran { stdout: String::from_utf8(output.stdout).expect("text"), peak: numbers[0], end: numbers[1] }
}

/// Runs a program with and without the library; the output must be the same, and the memory at most 1.2 times as much,
/// besides that of the library itself and the given KiB of plans.
fn assert_frugal(words: &[&str], plans: u64) {
    /// A library built for tests takes 3.8 MiB when it is loaded, and 6.2 with the code that it has planned with.
    const LIBRARY: u64 = 7 << 10;
    let measure = |_| {
        let (plain, under) = (ran(words, false), ran(words, true));
        assert_eq!(under.stdout, plain.stdout, "{words:?}");
        [(under.peak, plain.peak), (under.end, plain.end)]
    };
    let is_frugal = |(under, plain): &(u64, u64)| *under <= plain * 6 / 5 + plans + LIBRARY;
    // How much glibc keeps for threads differs from run to run.
    let measured: Vec<_> = (0..3).map(measure).take_while(|pairs| !pairs.iter().all(is_frugal)).collect();
    assert!(measured.len() < 3, "{words:?}: KiB under the library and without it: {measured:?}");
}

#[test]
fn sparse_blocks_take_what_is_written_to() {
    for words in [["sparse_calloc", "1024"], ["sparse_malloc", "1024"], ["moving_malloc", "1024"]] {
        assert_frugal(&words, 0);
    }
}

#[test]
fn zeroed_blocks_are_zero_however_much_of_them_is_used() {
    for (size, plans) in [("1", 1), ("16", 16), ("48", 48)] {
        assert_frugal(&["zeroed", size], plans << 10);
    }
}

#[test]
fn program_that_waits_gives_its_plans_back() {
    let words = ["idle", "16", "2", "2"];
    let (plain, under) = (ran(&words, false), ran(&words, true));
    assert_eq!(under.stdout, plain.stdout);
    assert!(under.end < plain.end + (8 << 10), "{} KiB, {} without", under.end, plain.end);
}

#[test]
fn many_threads_share_what_the_library_keeps() {
    // Up to 32 small plans, of 200 KiB each; what a thread has learnt takes 16 KiB.
    assert_frugal(&["iterate", "300"], 32 * 200 + 300 * 16);
    assert_frugal(&["random", "64"], 64 * 16);
}
