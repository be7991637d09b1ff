//! Damaged stores: losses are reported, rows and plans are made again if possible, and every store can be repaired.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{self, assert_has, assert_shows, assert_tells, json, run};
use planlab_results::{Store, read_records};
use tempfile::{TempDir, tempdir};

/// A folder with a store of a few cells.
fn benched() -> TempDir {
    let folder = tempdir().expect("a folder");
    bench(folder.path(), &[], 0);
    folder
}

fn bench(folder: &Path, more: &[&str], code: i32) -> String {
    let words = ["bench", "--workload", "synthetic/uniform/n10/s0", "--workload", "synthetic/uniform/n10/s1"];
    let planners = ["--planner", "bump", "--planner", "best-fit", "--out", "store"];
    run(folder, &[&words[..], &planners[..], more].concat(), code).1
}

fn files(folder: &Path, of: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("store").join(of)).expect("a store");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    files
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).expect("reads");
    bytes[at] ^= 1;
    fs::write(file, bytes).expect("writes");
}

fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

#[test]
fn missing_shard_is_reported_by_every_reader() {
    let folder = benched();
    json(folder.path(), &["audit", "store"], 0);
    let shards = files(folder.path(), "shards");
    fs::remove_file(&shards[0]).expect("removes");
    let lost = name(&shards[0]);
    assert_shows(&folder, &["audit", "store"], 3, &[&lost, "4 rows with it", "1 findings"]);
    for words in [vec!["report", "store", "-o", "pages"], vec!["merge", "store", "-o", "merged"]] {
        assert_tells(&folder, &words, 3, &[&lost, "4 rows"]);
    }
    let told = bench(folder.path(), &[], 0);
    assert!(told.contains(&lost) && told.contains("4 run now"), "{told}");
    // The rows exist again, and the message names the way to silence it.
    let (_, told) = run(folder.path(), &["report", "store", "-o", "pages"], 3);
    assert_has(&told, &["`planlab bench` makes", "`planlab audit --repair` stops"]);
    let old = fs::read(folder.path().join("store/manifest.json")).expect("there");
    let (_, told) = run(folder.path(), &["audit", "store", "--repair"], 3);
    assert!(
        told.contains(&format!(
            "{lost}: the shard is gone with its 4 rows; it was taken out of the manifest"
        )),
        "{told}"
    );
    assert_eq!(fs::read(folder.path().join("store/manifest.json.damaged")).expect("kept"), old);
    run(folder.path(), &["audit", "store"], 0);
    run(folder.path(), &["report", "store", "-o", "pages"], 0);
}

#[test]
fn rows_that_are_gone_are_missed_in_a_store_of_before_there_were_manifests() {
    let folder = benched();
    fs::remove_file(folder.path().join("store/manifest.json")).expect("removes");
    run(folder.path(), &["audit", "store"], 0);
    run(folder.path(), &["report", "store", "-o", "pages"], 0);
    fs::remove_file(&files(folder.path(), "shards")[0]).expect("removes");
    assert_shows(&folder, &["audit", "store"], 3, &["plans, but no rows"]);
    run(folder.path(), &["report", "store", "-o", "pages"], 3);
}

#[test]
fn a_lost_plan_is_made_again_where_what_failed_is_retried() {
    let folder = benched();
    let (plans, instances) = (files(folder.path(), "plans"), files(folder.path(), "instances"));
    let whole: Vec<Vec<u8>> = plans.iter().map(|plan| fs::read(plan).expect("reads")).collect();
    fs::remove_file(&plans[0]).expect("removes");
    flip(&plans[1], whole[1].len() / 2);
    fs::remove_file(&instances[0]).expect("removes");
    assert_shows(&folder, &["audit", "store"], 3, &[&name(&instances[0])]);
    assert_tells(&folder, &["report", "store", "-o", "pages"], 3, &["cannot be read"]);
    assert_tells(&folder, &["merge", "store", "-o", "merged"], 0, &["`planlab audit merged` names them"]);
    assert!(bench(folder.path(), &[], 0).contains("0 run now"));
    let told = bench(folder.path(), &["--retry", "failed", "--dry-run"], 0);
    assert!(!told.contains("0 runs:"), "{told}");
    let told = bench(folder.path(), &["--retry", "failed"], 0);
    assert!(!told.contains("0 run now"), "{told}");
    assert_eq!(plans.iter().map(|plan| fs::read(plan).expect("there")).collect::<Vec<_>>(), whole);
    run(folder.path(), &["audit", "store"], 0);
    assert!(bench(folder.path(), &["--retry", "failed"], 0).contains("0 run now"));
}

#[test]
fn a_flipped_byte_in_a_journal_has_a_way_out() {
    let folder = benched();
    let rows = read_records(folder.path().join("store")).expect("rows");
    let path = folder.path().join("copy");
    Store::open(&path).expect("opens").append_all(&rows).expect("appends");
    let trace = "synthetic/uniform/n10/s0";
    for allocator in ["cupy2rc1-pool", "tlsf"] {
        run(folder.path(), &["simulate", trace, "--allocator", allocator, "--out", "copy"], 0);
    }
    for file in ["journal.jsonl", "replays.jsonl"] {
        let bytes = fs::read(path.join(file)).expect("there");
        let first = bytes.iter().position(|&byte| byte == b'\n').expect("lines");
        // In the first line, and in the last, which is complete.
        for at in [first / 2, bytes.len() - 3] {
            flip(&path.join(file), at);
            for words in [vec!["audit", "copy"], vec!["report", "copy", "-o", "pages"]] {
                assert_tells(&folder, &words, 2, &[&format!("{file}:"), "audit --repair"]);
            }
        }
        let (_, told) = run(folder.path(), &["audit", "copy", "--repair"], 3);
        assert_has(&told, &["2 damaged lines set aside in", &format!("{file}.damaged")]);
        let aside = fs::read_to_string(path.join(format!("{file}.damaged"))).expect("there");
        assert_eq!(aside.lines().count(), 2, "{aside}");
    }
    assert_eq!(read_records(&path).expect("reads").len(), rows.len() - 2);
}

#[test]
fn what_is_left_without_its_rows_is_still_a_store() {
    let folder = benched();
    let store = folder.path().join("store");
    fs::remove_dir_all(store.join("shards")).expect("removes");
    fs::remove_file(store.join("journal.jsonl")).expect("removes");
    assert_shows(&folder, &["audit", "store"], 3, &["4 rows with it"]);
    run(folder.path(), &["audit", "store", "--repair"], 3);
    // The manifest names no shard now.
    assert_shows(&folder, &["audit", "store"], 3, &["but no rows; the rows are lost or were set aside"]);
    assert!(bench(folder.path(), &[], 0).contains("4 run now"));
    run(folder.path(), &["audit", "store"], 0);
}

#[test]
fn a_damaged_manifest_that_is_left_alone_has_a_way_out() {
    let folder = benched();
    let store = folder.path().join("store");
    fs::remove_dir_all(store.join("shards")).expect("removes");
    fs::remove_file(store.join("journal.jsonl")).expect("removes");
    fs::write(store.join("manifest.json"), "{").expect("writes");
    assert_tells(&folder, &["audit", "store"], 2, &["audit --repair"]);
    run(folder.path(), &["audit", "store", "--repair"], 3);
    assert!(bench(folder.path(), &[], 0).contains("4 run now"));
}

#[test]
fn a_repair_leaves_no_lock_in_a_folder_of_something_else() {
    let folder = tempdir().expect("a folder");
    fs::create_dir(folder.path().join("foreign")).expect("makes a folder");
    fs::write(folder.path().join("foreign/notes.txt"), "precious").expect("writes");
    run(folder.path(), &["audit", "--repair", "foreign"], 2);
    assert_eq!(fs::read_dir(folder.path().join("foreign")).expect("there").count(), 1);
}

#[test]
fn the_last_byte_of_a_journal_is_not_lost_in_silence() {
    let folder = tempdir().expect("a folder");
    let trace = "synthetic/uniform/n10/s0";
    for allocator in ["cupy2rc1-pool", "tlsf"] {
        run(folder.path(), &["simulate", trace, "--allocator", allocator, "--out", "store"], 0);
    }
    let path = folder.path().join("store/replays.jsonl");
    let whole = fs::read(&path).expect("there");
    flip(&path, whole.len() - 1);
    assert_tells(&folder, &["audit", "store"], 2, &["replays.jsonl:2: the row ends with another byte"]);
    // A truncated line.
    fs::write(&path, &whole[..whole.len() - 5]).expect("writes");
    assert_shows(&folder, &["audit", "store"], 3, &["replays.jsonl:2: the last line was cut short"]);
    run(folder.path(), &["audit", "store", "--repair"], 3);
    let aside = fs::read(folder.path().join("store/replays.jsonl.damaged")).expect("kept");
    assert!(whole.ends_with(&[&aside[..aside.len() - 1], &whole[whole.len() - 5..]].concat()));
    run(folder.path(), &["audit", "store"], 0);
}

#[test]
fn a_report_misses_plans_only_where_there_should_be_some() {
    let folder = benched();
    let store = folder.path().join("store");
    fs::create_dir_all(folder.path().join("curated/shards")).expect("makes a folder");
    fs::copy(&files(folder.path(), "shards")[0], folder.path().join("curated/shards/rows.parquet"))
        .expect("copies");
    assert_tells(&folder, &["report", "curated", "-o", "pages"], 0, &["cannot be read"]);
    for lost in ["plans", "instances"] {
        fs::remove_dir_all(store.join(lost)).expect("removes");
        let value = json(folder.path(), &["report", "store", "-o", "pages"], 3);
        assert_eq!(value["missing"], serde_json::json!([]), "no shard is gone");
    }
}

#[test]
fn json_names_the_shards_that_are_gone() {
    let folder = benched();
    let lost = files(folder.path(), "shards").remove(0);
    // Two sizes, so that there is something to scale.
    let larger = ["--workload", "synthetic/uniform/n20/s0"];
    bench(folder.path(), &larger, 0);
    for verb in READERS {
        let value = json(folder.path(), &words(verb, &format!("{verb}-whole")), 0);
        assert_eq!(value["missing"], serde_json::json!([]), "{verb}");
    }
    fs::remove_file(&lost).expect("removes");
    bench(folder.path(), &larger, 0);
    let path = format!("store/shards/{}", name(&lost));
    let one = serde_json::json!({ "path": path, "rows": 4 });
    for verb in READERS {
        let value = json(folder.path(), &words(verb, &format!("{verb}-damaged")), 3);
        let expected = if verb == "diff" { vec![&one, &one] } else { vec![&one] };
        assert_eq!(value["missing"], serde_json::json!(expected), "{verb}");
    }
}

/// Verbs that read a folder of results, and end with 3 if a shard is missing.
const READERS: [&str; 5] = ["report", "merge", "scale", "ratios", "diff"];

fn words<'a>(verb: &'a str, out: &'a str) -> Vec<&'a str> {
    match verb {
        "diff" => vec![verb, "store", "store"],
        "ratios" => vec![verb, "store", "--of", "bump", "--over", "best-fit", "-o", out],
        _ => vec![verb, "store", "-o", out],
    }
}

#[test]
fn a_damaged_file_is_an_error_and_no_panic() {
    let folder = tempdir().expect("a folder");
    let words = ["bench", "--workload", "synthetic/uniform/n10/s0", "--planner", "bump", "--out", "store"];
    run(folder.path(), &words, 0);
    let path = files(folder.path(), "instances").remove(0);
    let whole = fs::read(&path).expect("reads");
    // These bytes describe where the columns are. Some damage here makes the reading library panic.
    for at in whole.len() * 54 / 100..whole.len() * 56 / 100 {
        flip(&path, at);
        let output = common::planlab(folder.path()).args(["audit", "store"]).output().expect("runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 3)) && !told.contains("panicked"),
            "byte {at}: {told}"
        );
        fs::write(&path, &whole).expect("writes");
    }
}
