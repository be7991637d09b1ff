//! Builds the test programs and runs them under the library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// `libplanlab.so`, which cargo builds before these tests and puts beside them.
pub(crate) fn library() -> PathBuf {
    let beside = std::env::current_exe().expect("a test has a file").with_file_name("libplanlab.so");
    assert!(beside.exists(), "{} is not built", beside.display());
    beside
}

/// A program of `tests/programs`, built at the first call.
pub(crate) fn built(name: &str) -> PathBuf {
    compiled(name, name, &[])
}

/// As [`built`], under another name and with further options.
pub(crate) fn compiled(name: &str, as_name: &str, options: &[&str]) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let build = || {
        let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{as_name}-{}", std::process::id()));
        let words = ["-O1", "-g", "-Wall", "-Werror", "-fno-builtin", "-pthread", &source, "-ldl", "-o"];
        let output = Command::new("cc").args(words).arg(&file).args(options).output();
        let output = output.expect("a C compiler, which ./setup installs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        file
    };
    let mut programs = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    programs.entry(as_name.to_owned()).or_insert_with(build).clone()
}

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// A line of statistics for each process.
    pub(crate) reports: Vec<Value>,
}

impl Ran {
    /// A count by its name, of the first process that made large requests.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.reports[0]["counts"][name].as_u64().expect("a count")
    }

    /// The share of the requests of the last process that were planned.
    pub(crate) fn planned_share(&self) -> f64 {
        let counts = &self.reports.last().expect("a line for each process")["counts"];
        let count = |name: &str| counts[name].as_f64().expect("a count");
        count("planned") / count("requests")
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// What a program prints without the library.
pub(crate) fn plain(program: &str, words: &[&str]) -> String {
    text(&Command::new(built(program)).args(words).output().expect("it starts"))
}

/// A run of a program under the library.
pub(crate) fn preload(program: &str, words: &[&str]) -> Command {
    let mut command = Command::new(built(program));
    command.args(words).env("LD_PRELOAD", library());
    command
}

/// Runs a program under the library; `settings` are environment variables.
pub(crate) fn under(program: &str, words: &[&str], settings: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().expect("writable");
    let report = folder.path().join("report.jsonl");
    let mut command = preload(program, words);
    command.env("PLANLAB_REPORT", &report).envs(settings.iter().copied());
    let output = command.output().expect("it starts");
    let lines = std::fs::read_to_string(&report).unwrap_or_default();
    let reports = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ran { stdout: text(&output), stderr, reports }
}

/// Runs a program under the library, with checks and without, and without the library; the output must be the same.
pub(crate) fn run_all(program: &str, words: &[&str]) -> [Ran; 2] {
    let plain = plain(program, words);
    ["1", "0"].map(|checks| {
        let ran = under(program, words, &[("PLANLAB_CHECK", checks)]);
        assert_eq!(ran.stdout, plain, "{words:?}, checks {checks}: {}", ran.stderr);
        ran
    })
}

/// The traces of the processes of a recorded program.
pub(crate) fn record(program: &str, word: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("writable");
    let mut command = preload(program, &[word]);
    command.env("PLANLAB_RECORD", folder.path().join("trace"));
    assert!(command.output().expect("it starts").status.success());
    let files = std::fs::read_dir(folder.path()).expect("a folder");
    files.map(|file| std::fs::read_to_string(file.expect("an entry").path()).expect("text")).collect()
}
