//! Builds the test programs and runs them under the library.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

/// `libplanlab.so`, which cargo builds before these tests and puts beside them.
pub(crate) fn library() -> PathBuf {
    let beside = std::env::current_exe().expect("a test has a file").with_file_name("libplanlab.so");
    assert!(beside.exists(), "{} is not built", beside.display());
    beside
}

/// The C program of these tests.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| built("calls"))
}

/// Builds a program of `tests/programs`.
pub(crate) fn built(name: &str) -> PathBuf {
    compiled(name, name, &[])
}

/// Builds a program under another name, with further options.
pub(crate) fn compiled(name: &str, as_name: &str, options: &[&str]) -> PathBuf {
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{as_name}-{}", std::process::id()));
    let number = BUILDS.fetch_add(1, Ordering::Relaxed);
    let fresh = file.with_extension(number.to_string());
    let words = ["-O1", "-g", "-Wall", "-Werror", "-fno-builtin", "-pthread", &source, "-ldl", "-o"];
    let output = Command::new("cc").args(words).arg(&fresh).args(options).output();
    let output = output.expect("a C compiler, which ./setup installs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Another test may have built it meanwhile.
    std::fs::rename(&fresh, &file).expect("a program");
    file
}

static BUILDS: AtomicU64 = AtomicU64::new(0);

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    /// A line of statistics for each process.
    pub(crate) reports: Vec<Value>,
}

impl Ran {
    /// A count by its name, of the first process that made large requests.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.reports[0]["counts"][name].as_u64().expect("a count")
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A run of the program under the library.
pub(crate) fn preload(program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).env("LD_PRELOAD", library());
    command
}

/// Runs the program under the library; `settings` are environment variables.
pub(crate) fn under(program: &Path, words: &[&str], settings: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().expect("writable");
    let report = folder.path().join("report.jsonl");
    let mut command = preload(program, words);
    command.env("PLANLAB_REPORT", &report).envs(settings.iter().copied());
    let stdout = text(&command.output().expect("it starts"));
    let lines = std::fs::read_to_string(&report).unwrap_or_default();
    let reports = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    Ran { stdout, reports }
}

/// Runs the program under the library, with checks and without, and without the library; the output must be the same.
/// The statistics are those of the run without checks.
pub(crate) fn same(words: &[&str]) -> Ran {
    let program = program();
    let plain = text(&Command::new(program).args(words).output().expect("it starts"));
    let checked = under(program, words, &[("PLANLAB_CHECK", "1")]);
    assert_eq!(checked.stdout, plain, "with checks");
    let ran = under(program, words, &[]);
    assert_eq!(ran.stdout, plain);
    ran
}
