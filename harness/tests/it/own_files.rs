//! Traces of one's own in a bench: from the command line and from a suite, to a report; and into the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use planlab_workloads::recorded::stored_file;
use serde_json::Value;
use tempfile::tempdir;

use crate::common::{
    assert_has, assert_shows, assert_tells, content, folder_with, json, json_lines, run, words, write,
};

const TRACE: &str = "id,lower,upper,size,category\nx,0,3,4096,weight\ny,1,2,1000,act\nz,2,5,4096,act\n";

fn bench(folder: &Path, arguments: &[&str], code: i32) -> (Vec<Value>, String) {
    let (stdout, stderr) = run(folder, &[&["bench", "--json", "--out", "store"], arguments].concat(), code);
    (json_lines(&stdout), stderr)
}

fn workloads(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(|row| row["workload"].as_str().expect("a key").to_owned()).collect()
}

#[test]
fn a_bench_of_files_resumes_and_a_changed_file_is_another_workload() {
    let folder = folder_with("my.csv", TRACE);
    write(folder.path(), "other.csv", TRACE.replace("1000", "2000"));
    let cells = ["my.csv", "other.csv", "chainer/alexnet/infer/b1", "--planner", "first-fit/*"];
    let (rows, _) = bench(folder.path(), &cells, 0);
    let keys = workloads(&rows);
    assert_eq!(keys.len(), 3, "{keys:?}");
    for start in ["file/my.csv/", "file/other.csv/", "chainer/alexnet/infer/b1"] {
        assert!(keys.iter().any(|key| key.starts_with(start)), "{start}: {keys:?}");
    }
    assert!(rows.iter().all(|row| row["status"] != "failed"), "{rows:?}");
    let (again, stderr) = bench(folder.path(), &cells, 0);
    assert_eq!(workloads(&again), keys);
    assert!(stderr.contains(" 0 run now"), "{stderr}");
    run(folder.path(), &["audit", "store"], 0);

    write(folder.path(), "my.csv", TRACE.replace("1000", "3000"));
    let (changed, stderr) = bench(folder.path(), &["my.csv", "--planner", "first-fit/size"], 0);
    assert!(stderr.contains("1 cell, 1 run now"), "{stderr}");
    assert!(workloads(&changed).is_disjoint(&keys), "{changed:?}");
    let (aligned, _) = bench(folder.path(), &["my.csv", "--align", "512", "--planner", "first-fit/size"], 0);
    assert!(workloads(&aligned).is_disjoint(&workloads(&changed)), "{aligned:?}");
    assert_eq!(aligned[0]["load"].as_u64(), Some(2 * 4096));
}

#[test]
fn nothing_runs_if_one_of_the_files_cannot_be_read() {
    let folder = folder_with("my.csv", TRACE);
    write(folder.path(), "bad.csv", "id,lower,upper,size\nx,3,3,1\n");
    for (file, reason) in
        [("missing.csv", "missing.csv: "), ("bad.csv", "bad.csv:2: "), ("nothing", "`nothing`")]
    {
        let arguments = ["bench", "my.csv", file, "--planner", "bump", "--out", "store"];
        assert_tells(&folder, &arguments, 2, &[reason]);
        assert!(!folder.path().join("store").exists(), "{file}: nothing ran");
    }
    let object = json(folder.path(), &["bench", "missing.csv", "--out", "store"], 2);
    assert_eq!(object["file"], "missing.csv");
    for (more, reason) in [
        (&["my.csv", "--suite", "smoke"][..], "cannot be used with"),
        (&["chainer/alexnet/infer/b1", "--align", "8"], "no file is named"),
        (&["-", "-"], "twice"),
    ] {
        assert_tells(&folder, &[&["bench", "--planner", "bump"], more].concat(), 2, &[reason]);
    }
}

#[test]
fn a_suite_names_files_beside_it() {
    let folder = tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("mine/nets")).expect("writable");
    write(folder.path(), "mine/nets/a.csv", TRACE);
    write(folder.path(), "mine/nets/b.csv", TRACE.replace("1000", "2000"));
    let suite = "name = \"mine\"\nanalysis = \"My nets.\"\n[[group]]\nfiles = [\"nets/*.csv\"]\nalign = 512\n\
                 planners = [\"best-fit\"]\nallocators = [\"pytorch-caching\"]\n";
    write(folder.path(), "mine/suite.toml", suite);
    let (rows, _) = bench(folder.path(), &["--suite", "mine/suite.toml"], 0);
    assert_eq!(rows.len(), 4, "a planner and an allocator on two files: {rows:?}");
    let keys = workloads(&rows);
    assert!(keys.iter().all(|key| key.starts_with("file/")) && keys.len() == 2, "{keys:?}");
    let (again, stderr) = bench(folder.path(), &["--suite", "mine/suite.toml"], 0);
    assert!(again.len() == 4 && stderr.contains(" 0 run now"), "{stderr}");
    write(folder.path(), "mine/suite.toml", suite.replace("nets/*", "net/*"));
    let (_, stderr) = bench(folder.path(), &["--suite", "mine/suite.toml"], 2);
    assert!(stderr.contains("mine/suite.toml:4: no file matches `net/*.csv`"), "{stderr}");
}

#[test]
fn one_command_makes_a_report_with_the_maps_of_a_file() {
    let folder = folder_with("my net.csv", TRACE);
    let bench = words("bench --planner best-fit --planner bump --out store --report pages");
    let arguments = [&bench[..], &["my net.csv"]].concat();
    assert_shows(&folder, &arguments, 0, &["pages/index.html"]);
    let mut pages = content(&folder.path().join("pages/workloads")).into_iter();
    let page = pages.find(|(path, _)| path.to_string_lossy().contains("file.my-net.csv"));
    let page = String::from_utf8(page.expect("a page of the workload").1).expect("readable");
    assert!(page.contains("file/my net.csv/") && page.contains("8.00 KiB"), "{page}");
    // The store has what the maps need.
    run(folder.path(), &["audit", "store"], 0);
    fs::remove_file(folder.path().join("my net.csv")).expect("removable");
    run(folder.path(), &["merge", "store", "-o", "joined"], 0);
    run(folder.path(), &["report", "joined", "-o", "joined-pages"], 0);
}

#[test]
fn a_trace_is_added_to_the_repository() {
    let folder = tempdir().expect("a folder");
    fs::create_dir(folder.path().join("data")).expect("writable");
    write(folder.path(), "data/MANIFEST.toml", stored_file("MANIFEST.toml").expect("embedded"));
    write(folder.path(), "my.csv", TRACE);
    let add = |key: &str, file: &str, more: &[&str], code: i32| {
        let words = ["add-workload", file, "--key", key, "--source", "a test, 1.0", "--license", "MIT"];
        json(folder.path(), &[&words[..], &["--data", "data"], more].concat(), code)
    };
    let added = add("mine/net/train/b8", "my.csv", &["--align", "512"], 0);
    assert_eq!((added["buffers"].as_u64(), added["load"].as_u64()), (Some(3), Some(8192)), "{added}");
    assert_eq!(added["output"], "data/mine/net-train-b8.csv.zst");
    let manifest = fs::read_to_string(folder.path().join("data/MANIFEST.toml")).expect("there");
    let line = manifest.lines().find(|line| line.contains("mine/net/train/b8")).expect("its line");
    assert_has(line, &[added["digest"].as_str().expect("a digest"), "licence: MIT"]);
    let file = added["output"].as_str().expect("a path");
    assert_eq!(json(folder.path(), &["plan", file, "--planner", "best-fit"], 0)["load"].as_u64(), Some(8192));
    for (key, file, reason) in [
        ("mine/net/train/b8", "my.csv", "there is a workload `mine/net/train/b8` already"),
        ("mine/net", "my.csv", "the key `mine/net`"),
        ("mine/net/train/b9", "chainer/alexnet/infer/b1", "there is no such file"),
        ("mine/net/train/b9", "missing.csv", "missing.csv"),
    ] {
        let refused = add(key, file, &[], 2);
        assert!(refused["error"].as_str().is_some_and(|error| error.contains(reason)), "{refused}");
    }
    let same = add("mine/other/train/b8", file, &[], 2);
    assert!(same["error"].as_str().is_some_and(|error| error.contains("has the same buffers")), "{same}");
    assert_eq!(fs::read_to_string(folder.path().join("data/MANIFEST.toml")).expect("there"), manifest);
}
