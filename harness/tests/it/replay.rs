//! `replay` on the host: every contender in a process of its own, rows, exit codes, and saboteurs.

use std::path::Path;

use serde_json::Value;

use crate::common::{
    assert_dies_with_parent, assert_has, folder_with, json, json_lines, outputs, planlab, run, sabotaged,
    two_rows_of_one_plan, write,
};

const TRACE: &str = "id,lower,upper,size,op\nx,0,3,4096,f\ny,1,2,1024,g\nz,2,5,4096,h\nw,3,6,100000,i\n";
/// Few propagations, because these tests do not check times.
const QUICK: [&str; 4] = ["--iterations", "3", "--seconds", "20ms"];

fn replay(folder: &Path, arguments: &[&str], code: i32) -> (Vec<Value>, String) {
    sabotaged(folder, &[&["replay", "t.csv"], &QUICK[..], arguments].concat(), code)
}

fn folder() -> tempfile::TempDir {
    folder_with("t.csv", TRACE)
}

fn row_of<'a>(rows: &'a [Value], contender: &str) -> &'a Value {
    let found = rows.iter().map(|one| &one["row"]).find(|row| row["contender"] == contender);
    found.unwrap_or_else(|| panic!("no row of {contender}"))
}

#[test]
fn every_contender_is_complete_on_a_small_trace() {
    let folder = folder();
    let planned = json(folder.path(), &["plan", "t.csv", "--planner", "best-fit", "-o", "p.csv"], 0);
    let mut keys = planlab_solvers::online::keys();
    keys.extend(["glibc", "empty-loop"]);
    if cfg!(feature = "mallocs") {
        keys.extend(["jemalloc", "jemalloc/oversize-1m", "jemalloc/one-arena", "mimalloc"]);
    }
    let mut arguments = vec!["--plan", "p.csv", "--planner", "best-fit", "--work", "none"];
    keys.iter().for_each(|key| arguments.extend(["--allocator", key]));
    let (rows, _) = replay(folder.path(), &arguments, 0);
    assert_eq!(rows.len(), keys.len() + 2);
    for key in keys.into_iter().chain(["plan"]) {
        let row = row_of(&rows, key);
        assert_eq!((&row["status"], &row["device"]), (&"complete".into(), &"host".into()), "{row}");
        assert_eq!((&row["requests"], &row["requested_peak"]), (&4.into(), &104_096.into()), "{row}");
        let timed: u64 = row["samples"].as_array().expect("samples").iter().map(propagations).sum();
        assert_eq!(timed, 3, "{row}");
        assert!(row["warm_up"].as_u64() >= Some(2), "{row}");
    }
    let plan = row_of(&rows, "plan");
    assert_eq!((&plan["reserved_peak"], &plan["device_allocations"]), (&planned["height"], &1.into()));
    assert!(plan["plan"].is_string() && plan["search_steps"] == 0, "{plan}");
}

fn propagations(sample: &Value) -> u64 {
    sample["propagations"].as_u64().expect("a number")
}

#[cfg(feature = "mallocs")]
#[test]
fn options_of_an_allocator_are_read_back_in_its_process() {
    let folder = folder();
    let mut command = planlab(folder.path());
    command.env("MALLOC_CONF", "oversize_threshold:4096").env("MALLOC_ARENA_MAX", "1");
    command.args(["replay", "t.csv", "--json", "--allocator", "jemalloc*"]).args(QUICK);
    let rows = json_lines(&outputs(&mut command, 0).0);
    let options = |key: &str| {
        let row = rows.iter().find(|one| one["row"]["contender"] == key).expect("a row");
        row["options"].as_str().expect("a text").to_owned()
    };
    assert!(options("jemalloc").contains("oversize_threshold:8388608"), "{}", options("jemalloc"));
    assert!(options("jemalloc/oversize-1m").contains("oversize_threshold:1048576"));
    assert!(options("jemalloc/one-arena").contains("dirty_decay_ms:10000"));
}

#[test]
fn threads_and_repetitions_have_rows_of_their_own_that_are_kept() {
    let folder = folder();
    let arguments = ["--planner", "best-fit", "--allocator", "cupy4-pool", "--threads", "1,2", "--reps", "2"];
    let kept = [&arguments[..], &["--work", "pattern", "--out", "store"]].concat();
    let (rows, _) = replay(folder.path(), &kept, 0);
    assert_eq!(rows.len(), 8);
    let kept = planlab_results::replay::read_rows(folder.path().join("store")).expect("rows with checksums");
    assert_eq!(kept.len(), 8);
    let mut cells: Vec<&str> =
        rows.iter().map(|one| one["row"]["cell"].as_str().expect("a digest")).collect();
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells.len(), 4);
    for one in &rows {
        let (threads, peak) = (one["row"]["threads"].as_u64(), one["row"]["reserved_peak"].as_u64());
        let least = threads.map(|threads| threads * 104_096);
        assert!(peak >= least, "{one}");
    }
    // Each round has a newly drawn order, which is the same for the same seed.
    let order = |rows: &[Value]| -> Vec<String> {
        rows.iter().map(|one| format!("{} {}", one["row"]["contender"], one["row"]["threads"])).collect()
    };
    let (again, _) = replay(folder.path(), &arguments, 0);
    assert_eq!(order(&again), order(&rows));
}

#[test]
fn several_traces_are_played_in_turn_and_their_plans_are_counted() {
    let folder = folder();
    write(folder.path(), "o.csv", "id,lower,upper,size\na,0,3,9000\nb,1,2,512\nc,2,4,8192\n");
    let arguments = ["o.csv", "--allocator", "profile-guided", "--warm-up", "0", "--out", "store"];
    let (rows, _) = replay(folder.path(), &arguments, 0);
    let row = row_of(&rows, "profile-guided");
    let sequence: Vec<&str> =
        row["sequence"].as_array().expect("two").iter().filter_map(Value::as_str).collect();
    // As `bench` calls them: with the digest of their contents.
    assert_eq!(sequence.len(), 2);
    assert!(sequence[0].starts_with("file/t.csv/") && sequence[1].starts_with("file/o.csv/"), "{sequence:?}");
    assert_eq!((&row["requests"], &row["warm_up"]), (&7.into(), &0.into()), "{row}");
    let samples = row["samples"].as_array().expect("samples");
    let plans: Vec<u64> = samples.iter().map(|sample| sample["plans"].as_u64().expect("it plans")).collect();
    assert_eq!((plans.len(), plans[0]), (3, 1), "cold from the first on");
    assert!(plans[1] > plans[0], "another propagation needs another plan: {plans:?}");
    assert!(samples.iter().all(|one| one["planning_ns"].is_u64() && one["propagations"] == 1), "{row}");
    assert!(rows[0]["cpu_ns_per_request"].as_f64() > Some(0.0), "{}", rows[0]);
    let kept = planlab_results::replay::read_rows(folder.path().join("store")).expect("it is kept");
    assert_eq!(kept.len(), 1);
    let (rows, _) = replay(folder.path(), &["o.csv", "--planner", "best-fit"], 3);
    assert_eq!(row_of(&rows, "plan")["status"], "unavailable");
}

#[test]
fn a_table_has_a_line_for_each_contender() {
    let folder = folder();
    let arguments = ["replay", "t.csv", "--planner", "best-fit", "--allocator", "glibc", "--reps", "2"];
    let (text, _) = run(folder.path(), &[&arguments[..], &QUICK].concat(), 0);
    assert!(text.contains("4 requests, at most 102 KiB (104096) at once"), "{text}");
    for word in ["plan (best-fit)", "glibc", "complete", "CPU/request", "`warm-up` propagations"] {
        assert_eq!(text.matches(word).count(), if word == "complete" { 2 } else { 1 }, "{word}: {text}");
    }
    assert!(!text.contains("above the loop"), "no empty loop was played, so the column is empty: {text}");
}

#[test]
fn plans_from_files_are_named_by_file() {
    let folder = folder();
    for (name, offset) in [("tight.csv", 9216), ("loose.csv", 20_000)] {
        let rows = ["x,0,3,4096,0", "y,1,2,1024,4096", "z,2,5,4096,5120"].join("\n");
        let plan = format!("# planlab: plan\nid,lower,upper,size,offset\n{rows}\nw,3,6,100000,{offset}\n");
        write(folder.path(), name, plan);
    }
    let files = ["--plan", "tight.csv", "--plan", "loose.csv"];
    let (rows, _) = replay(folder.path(), &[&files[..], &["--planner", "best-fit"]].concat(), 0);
    let peaks = ["plan:tight", "plan:loose"].map(|key| row_of(&rows, key)["reserved_peak"].as_u64());
    assert_eq!(peaks, [Some(109_216), Some(120_000)]);
    assert_eq!(row_of(&rows, "plan")["planner"], "best-fit");
    let (text, _) = run(folder.path(), &[&["replay", "t.csv"][..], &files, &QUICK].concat(), 0);
    assert!(text.contains("plan:tight") && text.contains("plan:loose"), "{text}");
}

#[test]
fn one_plan_under_two_names_has_two_rows_in_a_folder() {
    let folder = folder();
    two_rows_of_one_plan(folder.path(), "t.csv", |arguments| drop(replay(folder.path(), arguments, 0)));
}

#[test]
fn what_is_held_during_a_propagation_is_read_of_pools_and_plans_alike() {
    let folder = folder();
    let arguments = ["--allocator", "profile-guided", "--allocator", "cupy4-pool", "--planner", "best-fit"];
    let (rows, _) = replay(folder.path(), &[&arguments[..], &["--warm-up", "0"]].concat(), 0);
    for key in ["profile-guided", "cupy4-pool", "plan"] {
        for sample in row_of(&rows, key)["samples"].as_array().expect("samples") {
            assert!(sample["reserved_peak"].as_u64() >= Some(104_096), "{key}: {sample}");
        }
    }
    let plan = row_of(&rows, "plan");
    assert_eq!(plan["samples"][0]["reserved_peak"], plan["reserved_peak"]);
}

#[test]
fn too_many_threads_for_the_address_space_is_reported() {
    let folder = folder();
    let (rows, _) = replay(folder.path(), &["--allocator", "tlsf", "--threads", "64"], 3);
    let row = row_of(&rows, "tlsf");
    assert_eq!(row["status"], "out-of-memory", "{row}");
    let reason = row["reason"].as_str().expect("a text");
    assert_has(reason, &["`tlsf`", "4398046511104 bytes", "64 threads", "fewer threads help"]);
}

#[test]
fn empty_loop_time_is_subtracted_if_measured() {
    let folder = folder();
    let arguments = ["replay", "t.csv", "--allocator", "tlsf", "--allocator", "empty-loop"];
    let (text, _) = run(folder.path(), &[&arguments[..], &QUICK].concat(), 0);
    let head = text.lines().find(|line| line.contains("above the loop")).expect("a head");
    let line = |key: &str| text.lines().find(|line| line.starts_with(key)).expect("a line").to_owned();
    let (from, to) =
        (head.find("above the loop").expect("a column"), head.find("wall/request").expect("the next"));
    let field = |key: &str| line(key).chars().skip(from).take(to - from).collect::<String>();
    assert!(field("tlsf").trim().ends_with('s') && field("empty-loop").trim().is_empty(), "{text}");
}

#[test]
fn saboteurs_cost_a_row_each_and_nothing_else() {
    let folder = folder();
    let arguments = ["--allocator", "saboteur/*", "--allocator", "tlsf", "--time-limit", "2s"];
    let (rows, _) = replay(folder.path(), &arguments, 4);
    for (key, status, reason) in [
        ("saboteur/overlap", "corrupt", "handed out over"),
        ("saboteur/outside", "corrupt", "are not the allocator's"),
        ("saboteur/crash", "failed", "signal 6"),
        ("saboteur/hang", "failed", "killed after 2"),
        ("tlsf", "complete", ""),
    ] {
        let row = row_of(&rows, key);
        assert_eq!(row["status"], status, "{row}");
        assert!(row["reason"].as_str().is_some_and(|text| text.contains(reason)), "{row}");
    }
    let (rows, _) = replay(folder.path(), &["--allocator", "saboteur/crash"], 3);
    assert!(rows[0]["row"]["samples"].as_array().expect("samples").is_empty());
}

#[test]
fn a_child_does_not_outlive_a_killed_replay() {
    let folder = folder();
    let arguments = ["replay", "t.csv", "--allocator", "saboteur/hang", "--time-limit", "60s"];
    assert_dies_with_parent(folder.path(), "run-replay", &arguments);
}

#[test]
fn memory_that_is_too_small_is_a_row_and_an_exit_code() {
    let folder = folder();
    let arguments = ["--planner", "best-fit", "--allocator", "cupy2rc1-pool", "--capacity", "100000"];
    let (rows, _) = replay(folder.path(), &arguments, 3);
    for key in ["plan", "cupy2rc1-pool"] {
        assert_eq!(row_of(&rows, key)["status"], "out-of-memory", "{key}");
    }
    let (rows, _) = replay(folder.path(), &["--allocator", "glibc", "--capacity", "100000"], 3);
    assert_eq!(row_of(&rows, "glibc")["status"], "unavailable");
}

#[test]
fn what_cannot_be_played_is_refused_before_anything_is() {
    let folder = folder();
    write(
        folder.path(),
        "bad.csv",
        "id,lower,upper,size,offset\nx,0,3,4096,0\ny,1,2,1024,0\nz,2,5,4096,4096\n",
    );
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let all = [&["replay"], arguments].concat();
        let (stdout, stderr) = run(folder.path(), &all, code);
        assert!(stdout.is_empty() && stderr.contains(words), "{arguments:?}: {stdout}{stderr}");
    };
    refused(&["t.csv"], 2, "--plan");
    refused(&["t.csv", "--allocator", "jemaloc"], 2, "there is no allocator `jemaloc`");
    refused(&["t.csv", "--allocator", "saboteur/crash"], 2, "there is no allocator");
    refused(&["t.csv", "--planner", "best-fot"], 2, "best-fit");
    refused(&["t.csv", "--allocator", "tlsf", "--device", "gpu"], 2, "a device is");
    refused(&["t.csv", "--allocator", "tlsf", "--threads", "0"], 2, "threads");
    refused(&["absent.csv", "--allocator", "tlsf"], 2, "absent.csv");
    refused(&["t.csv", "--plan", "absent.csv"], 2, "absent.csv");
    // A plan of another trace, and one that puts two buffers in one place.
    refused(&["t.csv", "--plan", "bad.csv"], 4, "bad.csv: not a valid plan");
    let rows = ["x,0,3,4096,0", "y,1,2,1024,0", "z,2,5,4096,8192", "w,3,6,100000,16384", ""];
    let overlapping = format!("# planlab: plan\nid,lower,upper,size,offset\n{}", rows.join("\n"));
    write(folder.path(), "over.csv", overlapping);
    refused(&["t.csv", "--plan", "over.csv"], 4, "overlap");
}
