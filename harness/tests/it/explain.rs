//! Recordings of other tools on the command line: `import`, `explain`, and every verb that takes a trace.

use std::path::Path;

use planlab_workloads::recorded::stored_file;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::common::{assert_has, assert_shows, figure, folder_with, json, outputs, planlab, run, write};

const SNAPSHOT: &str = "samples/torch2.15_nullcuda_snapshot.pickle";
const RESNET: &str = "samples/resnet50_b64_3it_late.pickle.zst";
const PROFILE: &str = "samples/mlp_cpu_profiler_trace.json.zst";

fn sample(folder: &Path, file: &str, name: &str) {
    write(folder, name, stored_file(file).expect("embedded"));
}

/// A new folder with a sample.
fn with_sample(file: &str, name: &str) -> TempDir {
    folder_with(name, stored_file(file).expect("embedded"))
}

#[test]
fn a_recording_is_known_by_its_content() {
    // Whatever it is called.
    let folder = with_sample(SNAPSHOT, "s.csv");
    let folder = folder.path();
    sample(folder, PROFILE, "p.bin");
    for (file, format, load) in [("s.csv", "torch-snapshot", 60_882_560), ("p.bin", "torch-profiler", 95_248)]
    {
        let made = json(folder, &["import", file, "-o", "t.csv"], 0);
        assert_eq!(made["load"], load, "{made}");
        assert_eq!(made["framework"]["name"], "PyTorch");
        assert_eq!(json(folder, &["import", format, file, "-o", "u.csv"], 0)["digest"], made["digest"]);
        assert_eq!(json(folder, &["plan", "t.csv", "--planner", "best-fit"], 0)["load"], load);
        let planned = json(folder, &["plan", file, "--planner", "best-fit", "-o", "p.csv"], 0);
        assert_eq!(planned["load"], load);
        assert_eq!(json(folder, &["verify", file, "p.csv"], 0)["valid"], true);
        assert_eq!(
            json(folder, &["simulate", file, "--allocator", "pytorch-caching"], 0)["requested_peak"],
            load
        );
    }
    let listed = json(folder, &["list", "formats"], 0);
    let keys: Vec<&str> =
        listed.as_array().expect("rows").iter().filter_map(|row| row["key"].as_str()).collect();
    assert!(keys.contains(&"torch-snapshot") && keys.contains(&"torch-profiler"), "{keys:?}");
}

#[test]
fn a_recording_comes_by_a_pipe() {
    let folder = tempdir().expect("a folder");
    let bytes = stored_file(SNAPSHOT).expect("embedded");
    for words in [&["plan", "-", "--planner", "best-fit", "--json"][..], &["explain", "-", "--json"]] {
        let (text, _) = outputs(planlab(folder.path()).args(words).write_stdin(bytes), 0);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["load"], 60_882_560, "{words:?}");
    }
}

#[test]
fn a_pool_like_pytorchs_reserves_what_pytorch_did() {
    let folder = with_sample("samples/resnet50_b64_3it_early.pickle.zst", "early.pickle.zst");
    let words = ["simulate", "early.pickle.zst", "--allocator", "pytorch-caching", "--iterations", "1"];
    let played = json(folder.path(), &words, 0);
    // Segments and bytes of the snapshot, which the real allocator made.
    assert_eq!(
        (&played["reserved_peak"], &played["device_allocations"]),
        (&6_570_377_216_u64.into(), &130.into())
    );
}

#[test]
fn dropped_buffers_are_reported() {
    let folder = with_sample(RESNET, "late.pickle.zst");
    for words in [&["import", "late.pickle.zst", "-o", "t.csv"][..], &["bound", "late.pickle.zst"]] {
        let (_, stderr) = run(folder.path(), words, 0);
        let told = "320 buffers from before the recording that it never frees (102441032 bytes)";
        assert!(stderr.contains(told), "{words:?}: {stderr}");
    }
    let made = json(folder.path(), &["import", "late.pickle.zst", "-o", "t.csv"], 0);
    assert_eq!(made["dropped"][0]["count"], 320);
    assert_eq!(made["dropped"][0]["bytes"], 102_441_032);
}

#[test]
fn a_stream_is_chosen_by_its_part() {
    let folder = with_sample(SNAPSHOT, "s.pickle");
    let plan = |more: &[&str]| {
        let mut words = vec!["plan", "s.pickle", "--planner", "best-fit"];
        words.extend(more);
        json(folder.path(), &words, 0)["buffers"].as_u64().expect("a number")
    };
    let (one, other) = (plan(&["--part", "cuda:0/stream-0"]), plan(&["--part", "cuda:0/stream-4112"]));
    assert!(one > 0 && other > 0);
    assert_eq!(one + other, plan(&[]));
    let (_, stderr) = run(folder.path(), &["plan", "s.pickle", "--part", "cuda:9"], 2);
    assert!(stderr.contains("there is no part `cuda:9` in it; it has cuda:0"), "{stderr}");
}

/// Bytes by cause, in the order of the parts.
fn parts(explained: &Value) -> Vec<i64> {
    let parts = explained["difference"]["parts"].as_array().expect("parts");
    parts.iter().map(|part| part["bytes"].as_i64().expect("bytes")).collect()
}

#[test]
fn an_explanation_adds_up() {
    let folder = with_sample(SNAPSHOT, "s.pickle");
    let folder = folder.path();
    sample(folder, RESNET, "late.pickle.zst");
    // The causes at the step of most reserved bytes, counted by a script in Python from the blocks: rounding, rests of
    // blocks, partly used segments, those of other streams, cache, that of other streams. At step 133 of the first the plan
    // needs more than is live; that is free in the cache of other streams.
    for (file, reserved, load, live, causes) in [
        (
            "s.pickle",
            113_246_208_i64,
            60_882_560_i64,
            41_341_904_i64,
            [2_096, 777_216, 0, 1_918_976, 0, 69_206_016],
        ),
        (
            "late.pickle.zst",
            6_570_377_216,
            5_762_142_352,
            5_762_142_352,
            [42_864, 31_522_816, 143_329_280, 0, 633_339_904, 0],
        ),
    ] {
        let explained = json(folder, &["explain", file], 0);
        assert_eq!(explained["reserved"], reserved);
        assert_eq!((&explained["requested"], &explained["load"]), (&load.into(), &load.into()));
        assert_eq!((&explained["alignment"], &explained["plan"]["status"]), (&512.into(), &"optimal".into()));
        let height = explained["plan"]["height"].as_i64().expect("a plan");
        assert!((load..load + 512 * 1000).contains(&height), "{height}");
        let difference = &explained["difference"];
        assert_eq!((&difference["bytes"], &difference["live"]), (&(reserved - height).into(), &live.into()));
        assert_eq!(causes.iter().sum::<i64>(), reserved - live, "the script");
        let parts = parts(&explained);
        assert!(parts.iter().all(|bytes| *bytes >= 0), "{difference}");
        let elsewhere = difference["needed_elsewhere"].as_i64().expect("bytes");
        let rounding = height - live - elsewhere;
        assert!((0..=causes[0]).contains(&rounding), "what the plan rounds itself: {rounding}");
        let mut expected = causes;
        expected[0] -= rounding;
        expected[if file == "s.pickle" { 5 } else { 4 }] -= elsewhere;
        assert_eq!((&parts[..6], &parts[6..]), (&expected[..], &[0, 0, 0][..]), "{difference}");
        assert_eq!(elsewhere > 0, file == "s.pickle");
        for count in explained["counts"].as_array().expect("PyTorch's own counts") {
            assert_eq!(count["framework"], count["trace"], "{count}");
        }
        let peak = explained["peak"]["buffers"].as_array().expect("buffers");
        assert_eq!(peak.iter().filter_map(|buffer| buffer["requested"].as_i64()).sum::<i64>(), load);
        let categories = explained["peak"]["categories"].as_array().expect("categories");
        assert_eq!(categories.iter().filter_map(|one| one["bytes"].as_i64()).sum::<i64>(), load);
        assert!(peak.iter().any(|buffer| buffer["stack"].as_array().is_some_and(|stack| !stack.is_empty())));
        let (text, _) = run(folder, &["explain", file], 0);
        assert!((12..=26).contains(&text.lines().count()), "{text}");
        assert!(text.contains(&format!("({reserved})")) && text.contains(&format!("({load})")), "{text}");
        assert!(text.contains("PyTorch's own counts agree, to the byte"), "{text}");
        assert!(text.contains(" buffers, at multiples of 512 bytes as in PyTorch\n"), "{text}");
    }
}

#[test]
fn explanation_names_why_memory_ran_out() {
    let folder = with_sample(SNAPSHOT, "s.pickle");
    let explained = json(folder.path(), &["explain", "s.pickle"], 0);
    assert_eq!(explained["failures_in_all"], 1);
    let failure = &explained["failures"][0];
    assert_eq!((&failure["step"], &failure["requested"]), (&142.into(), &(1_u64 << 41).into()));
    assert_eq!(failure["capacity"], 23_068_672_u64 + 17_156_800_512);
    assert_eq!(failure["plan"], "too-much");
    assert_eq!(failure["plan_bytes"], (1_u64 << 41) + 16_176_080);
    let (text, _) = run(folder.path(), &["explain", "s.pickle"], 0);
    let lines: Vec<&str> = text.lines().collect();
    let answer = "out of memory at step 142: 2.00 TiB (2199023255552) were asked for by";
    assert!(lines[2].starts_with(answer), "the answer comes first: {text}");
    assert!(lines[4].starts_with("  no plan would have fit: "), "{text}");
    // The stream that did not ask has no failure.
    for (stream, failures) in [(0, 1), (4112, 0)] {
        let part = format!("cuda:0/stream-{stream}");
        let explained = json(folder.path(), &["explain", "s.pickle", "--part", &part], 0);
        assert_eq!(explained["failures_in_all"], failures, "{part}");
    }
}

/// Writes a value as a pickle: texts, whole numbers, lists and dicts.
fn pickle(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::String(text) => {
            bytes.extend([0x8c, u8::try_from(text.len()).expect("short")]);
            bytes.extend(text.as_bytes());
        }
        Value::Array(items) => {
            bytes.extend(b"](");
            items.iter().for_each(|item| pickle(item, bytes));
            bytes.push(b'e');
        }
        Value::Object(entries) => {
            bytes.extend(b"}(");
            for (key, value) in entries {
                pickle(&Value::from(key.as_str()), bytes);
                pickle(value, bytes);
            }
            bytes.push(b'u');
        }
        number => {
            bytes.extend([0x8a, 9]);
            bytes.extend(number.as_u64().expect("a whole number").to_le_bytes());
            bytes.push(0);
        }
    }
}

/// `(action, address, size)`; of `oom` the address is what the device has left.
type Event = (&'static str, u64, u64);

/// Writes a snapshot of devices with these events.
fn snapshot(file: &Path, devices: &[&[Event]]) {
    snapshot_of(file, devices, json!({}));
}

/// Writes a snapshot with further entries at its top.
fn snapshot_of(file: &Path, devices: &[&[Event]], mut top: Value) {
    let event = |&(action, address, size): &Event| {
        let place = if action == "oom" { "device_free" } else { "addr" };
        json!({ "action": action, place: address, "size": size })
    };
    top["device_traces"] = devices.iter().map(|events| events.iter().map(event).collect::<Value>()).collect();
    let mut bytes = b"\x80\x04".to_vec();
    pickle(&top, &mut bytes);
    bytes.push(b'.');
    std::fs::write(file, bytes).expect("written");
}

const MIB: u64 = 1 << 20;

/// Two buffers leave 6 MiB on both sides of a third.
const APART: [Event; 6] = [
    ("segment_alloc", 0, 16 * MIB),
    ("alloc", 0, 6 * MIB),
    ("alloc", 6 * MIB, 4 * MIB),
    ("alloc", 10 * MIB, 6 * MIB),
    ("free_completed", 0, 6 * MIB),
    ("free_completed", 10 * MIB, 6 * MIB),
];

/// The first failure of a snapshot of one device.
fn failure(events: &[Event]) -> (Value, String) {
    let folder = tempdir().expect("a folder");
    snapshot(&folder.path().join("oom.pickle"), &[events]);
    let explained = json(folder.path(), &["explain", "oom.pickle"], 0);
    (explained["failures"][0].clone(), run(folder.path(), &["explain", "oom.pickle"], 0).0)
}

#[test]
fn a_count_of_pytorchs_that_is_another_is_named() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    for (active, apart) in [(6 * MIB, 0), (6 * MIB + 512, 512)] {
        let block = json!({ "size": 6 * MIB, "requested_size": 6 * MIB, "state": "active_allocated" });
        let segment =
            json!({ "address": 0, "total_size": 16 * MIB, "active_size": active, "blocks": [block] });
        snapshot_of(&folder.join("s.pickle"), &[&APART[..2]], json!({ "segments": [segment] }));
        let explained = json(folder, &["explain", "s.pickle"], 0);
        let counts = &explained["counts"];
        assert_eq!((&counts[0]["framework"], &counts[0]["trace"]), (&active.into(), &(6 * MIB).into()));
        let (text, _) = run(folder, &["explain", "s.pickle"], 0);
        let named = text.contains(&format!("{apart} B off the recording, which has holes"));
        let agree = text.contains("PyTorch's own counts agree, to the byte");
        assert_eq!((named, agree), (apart > 0, apart == 0), "{text}");
    }
}

#[test]
fn a_plan_can_fit_where_a_pool_ran_out() {
    // 12 MiB do not fit between them, but a plan puts the third to the side.
    let (failed, text) = failure(&[&APART[..], &[("oom", 0, 12 * MIB)]].concat());
    assert_eq!((&failed["capacity"], &failed["plan"]), (&(16 * MIB).into(), &"fits".into()), "{failed}");
    assert_eq!((&failed["reserved"], &failed["live"]), (&(16 * MIB).into(), &(4 * MIB).into()));
    assert_eq!(failed["plan_bytes"], 16 * MIB);
    assert!(text.contains("a plan would have fit: 16.0 MiB (16777216) for all up to then"), "{text}");
    // One byte more and no plan has room.
    let (failed, text) = failure(&[&APART[..], &[("oom", 0, 12 * MIB + 1)]].concat());
    assert_eq!((&failed["plan"], &failed["plan_bytes"]), (&"too-much".into(), &(16 * MIB + 1).into()));
    assert!(text.contains("no plan would have fit: 16.0 MiB (16777217) are needed at least"), "{text}");
}

#[test]
fn the_request_counts_and_what_comes_later_does_not() {
    // The peak of 16 MiB and the request of 4 never meet: together they need 16, not 20.
    let apart = [("oom", 2 * MIB, 4 * MIB)];
    let later = [("oom", 0, 12 * MIB), ("segment_alloc", 64 * MIB, 30 * MIB), ("alloc", 64 * MIB, 30 * MIB)];
    for events in [&apart[..], &later] {
        let (failed, _) = failure(&[&APART[..], events].concat());
        assert_eq!(failed["plan"], "fits", "{failed}");
        assert_eq!(failed["plan_bytes"], 16 * MIB, "{failed}");
    }
}

#[test]
fn every_failure_is_judged() {
    let all = [("oom", 0, 12 * MIB), ("oom", 0, 1 << 41), ("oom", 0, 1 << 42), ("oom", 0, 5), ("oom", 0, 6)];
    let (failed, text) = failure(&[&APART[..], &all].concat());
    assert_eq!((&failed["plan"], &failed["requested"]), (&"fits".into(), &(12 * MIB).into()));
    assert_has(&text, &["again at step 8: 2.00 TiB (2199023255552) were asked for; no plan would"]);
    assert!(text.contains("and once more, which was not looked at"), "{text}");
}

#[test]
fn a_limit_that_the_device_does_not_know_is_no_capacity() {
    // The device had room for a segment of 12 MiB: a limit of the process was in the way.
    let events = [&APART[..], &[("oom", 100 * MIB, 12 * MIB)]].concat();
    let (failed, text) = failure(&events);
    assert_eq!((&failed["is_limited"], &failed["plan"]), (&true.into(), &"unknown".into()), "{failed}");
    assert!(text.contains("so a limit was set that the file does not say; --capacity does"), "{text}");
    let folder = tempdir().expect("a folder");
    snapshot(&folder.path().join("oom.pickle"), &[&events]);
    let explained = json(folder.path(), &["explain", "oom.pickle", "--capacity", "16MiB"], 0);
    assert_eq!(explained["failures"][0]["plan"], "fits");
    let explained = json(folder.path(), &["explain", "oom.pickle", "--capacity", "15MiB"], 0);
    assert_eq!(explained["failures"][0]["plan"], "too-much");
}

#[test]
fn a_limit_is_no_capacity_where_segments_grow_either() {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("oom.pickle");
    // 12 MiB are one page of 20 MiB at most: with that much left, a limit of the process was in the way.
    for (free, limited, plan) in [(20 * MIB, true, "unknown"), (20 * MIB - 1, false, "fits")] {
        let events = [&APART[..], &[("oom", free, 12 * MIB)]].concat();
        let settings = json!({ "allocator_settings": { "expandable_segments": 1 } });
        snapshot_of(&file, &[&events], settings);
        let failed = &json(folder.path(), &["explain", "oom.pickle"], 0)["failures"][0];
        assert_eq!((&failed["is_limited"], &failed["plan"]), (&limited.into(), &plan.into()), "{failed}");
    }
}

#[test]
fn of_several_devices_the_one_that_ran_out_is_explained() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    let (small, large) = ([APART[0], APART[1]], [("segment_alloc", 0, 20 * MIB), APART[1]]);
    let failed = [&APART[..], &[("oom", 0, 12 * MIB)]].concat();
    snapshot(&folder.join("s.pickle"), &[&large, &failed, &small]);
    let explained = json(folder, &["explain", "s.pickle"], 0);
    assert_eq!((&explained["part"], &explained["why"]), (&"cuda:1".into(), &"it ran out of memory".into()));
    let others = explained["others"].as_array().expect("a list");
    let names: Vec<&str> = others.iter().filter_map(|other| other["part"].as_str()).collect();
    assert_eq!(names, ["cuda:0", "cuda:2"]);
    let (text, _) = run(folder, &["explain", "s.pickle"], 0);
    let line = text.lines().nth(1).expect("a line");
    assert!(
        line.starts_with("chosen because it ran out of memory; --part explains another: cuda:0 ("),
        "{text}"
    );
    snapshot(&folder.join("s.pickle"), &[&small, &large]);
    let explained = json(folder, &["explain", "s.pickle"], 0);
    assert_eq!((&explained["part"], &explained["why"]), (&"cuda:1".into(), &"it reserved most".into()));
    let explained = json(folder, &["explain", "s.pickle", "--part", "cuda:0"], 0);
    assert_eq!((&explained["part"], &explained["why"]), (&"cuda:0".into(), &Value::Null));
    // Other verbs need `--part`.
    run(folder, &["plan", "s.pickle"], 2);
}

#[test]
fn outputs_may_overwrite_inputs_in_the_plan_that_is_compared() {
    let folder = with_sample("samples/ggml_two_layers.log.zst", "g.log.zst");
    let folder = folder.path();
    let planned = json(folder, &["plan", "g.log.zst", "--part", "graph-1"], 0);
    let explained = json(folder, &["explain", "g.log.zst", "--part", "graph-1"], 0);
    for figure in ["height", "load", "bound"] {
        assert_eq!(explained["plan"][figure], planned[figure], "{figure}");
    }
    assert_eq!((&explained["plan"]["height"], &explained["load"]), (&7744.into(), &7744.into()));
    assert_eq!(explained["load_without_in_place"], 9536);
    assert_eq!(parts(&explained), [0; 9]);
    let (text, _) = run(folder, &["explain", "g.log.zst", "--part", "graph-1"], 0);
    assert_has(&text, &["the load if no output overwrites an input (16 permissions; --in-place no)"]);
    assert!(text.contains("ggml reserved just what the best plan needs"), "{text}");
}

#[test]
fn free_space_of_a_file_with_offsets_is_known() {
    let folder = with_sample("samples/small_cnn.tflite.zst", "cnn.tflite.zst");
    sample(folder.path(), "samples/jax_mlp.hlo.pb.zst", "mlp.hlo.pb.zst");
    for file in ["cnn.tflite.zst", "mlp.hlo.pb.zst"] {
        let explained = json(folder.path(), &["explain", file], 0);
        let (text, _) = run(folder.path(), &["explain", file], 0);
        assert!(!text.contains("the file says neither"), "{text}");
        if explained["difference"]["bytes"] == 0 {
            assert!(text.contains("reserved just what the best plan needs"), "{text}");
        }
    }
}

#[test]
fn the_largest_batch_that_fits_is_found() {
    // 100 bytes of a model, and 30 for each of 4 inputs at the peak; the plan has no more than the load.
    let trace = "id,lower,upper,size\nw,0,4,100\na,1,3,80\nb,2,3,40\nc,3,4,60\n";
    let folder = folder_with("t.csv", trace);
    let folder = folder.path();
    let explain = |capacity: &str| {
        let words = ["explain", "t.csv", "--batch", "4", "--capacity", capacity];
        (json(folder, &words, 0)["batch"].clone(), run(folder, &words, 0).0)
    };
    let (found, text) = explain("1000");
    assert_eq!(
        (&found["recorded"], &found["largest"], &found["height"]),
        (&4.into(), &30.into(), &1000.into())
    );
    assert_eq!((&found["too_large"], &found["needed"]), (&31.into(), &1030.into()));
    assert_eq!(found["kept"]["bytes"], 100, "c lives to the end, but is made late");
    assert_eq!(found["allocator"], Value::Null);
    assert!(text.contains("assumes that all sizes grow with the batch, but for 1 buffers"), "{text}");
    let (found, text) = explain("120");
    assert_eq!((&found["largest"], &found["too_large"]), (&Value::Null, &1.into()), "{text}");
    run(folder, &["explain", "t.csv", "--batch", "4"], 2);
    run(folder, &["explain", "t.csv", "--capacity", "4GiB"], 2);
    run(folder, &["explain", "t.csv", "--batch", "0", "--capacity", "4GiB"], 2);
}

#[test]
fn the_largest_batch_of_a_recording_is_that_of_its_plan_and_of_a_pool() {
    let folder = with_sample(RESNET, "late.pickle.zst");
    let folder = folder.path();
    let words = ["explain", "late.pickle.zst", "--batch", "64", "--capacity", "8GiB"];
    let found = &json(folder, &words, 0)["batch"];
    // Parameters, statistics and momentum: as PyTorch's stacks say which they are.
    assert_eq!(found["kept"]["bytes"], 204_669_160, "{found}");
    let (plan, pool) = (found["largest"].as_u64(), found["allocator"]["largest"].as_u64());
    let (plan, pool) = (plan.expect("a plan"), pool.expect("a pool"));
    assert!(64 < pool && pool < plan, "{found}");
    assert!(figure(found, "height") <= 8 << 30 && figure(found, "needed") > 8 << 30, "{found}");
    assert_eq!(found["too_large"], plan + 1);
    assert_shows(folder, &words, 0, &[&format!("\n  {pool:<7}  with a pool like PyTorch's")]);
}

#[test]
fn a_plain_trace_is_explained_as_far_as_it_goes() {
    let folder = folder_with("t.csv", "id,lower,upper,size,category\na,0,2,64,act\nb,1,3,32,ws\n");
    let explained = json(folder.path(), &["explain", "t.csv"], 0);
    assert_eq!((&explained["reserved"], &explained["difference"]), (&Value::Null, &Value::Null));
    assert_eq!((&explained["load"], &explained["plan"]["height"]), (&96.into(), &96.into()));
    let (text, _) = run(folder.path(), &["explain", "t.csv"], 0);
    assert_has(&text, &["reserved     not in the file; `planlab simulate", "optimal, proved by load"]);
    let key = "torch/alexnet/infer/b1";
    let explained = json(folder.path(), &["explain", key], 0);
    let parts = explained["difference"]["parts"].as_array().expect("parts");
    let sum: i64 = parts.iter().filter_map(|part| part["bytes"].as_i64()).sum();
    let height = explained["plan"]["height"].as_i64().expect("a plan");
    assert_eq!(sum, explained["reserved"].as_i64().expect("metadata") - height);
}

#[test]
fn hostile_pickles_are_refused_with_their_byte() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    let mut nested = b"\x80\x04".to_vec();
    nested.extend(vec![b']'; 1_000_000]);
    nested.extend(vec![b'a'; 999_999]);
    nested.push(b'.');
    for (bytes, byte, reason) in [
        (b"\x80\x04cposix\nsystem\n\x8c\x04true\x85R.".to_vec(), 2, "the opcode GLOBAL is refused"),
        (b"\x80\x04NNR.".to_vec(), 4, "the opcode REDUCE is refused"),
        (b"\x80\x04h\x05.".to_vec(), 2, "entry 5 of the memo is asked for, which has 0"),
        (b"\x80\x04\x8d\0\0\0\0\0\0\0\x80.".to_vec(), 2, "a text of 9223372036854775808 bytes"),
        (b"\x80\x04}\x94(\x8c\x0ddevice_traces]\x94h\x01au.".to_vec(), 0, "is a value of type list"),
        (nested, 0, "a snapshot is a dict"),
    ] {
        std::fs::write(folder.join("bad.pickle"), bytes).expect("written");
        for verb in [
            &["import", "bad.pickle", "-o", "t.csv"][..],
            &["explain", "bad.pickle"],
            &["plan", "bad.pickle"],
        ] {
            let error = json(folder, verb, 2);
            assert_eq!(
                (&error["file"], &error["byte"], &error["line"]),
                (&"bad.pickle".into(), &byte.into(), &Value::Null)
            );
            assert!(error["error"].as_str().is_some_and(|text| text.contains(reason)), "{error}");
        }
        assert!(!folder.join("t.csv").exists());
    }
}

#[test]
fn a_recording_is_read_within_the_limit_of_an_input() {
    let folder = with_sample(SNAPSHOT, "s.pickle");
    let error = json(folder.path(), &["explain", "s.pickle", "--input-limit", "8000"], 2);
    assert_eq!(error["byte"], 8000, "{error}");
    assert!(error["error"].as_str().is_some_and(|text| text.contains("--input-limit raises it")), "{error}");
    let snapshot = stored_file(SNAPSHOT).expect("embedded");
    let words = ["explain", "-", "--input-limit", "8000"];
    outputs(planlab(folder.path()).args(words).write_stdin(snapshot), 2);
}
