//! Replay rows are returned unchanged, survive a crash, and can be merged and audited.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::fixtures::replay as row;
use crate::common::{empty_store, folder, sole_finding};
use planlab_dsa::performance::{End, Performance};
use planlab_results::audit::{Fault, audit_replays};
use planlab_results::replay::{ReplayRow, ReplayWriter, append_rows, read_rows};
use planlab_results::{Repair, Store, StoreError, merge_stores, read_records, repair_store};

/// The row with another status.
fn ended(status: End, row: ReplayRow) -> ReplayRow {
    row.with(|row| row.performance.status = status)
}

fn file(dir: &Path) -> PathBuf {
    dir.join("replays.jsonl")
}

fn append(dir: &Path, rows: &[ReplayRow]) {
    assert_eq!(append_rows(dir, rows).expect("appends"), []);
}

#[test]
fn rows_come_back_as_they_were_and_the_latest_counts() {
    let dir = folder();
    let into = dir.path().join("new");
    let first = ended(End::Failed, row("a", 0));
    append(&into, &[first, row("b", 0)]);
    append(&into, &[row("b", 1), row("a", 0)]);
    assert_eq!(read_rows(&into).expect("reads"), [row("a", 0), row("b", 0), row("b", 1)]);
}

#[test]
fn a_row_from_before_a_column_was_added_is_whole() {
    let mut value = serde_json::to_value(row("a", 0)).expect("plain data");
    value.as_object_mut().expect("an object").remove("until");
    value["samples"][1].as_object_mut().expect("an object").remove("reserved_peak");
    let read: ReplayRow = serde_json::from_value(value).expect("they may be missing");
    let mut expected = row("a", 0).with(|row| row.until = None);
    expected.performance.samples[1].reserved_peak = None;
    assert_eq!(read, expected);
    assert_eq!(read.performance.timed_propagations(), 2);
}

#[test]
fn a_folder_of_replays_alone_is_a_store_without_records() {
    let dir = folder();
    assert!(matches!(read_records(dir.path()), Err(StoreError::NoResults { .. })));
    assert_eq!(read_rows(dir.path()).expect("a folder"), []);
    append(dir.path(), &[row("a", 0)]);
    assert_eq!(read_records(dir.path()).expect("a store"), []);
    assert!(matches!(read_rows(dir.path().join("absent")), Err(StoreError::Io { .. })));
}

#[test]
fn rows_are_appended_while_a_store_is_open() {
    let (dir, store) = empty_store();
    append(dir.path(), &[row("a", 0)]);
    assert_eq!(read_rows(store.dir()).expect("reads"), [row("a", 0)]);
}

#[test]
fn writers_take_turns() {
    let dir = folder();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let dir = dir.path();
            scope.spawn(move || (0..8).for_each(|n| append(dir, &[row(&format!("w{writer}"), n)])));
        }
    });
    assert_eq!(read_rows(dir.path()).expect("reads").len(), 32);
}

#[test]
fn a_writer_that_stays_open_sees_what_others_wrote() {
    let dir = folder();
    let (mut writer, _) = ReplayWriter::open(dir.path()).expect("opens");
    assert_eq!(writer.append(&[row("a", 0)]).expect("appends"), []);
    append(dir.path(), &[row("b", 0)]);
    assert_eq!(writer.append(&[row("c", 0)]).expect("appends"), []);
    let bytes = fs::read(file(dir.path())).expect("reads");
    fs::write(file(dir.path()), &bytes[..bytes.len() - 9]).expect("writes");
    let notices = writer.append(&[row("d", 0)]).expect("appends");
    assert!(notices[0].to_string().contains("replays.jsonl:3: dropped"), "{notices:?}");
    assert_eq!(read_rows(dir.path()).expect("reads"), [row("a", 0), row("b", 0), row("d", 0)]);
}

#[test]
fn a_repair_sets_damaged_replays_aside_and_an_open_writer_goes_on() {
    let dir = folder();
    let (mut writer, _) = ReplayWriter::open(dir.path()).expect("opens");
    writer.append(&[row("a", 0), row("b", 0), row("c", 0)]).expect("appends");
    let text = fs::read_to_string(file(dir.path())).expect("reads");
    // The last line is complete, so the damage is not a torn line.
    let damaged = text.replacen("\"cell\":\"c\"", "\"cell\":\"x\"", 1);
    fs::write(file(dir.path()), &damaged).expect("writes");
    assert!(matches!(read_rows(dir.path()), Err(StoreError::BadLine { line: 3, .. })));
    let repairs = repair_store(dir.path()).expect("repairs");
    assert!(matches!(repairs.as_slice(), [Repair::Lines { lines, .. }] if lines == &[3]), "{repairs:?}");
    let aside = fs::read_to_string(dir.path().join("replays.jsonl.damaged")).expect("there");
    assert_eq!(aside.lines().count(), 1);
    writer.append(&[row("d", 0)]).expect("appends to the file that is there now");
    assert_eq!(read_rows(dir.path()).expect("reads"), [row("a", 0), row("b", 0), row("d", 0)]);
}

#[test]
fn a_merge_carries_replays_along_whatever_the_order() {
    let (a, b) = (folder(), folder());
    let corrupt = ended(End::Corrupt, row("x", 0));
    let later = row("y", 0).with(|row| row.started_ns = 9);
    append(a.path(), &[corrupt.clone(), row("y", 0)]);
    append(b.path(), &[row("x", 0).with(|row| row.started_ns = 9), later.clone()]);
    for dirs in [[a.path(), b.path()], [b.path(), a.path()]] {
        let into = folder();
        let merged = merge_stores(&dirs, into.path()).expect("merges");
        assert_eq!((merged.read, merged.changed), (4, 2));
        assert_eq!(read_rows(into.path()).expect("reads"), [corrupt.clone(), later.clone()]);
        let again = merge_stores(&dirs, into.path()).expect("merges again");
        assert_eq!(again.changed, 0);
        assert_eq!(read_rows(into.path()).expect("reads").len(), 2);
    }
}

#[test]
fn an_audit_finds_corruption_and_contradictions() {
    assert_eq!(audit_replays(&[row("a", 0), row("a", 1)]), []);
    let corrupt = Performance::without_measurements(End::Corrupt, "handed out twice".to_owned());
    let corrupt = row("a", 0).with(|row| row.performance = corrupt);
    let mut little = row("b", 0);
    little.performance.reserved_peak = 99;
    let findings = audit_replays(&[little.clone(), corrupt]);
    assert!(findings[0].fault == Fault::CorruptReplay && findings[0].is_refutation());
    assert!(findings[1].to_string().contains("served 100 bytes at once, but reserved 99"), "{findings:?}");
    assert_eq!(audit_replays(&[little.with(|row| row.device = "host".to_owned())]), []);
    let over = row("a", 0).with(|row| row.capacity = Some(511));
    assert!(audit_replays(&[over])[0].to_string().contains("reserved 512 bytes of a capacity of 511"));
    let other = row("a", 1).with(|row| row.requests = 47);
    sole_finding(audit_replays(&[row("a", 0), other]), Fault::InstanceMismatch);
    sole_finding(audit_replays(&[row("a", 1)]), Fault::MissingRepetitions);
}

#[cfg(feature = "parquet")]
mod parquet {
    use planlab_results::audit::audit_ends;

    use super::*;

    /// A store whose rows are in a shard; also returns the shard.
    fn compacted(dir: &Path, rows: &[ReplayRow]) -> PathBuf {
        append(dir, rows);
        let mut store = Store::open(dir).expect("opens");
        let shard = store.compact_replays().expect("compacts").expect("there are rows");
        assert_eq!(store.compact_replays().expect("compacts"), None, "they are in it by now");
        shard
    }

    #[test]
    fn compaction_moves_the_journal_and_changes_no_row() {
        let dir = folder();
        let mut odd = row("a", 0);
        odd.performance.free = odd.performance.alloc.take();
        odd.performance.samples.clear();
        let plain =
            row("b", 0).with(|row| (row.sequence, row.until, row.l2_bytes) = (Vec::new(), None, Some(7)));
        let rows = [odd, plain, ended(End::OutOfMemory, row("b", 1))];
        let (mut writer, _) = ReplayWriter::open(dir.path()).expect("opens");
        let shard = compacted(dir.path(), &rows);
        assert!(shard.starts_with(dir.path().join("replays")), "{}", shard.display());
        assert_eq!(fs::metadata(file(dir.path())).expect("there").len(), 0);
        assert_eq!(read_rows(dir.path()).expect("reads"), rows);
        assert_eq!(read_records(dir.path()).expect("reads"), []);
        // A writer that stayed open continues, and a later row counts.
        writer.append(&[row("a", 0)]).expect("appends");
        assert_eq!(read_rows(dir.path()).expect("reads")[0], row("a", 0));
        compacted(dir.path(), &[]);
        let expected = [row("a", 0), rows[1].clone(), rows[2].clone()];
        assert_eq!(read_rows(dir.path()).expect("reads"), expected);
    }

    #[test]
    fn a_row_that_was_lost_is_not_forgotten_by_a_compaction() {
        let dir = folder();
        append(dir.path(), &[row("a", 0), row("b", 0)]);
        let bytes = fs::read(file(dir.path())).expect("reads");
        fs::write(file(dir.path()), &bytes[..bytes.len() - 9]).expect("writes");
        let mut store = Store::open(dir.path()).expect("opens");
        assert_eq!(store.compact_replays().expect("leaves it"), None);
        sole_finding(audit_ends(dir.path()).expect("reads"), Fault::TornLine);
    }

    #[test]
    fn a_merge_reads_shards_and_journals_alike() {
        let (a, b, into) = (folder(), folder(), folder());
        compacted(a.path(), &[row("x", 0)]);
        append(b.path(), &[row("y", 0)]);
        let merged = merge_stores(&[a.path(), b.path()], into.path()).expect("merges");
        assert_eq!((merged.read, merged.changed), (2, 2));
        assert_eq!(read_rows(into.path()).expect("reads"), [row("x", 0), row("y", 0)]);
        let again = merge_stores(&[into.path()], a.path()).expect("merges");
        assert_eq!((again.changed, read_rows(a.path()).expect("reads").len()), (1, 2));
    }

    #[test]
    fn only_a_manifest_that_names_replays_is_of_the_newer_version() {
        let (dir, mut store) = empty_store();
        let manifest = || fs::read_to_string(dir.path().join("manifest.json")).expect("there");
        store.append(&crate::common::row("a", 0)).expect("appends");
        store.compact().expect("compacts").expect("there is a row");
        drop(store);
        assert!(manifest().contains("\"version\": 1") && !manifest().contains("replays"), "{}", manifest());
        compacted(dir.path(), &[row("b", 0)]);
        assert!(manifest().contains("\"version\": 2") && manifest().contains("replays"), "{}", manifest());
        assert_eq!(read_records(dir.path()).expect("reads").len(), 1);
    }
}
