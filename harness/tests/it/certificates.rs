//! `bound --certificate` and `verify --certificate`: proofs, missing proofs and refusals.

use std::fs;
use std::path::Path;

use crate::common::{ABOVE, json, planlab, run, write};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

fn folder_with_trace() -> TempDir {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.csv", ABOVE);
    folder
}

fn read(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join(name)).expect("written")).expect("one object")
}

#[test]
fn a_capacity_below_the_optimum_is_certified_and_checked() {
    let folder = folder_with_trace();
    for (file, capacity) in [("c.json", None), ("c.json.zst", None), ("d.json", Some("12"))] {
        let mut arguments = vec!["bound", "t.csv", "--certificate", file];
        arguments.extend(capacity.into_iter().flat_map(|bytes| ["--capacity", bytes]));
        let made = json(folder.path(), &arguments, 0);
        let expected = capacity.map_or(21, |bytes| bytes.parse::<u64>().expect("a number") + 1);
        assert_eq!((&made["status"], &made["bound"]), (&Value::from("infeasible"), &Value::from(expected)));
        let checked = json(folder.path(), &["verify", "t.csv", "--certificate", file], 0);
        assert_eq!((&checked["valid"], &checked["bound"]), (&Value::from(true), &Value::from(expected)));
        assert_eq!(checked["steps"], made["steps"]);
    }
    assert_eq!(fs::read(folder.path().join("c.json.zst")).expect("written")[..4], [0x28, 0xB5, 0x2F, 0xFD]);
    let (text, _) = run(folder.path(), &["verify", "t.csv", "--certificate", "c.json"], 0);
    assert!(text.starts_with("valid: no plan of at most 20 B, bound 21 B"), "{text}");
    let (text, _) = run(folder.path(), &["bound", "t.csv", "--certificate", "-"], 0);
    assert_eq!(serde_json::from_str::<Value>(&text).expect("one object"), read(folder.path(), "c.json"));
}

/// Even sizes that fill all room except one byte, which is pinned at an odd offset. No plan has the load's height, but
/// a search has to try all ways to fill the room below.
fn halves() -> String {
    let sizes: Vec<u64> = (0..40).map(|at| 2_000 + 2 * (at * at * 7 % 997)).collect();
    let pin = sizes[..20].iter().sum::<u64>() + 1;
    let rows: String = (0..).zip(&sizes).map(|(id, size)| format!("{id},0,1,{size},\n")).collect();
    format!("id,lower,upper,size,offset\n{rows}40,0,1,1,{pin}\n")
}

#[test]
fn a_capacity_that_a_plan_fits_has_no_certificate() {
    let folder = folder_with_trace();
    let found = json(folder.path(), &["bound", "t.csv", "--certificate", "c.json", "--capacity", "21"], 3);
    assert_eq!(found["status"], "feasible");
    write(folder.path(), "u.csv", halves());
    let limited = ["bound", "u.csv", "--certificate", "c.json", "--time-limit", "100ms", "--pins"];
    assert_eq!(json(folder.path(), &limited, 3)["status"], "unknown");
    assert!(!folder.path().join("c.json").exists());
}

#[test]
fn what_was_changed_is_refused_with_the_first_wrong_step() {
    let folder = folder_with_trace();
    run(folder.path(), &["bound", "t.csv", "--certificate", "c.json"], 0);
    let mut certificate = read(folder.path(), "c.json");
    let refused = |certificate: &Value| {
        write(folder.path(), "bad.json", certificate.to_string());
        json(folder.path(), &["verify", "t.csv", "--certificate", "bad.json"], 4)
    };
    certificate["capacity"] = 21.into();
    let found = refused(&certificate);
    assert!(found["step"].as_u64().is_some(), "{found}");
    certificate["capacity"] = 20.into();
    let steps = certificate["steps"].as_str().expect("text").to_owned();
    let (less, _) = steps.rsplit_once(' ').expect("several steps");
    certificate["steps"] = less.into();
    let found = refused(&certificate);
    assert!(found["message"].as_str().is_some_and(|text| text.contains("cases are still open")), "{found}");
    certificate["steps"] = format!("{steps} o").into();
    let found = refused(&certificate);
    assert_eq!(found["step"].as_u64(), Some(steps.split(' ').count() as u64 + 1), "{found}");
    certificate["steps"] = steps.into();
    write(folder.path(), "t.csv", ABOVE.replace("6,3,7,7", "6,3,7,6"));
    let found = refused(&certificate);
    assert!(found["message"].as_str().is_some_and(|text| text.contains("another instance")), "{found}");
}

#[test]
fn what_is_no_certificate_is_bad_input() {
    let folder = folder_with_trace();
    write(folder.path(), "bad.json", "{\"version\": 1}");
    let (_, error) = run(folder.path(), &["verify", "t.csv", "--certificate", "bad.json"], 2);
    assert!(error.contains("bad.json"), "{error}");
    run(folder.path(), &["verify", "t.csv"], 2);
    run(folder.path(), &["verify", "t.csv", "p.csv", "--certificate", "c.json"], 2);
    run(folder.path(), &["verify", "-", "--certificate", "-"], 2);
    run(folder.path(), &["bound", "t.csv", "--capacity", "20"], 2);
    write(folder.path(), "w.csv", "id,lower,upper,size,gaps\na,0,9,8,2-4@0:3\nb,1,5,4,\n");
    let (_, error) = run(folder.path(), &["bound", "w.csv", "--certificate", "c.json"], 2);
    assert!(error.contains("windows"), "{error}");
}

#[test]
fn a_certificate_comes_from_stdin_too() {
    let folder = folder_with_trace();
    run(folder.path(), &["bound", "t.csv", "--certificate", "c.json"], 0);
    let bytes = fs::read(folder.path().join("c.json")).expect("written");
    let arguments = ["verify", "t.csv", "--certificate", "-", "--json"];
    let output = planlab(folder.path()).args(arguments).write_stdin(bytes).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
