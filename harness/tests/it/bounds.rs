//! `bound`: proofs above the load, limits, and the result so far after a signal; `--certificate` writes a proof, and
//! `verify --certificate` checks it.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::common::{
    ABOVE, assert_has, assert_shows, assert_tells, figure, folder_with, interrupt, json, outputs, planlab,
    run, start, write,
};

fn folder_with_trace() -> TempDir {
    folder_with("t.csv", ABOVE)
}

fn read(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join(name)).expect("written")).expect("one object")
}

#[test]
fn bound_above_the_load_names_its_evidence() {
    let folder = folder_with_trace();
    let bound = json(folder.path(), &["bound", "t.csv"], 0);
    assert_eq!((bound["load"].as_u64(), bound["bound"].as_u64()), (Some(20), Some(21)));
    assert!(matches!(bound["bound_evidence"].as_str(), Some("search" | "section")), "{bound}");
    let rows = bound["arguments"].as_array().expect("a list");
    let evidence: Vec<&str> = rows.iter().filter_map(|row| row["evidence"].as_str()).collect();
    for name in ["load", "alignment", "normal-pattern", "section", "search"] {
        assert!(evidence.contains(&name), "{name} is not in {evidence:?}");
    }
    assert_shows(&folder, &["bound", "t.csv"], 0, &["best: 21"]);
}

/// Bounds of 30,000 buffers take hours.
const ENDLESS: [&str; 5] = ["generate", "uniform", "n=30000", "seed=1", "-o"];

/// Checks what a bound that was cut short has.
fn assert_cut_short(object: &Value) {
    assert!(figure(object, "bound") >= figure(object, "load"), "{object}");
    let arguments = object["arguments"].as_array().expect("a list");
    let cut = arguments.iter().filter(|argument| argument["finished"] == false).count();
    let is_above = figure(object, "bound") > figure(object, "load");
    assert!(cut == 1 || is_above, "{object}");
}

#[test]
fn the_time_limit_leaves_what_was_proved() {
    let folder = tempdir().expect("a folder");
    run(folder.path(), &[&ENDLESS[..], &["u.csv"]].concat(), 0);
    assert_cut_short(&json(folder.path(), &["bound", "u.csv", "--time-limit", "200ms"], 0));
}

#[test]
fn a_signal_leaves_what_was_proved() {
    let folder = tempdir().expect("a folder");
    run(folder.path(), &[&ENDLESS[..], &["u.csv"]].concat(), 0);
    let child = start(folder.path(), &["bound", "u.csv", "--time-limit", "1h", "--json"]);
    let (stdout, _) = interrupt(child, "bound");
    assert_cut_short(&serde_json::from_str(&stdout).expect("one object"));
}

#[test]
fn failed_argument_has_one_line_and_a_cut_one_is_reported() {
    let folder = folder_with_trace();
    assert_shows(&folder, &["bound", "t.csv"], 0, &["found nothing higher: "]);
    run(folder.path(), &[&ENDLESS[..], &["u.csv"]].concat(), 0);
    let (text, told) = run(folder.path(), &["bound", "u.csv", "--time-limit", "300ms"], 0);
    assert_has(&told, &["the time limit came during the argument by ", " ran for "]);
    assert!(text.contains("cut short; nothing above "), "{text}");
}

#[test]
fn a_capacity_below_the_optimum_is_certified_and_checked() {
    let folder = folder_with_trace();
    assert_shows(&folder, &["bound", "t.csv"], 0, &["planlab bound t.csv --certificate FILE --capacity 20"]);
    let as_told = ("e.json", Some("20"));
    for (file, capacity) in [("c.json", None), ("c.json.zst", None), ("d.json", Some("12")), as_told] {
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
    assert_tells(&folder, &["verify", "t.csv", "--certificate", "bad.json"], 2, &["bad.json"]);
    assert_tells(&folder, &["verify", "t.csv"], 2, &["--certificate FILE"]);
    run(folder.path(), &["verify", "t.csv", "p.csv", "--certificate", "c.json"], 2);
    run(folder.path(), &["verify", "-", "--certificate", "-"], 2);
    run(folder.path(), &["bound", "t.csv", "--capacity", "20"], 2);
    write(folder.path(), "w.csv", "id,lower,upper,size,gaps\na,0,9,8,2-4@0:3\nb,1,5,4,\n");
    assert_tells(&folder, &["bound", "w.csv", "--certificate", "c.json"], 2, &["windows"]);
}

#[test]
fn a_certificate_comes_from_stdin_too() {
    let folder = folder_with_trace();
    run(folder.path(), &["bound", "t.csv", "--certificate", "c.json"], 0);
    let bytes = fs::read(folder.path().join("c.json")).expect("written");
    let arguments = ["verify", "t.csv", "--certificate", "-", "--json"];
    outputs(planlab(folder.path()).args(arguments).write_stdin(bytes), 0);
}
