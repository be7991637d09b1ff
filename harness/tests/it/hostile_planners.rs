//! External planners that leave their process group, hold streams, damage their folder or kill their parent. Each is a
//! row like others, and leaves no process and no folder.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::common::{
    STACK, has_ended, json, outputs, planlab, planner_entry, run, wait_for, wait_with_more_time, write,
};

const TRACE: &str = "id,lower,upper,size\na,0,4,64\nb,2,6,32\nc,5,9,64\nd,0,9,16\n";
/// `begin NAME` runs a process that writes its number to a file of that name and sleeps. `await NAME` waits for it.
const BEGIN: &str = "begin() { exec sh -c 'echo $$ > $0.part; mv $0.part $0; exec sleep 1000' \"$1\"; }\n\
    await() { until [ -e \"$1\" ]; do sleep 0.01; done; }\n\
    outside() { place=$(cat place); echo \"${place%%/.planlab-tmp-*}\"; }\n";

/// A folder with a planner that runs this script, and an honest one.
fn folder(script: &str) -> TempDir {
    let folder = tempdir().expect("a folder");
    let entry = |key: &str| planner_entry(key, &[&format!("{key}.sh"), "{instance}", "{output}"], "");
    write(folder.path(), "planners.toml", entry("hostile") + &entry("honest"));
    write(folder.path(), "hostile.sh", format!("{BEGIN}dirname \"$1\" > place\n{script}\n"));
    write(folder.path(), "honest.sh", STACK);
    write(folder.path(), "trace.csv", TRACE);
    folder
}

const PLAN: [&str; 4] = ["plan", "trace.csv", "--planner", "external/hostile"];

fn plan(folder: &Path, more: &[&str], code: i32) -> Value {
    json(folder, &[&PLAN[..], more].concat(), code)
}

fn start(folder: &Path, more: &[&str]) -> Child {
    crate::common::start(folder, &[&PLAN[..], more, &["--time-limit", "1h"]].concat())
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}")).trim().to_owned()
}

/// The temporary folder around the program's files.
fn around(folder: &Path) -> PathBuf {
    let place = PathBuf::from(text(folder, "place"));
    let is_ours = |path: &&Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".planlab-tmp-"))
    };
    place.ancestors().filter(is_ours).last().expect("a temporary folder").to_owned()
}

fn assert_leaves_nothing(folder: &Path) {
    let around = around(folder);
    assert!(!around.exists(), "{} was left", around.display());
}

/// Runs in a child and in this process.
const WAYS: [&[&str]; 2] = [&[], &["--in-process"]];

#[test]
fn processes_outside_the_group_end_with_the_limit() {
    let own_session = "(begin child) &\n(setsid sh -c '. ./hostile.part' &)\nawait child; await orphan; touch ready; sleep 1000";
    let group_of_another = "exec python3 -c 'import os, time\nos.setpgid(0, os.getpgid(os.getppid()))\n\
        open(\"own.part\", \"w\").write(str(os.getpid()))\nos.rename(\"own.part\", \"own\")\ntime.sleep(1000)'";
    // In a session of its own, with the streams, and an orphan; and in the group of its parent's parent.
    for (script, ready, processes) in
        [(own_session, "ready", &["child", "orphan"][..]), (group_of_another, "own", &["own"])]
    {
        for way in WAYS {
            let folder = folder(script);
            write(folder.path(), "hostile.part", format!("{BEGIN}begin orphan\n"));
            wait_with_more_time("the processes", |limit| {
                let row = plan(folder.path(), &[way, &["--time-limit", limit]].concat(), 3);
                assert_eq!(row["detail"], "timeout", "{row}");
                folder.path().join(ready).exists()
            });
            for name in processes {
                assert!(has_ended(&text(folder.path(), name)), "{name} {way:?}");
            }
            assert_leaves_nothing(folder.path());
        }
    }
}

#[test]
fn daemon_of_a_program_with_a_plan_ends_with_it() {
    for way in WAYS {
        let folder = folder(&format!("(setsid sh -c '. ./daemon.part' &)\nawait daemon\n{STACK}"));
        write(folder.path(), "daemon.part", format!("{BEGIN}begin daemon\n"));
        let row = plan(folder.path(), way, 0);
        assert_eq!((row["height"].as_u64(), row["status"].as_str()), (Some(176), Some("feasible")), "{row}");
        assert!(has_ended(&text(folder.path(), "daemon")), "{way:?}");
        assert_leaves_nothing(folder.path());
    }
}

#[test]
fn streams_that_a_foreign_process_holds_are_not_waited_for() {
    let folder = folder(&format!("echo $$ > own.part; mv own.part own; await go\n{STACK}echo words"));
    for way in WAYS {
        for name in ["own", "go"] {
            let _ = fs::remove_file(folder.path().join(name));
        }
        let mut child = start(folder.path(), way);
        wait_for("the program", || folder.path().join("own").exists());
        let own = text(folder.path(), "own");
        let held: Vec<_> = [1, 2]
            .map(|stream| OpenOptions::new().write(true).open(format!("/proc/{own}/fd/{stream}")))
            .into_iter()
            .collect::<Result<_, _>>()
            .expect("the test may open them");
        write(folder.path(), "go", "");
        wait_for("the end", || child.try_wait().expect("ours").is_some());
        assert_eq!(child.wait().expect("ours").code(), Some(0), "{way:?}");
        drop(held);
        assert_leaves_nothing(folder.path());
    }
}

#[test]
fn damaged_folders_are_removed() {
    for (script, code, detail) in [
        ("mv \"$(cat place)\" \"$(cat place).moved\"; echo \"$(cat place).moved\" > moved", 3, "bad-output"),
        (
            "mv \"$(cat place)\" \"$(outside)/moved-$$\"; echo \"$(outside)/moved-$$\" > moved",
            3,
            "bad-output",
        ),
        ("rm -rf \"$(cat place)\"", 3, "bad-output"),
        (
            "rm -rf \"$(cat place)\"/*; mkfifo \"$2\" \"$(cat place)/began\" \"$(cat place)/lock\"",
            3,
            "bad-output",
        ),
        ("mkdir \"$2\"", 3, "bad-output"),
        ("ln -s /dev/zero \"$2\"", 3, "bad-output"),
        ("mkfifo \"$2\"; kill -SEGV $$", 3, "bad-output"),
    ] {
        let folder = folder(script);
        for way in WAYS {
            let row = plan(folder.path(), way, code);
            assert_eq!(row["detail"], detail, "{script}: {row}");
            assert_leaves_nothing(folder.path());
            if script.starts_with("mv") {
                let moved = text(folder.path(), "moved");
                assert!(!Path::new(&moved).exists(), "{script}: {moved}");
            }
        }
    }
}

#[test]
fn pipe_that_appears_while_it_runs_does_not_hang_a_bench() {
    let folder = folder("mkfifo \"$2\"; touch ready; sleep 1000");
    let file = fs::read_to_string(folder.path().join("planners.toml")).expect("written");
    write(folder.path(), "planners.toml", file.replacen("instance =", "anytime = true\ninstance =", 1));
    wait_with_more_time("the program", |limit| {
        let row = plan(folder.path(), &["--time-limit", limit], 3);
        assert_eq!(row["detail"], "timeout", "{row}");
        folder.path().join("ready").exists()
    });
    assert_leaves_nothing(folder.path());
}

#[test]
fn program_that_kills_its_parent_leaves_nothing() {
    let folder = folder("(begin orphan) &\nawait orphan; kill -9 $PPID; sleep 1000");
    let row = plan(folder.path(), &[], 3);
    assert_eq!((&row["detail"], &row["reason"]), (&"killed".into(), &"ended by signal 9".into()), "{row}");
    assert!(has_ended(&text(folder.path(), "orphan")));
    assert_leaves_nothing(folder.path());
    // Without a child, planlab itself is the parent: the next run takes the folder away.
    let mut child = start(folder.path(), &["--in-process"]);
    wait_for("the end", || child.try_wait().expect("ours").is_some());
    run(folder.path(), &["plan", "trace.csv", "--planner", "external/honest"], 0);
    assert_leaves_nothing(folder.path());
    let orphan = text(folder.path(), "orphan");
    let _ = kill_process(Pid::from_raw(orphan.parse().expect("a number")).expect("a process"), Signal::KILL);
}

#[test]
fn second_signal_ends_all_that_runs() {
    let folder =
        folder("trap '' INT TERM\n(setsid sh -c '. ./orphan.part' &)\nawait orphan; touch ready; sleep 1000");
    write(folder.path(), "orphan.part", format!("{BEGIN}begin orphan\n"));
    let mut child = start(folder.path(), &["--in-process"]);
    wait_for("the program", || folder.path().join("ready").exists());
    let pid = Pid::from_child(&child);
    wait_for("the end", || {
        let _ = kill_process(pid, Signal::INT);
        child.try_wait().expect("ours").is_some()
    });
    assert_eq!(child.wait().expect("ours").code(), Some(130));
    assert!(has_ended(&text(folder.path(), "orphan")));
    assert_leaves_nothing(folder.path());
}

#[test]
fn version_command_leaves_no_daemon() {
    let folder = folder("");
    let version = "(setsid sh version.sh &); until [ -e daemon ]; do sleep 0.01; done; echo 1.2";
    write(folder.path(), "version.sh", "echo $$ > daemon.part; mv daemon.part daemon; exec sleep 1000\n");
    let file = fs::read_to_string(folder.path().join("planners.toml")).expect("written");
    let entry = format!("version = [\"sh\", \"-c\", \"{version}\"]\ninstance =");
    write(folder.path(), "planners.toml", file.replacen("instance =", &entry, 1));
    let mut list = planlab(folder.path());
    list.args(["list", "planners", "--json"]).env("PLANLAB_VERSION_PATIENCE", "300000");
    let entries: Value = serde_json::from_str(&outputs(&mut list, 0).0).expect("an array");
    let is_it = |entry: &&Value| entry["key"] == "external/hostile";
    let found = entries.as_array().and_then(|all| all.iter().find(is_it)).expect("listed");
    assert_eq!(found["version"], "1.2");
    assert!(has_ended(&text(folder.path(), "daemon")));
}
