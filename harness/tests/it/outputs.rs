//! Outputs that would replace an input or another output, and arguments that name nothing.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use crate::common::{assert_tells, content, folder_with, json, outputs, planlab, run, write};

const TRACE: &str = "id,lower,upper,size\na,0,3,64\nb,1,4,32\nc,3,5,48\n";

/// A trace, a plan of it, and other names of the trace.
fn folder() -> TempDir {
    let folder = folder_with("t.csv", TRACE);
    run(folder.path(), &["plan", "t.csv", "-o", "p.csv"], 0);
    symlink("t.csv", folder.path().join("link.csv")).expect("a link");
    fs::hard_link(folder.path().join("t.csv"), folder.path().join("hard.html")).expect("a link");
    fs::create_dir(folder.path().join("sub")).expect("a folder");
    folder
}

#[test]
fn no_output_replaces_a_file_of_its_command() {
    let folder = folder();
    write(folder.path(), "net.onnx", "no model");
    run(folder.path(), &["model", "alexnet", "--emit", "graph", "-o", "g.jsonl"], 0);
    let before = content(folder.path());
    for arguments in [
        &["import", "t.csv", "-o", "t.csv"][..],
        &["import", "t.csv", "-o", "link.csv"],
        &["import", "t.csv", "-o", "sub/../t.csv"],
        &["import", "t.csv", "-o", "new.csv", "--plan", "t.csv"],
        &["import", "t.csv", "-o", "new.csv", "--plan", "new.csv"],
        &["import", "t.csv", "-o", "new.csv", "--plan", "sub/../new.csv"],
        &["import", "t.csv", "-o", "p.csv", "--plan", "p.csv"],
        &["export", "lab", "t.csv", "-o", "hard.html"],
        &["export", "c-header", "t.csv", "p.csv", "-o", "p.csv"],
        &["export", "tflite-micro", "t.csv", "p.csv", "--into", "net.onnx", "-o", "net.onnx"],
        &["plan", "t.csv", "-o", "t.csv"],
        &["plan", "t.csv", "--carry", "p.csv", "--of", "t.csv", "-o", "p.csv"],
        &["bound", "t.csv", "--certificate", "t.csv"],
        &["explain", "t.csv", "-o", "hard.html"],
        &["show", "t.csv", "p.csv", "-o", "hard.html"],
        &["graph", "g.jsonl", "-o", "g.jsonl"],
    ] {
        let error = json(folder.path(), arguments, 2);
        let file = error["file"].as_str().expect("the file is named");
        assert!(arguments.contains(&file), "{arguments:?}: {error}");
        let told = error["error"].as_str().expect("text");
        assert!(told.contains("is another file of this command, too"), "{arguments:?}: {told}");
        assert_eq!(content(folder.path()), before, "{arguments:?}");
    }
    // A trace that comes through stdin has a file, too.
    let mut command = planlab(folder.path());
    let piped = command.args(["import", "-", "-o", "t.csv"]).pipe_stdin(folder.path().join("t.csv"));
    // A pipe is no file.
    outputs(piped.expect("a file"), 0);
}

#[test]
fn a_redirected_trace_is_not_replaced() {
    let folder = folder();
    let stdin = fs::File::open(folder.path().join("t.csv")).expect("there");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_planlab"));
    let output =
        command.args(["import", "-", "-o", "t.csv"]).current_dir(folder.path()).stdin(stdin).output();
    let output = output.expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("t.csv is another file of this command, too (as -)"), "{told}");
    assert_eq!(fs::read_to_string(folder.path().join("t.csv")).expect("there"), TRACE);
}

#[test]
fn a_plan_may_take_the_place_of_the_one_it_starts_from() {
    let folder = folder();
    run(folder.path(), &["plan", "t.csv", "--start", "p.csv", "-o", "p.csv"], 0);
    run(folder.path(), &["verify", "t.csv", "p.csv"], 0);
}

#[test]
fn what_is_neither_file_nor_workload_is_named_as_such() {
    let folder = folder();
    for (argument, reason) in [
        ("missing.csv", "missing.csv: No such file or directory"),
        ("missing.pte", "missing.pte: No such file or directory"),
        ("./missing", "./missing: No such file or directory"),
        ("/nowhere/missing", "/nowhere/missing: No such file or directory"),
        ("runs/missing", "there is no file and no workload `runs/missing`"),
        (
            "chainer/alexnet/infer/b2",
            "there is no file and no workload `chainer/alexnet/infer/b2`; did you mean",
        ),
        ("sub", "sub: this is a folder, not a trace"),
    ] {
        for verb in
            [&["plan"][..], &["bound"], &["explain"], &["compare"], &["simulate", "--allocator", "cupy*"]]
        {
            assert_tells(&folder, &[verb, &[argument]].concat(), 2, &[reason]);
        }
    }
}
