//! Programs whose memory is easily wasted: what they have at most and in the end, under the library and without it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::common::{built, library};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| built("memory"))
}

/// A program's output, and its memory at most and in the end, in KiB.
#[derive(Debug)]
struct Ran {
    stdout: String,
    peak: u64,
    end: u64,
}

fn ran(words: &[&str], is_under: bool) -> Ran {
    let mut command = Command::new(program());
    command.args(words).stdin(Stdio::null());
    if is_under {
        command.env("LD_PRELOAD", library());
    }
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
    /// A library built for tests takes 5 MiB.
    const LIBRARY: u64 = 6 << 10;
    let (plain, under) = (ran(words, false), ran(words, true));
    assert_eq!(under.stdout, plain.stdout, "{words:?}");
    for (under, plain) in [(under.peak, plain.peak), (under.end, plain.end)] {
        assert!(under <= plain * 6 / 5 + plans + LIBRARY, "{words:?}: {under} KiB, {plain} without");
    }
}

#[test]
fn sparse_blocks_take_what_is_written_to() {
    for words in [["sparse_calloc", "1024"], ["sparse_malloc", "1024"], ["moving_malloc", "1024"]] {
        assert_frugal(&words, 0);
    }
}
