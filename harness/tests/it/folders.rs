//! No foreign files are removed or overwritten: folders that a verb owns, places that are tried before the work, and
//! leftovers of interrupted and killed runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::{TempDir, tempdir};

use crate::common::{
    ABOVE, assert_tells, beside, content, folder_with, json, listens, planlab, planner_entry, run, wait_for,
    write,
};

const TRACE: &str = "id,lower,upper,size\na,0,4,64\nb,2,6,32\nc,5,9,64\n";

/// A folder with a trace and with results of two planners on two sizes.
fn with_store() -> TempDir {
    let folder = folder_with("trace.csv", TRACE);
    let mut words = vec!["bench", "--planner", "bump", "--planner", "greedy-by-size", "--out", "store"];
    for workload in ["synthetic/uniform/n20/s1", "synthetic/uniform/n40/s1"] {
        words.extend(["--workload", workload]);
    }
    run(folder.path(), &words, 0);
    folder
}

/// The files with hidden names.
fn hidden(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("readable").filter_map(Result::ok);
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.')).collect()
}

/// Runs a command that must be refused: nothing may change, and the message names `named`.
fn refused(folder: &Path, words: &[&str], named: &str) {
    let before = content(folder);
    let (stdout, stderr) = run(folder, words, 2);
    assert!(stderr.contains(named), "{words:?}: {stderr}");
    assert_eq!(stdout, "", "{words:?}");
    assert!(content(folder) == before, "{words:?}: something has changed");
}

const RATIOS: [&str; 6] = ["ratios", "store", "--of", "bump", "--over", "greedy-by-size"];

/// The verbs that write a folder of pages or tables, without the folder.
fn writers() -> [Vec<&'static str>; 3] {
    [vec!["report", "store"], RATIOS.to_vec(), vec!["scale", "store"]]
}

#[test]
fn folders_are_replaced_only_where_all_in_them_is_listed() {
    let folder = with_store();
    for verb in [vec!["report", "store"], vec!["scale", "store"]] {
        let words = [&verb[..], &["-o", verb[0]]].concat();
        run(folder.path(), &words, 0);
        run(folder.path(), &words, 0);
        write(folder.path(), &format!("{}/notes.txt", verb[0]), "precious");
        refused(folder.path(), &words, "notes.txt");
        fs::remove_file(folder.path().join(verb[0]).join("notes.txt")).expect("ours");
        run(folder.path(), &words, 0);
    }
    assert_eq!(hidden(folder.path()), [] as [PathBuf; 0]);
}

#[test]
fn a_foreign_folder_is_refused_whatever_its_files_are_called() {
    let folder = with_store();
    for verb in writers() {
        for (name, text) in
            [("report.json", ""), ("report.json", "{}"), ("capacity.csv", "mine"), ("a/b", "mine")]
        {
            fs::create_dir_all(folder.path().join("d/a")).expect("writable");
            write(folder.path(), "d/thesis.tex", "precious");
            write(folder.path(), &format!("d/{name}"), text);
            refused(folder.path(), &[&verb[..], &["-o", "d"]].concat(), "d");
            fs::remove_dir_all(folder.path().join("d")).expect("ours");
        }
    }
}

#[test]
fn output_folder_that_overlaps_the_store_is_refused() {
    let folder = with_store();
    fs::create_dir(folder.path().join("d")).expect("writable");
    fs::rename(folder.path().join("store"), folder.path().join("d/store")).expect("ours");
    write(folder.path(), "d/report.json", "");
    for mut verb in writers() {
        verb[1] = "d/store";
        for out in ["d", "d/store", "d/store/pages", "d/../d", "."] {
            refused(folder.path(), &[&verb[..], &["-o", out]].concat(), out);
        }
    }
    for out in ["d", "d/store", "d/store/all"] {
        refused(folder.path(), &["merge", "d/store", "-o", out], out);
    }
}

#[test]
fn a_link_to_a_folder_is_kept() {
    let folder = with_store();
    fs::create_dir(folder.path().join("far")).expect("writable");
    std::os::unix::fs::symlink("far/pages", folder.path().join("link")).expect("writable");
    for _ in 0..2 {
        run(folder.path(), &["report", "store", "-o", "link"], 0);
        assert!(folder.path().join("link").is_symlink());
        assert!(folder.path().join("far/pages/index.html").is_file());
    }
    assert_eq!(hidden(&folder.path().join("far")), [] as [PathBuf; 0]);
}

#[test]
fn the_folder_that_a_command_runs_in_is_refused_before_the_work() {
    let folder = with_store();
    let inside = folder.path().join("pages");
    fs::create_dir(&inside).expect("writable");
    assert_tells(&inside, &["report", "../store", "-o", "."], 2, &["the command runs in it"]);
    assert!(inside.is_dir());
}

#[test]
fn results_go_to_no_folder_of_something_else() {
    let folder = with_store();
    for name in ["lock", "replays.txt"] {
        fs::create_dir(folder.path().join("d")).expect("writable");
        write(folder.path(), &format!("d/{name}"), "precious");
        refused(folder.path(), &["merge", "store", "-o", "d"], name);
        refused(folder.path(), &["simulate", "trace.csv", "--allocator", "tlsf", "--out", "d"], name);
        let cell = ["bench", "--workload", "synthetic/uniform/n20/s1", "--planner", "bump", "--out", "d"];
        refused(folder.path(), &cell, name);
        let replay = ["replay", "trace.csv", "--allocator", "tlsf", "--seconds", "1ms", "--out", "d"];
        refused(folder.path(), &replay, name);
        fs::remove_dir_all(folder.path().join("d")).expect("ours");
    }
}

#[test]
fn a_place_is_tried_before_what_is_read() {
    let folder = with_store();
    write(folder.path(), "file", "no folder");
    fs::create_dir(folder.path().join("folder.svg")).expect("writable");
    for out in ["nowhere/x.svg", "file/x.svg", "folder.svg", "new.svg/"] {
        let verbs: [&[&str]; 5] = [
            &["generate", "no-such-family", "-o", out],
            &["import", "lab", "no-such.csv", "-o", out],
            &["export", "lab", "no-such.csv", "-o", out],
            &["show", "no-such.csv", "-o", out],
            &["plan", "no-such.csv", "--planner", "bump", "-o", out],
        ];
        for words in verbs {
            refused(folder.path(), words, out);
        }
        refused(folder.path(), &["bound", "no-such.csv", "--certificate", out], out);
    }
    for verb in ["report", "scale", "merge"] {
        refused(folder.path(), &[verb, "no-such-store", "-o", "file/out"], "file");
    }
}

#[test]
fn what_is_refused_leaves_no_folders() {
    let folder = tempdir().expect("a folder");
    let verbs: [&[&str]; 4] = [&["report", "nostore"], &["scale", "nostore"], &RATIOS, &["merge", "nostore"]];
    for words in verbs {
        refused(folder.path(), &[words, &["-o", "newa/b/c"]].concat(), "store");
        assert!(!folder.path().join("newa").exists(), "{words:?}");
    }
    fs::create_dir(folder.path().join("there")).expect("writable");
    refused(folder.path(), &["report", "nostore", "-o", "there/b/c"], "store");
    assert!(folder.path().join("there").is_dir() && !folder.path().join("there/b").exists());
}

#[test]
fn scratch_folders_of_killed_runs_go_with_the_next() {
    let folder = folder_with("trace.csv", TRACE);
    write(folder.path(), "peer.sh", "echo \"$1\" > begun.new; mv begun.new begun; exec sleep 20\n");
    let entry = planner_entry("peer", &["peer.sh", "{instance}", "{output}"], "");
    write(folder.path(), "planners.toml", entry);
    let mut killed = start(folder.path(), &["plan", "trace.csv", "--planner", "external/peer"]);
    let begun = folder.path().join("begun");
    wait_for("the program", || begun.exists());
    let instance = fs::read_to_string(begun).expect("a path");
    let scratch = Path::new(instance.trim()).parent().expect("a folder");
    let name = scratch.file_name().expect("a name").to_string_lossy();
    assert!(name.starts_with(".planlab-tmp-"), "{name}");
    assert_eq!(killed.end_by(Signal::KILL), None);
    wait_for("the next run", || {
        run(folder.path(), &["plan", "trace.csv", "--planner", "best-fit"], 0);
        !scratch.exists()
    });
}

#[test]
fn no_planner_runs_for_a_plan_that_cannot_be_written() {
    let folder = folder_with("trace.csv", TRACE);
    write(folder.path(), "peer.sh", "touch begun; exit 1\n");
    let entry = planner_entry("peer", &["peer.sh", "{instance}", "{output}"], "");
    write(folder.path(), "planners.toml", entry);
    refused(
        folder.path(),
        &["plan", "trace.csv", "--planner", "external/peer", "-o", "nowhere/p.csv"],
        "nowhere",
    );
}

#[test]
fn full_disk_does_not_hide_the_result() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = folder_with("above.csv", ABOVE);
    let plan = ["plan", "trace.csv", "--planner", "best-fit", "-o", "/dev/full"];
    // The plan can be read again, whatever its ids hold.
    for trace in [TRACE.replace("a,0", "\u{1b}[2Ja,0"), TRACE.to_owned()] {
        write(folder.path(), "trace.csv", trace);
        let (stdout, stderr) = run(folder.path(), &plan, 3);
        assert!(stderr.contains("/dev/full"), "{stderr}");
        let (card, rows) = stdout.split_once("# planlab: plan").expect("a plan behind the card");
        assert!(card.contains("height"), "{card}");
        write(folder.path(), "plan.csv", format!("# planlab: plan{rows}"));
        run(folder.path(), &["verify", "trace.csv", "plan.csv"], 0);
    }
    let (stdout, _) = run(folder.path(), &[&plan[..], &["--json"]].concat(), 3);
    let row: serde_json::Value = serde_json::from_str(stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!(row["height"], 96);
    assert!(row["plan"].as_str().is_some_and(|plan| plan.starts_with("# planlab: plan")), "{row}");

    let bound = ["bound", "above.csv", "--capacity", "20", "--certificate", "/dev/full"];
    let (stdout, _) = run(folder.path(), &bound, 3);
    write(folder.path(), "proof.json", stdout.lines().last().expect("the certificate"));
    assert_eq!(json(folder.path(), &["verify", "above.csv", "--certificate", "proof.json"], 0)["bound"], 21);

    for words in [
        &["generate", "uniform", "n=10"][..],
        &["import", "lab", "trace.csv"],
        &["export", "lab", "trace.csv"],
    ] {
        let (stdout, _) = run(folder.path(), &[words, &["-o", "/dev/full"]].concat(), 3);
        assert!(stdout.starts_with("not written: "), "{stdout}");
    }
}

/// A process that ends with its test.
struct Started(Child);

impl Started {
    /// Sends a signal and returns the exit code. Standard input stays open, or the verb would continue.
    fn end_by(&mut self, signal: Signal) -> Option<i32> {
        let _stdin = self.0.stdin.take();
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
        self.0.wait().expect("it is ours").code()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a command that waits for its input: standard input stays open, and the journal in `stuck` is a pipe without a
/// writer.
fn start(folder: &Path, words: &[&str]) -> Started {
    let child =
        beside(folder, words).env("TMPDIR", folder).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    Started(child.expect("the binary runs"))
}

fn stuck() -> TempDir {
    let folder = tempdir().expect("a folder");
    fs::create_dir(folder.path().join("stuck")).expect("writable");
    let journal = folder.path().join("stuck/journal.jsonl");
    assert!(Command::new("mkfifo").arg(journal).status().expect("mkfifo runs").success());
    folder
}

const BLOCKED: [&[&str]; 10] = [
    &["report", "stuck", "-o", "out"],
    &["ratios", "stuck", "--of", "bump", "--over", "best-fit", "-o", "out"],
    &["scale", "stuck", "-o", "out"],
    &["merge", "stuck", "-o", "out"],
    &["audit", "stuck"],
    &["import", "lab", "-", "-o", "out.csv"],
    &["export", "lab", "-", "-o", "out.csv"],
    &["show", "-", "-o", "out.svg"],
    &["simulate", "-", "--allocator", "tlsf"],
    &["verify", "-", "plan.csv"],
];

#[test]
fn interrupted_verb_leaves_no_files_and_exits_with_130() {
    for words in BLOCKED {
        for signal in [Signal::INT, Signal::TERM] {
            let folder = stuck();
            let mut child = start(folder.path(), words);
            wait_for("the signals", || listens(child.0.id()));
            if words[0] != "audit" {
                wait_for("a hidden file", || !hidden(folder.path()).is_empty());
            }
            assert_eq!(child.end_by(signal), Some(130), "{words:?} {signal:?}");
            assert_eq!(hidden(folder.path()), [] as [PathBuf; 0], "{words:?}");
            assert!(!folder.path().join("out").exists());
        }
    }
}

#[test]
fn a_trace_that_is_being_made_goes_when_it_is_interrupted() {
    let folder = tempdir().expect("a folder");
    let mut child = start(folder.path(), &["generate", "uniform", "n=1000000", "-o", "out.csv"]);
    wait_for("a hidden file", || !hidden(folder.path()).is_empty());
    assert_eq!(child.end_by(Signal::TERM), Some(130));
    assert_eq!(content(folder.path()), []);
}

#[test]
fn what_killed_runs_leave_goes_with_the_next_run_and_what_others_make_stays() {
    let folder = stuck();
    let results = with_store();
    let store = results.path().join("store");
    let store = store.to_str().expect("text");
    let mut alive = start(folder.path(), &["report", "stuck", "-o", "other"]);
    wait_for("a hidden folder", || hidden(folder.path()).len() == 1);
    let of_alive = hidden(folder.path());
    for words in [&["report", "stuck", "-o", "out"][..], &["import", "lab", "-", "-o", "out.csv"]] {
        let mut killed = start(folder.path(), words);
        wait_for("another", || hidden(folder.path()).len() == 2);
        assert_eq!(killed.end_by(Signal::KILL), None);
        assert_eq!(hidden(folder.path()).len(), 2, "{words:?}");
        planlab(folder.path()).args(["report", store, "-o", "out"]).assert().code(0);
        assert_eq!(hidden(folder.path()), of_alive, "{words:?}");
    }
    assert_eq!(alive.end_by(Signal::INT), Some(130));
    assert_eq!(hidden(folder.path()), [] as [PathBuf; 0]);
}

#[test]
fn the_recipes_find_the_binary_where_cargo_puts_it() {
    let folder = tempdir().expect("a folder");
    let elsewhere = folder.path().join("elsewhere");
    for built in ["release", "gpu/release"] {
        fs::create_dir_all(elsewhere.join(built)).expect("writable");
    }
    // A stand-in for cargo: it builds nothing, and prints its target folder.
    let cargo = format!(
        "#!/bin/sh\ncase $1 in metadata) echo '{{\"target_directory\":\"{}\"}}';; esac\n",
        elsewhere.display()
    );
    let planlab = "#!/bin/sh\necho \"ran $1\" >&2\ncase $1 in replay) exit 9;; esac\n";
    let programs = [
        ("cargo", cargo),
        ("elsewhere/release/planlab", planlab.to_owned()),
        ("elsewhere/gpu/release/planlab", planlab.to_owned()),
    ];
    for (name, text) in programs {
        write(folder.path(), name, text);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path().join(name), executable).expect("ours");
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts");
    let out = folder.path().join("out");
    for (script, arguments) in
        [("replay-host", vec![out.to_str().expect("text"), "quick"]), ("replay-gpu", vec!["simulated-cuda"])]
    {
        let output = Command::new(scripts.join(script))
            .args(&arguments)
            .env("PATH", &path)
            .env("STORE", folder.path().join("gpu"))
            .env_remove("PLANLAB")
            .output()
            .expect("bash runs");
        let told = String::from_utf8_lossy(&output.stderr);
        // The script that checks a planted overlap prints the binary's output.
        assert!(told.contains("ran replay"), "{script}: {told}");
    }
}
