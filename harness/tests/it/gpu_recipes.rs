//! Runs the recipes for GPUs in a packed folder: without checkout, cargo and network, on a simulated device.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::wait_for;
use planlab_workloads::Catalog;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::{TempDir, tempdir};

/// The number of rows in the whole record of a simulated device.
const ROWS: usize = 43;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts");

/// A folder with the recipes and a binary, as `pack-gpu` makes it.
fn packed(binary: &Path) -> TempDir {
    let folder = tempdir().expect("a folder");
    for script in ["gpu-common", "smoke-gpu", "replay-gpu"] {
        fs::copy(Path::new(SCRIPTS).join(script), folder.path().join(script)).expect("copies");
    }
    symlink(binary, folder.path().join("planlab")).expect("links");
    folder
}

/// The same with a script in the binary's place.
fn packed_with(script: &str) -> TempDir {
    let folder = packed(Path::new("stand-in"));
    stand_in(folder.path(), script);
    folder
}

fn own_binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_planlab"))
}

/// A recipe that finds only the programs of a bare machine.
fn recipe(folder: &Path, name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(folder.join(name));
    command.args(arguments).current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin");
    command
}

/// The exit code and the whole output of a recipe.
fn output_of(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("bash runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Runs a recipe, expects an exit code, and returns the whole output.
#[track_caller]
fn run(command: &mut Command, expected: i32) -> String {
    let (code, says) = output_of(command);
    assert_eq!(code, Some(expected), "{says}");
    says
}

#[track_caller]
fn replay(folder: &Path, code: i32) -> String {
    run(&mut simulated(folder), code)
}

#[track_caller]
fn assemble(folder: &Path, code: i32) -> String {
    run(simulated(folder).env("ASSEMBLE", "1"), code)
}

/// The replay of a simulated device.
fn simulated(folder: &Path) -> Command {
    recipe(folder, "replay-gpu", &["simulated-cuda"])
}

/// A file of the only record.
fn of_record(folder: &Path, file: &str) -> String {
    let records = fs::read_dir(folder.join("records")).expect("records");
    let records: Vec<_> = records.map(|entry| entry.expect("readable").path()).collect();
    assert_eq!(records.len(), 1, "{records:?}");
    fs::read_to_string(records[0].join(file)).expect("a file of the record")
}

fn rows(folder: &Path) -> usize {
    of_record(folder, "replays.jsonl").lines().count()
}

/// A script in the binary's place, which may call the binary itself: `exec REAL "$@"`.
fn stand_in(folder: &Path, text: &str) -> std::path::PathBuf {
    let file = folder.join("stand-in");
    let real = own_binary().display();
    fs::write(&file, format!("#!/bin/bash\n{}\n", text.replace("REAL", &format!("{real:?}"))))
        .expect("writes");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("sets");
    file
}

/// Whether a process has this argument.
fn is_running(argument: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("Linux").flatten();
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| line.split(|&byte| byte == 0).any(|word| word == argument.as_bytes()))
}

#[test]
fn the_record_survives_ten_kills() {
    let folder = packed(own_binary());
    let folder = folder.path();
    let store = folder.join("store-replay-simulated-cuda");
    let mut seen = 0;
    let random = RandomState::new();
    for kill in 0..10_u64 {
        let moment = Duration::from_millis(100 + random.hash_one(kill) % 2500);
        let mut child = simulated(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("bash runs");
        thread::sleep(moment);
        let group = Pid::from_child(&child);
        kill_process_group(group, Signal::KILL).expect("it runs, or is not waited for");
        child.wait().expect("it ends");
        if kill % 3 == 2 && store.exists() && folder.join("store-replay-simulated-cuda.tar").exists() {
            fs::remove_dir_all(&store).expect("removes");
            // The archive has the state of the last finished step.
            seen = 0;
        }
        let (code, says) = output_of(simulated(folder).env("ASSEMBLE", "1"));
        let is_empty = says.contains("there is nothing in");
        assert!(
            matches!((code, is_empty), (Some(2), true) | (Some(0 | 3), false)),
            "kill {kill} after {moment:?}: {says}"
        );
        if !is_empty {
            assert!(rows(folder) >= seen, "kill {kill} after {moment:?}: rows were lost");
            seen = rows(folder);
        }
    }
    replay(folder, 0);
    assert_eq!(rows(folder), ROWS);
    let readme = of_record(folder, "README.md");
    assert!(readme.contains("A simulated device: there was no GPU"), "{readme}");
    assert!(readme.contains("## What is missing\n\nNothing."), "{readme}");
    let says = replay(folder, 0);
    assert!(!says.contains("replay-gpu: kernels-alexnet"), "what is done is not done again: {says}");
}

#[test]
fn a_record_without_time_says_what_is_missing() {
    let folder = packed(own_binary());
    let says = run(&mut recipe(folder.path(), "replay-gpu", &["simulated-cuda", "0"]), 3);
    assert!(says.contains("a planted overlap was found"), "{says}");
    assert_eq!(rows(folder.path()), 0);
    let readme = of_record(folder.path(), "README.md");
    assert_eq!(readme.matches(": not begun").count(), 5, "{readme}");
}

#[test]
fn a_step_that_fails_twice_is_missing_and_nothing_else() {
    let folder = packed_with(
        r#"case "$*" in *--capacity*) echo "the machine is on fire" >&2; exit 101;; *) exec REAL "$@";; esac"#,
    );
    let says = replay(folder.path(), 3);
    assert_eq!(says.matches("the machine is on fire").count(), 2, "{says}");
    assert_eq!(rows(folder.path()), ROWS - 3);
    let readme = of_record(folder.path(), "README.md");
    let missing = "\n- capacity-alexnet-infer: failed, exit code 101, exit code 101\n";
    assert!(readme.contains(missing), "{readme}");
    assert_eq!(readme.matches("\n- ").count(), 1, "nothing else is missing: {readme}");
    let says = replay(folder.path(), 3);
    assert!(!says.contains("on fire"), "it is not tried a third time: {says}");
}

#[test]
fn a_step_that_takes_too_long_keeps_the_processes_that_ended() {
    // `timeout` ends with 124. One step is stopped before it has any row, one in its second process.
    let folder = packed_with(
        r#"case "$*" in
*"operation-time"*) exit 124;;
*"empty-loop"*) for word; do if [ "$word" = 2 ]; then word=1; fi; words+=("$word"); done
  REAL "${words[@]}"; exit 124;;
*) exec REAL "$@";; esac"#,
    );
    run(simulated(folder.path()).env("STEP_LIMIT", "77"), 3);
    let readme = of_record(folder.path(), "README.md");
    assert!(readme.contains("\n- calls-alexnet-infer: cut\n"), "{readme}");
    let late = "it took more than 77 s";
    assert!(readme.contains(&format!("\n- operations-alexnet-infer: failed, {late}, {late}\n")), "{readme}");
    assert!(rows(folder.path()) > 20, "{readme}");
}

#[test]
fn a_step_that_hangs_is_ended_with_all_that_it_started() {
    let folder = packed_with(
        r#"case "$*" in *kernels-alexnet-infer*) exec sleep 86123;; *saboteur*|doctor|--version|audit*) exec REAL "$@";; *) exit 101;; esac"#,
    );
    run(simulated(folder.path()).env("STEP_LIMIT", "2"), 3);
    let readme = of_record(folder.path(), "README.md");
    let late = "it took more than 2 s";
    assert!(readme.contains(&format!("\n- kernels-alexnet-infer: failed, {late}, {late}\n")), "{readme}");
    assert!(!is_running("86123"), "a process was left");
}

#[test]
fn every_step_of_a_gpu_is_a_command_that_planlab_takes() {
    let folder = packed_with(
        r#"case "$*" in
doctor) echo "ok      gpu           2 GPU(s), driver for CUDA 13.0: NVIDIA A, NVIDIA H200";;
--version|audit*) ;;
*saboteur*) exit 4;;
*) REAL "$@" 2>said
  grep -Eq "no replay on a GPU|no GPU 1" said || { cat said >&2; exit 2; }
  while [ "$1" != --out ]; do shift; done
  mkdir -p "$2" && echo "a row" >"$2/replays.jsonl";;
esac"#,
    );
    run(&mut recipe(folder.path(), "replay-gpu", &["cuda:1"]), 0);
    let readme = of_record(folder.path(), "README.md");
    assert!(readme.starts_with("# Replays on NVIDIA H200\n"), "{readme}");
    assert_eq!(rows(folder.path()), readme.matches("\nplanlab replay ").count(), "{readme}");
    assert!(rows(folder.path()) >= 45, "{readme}");
    let catalog = Catalog::new(None);
    for command in readme.lines().filter_map(|line| line.strip_prefix("planlab replay ")) {
        for key in command.split(' ').take_while(|word| !word.starts_with("--")) {
            assert!(catalog.load(key).is_ok(), "{key}: {command}");
        }
    }
    let records = fs::read_dir(folder.path().join("records")).expect("records");
    let name = records.map(|entry| entry.expect("readable").file_name()).next().expect("one");
    assert!(name.to_string_lossy().ends_with("-nvidia-h200"), "{name:?}");
}

#[test]
fn clocks_are_read_by_their_names() {
    let folder = packed(own_binary());
    run(&mut recipe(folder.path(), "replay-gpu", &["simulated-cuda", "0"]), 3);
    let (dated, plain) = (
        "#Date       Time        gpu    pwr  gtemp  mtemp   mclk   pclk\n#YYYYMMDD   HH:MM:SS    Idx      W      C      \
         C    MHz    MHz\n 20261122   18:00:00      0    120     40      -   2619   1980\n 20261122   18:00:01      0    \
         130     40      -   2620    345\n",
        "# gpu    pwr  gtemp  mtemp   mclk   pclk\n# Idx      W      C      C    MHz    MHz\n     0    700     40      - \
         2621   1755\n",
    );
    let store = fs::read_dir(folder.path().join("store-replay-simulated-cuda")).expect("a store");
    let part = store.map(|entry| entry.expect("readable").path()).next().expect("a part");
    fs::write(part.join("clocks-1.txt"), dated).expect("writes");
    fs::write(part.join("clocks-2.txt"), plain).expect("writes");
    assemble(folder.path(), 3);
    let readme = of_record(folder.path(), "README.md");
    let clocks = "multiprocessors 345, 1755, 1980 MHz, memory 2619, 2620, 2621 MHz, 120, 130, 700 W.";
    assert!(readme.contains(clocks), "{readme}");
}

#[test]
fn an_archive_is_added_to_what_is_there() {
    let (first, second) = (packed(own_binary()), packed(own_binary()));
    replay(first.path(), 0);
    run(&mut recipe(second.path(), "replay-gpu", &["simulated-cuda", "0"]), 3);
    let from = first.path().join("store-replay-simulated-cuda.tar");
    run(simulated(second.path()).env("ASSEMBLE", "1").env("FROM", &from), 0);
    assert_eq!(rows(second.path()), ROWS);
    let mine = second.path().join("mine");
    fs::create_dir(&mine).expect("a folder");
    fs::write(mine.join("README.md"), "# My thesis\n").expect("writes");
    run(simulated(second.path()).env("ASSEMBLE", "1").env("RECORDS", &mine), 2);
    assert_eq!(fs::read_to_string(mine.join("README.md")).expect("it is there"), "# My thesis\n");
}

#[test]
fn a_damaged_row_costs_that_row() {
    let folder = packed(own_binary());
    replay(folder.path(), 0);
    let damage = "cd store-replay-simulated-cuda/*/rows && gzip -d calls-alexnet-infer.jsonl.gz \
        && sed -i '2s/empty-loop/empty-l00p/; 3s/wall_ns/wall_nz/' calls-alexnet-infer.jsonl \
        && gzip calls-alexnet-infer.jsonl";
    let damaged =
        Command::new("bash").args(["-c", damage]).current_dir(folder.path()).status().expect("bash runs");
    assert!(damaged.success());
    assemble(folder.path(), 3);
    assert_eq!(rows(folder.path()), ROWS - 1);
    assert_eq!(of_record(folder.path(), "replays.jsonl.damaged").lines().count(), 1);
    let readme = of_record(folder.path(), "README.md");
    assert!(readme.contains("damaged line set aside"), "{readme}");
}

#[test]
fn the_smoke_test_stops_at_the_first_step_that_fails() {
    let folder = packed(own_binary());
    let says = run(&mut recipe(folder.path(), "smoke-gpu", &["simulated-cuda"]), 0);
    assert_eq!(says.matches(": ok, ").count(), 10, "{says}");
    let blind =
        || packed_with(r#"case "$*" in *saboteur/overlap*) echo "all is well";; *) exec REAL "$@";; esac"#);
    let folder = blind();
    let says = run(&mut recipe(folder.path(), "smoke-gpu", &["simulated-cuda"]), 1);
    assert!(says.contains("5/10 overlap: failed") && says.contains("Send home: smoke-gpu.log"), "{says}");
    let log = fs::read_to_string(folder.path().join("smoke-gpu.log")).expect("a log");
    assert!(log.contains("== 5/10 overlap\nall is well\nexit code 0\n"), "{log}");
    let hung = packed_with(r#"case "$*" in *replay*) exec sleep 86321;; *) exec REAL "$@";; esac"#);
    let mut child = recipe(hung.path(), "smoke-gpu", &["simulated-cuda"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash runs");
    wait_for("a step that hangs", || is_running("86321"));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(!is_running("86321"), "a process was left");
    // There is no record of a device that does not find an overlap.
    let folder = blind();
    replay(folder.path(), 4);
    assert!(!folder.path().join("records").exists());
}

#[test]
fn a_folder_is_packed_and_not_too_large() {
    let folder = tempdir().expect("a folder");
    let binary = stand_in(folder.path(), r#"echo "planlab 0.0.0"; exit # GLIBC_2.17 GLIBC_2.34 GLIBC_2.4"#);
    let pack = |to: &str, code: i32| {
        let mut command = Command::new(Path::new(SCRIPTS).join("pack-gpu"));
        run(command.arg(folder.path().join(to)).env("PLANLAB", &binary), code)
    };
    pack("pack", 0);
    for file in ["planlab", "gpu-common", "smoke-gpu", "replay-gpu"] {
        assert!(folder.path().join("pack").join(file).exists(), "{file}");
    }
    let readme = fs::read_to_string(folder.path().join("pack/README.md")).expect("a page");
    assert!(readme.contains("glibc 2.34 or later"), "{readme}");
    // What was packed is packed again.
    pack("pack", 0);
    fs::create_dir(folder.path().join("mine")).expect("a folder");
    fs::write(folder.path().join("mine/thesis.tex"), "\\\\end").expect("writes");
    pack("mine", 2);
    assert_eq!(fs::read_dir(folder.path().join("mine")).expect("readable").count(), 1);
    let large = fs::OpenOptions::new().append(true).open(&binary).expect("opens");
    large.set_len(65 << 20).expect("grows");
    let says = pack("large", 2);
    assert!(says.contains("more than 64 MiB"), "{says}");
}
