//! `planlab run`: a program under libplanlab.so.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{assert_tells, figure, json, planlab, run, wait_for};

/// A periodic program that every machine has. A shell loop with `dd` would not work, as `dd` requests its buffers once;
/// awk builds and drops its strings in each round.
const PERIOD: &str = "BEGIN {
    for (round = 0; round < 400; round++) {
        text = \"0123456789abcdef\"
        for (step = 0; step < 15; step++) { text = text text; kept[step] = text }
        delete kept; text = \"\"
    }
    print \"done\"
}";

#[test]
fn the_programs_output_and_code_are_its_own() {
    let folder = tempfile::tempdir().expect("writable");
    let (stdout, stderr) =
        run(folder.path(), &["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"], 7);
    assert_eq!(stdout, "out\n");
    assert!(stderr.starts_with("err\n"), "{stderr}");
    let (_, _) = run(folder.path(), &["run", "sh", "-c", "kill -TERM $$"], 128 + 15);
}

#[test]
fn planned_requests_of_a_period_are_reported() {
    let folder = tempfile::tempdir().expect("writable");
    let words = ["run", "--report", "report.json", "--min-size", "1KiB", "--", "awk", PERIOD];
    let (stdout, stderr) = run(folder.path(), &words, 0);
    assert_eq!(stdout, "done\n");
    let report = report(folder.path());
    let count = |name: &str| report[name].as_u64().expect("a number");
    let missed: u64 = report["missed"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!(count("planned") + missed, count("requests"), "{report}");
    assert_eq!((report["min_size"].as_u64(), report["exit_code"].as_u64()), (Some(1024), Some(0)));
    assert!(stderr.contains(&format!("planned: {} ", count("planned"))), "{stderr}");
}

#[test]
fn a_recorded_trace_is_one_that_other_verbs_take() {
    let folder = tempfile::tempdir().expect("writable");
    let (stdout, _) = run(folder.path(), &["run", "--record-only", "trace.csv.zst", "--", "awk", PERIOD], 0);
    assert_eq!(stdout, "done\n");
    let planned = json(folder.path(), &["plan", "trace.csv.zst", "--planner", "best-fit"], 0);
    assert!(planned["buffers"].as_u64() > Some(1000), "{planned}");
    assert!(figure(&planned, "height") >= figure(&planned, "load"));
}

#[test]
fn program_that_cannot_run_is_reported() {
    let folder = tempfile::tempdir().expect("writable");
    assert_tells(&folder, &["run", "--", "/no/such/program"], 2, &["/no/such/program"]);
    assert_tells(&folder, &["run", "--library", "missing.so", "--", "true"], 2, &["missing.so"]);
    let (_, stderr) =
        run(folder.path(), &["run", "--min-size", "1GiB", "--record-only", "t.csv", "--", "true"], 3);
    assert!(stderr.contains("no trace"), "{stderr}");
    assert!(!folder.path().join("t.csv").exists());
    assert_tells(&folder, &["run", "--report", "no/such/folder", "--", "true"], 2, &["no/such"]);
}

#[test]
fn a_preload_that_is_there_stays() {
    let folder = tempfile::tempdir().expect("writable");
    let mut command = planlab(folder.path());
    let words = ["run", "--", "sh", "-c", "echo $LD_PRELOAD"];
    let output = command.args(words).env("LD_PRELOAD", "libm.so.6").output().expect("it starts");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let (library, other) = stdout.trim().split_once(':').expect("two");
    assert_eq!((library.rsplit('/').next(), other), (Some("libplanlab.so"), "libm.so.6"), "{stdout}");
}

fn report(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("report.json")).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

/// Builds a program of the library's tests with the words of a compiler.
fn built(folder: &Path, source: &str, name: &str, compiler: &[&str]) -> Option<String> {
    let source = format!("{}/../interpose/tests/programs/{source}.c", env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(name);
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-O1", "-pthread", &source, "-o"]).arg(&program);
    let is_built = command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    is_built.then(|| program.to_str().expect("text").to_owned())
}

#[test]
fn a_planned_program_has_no_thread_more() {
    let folder = tempfile::tempdir().expect("writable");
    let aside =
        built(folder.path(), "aside", "aside", &["cc"]).expect("a C compiler, which ./setup installs");
    // On a busy machine the launcher's plan comes late.
    let is_planned = ["100", "1000", "10000"].iter().any(|rounds| {
        let words = ["run", "--report", "report.json", &aside, "threads", rounds];
        let (stdout, _) = run(folder.path(), &words, 0);
        assert_eq!(stdout, "1 threads at most\n");
        report(folder.path())["planned"].as_u64() > Some(0)
    });
    assert!(is_planned);
    // The plan is made somewhere between these requests.
    let plain = Command::new(&aside).args(["unshares", "6000"]).output().expect("it starts").stdout;
    for requests in (6000..8000).step_by(100) {
        let (stdout, _) = run(folder.path(), &["run", "--", &aside, "unshares", &requests.to_string()], 0);
        assert_eq!(stdout.as_bytes(), plain, "after {requests} requests");
    }
}

#[test]
fn another_c_library_and_sanitizers_are_left_alone() {
    let folder = tempfile::tempdir().expect("writable");
    let mut tried = 0;
    for (name, compiler, why) in [
        ("musl", &["musl-gcc"][..], "its C library is not glibc (/lib/ld-musl-"),
        ("tsan", &["cc", "-fsanitize=thread"], "ThreadSanitizer is in it"),
        ("asan", &["cc", "-fsanitize=address"], "AddressSanitizer is in it"),
        ("static", &["cc", "-static"], "it is linked statically"),
    ] {
        let program = built(folder.path(), "rough", name, compiler);
        let runs =
            |program: &String| Command::new(program).arg("grows").status().is_ok_and(|end| end.success());
        let Some(program) = program.filter(runs) else {
            eprintln!("{name}: skipped, {compiler:?} makes no program that runs here");
            continue;
        };
        let (_, stderr) = run(folder.path(), &["run", "--", &program, "grows"], 0);
        assert!(stderr.contains(&format!("{program} runs without the library: {why}")), "{stderr}");
        tried += 1;
        // A script's program gets what the script got.
        if name == "musl" || name == "tsan" {
            run(folder.path(), &["run", "--", "sh", "-c", &format!("{program} grows; exit $?")], 0);
        }
    }
    assert!(tried > 0, "no compiler made a program");
}

/// A shell under `run` that prints its folder for rounds first.
fn start(folder: &Path, script: &str) -> (Child, PathBuf) {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("planlab"))
        .current_dir(folder)
        .args(["run", "--", "sh", "-c", &format!("echo $PLANLAB_LAUNCHER; {script}")])
        // Not the group to which a terminal sends Ctrl-C.
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("text");
    (child, PathBuf::from(line.trim()))
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

#[test]
fn signals_reach_the_program_and_no_folder_stays() {
    let folder = tempfile::tempdir().expect("writable");
    let script = "trap 'exit 7' TERM HUP ALRM USR1 USR2 INT QUIT; touch ready; while :; do sleep 0.02; done";
    for signal in
        [Signal::TERM, Signal::HUP, Signal::ALARM, Signal::USR1, Signal::USR2, Signal::INT, Signal::QUIT]
    {
        let (mut child, rounds) = start(folder.path(), script);
        wait_for("the shell", || std::fs::remove_file(folder.path().join("ready")).is_ok());
        assert!(rounds.is_dir(), "{}", rounds.display());
        send(&child, signal);
        assert_eq!(child.wait().expect("ours").code(), Some(7), "{signal:?}");
        assert!(!rounds.exists(), "{signal:?}: {}", rounds.display());
    }
}

#[test]
fn a_program_outlives_its_run() {
    let folder = tempfile::tempdir().expect("writable");
    let script = "touch ready; until [ -e go ]; do sleep 0.02; done; touch done";
    let (mut child, rounds) = start(folder.path(), script);
    let there = |name: &str| folder.path().join(name).exists();
    wait_for("the shell", || there("ready"));
    send(&child, Signal::KILL);
    child.wait().expect("ours");
    assert!(rounds.is_dir());
    run(folder.path(), &["run", "--", "true"], 0);
    assert!(!rounds.exists(), "the next run removes {}", rounds.display());
    std::fs::write(folder.path().join("go"), "").expect("writable");
    wait_for("the program", || there("done"));
}
