//! Runs the recipes for GPUs in a packed folder: without checkout, cargo and network, on a simulated device.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use planlab_workloads::Catalog;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::{TempDir, tempdir};

use crate::common::{assert_has, children, wait_for, write};

/// The number of rows in the whole record of a simulated device.
const ROWS: usize = 43;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts");

const BINARY: &str = env!("CARGO_BIN_EXE_planlab");

/// A folder with the recipes and a binary, as `pack-gpu` makes it.
struct Pack(TempDir);

impl Pack {
    fn new() -> Self {
        Self::with_binary(BINARY)
    }

    fn with_binary(binary: &str) -> Self {
        let folder = tempdir().expect("a folder");
        for script in ["gpu-common", "smoke-gpu", "replay-gpu"] {
            fs::copy(Path::new(SCRIPTS).join(script), folder.path().join(script)).expect("copies");
        }
        symlink(binary, folder.path().join("planlab")).expect("links");
        Self(folder)
    }

    /// The same with a script in the binary's place.
    fn with_script(script: &str) -> Self {
        let pack = Self::with_binary("stand-in");
        write_script(pack.path(), script);
        pack
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A recipe that finds only the programs of a bare machine.
    fn recipe(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path().join(name));
        command.args(arguments).current_dir(self.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command
    }

    /// The replay of a simulated device.
    fn simulated(&self) -> Command {
        self.recipe("replay-gpu", &["simulated-cuda"])
    }

    #[track_caller]
    fn replay(&self, code: i32) -> String {
        run(&mut self.simulated(), code)
    }

    /// The same without playing.
    fn assembly(&self) -> Command {
        let mut command = self.simulated();
        command.env("ASSEMBLE", "1");
        command
    }

    /// The folder of the only record.
    fn record(&self) -> PathBuf {
        let records = fs::read_dir(self.path().join("records")).expect("records");
        let mut records: Vec<PathBuf> = records.map(|entry| entry.expect("readable").path()).collect();
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }

    /// A file of the record.
    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.record().join(file)).expect("a file of the record")
    }

    /// What the record lacks, line by line.
    fn missing(&self) -> Vec<String> {
        let readme = self.read("README.md");
        let (_, list) = readme.split_once("## What is missing\n\n").expect("a list");
        list.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    fn rows(&self) -> usize {
        self.read("replays.jsonl").lines().count()
    }
}

/// Writes a script that may call the binary: `exec REAL "$@"`.
fn write_script(folder: &Path, text: &str) {
    write(folder, "stand-in", format!("#!/bin/bash\n{}\n", text.replace("REAL", &format!("{BINARY:?}"))));
    fs::set_permissions(folder.join("stand-in"), fs::Permissions::from_mode(0o755)).expect("sets");
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

/// Starts a recipe in a process group of its own.
fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().expect("bash runs")
}

#[test]
fn the_record_survives_ten_kills() {
    let pack = Pack::new();
    let store = pack.path().join("store-replay-simulated-cuda");
    let (mut seen, random) = (0, RandomState::new());
    for kill in 0..10_u64 {
        let moment = Duration::from_millis(100 + random.hash_one(kill) % 2500);
        let mut child = start(&mut pack.simulated());
        thread::sleep(moment);
        kill_process_group(Pid::from_child(&child), Signal::KILL).expect("it runs, or is not waited for");
        child.wait().expect("it ends");
        if kill % 3 == 2 && store.exists() && store.with_extension("tar").exists() {
            fs::remove_dir_all(&store).expect("removes");
            // The archive has the state of the last finished step.
            seen = 0;
        }
        let (code, says) = output_of(&mut pack.assembly());
        let is_empty = says.contains("there is nothing in");
        assert!(
            matches!((code, is_empty), (Some(2), true) | (Some(0 | 3), false)),
            "kill {kill} after {moment:?}: {says}"
        );
        if !is_empty {
            assert!(pack.rows() >= seen, "kill {kill} after {moment:?}: rows were lost");
            seen = pack.rows();
        }
    }
    pack.replay(0);
    assert_eq!(pack.rows(), ROWS);
    assert_has(&pack.read("README.md"), &["A simulated device: there was no GPU"]);
    assert_eq!(pack.missing(), ["Nothing."]);
    let says = pack.replay(0);
    assert!(!says.contains("replay-gpu: kernels-alexnet"), "what is done is not done again: {says}");
}

#[test]
fn a_step_that_fails_twice_is_missing_and_nothing_else() {
    // Another step fails once, after it was played.
    let pack = Pack::with_script(
        r#"case "$*" in
*--capacity*) echo "the machine is on fire" >&2; exit 101;;
*empty-loop*) REAL "$@" || exit; if [ ! -e once ]; then touch once; exit 9; fi;;
*) exec REAL "$@";; esac"#,
    );
    let says = pack.replay(3);
    assert_eq!(says.matches("the machine is on fire").count(), 2, "{says}");
    assert_eq!(pack.rows(), ROWS - 3);
    assert_eq!(pack.missing(), ["- capacity-alexnet-infer: failed, exit code 101, exit code 101"]);
    let says = pack.replay(3);
    assert!(!says.contains("on fire"), "it is not tried a third time: {says}");
}

#[test]
fn a_step_that_takes_too_long_keeps_the_processes_that_ended() {
    // `timeout` ends with 124. One step is stopped before it has any row, one in its second process.
    let pack = Pack::with_script(
        r#"case "$*" in
*"operation-time"*) exit 124;;
*"empty-loop"*) for word; do if [ "$word" = 2 ]; then word=1; fi; words+=("$word"); done
  REAL "${words[@]}"; exit 124;;
*) exec REAL "$@";; esac"#,
    );
    run(pack.simulated().env("STEP_LIMIT", "77"), 3);
    let late = "it took more than 77 s";
    let operations = format!("- operations-alexnet-infer: failed, {late}, {late}");
    assert_eq!(pack.missing(), ["- calls-alexnet-infer: cut", operations.as_str()]);
    assert!(pack.rows() > 20, "{}", pack.read("README.md"));
}

#[test]
fn a_step_that_hangs_is_ended_with_all_that_it_started() {
    let pack = Pack::with_script(
        r#"case "$*" in *kernels-alexnet-infer*) exec sleep 86123;; *saboteur*|doctor|--version|audit*) exec REAL "$@";; *) exit 101;; esac"#,
    );
    run(pack.simulated().env("STEP_LIMIT", "2"), 3);
    let late = "it took more than 2 s";
    assert_eq!(pack.missing()[0], format!("- kernels-alexnet-infer: failed, {late}, {late}"));
    assert!(children(pack.path(), "86123").is_empty(), "a process was left");
}

#[test]
fn every_step_of_a_gpu_is_a_command_that_planlab_takes() {
    let pack = Pack::with_script(
        r#"case "$*" in
doctor) echo "ok      gpu           2 GPU(s), driver for CUDA 13.0: NVIDIA A, NVIDIA H200";;
--version|audit*) ;;
*saboteur*) exit 4;;
*) REAL "$@" 2>said
  grep -Eq "no replay on a GPU|no GPU 1" said || { cat said >&2; exit 2; }
  while [ "$1" != --out ]; do shift; done
  mkdir -p "$2" && echo "a row" >>"$2/replays.jsonl";;
esac"#,
    );
    run(&mut pack.recipe("replay-gpu", &["cuda:1"]), 0);
    let readme = pack.read("README.md");
    assert!(readme.starts_with("# Replays on NVIDIA H200\n"), "{readme}");
    let commands: Vec<&str> =
        readme.lines().filter_map(|line| line.strip_prefix("planlab replay ")).collect();
    assert_eq!(pack.rows(), commands.len(), "{readme}");
    assert!(commands.len() >= 45, "{readme}");
    let catalog = Catalog::new(None);
    for command in commands {
        for key in command.split(' ').take_while(|word| !word.starts_with("--")) {
            assert!(catalog.load(key).is_ok(), "{key}: {command}");
        }
    }
    let record = pack.record().display().to_string();
    assert!(record.ends_with("-nvidia-h200"), "{record}");
}

#[test]
fn record_without_dates_has_clocks_and_lists_missing_steps() {
    let pack = Pack::new();
    assert_has(&run(pack.simulated().arg("0"), 3), &["a planted overlap was found"]);
    let missing = pack.missing();
    assert!(missing.len() == 5 && missing.iter().all(|line| line.ends_with(": not begun")), "{missing:?}");
    assert_eq!(pack.rows(), 0);
    let (dated, plain) = (
        "#Date       Time        gpu    pwr  gtemp  mtemp   mclk   pclk\n#YYYYMMDD   HH:MM:SS    Idx      W      C      \
         C    MHz    MHz\n 20261122   18:00:00      0    120     40      -   2619   1980\n 20261122   18:00:01      0    \
         130     40      -   2620    345\n",
        "# gpu    pwr  gtemp  mtemp   mclk   pclk\n# Idx      W      C      C    MHz    MHz\n     0    700     40      - \
         2621   1755\n",
    );
    let store = fs::read_dir(pack.path().join("store-replay-simulated-cuda")).expect("a store");
    let part = store.map(|entry| entry.expect("readable").path()).next().expect("a part");
    write(&part, "clocks-1.txt", dated);
    write(&part, "clocks-2.txt", plain);
    run(&mut pack.assembly(), 3);
    let clocks =
        "multiprocessors 345, 1755, 1980 MHz, memory 2619, 2620, 2621 MHz, 120, 130, 700 W.\n\n## What";
    assert_has(&pack.read("README.md"), &[clocks]);
}

#[test]
fn record_of_earlier_steps_keeps_a_missed_overlap() {
    let pack = Pack::with_script(
        r#"case "$*" in
*saboteur/overlap*) if [ -e blind ]; then echo "all is well"; else exec REAL "$@"; fi;;
*) exec REAL "$@";; esac"#,
    );
    run(pack.simulated().arg("0"), 3);
    assert_eq!(pack.missing().len(), 5);
    write(pack.path(), "blind", "");
    assert_has(&run(pack.simulated().arg("0"), 4), &["a planted overlap was not found"]);
    let line = "- planted overlap: not found on this device, so no result here can be trusted";
    assert_eq!((pack.missing().len(), pack.missing()[0].as_str()), (6, line));
    run(&mut pack.assembly(), 3);
    assert_eq!(pack.missing()[0], line, "another record of the same steps says it, too");
    fs::remove_file(pack.path().join("blind")).expect("removes");
    run(pack.simulated().arg("0"), 3);
    assert_eq!(pack.missing().len(), 5, "a later check found it");
}

#[test]
fn an_archive_is_added_to_what_is_there() {
    let (first, second) = (Pack::new(), Pack::new());
    first.replay(0);
    run(second.simulated().arg("0"), 3);
    let from = first.path().join("store-replay-simulated-cuda.tar");
    run(second.assembly().env("FROM", &from), 0);
    assert_eq!(second.rows(), ROWS);
    let mine = second.path().join("mine");
    fs::create_dir(&mine).expect("a folder");
    write(&mine, "README.md", "# My thesis\n");
    run(second.assembly().env("RECORDS", &mine), 2);
    assert_eq!(fs::read_to_string(mine.join("README.md")).expect("it is there"), "# My thesis\n");
}

#[test]
fn a_damaged_row_costs_that_row() {
    let pack = Pack::new();
    pack.replay(0);
    let damage =
        "sed -i '3s/wall_ns/wall_nz/' store-replay-simulated-cuda/*/rows/calls-alexnet-infer/replays.jsonl";
    run(Command::new("bash").args(["-c", damage]).current_dir(pack.path()), 0);
    run(&mut pack.assembly(), 3);
    assert_eq!(pack.rows(), ROWS - 1);
    assert_eq!(pack.read("replays.jsonl.damaged").lines().count(), 1);
    assert_has(&pack.missing()[0], &["damaged line set aside"]);
}

#[test]
fn the_smoke_test_stops_at_the_first_step_that_fails() {
    let says = run(&mut Pack::new().recipe("smoke-gpu", &["simulated-cuda"]), 0);
    assert_eq!(says.matches(": ok, ").count(), 10, "{says}");
    let blind = Pack::with_script(
        r#"case "$*" in *saboteur/overlap*) echo "all is well";; *) exec REAL "$@";; esac"#,
    );
    let says = run(&mut blind.recipe("smoke-gpu", &["simulated-cuda"]), 1);
    assert_has(&says, &["5/10 overlap: failed", "Send home: smoke-gpu.log"]);
    let log = fs::read_to_string(blind.path().join("smoke-gpu.log")).expect("a log");
    assert_has(&log, &["== 5/10 overlap\nall is well\nexit code 0\n"]);
    // There is no record of a device that does not find an overlap.
    blind.replay(4);
    assert!(!blind.path().join("records").exists());
}

#[test]
fn a_stopped_smoke_test_leaves_no_process() {
    let hung = Pack::with_script(r#"case "$*" in *replay*) exec sleep 86321;; *) exec REAL "$@";; esac"#);
    let mut child = start(&mut hung.recipe("smoke-gpu", &["simulated-cuda"]));
    wait_for("a step that hangs", || !children(hung.path(), "86321").is_empty());
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(children(hung.path(), "86321").is_empty(), "a process was left");
}

#[test]
fn a_folder_is_packed_and_not_too_large() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write_script(folder, r#"echo "planlab 0.0.0"; exit # GLIBC_2.17 GLIBC_2.34 GLIBC_2.4"#);
    let binary = folder.join("stand-in");
    let pack = |to: &str, code: i32| {
        let mut command = Command::new(Path::new(SCRIPTS).join("pack-gpu"));
        run(command.arg(folder.join(to)).env("PLANLAB", &binary), code)
    };
    pack("pack", 0);
    for file in ["planlab", "gpu-common", "smoke-gpu", "replay-gpu"] {
        assert!(folder.join("pack").join(file).exists(), "{file}");
    }
    let readme = fs::read_to_string(folder.join("pack/README.md")).expect("a page");
    assert_has(&readme, &["glibc 2.34 or later"]);
    // What was packed is packed again.
    pack("pack", 0);
    fs::create_dir(folder.join("mine")).expect("a folder");
    write(&folder.join("mine"), "thesis.tex", "\\\\end");
    pack("mine", 2);
    assert_eq!(fs::read_dir(folder.join("mine")).expect("readable").count(), 1);
    let large = fs::OpenOptions::new().append(true).open(&binary).expect("opens");
    large.set_len(65 << 20).expect("grows");
    assert_has(&pack("large", 2), &["more than 64 MiB"]);
}
