//! Helpers of the tests that run the binary.

use std::path::Path;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::Value;

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

/// Runs the binary, expects an exit code, and returns stdout and stderr.
pub(crate) fn run(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    let output = planlab(folder).args(arguments).output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\nstdout: {stdout}\nstderr: {stderr}");
    (stdout, stderr)
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
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until the condition holds.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < patience, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
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

/// Writes a file into the folder.
pub(crate) fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    std::fs::write(folder.join(name), content).expect("writable");
}

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

/// Asserts that the folder `store` has two rows of one plan, from the files `one.csv` and `two.csv`.
pub(crate) fn two_rows_of_one_plan(folder: &Path) {
    let kept = planlab_results::replay::read_rows(folder.join("store")).expect("they are kept");
    let of_files: Vec<_> = kept.iter().filter(|row| row.contender.starts_with("plan:")).collect();
    let mut keys: Vec<&str> = of_files.iter().map(|row| row.contender.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["plan:one", "plan:two"]);
    assert_eq!(of_files[0].plan, of_files[1].plan, "the same plan");
}
