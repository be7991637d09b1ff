//! With `--json` an error is one JSON object on stdout: the reason, the place, and the exit code.

use crate::common::{folder_with, json, run, write};
use serde_json::Value;
use tempfile::tempdir;

const TRACE: &str = "id,lower,upper,size\na,0,2,64\nb,1,3,32\n";

/// The error of a call, checked for what every one has.
fn error(folder: &std::path::Path, arguments: &[&str], code: i32) -> Value {
    let found = json(folder, arguments, code);
    let keys: Vec<&str> = found.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["byte", "error", "exit_code", "file", "line", "version"], "{found}");
    assert_eq!((&found["version"], &found["exit_code"]), (&1.into(), &code.into()), "{found}");
    assert!(found["error"].as_str().is_some_and(|text| !text.is_empty() && !text.contains('\n')), "{found}");
    found
}

#[test]
fn an_error_is_one_object_with_its_file_and_line() {
    let folder = folder_with("t.csv", TRACE);
    let at = folder.path();
    write(at, "bad.csv", format!("{TRACE}c,0,2,0\n"));
    write(at, "c.json", "{\n\"version\": x}\n");
    write(at, "planners.bad", "[[planner]]\nkey = 7\n");
    write(at, "s.toml", "name = \"s\"\nnonsense = 1\n");
    for (arguments, file, line) in [
        (&["plan", "bad.csv"][..], Some("bad.csv"), Some(4)),
        (&["bound", "gone.csv"], Some("gone.csv"), None),
        (&["verify", "t.csv", "bad.csv"], Some("bad.csv"), Some(1)),
        (&["verify", "t.csv", "--certificate", "c.json"], Some("c.json"), Some(2)),
        (&["generate", "uniform", "n=10", "-o", "gone/t.csv"], Some("gone/t.csv"), None),
        (&["bench", "--suite", "s.toml", "--out", "r"], Some("s.toml"), Some(2)),
        (&["audit", "gone"], Some("gone"), None),
        (&["plan", "t.csv", "--planner", "bestfit"], None, None),
        (&["simulate", "t.csv", "--allocator", "gone"], None, None),
        (&["verify", "t.csv"], None, None),
        // An error of clap.
        (&["frobnicate"], None, None),
        (&[], None, None),
        (&["plan"], None, None),
        (&["plan", "t.csv", "--time-limit", "soon"], None, None),
        (&["plan", "t.csv", "--no-such-option"], None, None),
    ] {
        let found = error(at, arguments, 2);
        assert_eq!((found["file"].as_str(), found["line"].as_u64()), (file, line), "{arguments:?}: {found}");
        let (stdout, stderr) = run(at, arguments, 2);
        assert!(stdout.is_empty() && !stderr.is_empty(), "{arguments:?}: {stdout} {stderr}");
    }
    let found = error(at, &["list", "planners", "--planners", "planners.bad"], 2);
    assert!(found["file"].as_str().is_some_and(|file| file.ends_with("planners.bad")), "{found}");
    assert_eq!(found["line"], 2);
}

#[test]
fn wrong_usage_is_reported_in_one_sentence() {
    let folder = tempdir().expect("a folder");
    let verbless = "no verb is named; `planlab --help` lists them";
    for (arguments, expected) in [
        (&[][..], verbless),
        (&["--input-limit", "1MB"], verbless),
        (&["frobnicate"], "unrecognized subcommand 'frobnicate'"),
        (&["plna"], "unrecognized subcommand 'plna'"),
        (&["plan", "t.csv", "--time-limt", "1s"], "unexpected argument '--time-limt' found"),
    ] {
        assert_eq!(error(folder.path(), arguments, 2)["error"], expected, "{arguments:?}");
    }
    let found = error(folder.path(), &["plan", "t.csv", "--time-limit", "soon"], 2);
    let told = found["error"].as_str().expect("text");
    assert!(told.contains("'soon'") && !told.contains("For more information"), "{told}");
    let (_, told) = run(folder.path(), &["--input-limit", "1MB"], 2);
    assert_eq!(told, format!("planlab: {verbless}\n"));
}

#[test]
fn an_invalid_plan_that_is_to_leave_is_an_object_too() {
    let folder = folder_with("t.csv", TRACE);
    write(folder.path(), "p.csv", "id,offset\na,0\nb,0\n");
    let found = error(folder.path(), &["export", "minimalloc", "t.csv", "p.csv", "-o", "out.csv"], 4);
    assert_eq!(found["file"], "p.csv");
    assert!(!folder.path().join("out.csv").exists());
}

#[test]
fn help_is_no_error() {
    let folder = tempdir().expect("a folder");
    for arguments in [["plan", "--help", "--json"], ["--version", "--json", "list"]] {
        let (stdout, stderr) = run(folder.path(), &arguments, 0);
        assert!(!stdout.starts_with('{') && stderr.is_empty(), "{stdout} {stderr}");
    }
}

#[test]
fn a_file_and_json_do_not_share_stdout() {
    let folder = folder_with("t.csv", TRACE);
    for arguments in [
        &["plan", "t.csv", "-o", "-"][..],
        &["generate", "uniform", "n=10"],
        &["generate", "uniform", "n=10", "-o", "-"],
        &["import", "lab", "t.csv"],
        &["export", "lab", "t.csv"],
        &["bound", "t.csv", "--certificate", "-"],
    ] {
        let found = error(folder.path(), arguments, 2);
        let message = found["error"].as_str().expect("text");
        assert!(message.contains("cannot both go to stdout"), "{arguments:?}: {message}");
    }
    assert_eq!(json(folder.path(), &["generate", "uniform", "n=10", "-o", "g.csv"], 0)["buffers"], 10);
}

#[test]
fn a_suite_that_no_row_is_of_is_named_with_those_that_are_there() {
    let folder = folder_with(
        "mine.toml",
        "name = \"mine\"\nanalysis = \"a test\"\n[[group]]\nplanners = [\"bump\"]\nworkloads = [\"synthetic/uniform/n10/s1\"]\n",
    );
    run(folder.path(), &["bench", "--suite", "mine.toml", "--out", "r"], 0);
    for arguments in [
        &["scale", "r", "--suite", "nosuch", "-o", "out"][..],
        &["ratios", "r", "--of", "bump", "--over", "bump", "--suite", "nosuch", "-o", "out"],
    ] {
        let found = error(folder.path(), arguments, 2);
        assert_eq!(found["error"], "r: no row belongs to suite `nosuch`; the rows here belong to `mine`");
        assert_eq!(found["file"], "r");
        assert!(!folder.path().join("out").exists());
    }
}

#[test]
fn a_plan_without_all_its_rows_is_invalid_and_no_overlap() {
    let folder = folder_with("t.csv", TRACE);
    write(
        folder.path(),
        "planners.toml",
        "[[planner]]\nkey = \"external/few\"\ninstance = \"minimalloc\"\n\
         command = [\"sh\", \"-c\", \"printf 'id,offset\\\\na,0\\\\n' > \\\"$2\\\"\", \"sh\", \"{instance}\", \"{output}\"]\n",
    );
    let row = json(folder.path(), &["plan", "t.csv", "--planner", "external/few"], 4);
    assert_eq!(row["detail"], "invalid-plan", "{row}");
    assert_eq!(row["status"], "failed", "{row}");
}
