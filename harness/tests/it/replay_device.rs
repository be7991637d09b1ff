//! Replays on a simulated device, which use all the code for a GPU, in a process of their own.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::common::{
    assert_shows, assert_tells, folder_with, json_lines, run, sabotaged, two_rows_of_one_plan, words, write,
};

const TRACE: &str = "# alignment: 512
id,lower,upper,size
a,0,3,4096
b,1,2,512
c,1,4,8192
d,2,6,1000
e,3,5,4096
f,4,6,70000
";

const OTHER: &str = "# alignment: 512
id,lower,upper,size
a,0,3,9000
b,1,2,512
c,2,4,8192
";

const QUICK: [&str; 6] = ["--device", "simulated-cuda:256MiB", "--iterations", "3", "--warm-up", "4"];

/// The rows of a replay of `trace.csv` with these extra arguments.
fn rows(folder: &Path, more: &[&str], code: i32) -> Vec<Value> {
    let (stdout, _) = run(folder, &[&["replay", "trace.csv", "--json"], more, &QUICK].concat(), code);
    json_lines(&stdout).into_iter().map(|object| object["row"].clone()).collect()
}

/// The same on a whole device, with saboteurs.
fn sabotaged_rows(folder: &Path, more: &[&str], code: i32) -> Vec<Value> {
    let arguments = [&["replay", "trace.csv", "--device", "simulated-cuda"], more].concat();
    sabotaged(folder, &arguments, code).0.into_iter().map(|object| object["row"].clone()).collect()
}

fn row<'a>(rows: &'a [Value], contender: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["contender"] == contender);
    found.unwrap_or_else(|| panic!("{contender} has a row"))
}

#[test]
fn every_contender_of_a_device_has_a_row() {
    let folder = folder_with("trace.csv", TRACE);
    let arguments = "--planner best-fit --allocator cuda-* --allocator plan/* --allocator *pool --allocator pytorch* \
        --work kernels --out rows";
    let rows = rows(folder.path(), &words(arguments), 0);
    let keys: Vec<&str> = rows.iter().map(|row| row["contender"].as_str().expect("a key")).collect();
    let expected = words(
        "plan plan/shuffled cuda-graph/plan cuda-malloc cuda-malloc-async/keep cuda-malloc-async/release \
         cuda-graph/async cupy1-pool cupy2rc1-pool cupy4-pool pytorch-caching pytorch-caching/expandable",
    );
    assert_eq!(keys, expected);
    for row in &rows {
        assert_eq!((&row["status"], &row["reason"]), (&"complete".into(), &"".into()), "{row}");
        assert_eq!((&row["device"], &row["work"]), (&"simulated-cuda".into(), &"kernels".into()), "{row}");
        assert_eq!(row["samples"].as_array().map(Vec::len), Some(3), "{row}");
        assert!(row["samples"][0]["device_ns"].as_u64() >= Some(1000), "{row}");
        assert!(row["device_name"].as_str().is_some_and(|name| name.contains("no GPU")), "{row}");
    }
    assert_eq!(row(&rows, "cuda-malloc-async/keep")["reserved_peak"], 32 << 20);
    assert_eq!(row(&rows, "cuda-malloc-async/release")["samples"][2]["reserved"], 0);
    assert_eq!(row(&rows, "plan")["planner"], "best-fit");
    assert_ne!(row(&rows, "plan")["plan"], row(&rows, "plan/shuffled")["plan"]);
    let kept = fs::read_to_string(folder.path().join("rows/replays.jsonl")).expect("rows are kept");
    assert_eq!(kept.lines().count(), expected.len());
}

#[test]
fn calls_alone_are_timed_by_the_call() {
    let folder = folder_with("trace.csv", TRACE);
    let rows =
        rows(folder.path(), &["--allocator", "empty-loop", "--allocator", "cuda-malloc", "--reps", "2"], 0);
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0]["cell"], rows[2]["cell"]);
    for row in rows {
        // Other calls may take less than the clock, and then have no separate times.
        if row["contender"] == "cuda-malloc" {
            let (alloc, free) = (&row["alloc"]["batches"], &row["free"]["median_ps"]);
            assert!(alloc.as_u64() >= Some(3) && free.as_u64() > Some(0), "{row}");
        }
        assert!(
            row["samples"][0]["device_ns"].is_null() && row["samples"][0]["enqueue_ns"].is_null(),
            "{row}"
        );
    }
}

#[test]
fn a_sequence_is_played_cold_and_its_plans_are_counted() {
    let folder = folder_with("trace.csv", TRACE);
    write(folder.path(), "other.csv", OTHER);
    let arguments = ["other.csv", "--allocator", "profile-guided", "--work", "kernels"];
    let mut command = vec!["replay", "trace.csv"];
    command.extend(arguments);
    command.extend(["--device", "simulated-cuda", "--warm-up", "0", "--iterations", "6", "--json"]);
    let (stdout, _) = run(folder.path(), &command, 0);
    let row = &json_lines(&stdout)[0]["row"];
    assert_eq!(row["sequence"], serde_json::json!(["trace.csv", "other.csv"]));
    let plans: Vec<u64> = row["samples"]
        .as_array()
        .expect("samples")
        .iter()
        .map(|sample| sample["plans"].as_u64().unwrap())
        .collect();
    assert_eq!((plans.len(), plans[0], row["warm_up"].as_u64()), (6, 1, Some(0)));
    assert!(plans[1] > plans[0], "another propagation needs another plan: {plans:?}");
    // Whatever remains at their ends, each propagation held memory.
    let is_held = |sample: &Value| sample["reserved_peak"].as_u64() >= Some(8192);
    assert!(row["samples"].as_array().expect("samples").iter().all(is_held), "{row}");
}

#[test]
fn what_is_made_of_a_plan_from_a_file_has_its_name() {
    let folder = folder_with("trace.csv", TRACE);
    run(folder.path(), &["plan", "trace.csv", "--planner", "best-fit", "-o", "mine.csv"], 0);
    let rows = rows(folder.path(), &["--plan", "mine.csv", "--allocator", "plan/shuffled"], 0);
    let keys: Vec<&str> = rows.iter().map(|row| row["contender"].as_str().expect("a key")).collect();
    assert_eq!(keys, ["plan:mine", "plan/shuffled:mine"]);
}

#[test]
fn one_plan_under_two_names_has_two_rows_in_a_folder() {
    let folder = folder_with("trace.csv", TRACE);
    two_rows_of_one_plan(folder.path(), "trace.csv", |arguments| drop(rows(folder.path(), arguments, 0)));
}

#[test]
fn a_planted_overlap_is_found_on_the_device() {
    let folder = folder_with("trace.csv", TRACE);
    for (allocator, says) in
        [("saboteur/overlap", "not what was written"), ("saboteur/outside", "not memory")]
    {
        let rows = sabotaged_rows(folder.path(), &["--allocator", allocator, "--work", "kernels"], 4);
        let row = &rows[0];
        assert_eq!(row["status"], "corrupt");
        assert!(row["reason"].as_str().is_some_and(|reason| reason.contains(says)), "{row}");
    }
}

#[test]
fn operations_are_timed_if_the_step_unit_is_known() {
    let folder = folder_with("trace.csv", TRACE);
    let arguments = ["--allocator", "cuda-malloc", "--work", "operations"];
    let (_, stderr) = run(folder.path(), &[&["replay", "trace.csv"], &arguments[..], &QUICK].concat(), 2);
    assert!(stderr.contains("trace.csv: its operations have no times"), "{stderr}");
    assert!(stderr.contains("# step-unit: ns") && stderr.contains("--operation-time"), "{stderr}");
    let same = rows(folder.path(), &[&arguments[..], &["--operation-time", "1us"]].concat(), 0);
    let of_unit = |unit: &str| {
        write(folder.path(), "trace.csv", format!("# step-unit: {unit}\n{TRACE}"));
        rows(folder.path(), &arguments, 0)
    };
    let told = [of_unit("us"), of_unit("ms")];
    let busy = |rows: &[Value]| row(rows, "cuda-malloc")["samples"][0]["device_ns"].as_u64().expect("a time");
    assert!(busy(&same) >= 6_000, "six operations of a microsecond");
    assert_eq!(busy(&told[1]) - busy(&told[0]), 6_000_000 - 6_000, "from step 0 to step 6");
    let cell = |rows: &[Value]| row(rows, "cuda-malloc")["cell"].clone();
    let cells = [cell(&same), cell(&told[0]), cell(&told[1])];
    assert!(cells[0] != cells[1] && cells[1] != cells[2], "other times are another cell: {cells:?}");
}

#[test]
fn a_process_that_dies_costs_its_rows_alone() {
    let folder = folder_with("trace.csv", TRACE);
    for (saboteur, says) in [("saboteur/crash", "signal 6"), ("saboteur/hang", "killed after 2.000 s")] {
        // The order of the turns differs.
        for seed in ["0", "1"] {
            let arguments = ["--allocator", saboteur, "--allocator", "tlsf", "--time-limit", "2s"];
            let quick = ["--iterations", "3", "--warm-up", "4", "--seed", seed];
            let rows = sabotaged_rows(folder.path(), &[&arguments[..], &quick].concat(), 3);
            let (dead, other) = (row(&rows, saboteur), row(&rows, "tlsf"));
            assert_eq!(
                (&dead["status"], &other["status"]),
                (&"failed".into(), &"complete".into()),
                "{rows:?}"
            );
            assert!(dead["reason"].as_str().is_some_and(|reason| reason.contains(says)), "{dead}");
            assert!(other["samples"].as_array().is_some_and(|samples| !samples.is_empty()), "{other}");
            assert_eq!(dead["device_name"], other["device_name"]);
        }
    }
}

#[test]
fn out_of_memory_on_the_device_is_reported() {
    let folder = folder_with("trace.csv", TRACE);
    let arguments =
        ["--allocator", "cuda-malloc", "--allocator", "device", "--work", "kernels", "--capacity", "4MiB"];
    for row in rows(folder.path(), &arguments, 3) {
        assert_eq!(row["status"], "out-of-memory", "{row}");
        assert_eq!(row["capacity"], 4 << 20);
    }
}

#[test]
fn capacity_above_that_of_the_device_is_refused() {
    let folder = folder_with("trace.csv", TRACE);
    let arguments = ["replay", "trace.csv", "--allocator", "tlsf", "--capacity", "1GiB"];
    assert_tells(
        &folder,
        &[&arguments[..], &QUICK].concat(),
        2,
        &["the device has no room for 1073741824 bytes"],
    );
}

#[test]
fn a_page_amid_a_growth_goes_back_when_memory_is_short() {
    let folder = tempdir().expect("a folder");
    // Pages of 20 MiB: `y` grows its range by two at once, and leaves a hole between `k` and `z`. In that hole the page
    // from 20 MiB on is whole. It must be unmapped for the second page of 2 MiB, which `d` needs, because there are
    // only 62 MiB.
    let small = ["b", "c", "d"].map(|id| (id, 2, 4, 1));
    let large = [("k", 0, 8, 15), ("y", 0, 2, 30), ("z", 1, 8, 12)];
    let mut text = "id,lower,upper,size\n".to_owned();
    for (id, lower, upper, mebibytes) in large.into_iter().chain(small) {
        text += &format!("{id},{lower},{upper},{}\n", mebibytes << 20);
    }
    write(folder.path(), "trace.csv", text);
    let arguments = ["--allocator", "pytorch-caching/expandable", "--work", "kernels", "--capacity", "62MiB"];
    let rows = rows(folder.path(), &arguments, 0);
    let row = row(&rows, "pytorch-caching/expandable");
    assert_eq!((&row["status"], &row["reason"]), (&"complete".into(), &"".into()), "{row}");
    assert!(row["refusals"].as_u64() >= Some(1), "{row}");
    assert_eq!(row["reserved_peak"], 62 << 20);
}

#[test]
fn what_cannot_be_played_is_refused_before_anything_runs() {
    let folder = folder_with("trace.csv", TRACE);
    let device = ["--device", "simulated-cuda"];
    let cases: [(&[&str], &str); 5] = [
        (&["--allocator", "cuda-maloc"], "cuda-malloc"),
        (&["--allocator", "cuda-graph/plan"], "needs a plan"),
        (&["--allocator", "tlsf", "--threads", "2"], "one thread"),
        (&["--allocator", "tlsf", "--work", "pages"], "kernels"),
        (&["--allocator", "glibc"], "no contender"),
    ];
    for (arguments, says) in cases {
        assert_tells(&folder, &[&["replay", "trace.csv"], arguments, &device].concat(), 2, &[says]);
    }
    run(folder.path(), &["plan", "trace.csv", "--planner", "best-fit", "-o", "plan.csv"], 0);
    let twice = ["replay", "trace.csv", "--plan", "plan.csv", "--plan", "plan.csv"];
    assert_tells(&folder, &twice, 2, &["given twice"]);
    let host = ["replay", "trace.csv", "--allocator", "tlsf", "--work", "kernels"];
    assert_tells(&folder, &host, 2, &["for devices"]);
}

#[test]
fn missing_driver_is_reported() {
    if planlab_replay::cuda::probe().is_ok() {
        return;
    }
    let folder = folder_with("trace.csv", TRACE);
    let (_, stderr) =
        run(folder.path(), &["replay", "trace.csv", "--planner", "best-fit", "--device", "cuda:0"], 2);
    assert!(stderr.contains("no replay on a GPU") && !stderr.contains("panicked"), "{stderr}");
    assert_shows(&folder, &["doctor"], 0, &["no replay on a GPU"]);
}

#[test]
fn pools_hold_on_a_device_what_they_hold_elsewhere() {
    let folder = tempdir().expect("a folder");
    let mut arguments = vec!["replay", "chainer/alexnet/infer/b1"];
    // The first two come from real pools, the others from an independent simulation.
    let expected = [
        ("cupy1-pool", 16_237_568),
        ("cupy2rc1-pool", 18_557_952),
        ("pytorch-caching", 25_165_824),
        ("tensorflow-bfc", 19_922_944),
    ];
    expected.iter().for_each(|(key, _)| arguments.extend(["--allocator", key]));
    arguments.extend(["--device", "simulated-cuda", "--warm-up", "4", "--iterations", "1", "--json"]);
    let (stdout, _) = run(folder.path(), &arguments, 0);
    let rows: Vec<Value> = json_lines(&stdout).into_iter().map(|object| object["row"].clone()).collect();
    for (key, bytes) in expected {
        assert_eq!(row(&rows, key)["reserved_peak"], bytes, "{key}");
    }
}

#[test]
fn a_broken_device_costs_the_turn_that_broke_it() {
    let folder = folder_with("trace.csv", TRACE);
    let names = ["tlsf", "cupy1-pool", "saboteur/broken-device", "cupy2rc1-pool", "cupy4-pool"];
    for seed in ["0", "1", "2"] {
        let mut arguments = vec!["--work", "kernels", "--seed", seed];
        names.iter().for_each(|name| arguments.extend(["--allocator", name]));
        let rows = sabotaged_rows(folder.path(), &arguments, 3);
        assert_eq!(rows.len(), names.len());
        for name in names {
            let row = row(&rows, name);
            if name == "saboteur/broken-device" {
                assert_eq!(row["status"], "failed", "{row}");
                assert!(row["reason"].as_str().is_some_and(|reason| reason.contains("700")), "{row}");
            } else {
                assert_eq!((&row["status"], &row["reason"]), (&"complete".into(), &"".into()), "{row}");
                assert_eq!(row["samples"].as_array().map(Vec::len), Some(200), "{row}");
            }
        }
    }
}
