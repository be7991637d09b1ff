//! Recordings of other tools on the command line: `import`, `explain`, and every verb that takes a trace.

use std::path::Path;

use planlab_workloads::recorded::stored_file;
use serde_json::Value;
use tempfile::tempdir;

use crate::common::{json, planlab, run, write};

const SNAPSHOT: &str = "samples/torch2.15_nullcuda_snapshot.pickle";
const RESNET: &str = "samples/resnet50_b64_3it_late.pickle.zst";
const PROFILE: &str = "samples/mlp_cpu_profiler_trace.json.zst";

fn sample(folder: &Path, file: &str, name: &str) {
    let bytes = stored_file(file).expect("embedded");
    std::fs::write(folder.join(name), bytes).expect("written");
}

#[test]
fn a_recording_is_known_by_its_content() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    // Whatever it is called.
    sample(folder, SNAPSHOT, "s.csv");
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
        let output = planlab(folder.path()).args(words).write_stdin(bytes).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["load"], 60_882_560, "{words:?}");
    }
}

#[test]
fn a_pool_like_pytorchs_reserves_what_pytorch_did() {
    let folder = tempdir().expect("a folder");
    sample(folder.path(), "samples/resnet50_b64_3it_early.pickle.zst", "early.pickle.zst");
    let words = ["simulate", "early.pickle.zst", "--allocator", "pytorch-caching", "--iterations", "1"];
    let played = json(folder.path(), &words, 0);
    // Segments and bytes of the snapshot, which the real allocator made.
    assert_eq!(
        (&played["reserved_peak"], &played["device_allocations"]),
        (&6_570_377_216_u64.into(), &130.into())
    );
}

#[test]
fn what_was_left_out_is_told() {
    let folder = tempdir().expect("a folder");
    sample(folder.path(), RESNET, "late.pickle.zst");
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
    let folder = tempdir().expect("a folder");
    sample(folder.path(), SNAPSHOT, "s.pickle");
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

#[test]
fn an_explanation_adds_up() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    sample(folder, SNAPSHOT, "s.pickle");
    sample(folder, RESNET, "late.pickle.zst");
    for (file, reserved, load) in
        [("s.pickle", 113_246_208_i64, 60_882_560), ("late.pickle.zst", 6_570_377_216, 5_762_142_352)]
    {
        let explained = json(folder, &["explain", file], 0);
        assert_eq!(explained["reserved"], reserved);
        assert_eq!((&explained["requested"], &explained["load"]), (&load.into(), &load.into()));
        let height = explained["plan"]["height"].as_i64().expect("a plan");
        assert!(height >= load);
        let difference = &explained["difference"];
        assert_eq!(difference["bytes"], reserved - height);
        let parts = difference["parts"].as_array().expect("parts");
        let sum: i64 = parts.iter().map(|part| part["bytes"].as_i64().expect("bytes")).sum();
        assert_eq!(sum, reserved - height, "{difference}");
        let unknown = parts.iter().find(|part| part["cause"] == "unknown").expect("a part");
        assert_eq!(unknown["bytes"], 0, "every buffer lies in a segment");
        let peak = explained["peak"]["buffers"].as_array().expect("buffers");
        assert_eq!(peak.iter().filter_map(|buffer| buffer["requested"].as_i64()).sum::<i64>(), load);
        let categories = explained["peak"]["categories"].as_array().expect("categories");
        assert_eq!(categories.iter().filter_map(|one| one["bytes"].as_i64()).sum::<i64>(), load);
        assert!(peak.iter().any(|buffer| buffer["stack"].as_array().is_some_and(|stack| !stack.is_empty())));
        let (text, _) = run(folder, &["explain", file], 0);
        assert!((12..=26).contains(&text.lines().count()), "{text}");
        assert!(text.contains(&format!("({reserved})")) && text.contains(&format!("({load})")), "{text}");
    }
}

#[test]
fn an_explanation_says_why_memory_ran_out() {
    let folder = tempdir().expect("a folder");
    sample(folder.path(), SNAPSHOT, "s.pickle");
    let failure = &json(folder.path(), &["explain", "s.pickle"], 0)["failure"];
    assert_eq!((&failure["step"], &failure["requested"]), (&142.into(), &(1_u64 << 41).into()));
    assert_eq!(failure["capacity"], 23_068_672_u64 + 17_156_800_512);
    assert_eq!(
        (&failure["plan"], &failure["plan_bytes"]),
        (&"too-much".into(), &((1_u64 << 41) + 16_176_080).into())
    );
    let (text, _) = run(folder.path(), &["explain", "s.pickle"], 0);
    assert!(text.contains("out of memory at step 142: 2.00 TiB (2199023255552) were asked for by"), "{text}");
    assert!(text.contains("no plan would have fit: "), "{text}");
}

#[test]
fn a_plan_can_fit_where_a_pool_ran_out() {
    let folder = tempdir().expect("a folder");
    // Two buffers leave 96 bytes on both sides of a third; 192 more do not fit between them, but a plan puts the third
    // to the side.
    let script = [
        ("segment_alloc", 0, 256),
        ("alloc", 0, 96),
        ("alloc", 96, 64),
        ("alloc", 160, 96),
        ("free_completed", 0, 96),
        ("free_completed", 160, 96),
    ];
    std::fs::write(folder.path().join("oom.pickle"), failing(&script, 192, 0)).expect("written");
    let explained = json(folder.path(), &["explain", "oom.pickle"], 0);
    let failure = &explained["failure"];
    assert_eq!((&failure["capacity"], &failure["plan"]), (&256.into(), &"fits".into()), "{explained}");
    assert_eq!((&failure["reserved"], &failure["live"]), (&256.into(), &64.into()));
    assert_eq!(failure["plan_bytes"], 256);
    let (text, _) = run(folder.path(), &["explain", "oom.pickle"], 0);
    assert!(
        text.contains("a plan would have fit: 256 B with the request, of 256 B that could be had"),
        "{text}"
    );
    // One byte more and no plan has room.
    std::fs::write(folder.path().join("oom.pickle"), failing(&script, 193, 0)).expect("written");
    let failure = &json(folder.path(), &["explain", "oom.pickle"], 0)["failure"];
    assert_eq!((&failure["plan"], &failure["plan_bytes"]), (&"too-much".into(), &257.into()));
}

/// A snapshot of these events, each `(action, address, size)`, and a failure at the end.
fn failing(events: &[(&str, u8, u16)], size: u16, free: u8) -> Vec<u8> {
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend([0x8c, u8::try_from(text.len()).expect("short")]);
        bytes.extend(text.as_bytes());
    };
    let whole = |bytes: &mut Vec<u8>, number: u16| {
        bytes.push(b'M');
        bytes.extend(number.to_le_bytes());
    };
    let mut bytes = b"\x80\x04}(".to_vec();
    text(&mut bytes, "device_traces");
    bytes.extend(b"](](");
    let all = events.iter().copied().chain([("oom", free, size)]);
    for (action, address, size) in all {
        bytes.extend(b"}(");
        text(&mut bytes, "action");
        text(&mut bytes, action);
        text(&mut bytes, if action == "oom" { "device_free" } else { "addr" });
        whole(&mut bytes, u16::from(address));
        text(&mut bytes, "size");
        whole(&mut bytes, size);
        bytes.push(b'u');
    }
    bytes.extend(b"eeu.");
    bytes
}

#[test]
fn a_plain_trace_is_explained_as_far_as_it_goes() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.csv", "id,lower,upper,size,category\na,0,2,64,act\nb,1,3,32,ws\n");
    let explained = json(folder.path(), &["explain", "t.csv"], 0);
    assert_eq!((&explained["reserved"], &explained["difference"]), (&Value::Null, &Value::Null));
    assert_eq!((&explained["load"], &explained["plan"]["height"]), (&96.into(), &96.into()));
    let (text, _) = run(folder.path(), &["explain", "t.csv"], 0);
    assert!(
        text.contains("reserved     not said by the file") && text.contains("optimal, proved by load"),
        "{text}"
    );
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
    let folder = tempdir().expect("a folder");
    sample(folder.path(), SNAPSHOT, "s.pickle");
    let error = json(folder.path(), &["explain", "s.pickle", "--input-limit", "8000"], 2);
    assert_eq!(error["byte"], 8000, "{error}");
    assert!(error["error"].as_str().is_some_and(|text| text.contains("--input-limit raises it")), "{error}");
    let output = planlab(folder.path())
        .args(["explain", "-", "--input-limit", "8000"])
        .write_stdin(stored_file(SNAPSHOT).expect("embedded"))
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}
