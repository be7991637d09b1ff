//! What `export perfetto` writes keeps the rules of Chrome's trace format, as `scripts/check-perfetto` has them.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::common::{folder_with, run, sample, write};

/// Exit code and what the script prints.
fn check(folder: &Path, file: &str) -> (Option<i32>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/check-perfetto");
    let output = Command::new("python3").arg(script).arg(file).current_dir(folder).output();
    let output = output.expect("python3, which ./setup installs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn what_is_exported_keeps_the_rules() {
    let folder = folder_with(
        "t.csv",
        "# step-unit: us\nid,lower,upper,size,arena\na,9000000000,9000000003,64,x\nb,9000000001,9000000004,32,y\n",
    );
    write(folder.path(), "none.csv", "id,lower,upper,size\n");
    run(folder.path(), &["plan", "t.csv", "-o", "p.csv"], 0);
    let (snapshot, profile) =
        (sample("resnet50_b64_3it_early.pickle.zst"), sample("mlp_cpu_profiler_trace.json.zst"));
    let schedule = sample("../schedules/refuters/rnd_dag_1-schedule.jsonl.zst");
    for words in [&["t.csv", "p.csv"][..], &["t.csv"], &["none.csv"], &[&snapshot], &[&profile], &[&schedule]]
    {
        let all = [&["export", "perfetto"][..], words, &["-o", "trace.json"]].concat();
        run(folder.path(), &all, 0);
        let (code, told) = check(folder.path(), "trace.json");
        assert_eq!(code, Some(0), "{words:?}: {told}");
        assert!(told.contains("nothing wrong"), "{told}");
    }
}

#[test]
fn what_breaks_a_rule_is_named() {
    let folder = tempdir().expect("a folder");
    let process = json!({ "ph": "M", "name": "process_name", "pid": 1, "tid": 1, "args": { "name": "p" } });
    let event = |phase: &str, more: Value| {
        let mut event =
            json!({ "ph": phase, "name": "x", "cat": "c", "id": "0x1", "pid": 1, "tid": 1, "ts": 5 });
        let fields = more.as_object().expect("fields").clone();
        event.as_object_mut().expect("an object").extend(fields);
        event
    };
    let counter = |at: f64| event("C", json!({ "ts": at, "args": { "bytes": 1 } }));
    let cases = [
        (vec![event("?", json!({}))], "there is no phase \"?\""),
        (vec![event("X", json!({ "pid": 0 }))], "`pid` is 0"),
        (vec![event("X", json!({ "tid": true }))], "`tid` is true"),
        (vec![event("X", json!({ "ts": -1 }))], "`ts` is -1"),
        (vec![event("X", json!({ "dur": -1 }))], "`dur` is -1"),
        (vec![event("X", json!({ "name": "" }))], "it has no name"),
        (vec![event("X", json!({ "pid": 2 }))], "process 2 has no name"),
        (vec![event("C", json!({ "args": { "bytes": "1" } }))], "counter `x` has no numbers"),
        (vec![counter(2.5), counter(2.0)], "counter `x` goes from 2.5 to 2.0"),
        (vec![event("M", json!({ "name": "prozess" }))], "there is no metadata `prozess`"),
        (vec![process.clone()], "process 1 is named twice"),
        (vec![event("b", json!({ "id": 0 }))], "`id` is 0"),
        (vec![event("b", json!({ "cat": null }))], "it has no category"),
        (vec![event("b", json!({}))], "it never ends"),
        (vec![event("e", json!({}))], "nothing that it ends has begun"),
        (
            vec![event("b", json!({})), event("e", json!({ "ts": 4 }))],
            "it ends event 1 at 4, before it begins at 5",
        ),
        (vec![event("b", json!({})), event("e", json!({ "name": "y" }))], "it is named `y`"),
        (vec![event("B", json!({}))], "it never ends"),
        (vec![event("E", json!({}))], "nothing that it ends has begun"),
        (vec![event("i", json!({ "s": "q" }))], "there is no scope \"q\""),
    ];
    for (events, reason) in cases {
        let events = [vec![process.clone()], events].concat();
        write(folder.path(), "t.json", json!({ "traceEvents": events }).to_string());
        let (code, told) = check(folder.path(), "t.json");
        assert_eq!(code, Some(1), "{told}");
        assert!(
            told.contains(&format!("t.json: event {}: ", events.len() - 1)) || reason.contains("never"),
            "{told}"
        );
        assert!(told.contains(reason), "{reason}: {told}");
    }
    for (text, reason, code) in [
        ("{}", "there is no list `traceEvents`", 1),
        ("[{\"ph\": \"X\", \"ts\": NaN}]", "NaN is no JSON", 2),
        ("[", "Expecting value", 2),
    ] {
        write(folder.path(), "t.json", text);
        let (got, told) = check(folder.path(), "t.json");
        assert_eq!((got, told.contains(reason)), (Some(code), true), "{told}");
    }
}
