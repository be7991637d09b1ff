//! Helpers of the tests that run the binary.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// The binary in a folder, without the caller's planlab variables.
pub(crate) fn planlab(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("planlab").expect("the binary is built");
    command
        .current_dir(folder)
        .env_remove("PLANLAB_CORPUS")
        .env_remove("PLANLAB_PLANNERS")
        .env_remove("PLANLAB_INPUT_LIMIT")
        .env_remove("PLANLAB_SABOTEURS")
        // Resolving names for a backtrace takes seconds while other tests run.
        .env_remove("RUST_BACKTRACE");
    command
}

/// The words of a command line that has no quotes.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs the binary, expects an exit code, and returns stdout and stderr.
pub(crate) fn run(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    outputs(planlab(folder).args(arguments), code)
}

/// Runs the binary, expects an exit code, and asserts that stderr has all of these parts.
#[track_caller]
pub(crate) fn assert_tells(folder: impl AsRef<Path>, arguments: &[&str], code: i32, parts: &[&str]) {
    assert_said(&run(folder.as_ref(), arguments, code).1, parts, arguments);
}

/// Does the same with stdout.
#[track_caller]
pub(crate) fn assert_shows(folder: impl AsRef<Path>, arguments: &[&str], code: i32, parts: &[&str]) {
    assert_said(&run(folder.as_ref(), arguments, code).0, parts, arguments);
}

#[track_caller]
fn assert_said(text: &str, parts: &[&str], arguments: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: no `{part}` in: {text}");
    }
}

/// Asserts that a text has all of these parts.
#[track_caller]
pub(crate) fn assert_has(text: &str, parts: &[&str]) {
    assert_said(text, parts, &[]);
}

/// Runs a prepared command of the binary, expects an exit code, and returns stdout and stderr.
pub(crate) fn outputs(command: &mut Command, code: i32) -> (String, String) {
    let output = command.output().expect("the binary runs");
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(code), "{command:?}\nstdout: {stdout}\nstderr: {stderr}");
    (stdout, stderr)
}

/// Runs the binary with saboteurs and `--json`; returns the lines of stdout, and stderr.
pub(crate) fn sabotaged(folder: &Path, arguments: &[&str], code: i32) -> (Vec<Value>, String) {
    let mut command = planlab(folder);
    command.env("PLANLAB_SABOTEURS", "1").args(arguments).arg("--json");
    let (stdout, stderr) = outputs(&mut command, code);
    (json_lines(&stdout), stderr)
}

/// The binary in a folder, to be started beside the test, with pipes.
pub(crate) fn beside(folder: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("planlab"));
    command.current_dir(folder).env_remove("PLANLAB_PLANNERS").args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts the binary in a folder.
pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Child {
    beside(folder, arguments).spawn().expect("the binary runs")
}

/// Interrupts a process once it has begun to listen, and asserts that it ends with 130; returns stdout and stderr.
pub(crate) fn interrupt(mut child: Child, what: &str) -> (String, String) {
    wait_for("the process to listen", || listens(child.id()));
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    wait_for("the end", || child.try_wait().expect("it is ours").is_some());
    let output = child.wait_with_output().expect("text");
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(130), "{what}: {stdout}{stderr}");
    (stdout, stderr)
}

/// Kills the binary once it has a child of this hidden verb, and asserts that the child ends, too.
pub(crate) fn assert_dies_with_parent(folder: &Path, verb: &str, arguments: &[&str]) {
    let mut parent =
        beside(folder, arguments).env("PLANLAB_SABOTEURS", "1").spawn().expect("the binary runs");
    wait_for("a child", || children(folder, verb).len() == 1);
    parent.kill().expect("killed");
    parent.wait().expect("reaped");
    wait_for("the child's end", || children(folder, verb).is_empty());
}

/// An entry of a `planners.toml`, with `more` lines; `command` is one of a shell.
pub(crate) fn planner_entry(key: &str, command: &[&str], more: &str) -> String {
    let words = [&["sh"], command].concat();
    format!("[[planner]]\nkey = \"external/{key}\"\ninstance = \"minimalloc\"\ncommand = {words:?}\n{more}\n")
}

/// The same with `--json`, parsed.
pub(crate) fn json(folder: &Path, arguments: &[&str], code: i32) -> Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    let (stdout, _) = run(folder, &all, code);
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {stdout}"))
}

/// JSON lines, parsed.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object per line")).collect()
}

/// The processes in this folder that serve this hidden verb.
pub(crate) fn children(folder: &Path, verb: &str) -> Vec<i32> {
    let folder = folder.canonicalize().expect("it is there");
    let processes = std::fs::read_dir("/proc").expect("a /proc").filter_map(Result::ok);
    let is_child = |process: &Path| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let is_ours = std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder);
        is_ours && command.split(|&byte| byte == 0).any(|word| word == verb.as_bytes())
    };
    let children = processes.filter(|process| is_child(&process.path()));
    children.filter_map(|process| process.file_name().to_str()?.parse().ok()).collect()
}

/// The longest that a test waits for an event: no machine is so busy, and what hangs is found.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(300);

/// Waits until the condition holds.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited {WAIT_TIMEOUT:?} for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The same for what a busy machine may end before it has begun: with a time limit that doubles each time.
pub(crate) fn wait_with_more_time(what: &str, mut is_so: impl FnMut(&str) -> bool) {
    let mut limit = 250;
    wait_for(what, || {
        limit *= 2;
        is_so(&format!("{limit}ms"))
    });
}

/// A whole number in a JSON object. One that is missing compares below every number, so it must not pass.
pub(crate) fn figure(object: &Value, field: &str) -> u64 {
    object[field].as_u64().unwrap_or_else(|| panic!("no `{field}` in {object}"))
}

/// Whether a process has a handler for Ctrl-C.
pub(crate) fn listens(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
}

/// Whether a process has ended; a zombie has.
pub(crate) fn has_ended(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    status.map_or(true, |text| text.contains("State:\tZ"))
}

/// A new folder with a file.
pub(crate) fn folder_with(name: &str, content: impl AsRef<[u8]>) -> TempDir {
    let folder = tempdir().expect("a folder");
    write(folder.path(), name, content);
    folder
}

/// The files of a folder and its subfolders, with their content.
pub(crate) fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("readable").filter_map(Result::ok) {
        match entry.path() {
            path if path.is_dir() && !path.is_symlink() => all.extend(content(&path)),
            path => all.push((path.clone(), std::fs::read(&path).unwrap_or_default())),
        }
    }
    all.sort();
    all
}

/// The path of a recorded sample.
pub(crate) fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/data/samples").join(name);
    path.to_str().expect("text").to_owned()
}

/// Writes a file into the folder.
pub(crate) fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    std::fs::write(folder.join(name), content).expect("writable");
}

/// Stacks the buffers of a MiniMalloc or idealloc file: `id,lower,upper,size`.
pub(crate) const STACK: &str =
    "awk -F, 'NR == 1 { print \"id,offset\"; next } { print $1 \",\" top + 0; top += $4 }' \"$1\" > \"$2\"\n";

/// The load is 20; no plan is lower than 21.
pub(crate) const ABOVE: &str = "id,lower,upper,size
0,0,3,11
1,6,8,6
2,1,5,6
3,1,4,3
4,3,6,4
5,5,7,7
6,3,7,7
7,7,8,12
";

/// Plays one plan of a trace from two files, and asserts that the folder `store` has a row of each.
pub(crate) fn two_rows_of_one_plan(folder: &Path, trace: &str, replay: impl Fn(&[&str])) {
    run(folder, &["plan", trace, "--planner", "best-fit", "-o", "one.csv"], 0);
    std::fs::copy(folder.join("one.csv"), folder.join("two.csv")).expect("copies");
    for file in ["one.csv", "two.csv"] {
        replay(&["--plan", file, "--out", "store"]);
    }
    let kept = planlab_results::replay::read_rows(folder.join("store")).expect("they are kept");
    let of_files: Vec<_> = kept.iter().filter(|row| row.contender.starts_with("plan:")).collect();
    let mut keys: Vec<&str> = of_files.iter().map(|row| row.contender.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["plan:one", "plan:two"]);
    assert_eq!(of_files[0].plan, of_files[1].plan, "the same plan");
}
