//! The store survives what happens to it: torn and corrupt lines, two writers, a crash in a compaction.

use std::fs;
use std::path::Path;

use planlab_results::{Lane, Point, Provenance, Record, SCHEMA, Status, Store, StoreError, read_records};

fn row(cell: &str, repetition: u32) -> Record {
    Record {
        schema: SCHEMA,
        cell: cell.to_owned(),
        repetition,
        lane: Lane::Timing,
        suite: "smoke".to_owned(),
        workload: "synthetic/uniform/n10/s1".to_owned(),
        instance: "ab".repeat(32),
        buffers: 10,
        planner: "best-fit".to_owned(),
        planner_version: "0123".to_owned(),
        parameters: "{}".to_owned(),
        seed: u64::MAX,
        wall_limit_ns: Some(10_000_000_000),
        memory_limit_bytes: None,
        work_limit: None,
        target_bytes: None,
        mechanism: "rlimit".to_owned(),
        status: Status::Feasible,
        stop: Some("finished".to_owned()),
        reason: "a \"quote\", a\nline and a \u{1f600}".to_owned(),
        exit_code: Some(0),
        signal: None,
        stderr_tail: String::new(),
        height: Some(u64::MAX - 1),
        load: 100,
        relaxed_load: 90,
        bound: 100,
        bound_evidence: "load".to_owned(),
        bound_scope: "no-hand-over".to_owned(),
        hand_overs: 0,
        samples_ns: vec![5, 3, 4],
        cpu_ns: None,
        work: 7,
        peak_rss_bytes: Some(1 << 20),
        trajectory: vec![
            Point { elapsed_ns: 1, height: None, bound: 90 },
            Point { elapsed_ns: 2, height: Some(120), bound: 100 },
        ],
        plan: None,
        started_ns: 1,
        provenance: Provenance { host: "h".to_owned(), cores: 2, ..Provenance::default() },
    }
}

fn failed(cell: &str) -> Record {
    let mut row = row(cell, 0);
    row.status = Status::Crashed;
    row.height = None;
    row.signal = Some(11);
    row.samples_ns.clear();
    row.trajectory.clear();
    row
}

fn journal(dir: &Path) -> std::path::PathBuf {
    dir.join("journal.jsonl")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn rows_come_back_as_they_were_and_the_latest_counts() {
    let dir = folder();
    let mut store = Store::open(dir.path()).expect("opens");
    for row in [failed("a"), row("b", 0), row("b", 1), row("a", 0)] {
        store.append(&row).expect("appends");
    }
    let expected = [row("a", 0), row("b", 0), row("b", 1)];
    assert_eq!(store.records(), expected);
    assert_eq!(store.record("b", 1), Some(&expected[2]));
    assert_eq!(read_records(dir.path()).expect("reads beside the writer"), expected);
    drop(store);
    let store = Store::open(dir.path()).expect("opens again");
    assert_eq!(store.records(), expected);
    assert_eq!(store.notices(), []);
}

#[test]
fn a_torn_last_line_is_dropped_with_a_notice_whatever_its_length() {
    let dir = folder();
    let mut store = Store::open(dir.path()).expect("opens");
    store.append(&row("a", 0)).expect("appends");
    let whole = fs::read(journal(dir.path())).expect("reads");
    store.append(&row("b", 0)).expect("appends");
    drop(store);
    let both = fs::read(journal(dir.path())).expect("reads");
    for cut in [whole.len() + 1, whole.len() + 20, both.len() - 2] {
        fs::write(journal(dir.path()), &both[..cut]).expect("writes");
        assert_eq!(read_records(dir.path()).expect("reads"), [row("a", 0)], "cut at {cut}");
        let mut store = Store::open(dir.path()).expect("opens");
        assert_eq!(store.records(), [row("a", 0)], "cut at {cut}");
        let notice = store.notices()[0].to_string();
        assert!(notice.contains("journal.jsonl:2: dropped"), "{notice}");
        store.append(&row("c", 0)).expect("appends");
        drop(store);
        assert_eq!(read_records(dir.path()).expect("reads"), [row("a", 0), row("c", 0)]);
    }
}

#[test]
fn a_line_without_its_line_feed_is_whole_and_the_next_row_starts_a_line() {
    let dir = folder();
    Store::open(dir.path()).expect("opens").append(&row("a", 0)).expect("appends");
    let bytes = fs::read(journal(dir.path())).expect("reads");
    fs::write(journal(dir.path()), &bytes[..bytes.len() - 1]).expect("writes");
    let mut store = Store::open(dir.path()).expect("opens");
    assert_eq!(store.notices(), []);
    store.append(&row("b", 0)).expect("appends");
    drop(store);
    assert_eq!(read_records(dir.path()).expect("reads"), [row("a", 0), row("b", 0)]);
}

#[test]
fn a_corrupt_line_in_the_middle_is_an_error_that_names_it() {
    let dir = folder();
    let mut store = Store::open(dir.path()).expect("opens");
    store.append_all(&[row("a", 0), row("b", 0), row("c", 0)]).expect("appends");
    drop(store);
    let text = fs::read_to_string(journal(dir.path())).expect("reads");
    let damaged = text.replacen("\"cell\":\"b\"", "\"cell\":\"x\"", 1);
    fs::write(journal(dir.path()), damaged).expect("writes");
    for error in
        [read_records(dir.path()).expect_err("refused"), Store::open(dir.path()).expect_err("refused")]
    {
        assert!(matches!(error, StoreError::Corrupt { line: 2, .. }), "{error}");
        assert!(
            error.to_string().contains("journal.jsonl:2: the row does not match its checksum"),
            "{error}"
        );
    }
}

#[test]
fn a_row_of_a_newer_schema_is_refused_and_not_taken_for_a_torn_line() {
    let dir = folder();
    let mut newer = row("a", 0);
    newer.schema = SCHEMA + 1;
    Store::open(dir.path()).expect("opens").append(&newer).expect("appends");
    let error = read_records(dir.path()).expect_err("refused");
    assert!(
        matches!(error, StoreError::Schema { found, known: SCHEMA, .. } if found == SCHEMA + 1),
        "{error}"
    );
}

#[test]
fn a_second_writer_is_refused_until_the_first_is_gone() {
    let dir = folder();
    let store = Store::open(dir.path()).expect("opens");
    let error = Store::open(dir.path()).expect_err("refused");
    assert!(matches!(&error, StoreError::Locked { holder, .. } if holder.starts_with("process ")), "{error}");
    drop(store);
    assert!(Store::open(dir.path()).is_ok());
}

#[test]
fn a_folder_that_cannot_be_made_is_unwritable() {
    let dir = folder();
    fs::write(dir.path().join("file"), "").expect("writes");
    let error = Store::open(dir.path().join("file/store")).expect_err("refused");
    assert!(error.is_unwritable() && !error.is_disk_full(), "{error}");
    assert!(read_records(dir.path().join("absent")).expect_err("refused").is_unwritable());
}

#[cfg(feature = "parquet")]
mod parquet {
    use super::*;

    fn shards(dir: &Path) -> usize {
        fs::read_dir(dir.join("shards")).expect("reads").count()
    }

    #[test]
    fn compaction_moves_the_journal_and_changes_no_row() {
        let dir = folder();
        let mut store = Store::open(dir.path()).expect("opens");
        store.append_all(&[failed("a"), row("b", 0), row("b", 1)]).expect("appends");
        let shard = store.compact().expect("compacts").expect("there are rows");
        assert!(shard.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.starts_with("000001-")));
        assert_eq!(fs::metadata(journal(dir.path())).expect("is there").len(), 0);
        assert_eq!(store.compact().expect("compacts"), None);
        store.append(&row("a", 0)).expect("appends");
        store.compact().expect("compacts").expect("there is a row");
        let expected = [row("a", 0), row("b", 0), row("b", 1)];
        assert_eq!(store.records(), expected);
        drop(store);
        assert_eq!(read_records(dir.path()).expect("reads"), expected);
        assert_eq!(Store::open(dir.path()).expect("opens").records(), expected);
        assert_eq!(shards(dir.path()), 2);
    }

    #[test]
    fn a_crash_between_the_shard_and_the_truncation_doubles_nothing() {
        let dir = folder();
        let mut store = Store::open(dir.path()).expect("opens");
        store.append_all(&[row("a", 0), row("b", 0)]).expect("appends");
        let before = fs::read(journal(dir.path())).expect("reads");
        store.compact().expect("compacts");
        drop(store);
        fs::write(journal(dir.path()), before).expect("writes");
        let expected = [row("a", 0), row("b", 0)];
        assert_eq!(read_records(dir.path()).expect("reads"), expected);
        let mut store = Store::open(dir.path()).expect("opens");
        assert_eq!(store.records(), expected);
        assert_eq!(store.compact().expect("compacts"), None, "the rows are in a shard already");
        assert_eq!(fs::metadata(journal(dir.path())).expect("is there").len(), 0);
        assert_eq!(shards(dir.path()), 1);
    }

    #[test]
    fn a_temporary_file_of_a_killed_compaction_is_not_a_shard() {
        let dir = folder();
        Store::open(dir.path()).expect("opens").append(&row("a", 0)).expect("appends");
        fs::write(dir.path().join("shards/.tmp-x.parquet"), "half").expect("writes");
        assert_eq!(read_records(dir.path()).expect("reads"), [row("a", 0)]);
    }

    #[test]
    fn a_damaged_shard_is_an_error_that_names_it() {
        let dir = folder();
        let mut store = Store::open(dir.path()).expect("opens");
        store.append(&row("a", 0)).expect("appends");
        let shard = store.compact().expect("compacts").expect("there is a row");
        drop(store);
        let bytes = fs::read(&shard).expect("reads");
        fs::write(&shard, &bytes[..bytes.len() / 2]).expect("writes");
        let error = read_records(dir.path()).expect_err("refused");
        assert!(matches!(&error, StoreError::BadFile { path, .. } if *path == shard), "{error}");
    }

    #[test]
    fn a_table_of_rows_comes_back_as_rows() {
        let rows = [failed("a"), row("b", 0), row("b", 1)];
        let frame = planlab_results::frame::to_frame(&rows).expect("makes a table");
        assert_eq!((frame.height(), frame.width()), (3, 51));
        assert_eq!(planlab_results::frame::from_frame(frame).expect("reads"), rows);
        let none = planlab_results::frame::to_frame(&[]).expect("makes a table");
        assert_eq!(planlab_results::frame::from_frame(none).expect("reads"), []);
    }
}
