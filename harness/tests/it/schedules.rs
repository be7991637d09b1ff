//! `schedule`: keep, swap, recompute; and suites of schedules: isolation, resume, audit.

use std::fs;
use std::path::Path;

use planlab_results::schedule::read_schedules;
use planlab_results::{Status, Store};
use serde_json::Value;
use tempfile::tempdir;

use crate::common::{
    assert_shows, assert_tells, figure, folder_with, json, outputs, planlab, run, sabotaged, sample, write,
};

const MACHINE: &str = "name = 'mine'\ncopy_out = 24e9\ncopy_in = 24e9\nflops = 2e13\nmemory = 1.5e12\nlaunch = 5e-6\n\
                       capacity = 2e9\n";

fn row<'a>(rows: &'a [Value], scheduler: &str) -> &'a Value {
    rows.iter().find(|row| row["scheduler"] == scheduler).unwrap_or_else(|| panic!("no row of {scheduler}"))
}

/// The same of what `schedule` has found.
fn found_row<'a>(found: &'a Value, scheduler: &str) -> &'a Value {
    row(found["schedules"].as_array().expect("schedules"), scheduler)
}

/// The classes of the paper's table 3 for SuperNeurons, and of our reproduction for PoocH. A schedule whose live bytes
/// fit may not fit with a planner's offsets.
#[test]
fn resnet50_at_512_keeps_swaps_and_recomputes_as_published() {
    let folder = tempdir().expect("a folder");
    let arguments = ["schedule", "resnet50", "--batch", "512", "--planner", "best-fit"];
    // Best fit needs more than the capacity for both: no schedule fits.
    let schedulers =
        ["--scheduler", "in-core", "--scheduler", "superneurons", "--scheduler", "pooch/discard"];
    let found = json(folder.path(), &[arguments.as_slice(), &schedulers].concat(), 3);
    let counts = |scheduler: &str| {
        let row = found_row(&found, scheduler);
        ["kept", "swapped", "recomputed"].map(|class| row[class].as_u64())
    };
    assert_eq!(counts("superneurons"), [66, 21, 18].map(Some));
    assert_eq!(counts("pooch/discard"), [66, 10, 29].map(Some));
    assert!(
        found_row(&found, "in-core")["remark"].as_str().is_some_and(|text| text.starts_with("out of memory"))
    );
    for scheduler in ["superneurons", "pooch/discard"] {
        let row = found_row(&found, scheduler);
        assert!(row["height"].as_u64() > Some(14_950_000_000) && row["fits"] == false, "{row}");
        assert!(figure(row, "live_peak") <= 14_950_000_000, "{row}");
    }
    assert_eq!(found["capacity"], 14_950_000_000_u64);
}

#[test]
fn false_claim_of_a_written_schedule_is_refused() {
    let folder = folder_with("mine.toml", MACHINE);
    let net = ["schedule", "alexnet", "--batch", "192", "--machine", "mine.toml"];
    let with = |more: &[&'static str]| [net.as_slice(), more].concat();
    let found = json(folder.path(), &with(&["--scheduler", "swap-all", "-o", "s.jsonl"]), 0);
    let checked = json(folder.path(), &with(&["--check", "s.jsonl"]), 0);
    assert_eq!(checked["valid"], true);
    assert_eq!(checked["height"], found_row(&found, "swap-all")["height"]);
    let text = std::fs::read_to_string(folder.path().join("s.jsonl")).expect("written");
    let seconds = text.lines().next().and_then(|line| line.split("\"seconds\":").nth(1)).expect("a claim");
    let seconds = seconds.split([',', '}']).next().expect("a number");
    write(folder.path(), "lie.jsonl", text.replacen(seconds, "0.001", 1));
    let lie = json(folder.path(), &with(&["--check", "lie.jsonl"]), 4);
    assert!(lie["message"].as_str().is_some_and(|text| text.contains("claims")), "{lie}");
    let cut = text.lines().take(3).collect::<Vec<_>>().join("\n");
    write(folder.path(), "cut.jsonl", format!("{cut}\n{{\"event\":"));
    assert_tells(&folder, &with(&["--check", "cut.jsonl"]), 2, &["cut.jsonl:4"]);
}

/// Each number of threads is a cell of its own, as it decides how much a run does in its time.
#[test]
fn joint_schedule_is_the_same_on_any_number_of_threads() {
    let folder = folder_with("mine.toml", MACHINE);
    let net = ["schedule", "alexnet", "--batch", "192", "--machine", "mine.toml", "--planner", "best-fit"];
    let limits = ["--work-limit", "1500", "--time-limit", "5m", "--out", "store", "-o", "s.jsonl"];
    let schedule = |threads| {
        let arguments = [net.as_slice(), &limits, &["--threads", threads]].concat();
        let found = json(folder.path(), &arguments, 0);
        let text = fs::read_to_string(folder.path().join("s.jsonl")).expect("written");
        (text, found_row(&found, "joint")["stop"].clone())
    };
    assert_eq!(schedule("1"), schedule("3"));
    let sql = "SELECT threads FROM schedules ORDER BY threads";
    let (csv, _) = run(folder.path(), &["query", "store", sql, "--csv"], 0);
    assert_eq!(csv.lines().skip(1).collect::<Vec<_>>(), ["1", "3"]);
}

/// The schedule keeps maps that no backward pass reads; an earlier bound was above its time.
#[test]
fn schedule_that_keeps_transient_maps_is_above_the_bound() {
    let folder = tempdir().expect("a folder");
    let file = "../workloads/data/schedules/refuters/densenet161-schedule.jsonl.zst";
    std::fs::copy(file, folder.path().join("s.jsonl.zst")).expect("copied");
    let net = ["schedule", "densenet161", "--batch", "64", "--capacity", "8424687584", "--link", "3GB"];
    let checked = json(folder.path(), &[net.as_slice(), &["--check", "s.jsonl.zst"]].concat(), 0);
    let [seconds, bound, gap] =
        ["seconds", "bound_seconds", "gap"].map(|field| checked[field].as_f64().expect("a number"));
    assert_eq!((&checked["valid"], &checked["bound_evidence"]), (&true.into(), &"lp".into()));
    assert!((0.518_009..0.518_011).contains(&seconds), "{checked}");
    assert!(bound <= seconds && gap > 0.0, "{checked}");
}

#[test]
fn what_no_schedule_can_do_is_named() {
    let folder = folder_with("slow.toml", MACHINE.replace("copy_in = 24e9", "copy_in = 0"));
    write(folder.path(), "times.csv", "function,forward,backward\nnobody,0.1,0.2\n");
    write(folder.path(), "part.toml", MACHINE.replace("flops = 2e13\n", ""));
    for (more, reason) in [
        (["--machine", "slow.toml"], "slow.toml:3"),
        (["--machine", "part.toml"], "flops"),
        (["--machine", "x86-pcie"], "did you mean `x86-pcie3`"),
        (["--times", "times.csv"], "times.csv:2"),
        (["--scheduler", "poch/retain"], "did you mean `pooch/retain`"),
        (["--mode", "infer"], "inference keeps no feature maps"),
    ] {
        let arguments = [["schedule", "alexnet", "--batch", "1024"].as_slice(), &more].concat();
        assert_tells(&folder, &arguments, 2, &[reason]);
    }
}

#[test]
fn capacity_below_every_schedule_is_infeasible_at_once() {
    let folder = folder_with("mine.jsonl", NET);
    let arguments = ["schedule", "mine.jsonl", "--capacity", "11MB", "--time-limit", "600s", "--scheduler"];
    let both = [&arguments[..], &["swap-all", "--scheduler", "joint"]].concat();
    let found = json(folder.path(), &both, 3);
    for key in ["swap-all", "joint"] {
        let row = found_row(&found, key);
        assert_eq!((&row["status"], &row["stop"]), (&"infeasible".into(), &"infeasible".into()), "{row}");
    }
    assert_eq!(found["least_memory"], 11_000_120);
    let suggested = figure(&found, "suggested_capacity");
    assert!((11_000_120..12_500_000).contains(&suggested), "{suggested} bytes");
    let scheduler = found["suggested_scheduler"].as_str().expect("a scheduler");
    let reason = "every schedule needs at least 11000120 bytes, but the capacity is 11000000: the backward pass of `b` takes \
                  3000000 beside 8000120 bytes of parameters and workspace; ";
    let suggestion = format!("{scheduler} finds a schedule in ");
    assert_shows(&folder, &both, 3, &[reason, &suggestion, "infeasible"]);
    let bytes = suggested.to_string();
    let there = ["schedule", "mine.jsonl", "--capacity", &bytes, "--scheduler", scheduler];
    let found = json(folder.path(), &there, 0);
    assert_eq!(found["schedules"][0]["fits"], true, "{found}");
    let limited = [&both[..], &["--work-limit", "1"]].concat();
    assert_eq!(json(folder.path(), &limited, 3)["suggested_capacity"], Value::Null);
    let base = ["schedule", "mine.jsonl", "--capacity", "8MB", "--scheduler", "joint"];
    let alone = "8000000: parameters and workspace alone take 8000120";
    assert_shows(&folder, &base, 3, &[alone]);
    let written = [&arguments[..], &["joint", "-o", "s.jsonl"]].concat();
    assert_tells(&folder, &written, 3, &["no schedule fits, so no file is written"]);
    assert!(!folder.path().join("s.jsonl").exists());
    let enough = ["schedule", "mine.jsonl", "--capacity", "13MB", "--scheduler", "in-core"];
    assert_eq!(json(folder.path(), &enough, 0)["suggested_capacity"], Value::Null);
}

#[test]
fn proof_beside_a_schedule_is_a_contradiction() {
    let folder = folder_with("mine.jsonl", NET);
    let arguments =
        ["schedule", "mine.jsonl", "--capacity", "13MB", "--scheduler", "saboteur/lie-about-a-search"];
    let both = [&arguments[..], &["--scheduler", "in-core"]].concat();
    let mut command = planlab(folder.path());
    let (found, _) = outputs(command.env("PLANLAB_SABOTEURS", "1").args(&both), 4);
    let says = "a contradiction: saboteur/lie-about-a-search proves that no schedule fits, but there is one of in-core";
    assert!(found.contains(says) && !found.contains("out of memory"), "{found}");
}

const SUITE: &str = r#"
name = "mine"
analysis = "AlexNet in less memory than it needs."

[[schedule]]
nets = ["alexnet"]
batches = [1024]
machines = ["x86-pcie3"]
capacities = [6_000_000_000]
schedulers = ["*"]
except = ["local-search", "joint", "exact", "checkmate*", "offmate", "checkpoints/*", "pytorch/*"]
time_limit = 1.5
planner_time_limit = 1.0
"#;

fn bench(folder: &Path, more: &[&str], code: i32) -> (Vec<Value>, String) {
    sabotaged(folder, &[&["bench", "--suite", "mine.toml", "--out", "store"], more].concat(), code)
}

#[test]
fn a_scheduler_that_breaks_its_contract_costs_its_row() {
    let folder = folder_with("mine.toml", SUITE);
    let chosen = ["swap-all", "saboteur/crash", "saboteur/hang", "saboteur/shorten*", "saboteur/lie*"];
    let arguments: Vec<&str> = chosen.iter().flat_map(|glob| ["--scheduler", glob]).collect();
    let (rows, _) = bench(folder.path(), &arguments, 4);
    for (scheduler, status) in [
        ("saboteur/crash", "crashed"),
        ("saboteur/hang", "timeout"),
        ("saboteur/shorten-a-copy", "invalid-plan"),
        ("saboteur/lie-about-time", "bad-output"),
        ("saboteur/lie-about-bound", "bound-refuted"),
        ("saboteur/lie-about-memory", "bound-refuted"),
        ("saboteur/lie-without-a-proof", "bad-output"),
        // The proof of a search is not repeated: the schedules of others refute it.
        ("saboteur/lie-about-a-search", "infeasible"),
        ("swap-all", "feasible"),
    ] {
        assert_eq!(row(&rows, scheduler)["status"], status, "{}", row(&rows, scheduler));
    }
    // The hung scheduler had offered a schedule, which the kill did not lose.
    assert_eq!(row(&rows, "saboteur/hang")["seconds"], row(&rows, "swap-all")["seconds"]);
    let reason = row(&rows, "saboteur/shorten-a-copy")["reason"].as_str().expect("a reason");
    assert!(reason.contains("of `in` takes 1e-9 s"), "{reason}");
    let audit = json(folder.path(), &["audit", "store"], 4);
    assert_eq!(audit["schedules"], 9);
    let claim = "saboteur/lie-about-a-search claims that every schedule needs 6000000001 bytes, but one of";
    assert!(audit["findings"].to_string().contains(claim), "{audit}");
    // The next bench runs only the others.
    let (rows, told) = bench(
        folder.path(),
        &["--scheduler", "saboteur/eat-memory", "--memory-limit", "512MiB", "--time-limit", "60s"],
        3,
    );
    assert_eq!(row(&rows, "saboteur/eat-memory")["status"], "out-of-memory", "{told}");
}

#[test]
fn a_bench_of_schedules_resumes_and_its_audit_validates_again() {
    let folder = folder_with("mine.toml", SUITE);
    let (dry, _) = bench(folder.path(), &["--dry-run"], 0);
    let (rows, told) = bench(folder.path(), &[], 0);
    assert_eq!(dry.len(), rows.len());
    assert!(told.contains(&format!("{} rows of schedules, {} run now", rows.len(), rows.len())), "{told}");
    let speeds = ["in-core", "swap-all/unscheduled", "swap-all", "swap-opt"]
        .map(|scheduler| row(&rows, scheduler)["images_per_second"].as_f64());
    assert_eq!(speeds[0], None, "AlexNet does not fit");
    assert!(speeds[1] <= speeds[2] && speeds[2] <= speeds[3] && speeds[1].is_some(), "{speeds:?}");
    for row in rows.iter().filter(|row| !row["height"].is_null()) {
        assert!(figure(row, "height") >= figure(row, "live_peak"), "{row}");
        assert!(figure(row, "live_peak") <= 6_000_000_000, "{row}");
    }
    let (again, told) = bench(folder.path(), &[], 0);
    assert_eq!(again.len(), rows.len());
    assert!(told.contains("0 run now"), "{told}");
    let audit = json(folder.path(), &["audit", "store"], 0);
    assert_eq!(audit["schedules"], rows.len());
    assert_eq!(audit["findings"], serde_json::json!([]));
    // A kept schedule that was changed, and a missing one.
    let mut kept: Vec<_> = fs::read_dir(folder.path().join("store/events"))
        .expect("schedules")
        .map(|entry| entry.expect("a file").path())
        .collect();
    kept.sort();
    let text = fs::read_to_string(&kept[0]).expect("text");
    fs::write(&kept[0], text.replacen("\"offset\":", "\"offset\":1", 1)).expect("written");
    fs::remove_file(&kept[1]).expect("removed");
    let audit = json(folder.path(), &["audit", "store"], 3);
    let told = audit["findings"].to_string();
    assert!(told.contains("its content has another digest than its name says"), "{told}");
    assert!(told.contains("No such file"), "{told}");
}

#[test]
fn infeasible_cell_is_an_answer_and_a_false_one_is_found() {
    let folder = folder_with("mine.toml", SUITE.replace("[6_000_000_000]", "[1_000_000_000]"));
    let (rows, told) = bench(folder.path(), &["--scheduler", "swap-all"], 0);
    assert_eq!(row(&rows, "swap-all")["status"], "infeasible", "{told}");
    write(folder.path(), "mine.toml", SUITE);
    bench(folder.path(), &["--scheduler", "swap-all"], 0);
    let audit = json(folder.path(), &["audit", "store"], 0);
    assert_eq!((&audit["schedules"], &audit["findings"]), (&2.into(), &serde_json::json!([])));
    let folder_of_rows = folder.path().join("store");
    let rows = read_schedules(&folder_of_rows).expect("reads");
    let found = rows.into_iter().find(|row| row.status == Status::Feasible).expect("a schedule");
    let lie = found.with(|row| {
        row.repetition = 1;
        row.status = Status::Infeasible;
        row.iteration_ns = None;
        row.live_peak = None;
        row.schedule = None;
        row.least_memory = Some(row.capacity + 1);
    });
    Store::open(&folder_of_rows).expect("opens").append_schedule(&lie).expect("appends");
    let told = json(folder.path(), &["audit", "store"], 4)["findings"].to_string();
    let refuted = "swap-all: every schedule is said to need 6000000001 bytes, but passes and sums need only";
    assert!(told.contains(refuted), "{told}");
    assert!(
        told.contains("swap-all claims that every schedule needs 6000000001 bytes, but one of swap-all"),
        "{told}"
    );
}

#[test]
fn a_suite_with_names_that_stand_for_nothing_is_refused() {
    let folder = tempdir().expect("a folder");
    for (from, to, reason) in [
        ("\"alexnet\"", "\"alexnot\"", "mine.toml:6: there is no net `alexnot`; did you mean"),
        ("x86-pcie3", "x86", "mine.toml:8: there is no machine `x86`"),
        ("[\"*\"]", "[\"poch/*\"]", "mine.toml:10: there is no scheduler `poch/*`"),
        ("[1024]", "[0]", "mine.toml:7: `batches` needs at least one number"),
        ("time_limit = 1.5", "time_limit = -1", "a time limit of -1 seconds"),
        ("[6_000_000_000]", "[0]", "mine.toml:9: a capacity of 0 bytes"),
    ] {
        write(folder.path(), "mine.toml", SUITE.replace(from, to));
        assert_tells(&folder, &["bench", "--suite", "mine.toml"], 2, &[reason]);
    }
}

#[test]
fn the_largest_batch_at_a_loss_grows_with_the_loss() {
    let folder = tempdir().expect("a folder");
    let arguments = ["schedule", "squeezenet1-1", "--capacity", "500MB", "--planner", "best-fit"];
    let found = |loss: &str| {
        let more = ["--scheduler", "in-core", "--scheduler", "swap-opt", "--loss", loss];
        let found = json(folder.path(), &[arguments.as_slice(), &more].concat(), 0);
        let batch = |at: usize| found["schedulers"][at]["batch"].as_u64().expect("a batch");
        [batch(0), batch(1)]
    };
    let (none, some) = (found("0%"), found("50%"));
    assert_eq!(none[0], some[0], "what fits in-core loses nothing");
    assert!(none[1] >= none[0] && some[1] > none[1], "{none:?} {some:?}");
    // One more image does not fit in-core.
    let next = (none[0] + 1).to_string();
    let more = ["--scheduler", "in-core", "--batch", next.as_str()];
    json(folder.path(), &[arguments.as_slice(), &more].concat(), 3);
}

#[test]
fn largest_batch_of_a_file_needs_one_of_any_batch() {
    // A megabyte for each image and map.
    let profile = "node1 -- Input -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=64000000, parameter_size=0.000\n\
                   node2 -- ReLU(inplace) -- forward_compute_time=2.0, backward_compute_time=3.0, activation_size=64000000, parameter_size=0.000\n\
                   \tnode1 -- node2\n";
    let folder = folder_with("p.txt", profile);
    let arguments =
        ["schedule", "p.txt", "--measured-batch", "64", "--capacity", "501MB", "--scheduler", "in-core"];
    let found = json(folder.path(), &[arguments.as_slice(), &["--loss", "0%"]].concat(), 0);
    assert_eq!(found["schedulers"][0]["batch"], 246, "two maps beside 8 MB of workspace");
    let next = [arguments.as_slice(), &["--batch", "247"]].concat();
    assert_shows(&folder, &next, 3, &["every schedule needs at least 502000000 bytes"]);
    assert_tells(&folder, &["schedule", "p.txt", "--loss", "0%"], 2, &["--measured-batch"]);
    write(folder.path(), "mine.jsonl", NET);
    let model = sample("squeezenet1_0_noweights.onnx");
    for file in ["mine.jsonl", model.as_str()] {
        assert_tells(&folder, &["schedule", file, "--loss", "0%"], 2, &["made for any batch"]);
    }
    assert_tells(&folder, &["schedule", "-", "--loss", "0%"], 2, &["name a file instead of `-`"]);
}

/// A chain of three functions.
const NET: &str = r#"{"planlab":"training-net","version":1,"name":"mine","batch":4,"parameters":10}
{"map":0,"name":"image","bytes":1000}
{"map":1,"name":"a","bytes":1000000}
{"map":2,"name":"b","bytes":1000000}
{"map":3,"name":"loss","bytes":10}
{"function":0,"name":"a","kind":"convolution","inputs":[0],"output":1,"needs":[0],"forward_seconds":0.01,"backward_seconds":0.02}
{"function":1,"name":"b","kind":"other","inputs":[1],"output":2,"needs":[1],"forward_seconds":0.01,"backward_seconds":0.02}
{"function":2,"name":"loss","kind":"other","inputs":[2],"output":3,"needs":[2],"forward_seconds":0.01,"backward_seconds":0.02}
"#;

#[test]
fn a_net_from_a_file_is_scheduled() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "mine.jsonl", NET);
    let arguments = ["schedule", "mine.jsonl", "--machine", "x86-pcie3", "--scheduler", "in-core"];
    let found = json(folder.path(), &arguments, 0);
    assert_eq!(found["batch"], 4);
    let seconds = found["schedules"][0]["seconds"].as_f64().expect("a time");
    assert!((seconds - 0.09).abs() < 1e-9, "{seconds}");
    // A name is no machine, so the default one counts.
    write(folder.path(), "machine.jsonl", NET.replace("mine", "machine"));
    let unnamed = json(folder.path(), &["schedule", "machine.jsonl", "--scheduler", "in-core"], 0);
    assert_eq!(
        (&unnamed["machine"], &unnamed["schedules"][0]["seconds"]),
        (&found["machine"], &found["schedules"][0]["seconds"])
    );
    write(folder.path(), "mine.jsonl", NET.replace(",\"backward_seconds\":0.02", ""));
    assert_tells(&folder, &arguments, 2, &["mine.jsonl:6: function `a` has no times"]);
    let profile = "node1 -- Input -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=64.0, parameter_size=0.000\n\
                   node2 -- ReLU(inplace) -- forward_compute_time=2.0, backward_compute_time=3.0, activation_size=64.0, parameter_size=0.000\n\
                   \tnode1 -- node2\n";
    write(folder.path(), "p.txt", profile);
    assert_tells(&folder, &["schedule", "p.txt"], 2, &["--measured-batch"]);
    let more = ["schedule", "p.txt", "--measured-batch", "1", "--batch", "10", "--scheduler", "in-core"];
    let found = json(folder.path(), &more, 0);
    let seconds = found["schedules"][0]["seconds"].as_f64().expect("a time");
    assert!((seconds - 0.05).abs() < 1e-9, "ten times 5 ms: {seconds}");
}

#[test]
fn net_that_takes_no_time_has_no_gap_and_loses_no_speed() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "idle.jsonl", NET.replace("0.01", "0.0").replace("0.02", "0.0"));
    let arguments = ["schedule", "idle.jsonl", "--machine", "x86-pcie3", "--scheduler", "in-core"];
    let found = json(folder.path(), &arguments, 0);
    let number = |field: &str| found["schedules"][0][field].as_f64();
    assert_eq!((number("seconds"), number("gap")), (Some(0.0), Some(0.0)));
    let (text, _) = run(folder.path(), &arguments, 0);
    assert!(text.contains("0.000 %") && !text.contains("NaN"), "{text}");
}

#[test]
fn graph_of_dnn_partitioning_is_scheduled_at_any_batch() {
    let folder = tempdir().expect("a folder");
    let node = |id: u32, milliseconds: u32, backward: bool, class: u32| {
        format!(
            r#"{{"id":{id},"supportedOnFpga":1,"fpgaLatency":{milliseconds},"isBackwardNode":{backward},"colorClass":{class},"size":64}}"#
        )
    };
    let nodes =
        [node(1, 2, false, 1), node(2, 3, false, 2), node(3, 4, true, 2), node(4, 1, true, 1)].join(",");
    let edge = |from: u32, to: u32| format!(r#"{{"sourceId":{from},"destId":{to},"cost":0,"size":64}}"#);
    let edges = [edge(1, 2), edge(2, 3), edge(3, 4)].join(",");
    let graph = format!(r#"{{"maxFPGAs":1,"nodes":[{nodes}],"edges":[{edges}]}}"#);
    write(folder.path(), "g.json", &graph);
    assert_tells(&folder, &["schedule", "g.json"], 2, &["a graph of dnn-partitioning", "--measured-batch"]);
    let more = ["schedule", "g.json", "--measured-batch", "2", "--batch", "20", "--scheduler", "in-core"];
    let found = json(folder.path(), &more, 0);
    assert_eq!(found["batch"], 20);
    let seconds = found["schedules"][0]["seconds"].as_f64().expect("a time");
    assert!((seconds - 0.1).abs() < 1e-9, "ten times 10 ms: {seconds}");
    write(folder.path(), "g.json", graph.replace(r#""destId":4"#, r#""destId":5"#));
    assert_tells(&folder, &more, 2, &["g.json:1: edges[2]: there is no node of id 5"]);
}

#[test]
fn model_of_onnx_is_scheduled_as_a_net_in_training() {
    let folder = tempdir().expect("a folder");
    let model = sample("squeezenet1_0_noweights.onnx");
    let model = model.as_str();
    let arguments = ["schedule", model, "--scheduler", "in-core", "--planner", "best-fit"];
    let found = json(folder.path(), &arguments, 0);
    assert_eq!(found["batch"], 1);
    assert!(found["schedules"][0]["seconds"].as_f64() > Some(0.0), "{found}");
    for (more, reason) in [
        (["--batch", "8"], "the model has batch 1, not 8"),
        (["--dim", "N=8"], "it has no dynamic dimension"),
        (["--measured-batch", "8"], "--measured-batch is for profiles"),
    ] {
        assert_tells(&folder, &[["schedule", model].as_slice(), &more].concat(), 2, &[reason]);
    }
    assert_tells(&folder, &["schedule", "alexnet", "--dim", "N=8"], 2, &["--dim is for models of ONNX"]);
}

#[test]
fn file_without_times_is_refused_with_what_it_is() {
    let folder = folder_with("t.csv", "id,lower,upper,size\na,0,3,4\n");
    write(folder.path(), "g.jsonl", "{\"planlab\":\"graph\",\"version\":1}\n");
    for (file, title) in [
        ("t.csv".to_owned(), "a table of buffers"),
        ("g.jsonl".to_owned(), "a graph of planlab"),
        (sample("small_cnn.tflite.zst"), "a TensorFlow Lite model"),
        (sample("torch2.15_nullcuda_snapshot.pickle"), "PyTorch's memory snapshot"),
        (sample("mlp_cpu_profiler_trace.json.zst"), "a Chrome trace of PyTorch's profiler"),
        (sample("small_nets.glow.txt"), "Glow's nets"),
    ] {
        let parts = [title, "neither the times nor the backward passes", "a training net"];
        assert_tells(&folder, &["schedule", &file], 2, &parts);
    }
}
