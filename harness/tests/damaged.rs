//! Damaged stores: what is lost is told, what can be made again is made again, and there is always a way out.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{json, run};
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
fn a_shard_that_is_gone_is_told_by_every_reader() {
    let folder = benched();
    json(folder.path(), &["audit", "store"], 0);
    let shards = files(folder.path(), "shards");
    fs::remove_file(&shards[0]).expect("removes");
    let lost = name(&shards[0]);
    let (text, _) = run(folder.path(), &["audit", "store"], 3);
    assert!(text.contains(&lost) && text.contains("4 rows with it") && text.contains("1 findings"), "{text}");
    for words in [vec!["report", "store", "-o", "pages"], vec!["merge", "store", "-o", "merged"]] {
        let (_, told) = run(folder.path(), &words, 3);
        assert!(told.contains(&lost) && told.contains("4 rows"), "{words:?}: {told}");
    }
    let told = bench(folder.path(), &[], 0);
    assert!(told.contains(&lost) && told.contains("4 run now"), "{told}");
    run(folder.path(), &["audit", "store"], 3);
    let (_, told) = run(folder.path(), &["audit", "store", "--repair"], 3);
    assert!(told.contains(&lost) && told.contains("no longer missed"), "{told}");
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
    let (text, _) = run(folder.path(), &["audit", "store"], 3);
    assert!(text.contains("plans, but no rows"), "{text}");
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
    let (text, _) = run(folder.path(), &["audit", "store"], 3);
    assert!(text.contains(&name(&instances[0])), "{text}");
    let (_, told) = run(folder.path(), &["report", "store", "-o", "pages"], 0);
    assert!(told.contains("cannot be read"), "{told}");
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
        // In the first line, and in the last, which is whole.
        for at in [first / 2, bytes.len() - 3] {
            flip(&path.join(file), at);
            for words in [vec!["audit", "copy"], vec!["report", "copy", "-o", "pages"]] {
                let (_, told) = run(folder.path(), &words, 2);
                assert!(told.contains(&format!("{file}:")) && told.contains("audit --repair"), "{told}");
            }
        }
        let (_, told) = run(folder.path(), &["audit", "copy", "--repair"], 3);
        assert!(
            told.contains("2 damaged lines set aside in") && told.contains(&format!("{file}.damaged")),
            "{told}"
        );
        let aside = fs::read_to_string(path.join(format!("{file}.damaged"))).expect("there");
        assert_eq!(aside.lines().count(), 2, "{aside}");
    }
    assert_eq!(read_records(&path).expect("reads").len(), rows.len() - 2);
}
