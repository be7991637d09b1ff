//! The store survives accidents: torn and corrupt lines, two writers, a crash during compaction.

use std::fs;
use std::path::Path;

use crate::common::{empty_store, folder, row, sole_finding, store_of};
use planlab_results::audit::{Fault, Finding, audit_ends};
use planlab_results::{
    Record, Repair, SCHEMA, Status, Store, StoreError, merge_stores, read_records, repair_store,
};

fn failed(cell: &str) -> Record {
    let (samples_ns, trajectory) = (Vec::new(), Vec::new());
    let (status, signal) = (Status::Crashed, Some(11));
    row(cell, 0).with(|row| {
        (row.status, row.height, row.signal) = (status, None, signal);
        (row.samples_ns, row.trajectory) = (samples_ns, trajectory);
    })
}

fn journal(dir: &Path) -> std::path::PathBuf {
    dir.join("journal.jsonl")
}

fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

fn append(dir: &Path, row: &Record) {
    Store::open(dir).expect("opens").append(row).expect("appends");
}

/// Changes the row of a cell in the journal, so that it does not match its checksum.
fn damage(dir: &Path, cell: &str) {
    let text = fs::read_to_string(journal(dir)).expect("reads");
    fs::write(journal(dir), text.replacen(&format!("\"cell\":\"{cell}\""), "\"cell\":\"?\"", 1))
        .expect("writes");
}

/// The errors of reading and of opening.
fn refusals(dir: &Path) -> [StoreError; 2] {
    [read_records(dir).expect_err("refused"), Store::open(dir).expect_err("refused")]
}

#[test]
fn rows_come_back_as_they_were_and_the_latest_counts() {
    let (dir, mut store) = empty_store();
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
    let dir = store_of(&[row("a", 0)]);
    let whole = fs::read(journal(dir.path())).expect("reads");
    append(dir.path(), &row("b", 0));
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
    let dir = store_of(&[row("a", 0)]);
    let bytes = fs::read(journal(dir.path())).expect("reads");
    fs::write(journal(dir.path()), &bytes[..bytes.len() - 1]).expect("writes");
    let mut store = Store::open(dir.path()).expect("opens");
    assert_eq!(store.notices(), []);
    store.append(&row("b", 0)).expect("appends");
    drop(store);
    assert_eq!(read_records(dir.path()).expect("reads"), [row("a", 0), row("b", 0)]);
}

#[test]
fn a_damaged_line_is_an_error_that_names_it_wherever_it_is() {
    for cells in [&["a", "b", "c"][..], &["a", "b"]] {
        let dir = store_of(&cells.iter().map(|cell| row(cell, 0)).collect::<Vec<_>>());
        damage(dir.path(), "b");
        for error in refusals(dir.path()) {
            assert!(matches!(error, StoreError::BadLine { line: 2, .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("journal.jsonl:2: the row does not match its checksum"), "{text}");
            assert!(text.contains("audit --repair"), "{text}");
        }
    }
}

#[test]
fn a_repair_sets_damaged_lines_aside_and_keeps_the_others() {
    let (dir, mut store) = empty_store();
    store.append_all(&[row("a", 0), row("b", 0), row("c", 0), row("d", 0)]).expect("appends");
    assert!(matches!(repair_store(dir.path()), Err(StoreError::Locked { .. })), "a writer is at work");
    drop(store);
    assert_eq!(repair_store(dir.path()).expect("nothing to do"), []);
    ["b", "d"].iter().for_each(|cell| damage(dir.path(), cell));
    let damaged = fs::read_to_string(journal(dir.path())).expect("reads");
    fs::write(journal(dir.path()), format!("{damaged}torn")).expect("writes");
    let repairs = repair_store(dir.path()).expect("repairs");
    let [Repair::Lines { aside, lines, .. }] = repairs.as_slice() else { panic!("{repairs:?}") };
    assert_eq!(lines, &[2, 4, 5]);
    let told = repairs[0].to_string();
    assert!(told.contains("3 damaged lines set aside in") && told.ends_with("lines 2, 4, 5"), "{told}");
    let kept = fs::read_to_string(aside).expect("they are there");
    let expected: Vec<&str> = damaged.lines().skip(1).step_by(2).chain(["torn"]).collect();
    assert_eq!(kept.lines().collect::<Vec<_>>(), expected);
    assert_eq!(read_records(dir.path()).expect("reads"), [row("a", 0), row("c", 0)]);
    // A second repair appends to the lines set aside earlier.
    damage(dir.path(), "a");
    assert_eq!(repair_store(dir.path()).expect("repairs").len(), 1);
    assert_eq!(fs::read_to_string(aside).expect("they are there").lines().count(), 4);
    append(dir.path(), &row("a", 0));
    assert_eq!(read_records(dir.path()).expect("reads"), [row("c", 0), row("a", 0)]);
}

/// A line with a valid checksum and any content.
fn line(json: &str) -> String {
    format!("{} {json}\n", &blake3::hash(json.as_bytes()).to_hex()[..16])
}

#[test]
fn a_row_that_is_whole_and_of_another_version_is_not_damaged() {
    let newer = format!(r#"{{"schema":{},"all":"else"}}"#, SCHEMA + 1);
    let alike = row("b", 0).with(|row| row.schema = SCHEMA + 1);
    let alike = serde_json::to_string(&alike).expect("plain data");
    let is_newer = format!("it has schema {}, but this program reads schema {SCHEMA}", SCHEMA + 1);
    let strange = format!(r#"{{"schema":{SCHEMA},"all":"else"}}"#);
    for (json, told) in [
        (newer, is_newer.clone()),
        (alike, is_newer),
        (strange, format!("journal.jsonl:2: a row of another version of planlab (schema {SCHEMA})")),
        ("[]".to_owned(), "a row of another version of planlab (schema none)".to_owned()),
    ] {
        let dir = store_of(&[row("a", 0)]);
        let text = fs::read_to_string(journal(dir.path())).expect("reads") + &line(&json);
        fs::write(journal(dir.path()), &text).expect("writes");
        for error in [
            read_records(dir.path()).expect_err("refused"),
            Store::open(dir.path()).expect_err("refused"),
            repair_store(dir.path()).expect_err("refused"),
        ] {
            assert!(error.to_string().contains(&told) && !error.to_string().contains("--repair"), "{error}");
        }
        assert_eq!(fs::read_to_string(journal(dir.path())).expect("there"), text);
    }
}

#[test]
fn a_manifest_of_a_newer_version_is_left_alone() {
    let dir = store_of(&[row("a", 0)]);
    let manifest = dir.path().join("manifest.json");
    let text = r#"{"version": 4, "parts": ["of", "another", "shape"]}"#;
    fs::write(&manifest, text).expect("writes");
    fs::write(journal(dir.path()), "damaged\n").expect("writes");
    let error = repair_store(dir.path()).expect_err("refused");
    assert!(matches!(error, StoreError::Schema { found: 4, known: 3, .. }), "{error}");
    assert_eq!(fs::read_to_string(&manifest).expect("there"), text);
    assert_eq!(fs::read_to_string(journal(dir.path())).expect("there"), "damaged\n");
}

#[test]
fn a_manifest_of_a_version_that_never_was_is_damaged() {
    let dir = store_of(&[row("a", 0)]);
    fs::write(dir.path().join("manifest.json"), r#"{"version": 0, "shards": []}"#).expect("writes");
    let error = planlab_results::missing_shards(dir.path()).expect_err("damaged");
    assert!(matches!(error, StoreError::BadFile { .. }), "{error}");
}

#[test]
fn a_last_line_feed_that_is_not_what_was_written_is_damage() {
    let dir = store_of(&[row("a", 0), row("b", 0)]);
    let mut bytes = fs::read(journal(dir.path())).expect("reads");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(journal(dir.path()), &bytes).expect("writes");
    for error in refusals(dir.path()) {
        assert!(matches!(error, StoreError::BadLine { line: 2, .. }), "{error}");
    }
    assert_eq!(fs::read(journal(dir.path())).expect("there"), bytes, "nothing is cut off");
    let repairs = repair_store(dir.path()).expect("repairs");
    assert!(matches!(repairs.as_slice(), [Repair::Lines { lines, .. }] if lines == &[2]), "{repairs:?}");
    assert_eq!(read_records(dir.path()).expect("reads"), [row("a", 0)]);
}

#[test]
fn a_last_line_that_was_cut_short_is_found_and_set_aside() {
    let dir = store_of(&[row("a", 0), row("b", 0)]);
    assert_eq!(audit_ends(dir.path()).expect("reads"), []);
    let bytes = fs::read(journal(dir.path())).expect("reads");
    fs::write(journal(dir.path()), &bytes[..bytes.len() - 2]).expect("writes");
    let torn = sole_finding(audit_ends(dir.path()).expect("reads"), Fault::TornLine);
    let repairs = repair_store(dir.path()).expect("repairs");
    let [Repair::Lines { aside, lines, .. }] = repairs.as_slice() else { panic!("{repairs:?}") };
    assert_eq!(lines, &[2]);
    let line = bytes.split_inclusive(|&byte| byte == b'\n').nth(1).expect("two lines").len();
    let said = format!("journal.jsonl:2: the last line was cut short after {} bytes", line - 2);
    assert!(torn.message.contains(&said), "{torn}");
    assert_eq!(fs::read(aside).expect("it is kept").len(), line - 1);
    assert_eq!(audit_ends(dir.path()).expect("reads"), []);
}

#[test]
fn a_repair_changes_nothing_in_a_folder_of_something_else() {
    for manifest in [r#"{"version": 1, "files": []}"#, r#"{"version": 4}"#, "of a person"] {
        let dir = folder();
        fs::write(dir.path().join("manifest.json"), manifest).expect("writes");
        assert!(matches!(repair_store(dir.path()), Err(StoreError::NoResults { .. })));
        assert!(matches!(Store::open(dir.path()), Err(StoreError::NotAStore { .. })));
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1, "no lock");
    }
}

#[test]
fn a_second_writer_is_refused_until_the_first_is_gone() {
    let (dir, store) = empty_store();
    let error = Store::open(dir.path()).expect_err("refused");
    assert!(matches!(&error, StoreError::Locked { holder, .. } if holder.starts_with("process ")), "{error}");
    drop(store);
    assert!(Store::open(dir.path()).is_ok());
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_of_the_file_system() {
    let dir = folder();
    fs::write(dir.path().join("file"), "").expect("writes");
    assert!(matches!(Store::open(dir.path().join("file/store")), Err(StoreError::Io { .. })));
    assert!(matches!(read_records(dir.path().join("absent")), Err(StoreError::Io { .. })));
}

#[test]
fn a_folder_without_results_is_not_a_store_to_read() {
    let dir = folder();
    let error = read_records(dir.path()).expect_err("refused");
    assert!(matches!(error, StoreError::NoResults { .. }), "{error}");
    assert!(error.to_string().contains("holds no results"), "{error}");
    drop(Store::open(dir.path()).expect("makes the store"));
    assert_eq!(read_records(dir.path()).expect("a store without rows"), []);
}

#[test]
fn a_merge_that_fails_leaves_no_folder() {
    let (good, bad, home) = (store_of(&[row("a", 0)]), folder(), folder());
    let into = home.path().join("deep/into");
    merge_stores(&[good.path(), bad.path()], &into).expect_err("one of them holds no results");
    assert!(!into.exists());
    // A folder cannot be read as a file: copying from this source fails.
    fs::create_dir(good.path().join("plans").join("x.parquet")).expect("makes a folder");
    merge_stores(&[good.path()], &into).expect_err("a source cannot be read");
    let left: Vec<_> = fs::read_dir(home.path()).expect("reads").collect();
    assert!(left.is_empty(), "{left:?}");
    fs::remove_dir(good.path().join("plans").join("x.parquet")).expect("removes");
    merge_stores(&[good.path()], &into).expect("merges");
    assert_eq!(read_records(&into).expect("reads"), [row("a", 0)]);
}

#[test]
fn a_later_row_without_an_answer_does_not_replace_an_answer() {
    let at = |status, started_ns| row("a", 0).with(|row| (row.status, row.started_ns) = (status, started_ns));
    let cases = [
        (Status::Feasible, 1, Status::Timeout, 2),
        (Status::Infeasible, 1, Status::Crashed, 2),
        (Status::Optimal, 2, Status::Feasible, 1),
        (Status::Unknown, 1, Status::Interrupted, 2),
        (Status::Timeout, 2, Status::Crashed, 1),
    ];
    for (better, first, worse, second) in cases {
        let (a, b, into) = (store_of(&[at(better, first)]), store_of(&[at(worse, second)]), folder());
        for dirs in [[a.path(), b.path()], [b.path(), a.path()]] {
            let fresh = into.path().join("fresh");
            merge_stores(&dirs, &fresh).expect("merges");
            assert_eq!(read_records(&fresh).expect("reads"), [at(better, first)], "{worse:?}");
            fs::remove_dir_all(&fresh).expect("removes");
        }
        merge_stores(&[b.path()], a.path()).expect("merges into what is there");
        assert_eq!(read_records(a.path()).expect("reads"), [at(better, first)], "{worse:?}");
    }
}

#[test]
fn a_merge_depends_on_no_order_and_can_be_done_twice() {
    let later = |row: Record, started_ns| row.with(|row| row.started_ns = started_ns);
    let interrupted = later(row("c", 0), 9).with(|row| row.status = Status::Interrupted);
    let one = store_of(&[failed("a"), row("b", 0), interrupted]);
    let expected = [later(row("a", 0), 5), row("b", 0), row("c", 0), row("d", 2)];
    let two = store_of(&expected);
    fs::write(two.path().join("plans/x.parquet"), "x").expect("writes");
    for dirs in [[one.path(), two.path()], [two.path(), one.path()]] {
        let into = folder();
        let merged = merge_stores(&dirs, into.path()).expect("merges");
        assert_eq!((merged.read, merged.changed, merged.files), (7, 4, 1));
        assert_eq!(read_records(into.path()).expect("reads"), expected);
        let again = merge_stores(&dirs, into.path()).expect("merges");
        assert_eq!((again.changed, again.files), (0, 0));
        assert_eq!(read_records(into.path()).expect("reads"), expected);
    }
}

#[cfg(feature = "parquet")]
mod parquet {
    use planlab_results::audit::audit_shards;
    use planlab_results::{MissingShard, missing_shards};

    use super::*;

    fn shards(dir: &Path) -> usize {
        fs::read_dir(dir.join("shards")).expect("reads").count()
    }

    /// Moves the rows of the journal to a shard.
    fn compact(dir: &Path) -> std::path::PathBuf {
        let shard = Store::open(dir).expect("opens").compact().expect("compacts");
        shard.expect("there are rows")
    }

    /// A store with one row in a shard, and the shard.
    fn compacted() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = store_of(&[row("a", 0)]);
        let shard = compact(dir.path());
        (dir, shard)
    }

    #[test]
    fn compaction_moves_the_journal_and_changes_no_row() {
        let (dir, mut store) = empty_store();
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
        let dir = store_of(&[row("a", 0), row("b", 0)]);
        let before = fs::read(journal(dir.path())).expect("reads");
        compact(dir.path());
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
        let dir = store_of(&[row("a", 0)]);
        fs::write(dir.path().join("shards/.tmp-x.parquet"), "half").expect("writes");
        assert_eq!(read_records(dir.path()).expect("reads"), [row("a", 0)]);
    }

    #[test]
    fn a_shard_that_is_gone_is_missed_until_a_repair_forgets_it() {
        let dir = store_of(&[row("a", 0), row("b", 0)]);
        let lost = compact(dir.path());
        append(dir.path(), &row("c", 0));
        compact(dir.path());
        assert_eq!(missing_shards(dir.path()).expect("reads"), []);
        assert_eq!(audit_shards(dir.path(), false).expect("reads"), []);
        fs::remove_file(&lost).expect("removes");
        let missing = missing_shards(dir.path()).expect("reads");
        assert_eq!(missing, [MissingShard { path: lost, rows: 2 }]);
        let findings = audit_shards(dir.path(), false).expect("reads");
        assert_eq!(findings, [Finding::new(Fault::MissingShard, missing[0].to_string())]);
        let store = Store::open(dir.path()).expect("opens all the same");
        assert!(store.notices()[0].to_string().contains("and 2 rows with it"), "{:?}", store.notices());
        assert_eq!(store.records(), [row("c", 0)]);
        drop(store);
        // Rows that are made again do not hide a missing shard.
        append(dir.path(), &row("a", 0));
        compact(dir.path());
        assert_eq!(missing_shards(dir.path()).expect("reads"), missing);
        let repairs = repair_store(dir.path()).expect("repairs");
        let [Repair::Forgotten { shard, aside }] = repairs.as_slice() else { panic!("{repairs:?}") };
        assert_eq!(*shard, missing[0]);
        assert_eq!(*aside, dir.path().join("manifest.json.damaged"));
        assert!(fs::read_to_string(aside).expect("it is kept").contains(&name(&missing[0].path)));
        assert_eq!(missing_shards(dir.path()).expect("reads"), []);
    }

    #[test]
    fn a_store_without_a_manifest_is_read_and_the_next_shard_names_all() {
        let (dir, first) = compacted();
        let manifest = dir.path().join("manifest.json");
        fs::remove_file(&manifest).expect("it is there");
        assert_eq!(read_records(dir.path()).expect("reads"), [row("a", 0)]);
        assert_eq!(missing_shards(dir.path()).expect("reads"), []);
        append(dir.path(), &row("b", 0));
        compact(dir.path());
        fs::remove_file(&first).expect("removes");
        assert_eq!(missing_shards(dir.path()).expect("reads").len(), 1);
        // A damaged manifest does not block the store permanently.
        fs::write(&manifest, "{").expect("writes");
        assert!(Store::open(dir.path()).expect_err("refused").to_string().contains("audit --repair"));
        fs::write(dir.path().join("manifest.json.damaged"), "of an earlier repair").expect("writes");
        let repairs = repair_store(dir.path()).expect("repairs");
        let [Repair::Manifest { aside, .. }] = repairs.as_slice() else { panic!("{repairs:?}") };
        assert_eq!(*aside, dir.path().join("manifest.json.damaged.2"));
        assert_eq!(fs::read_to_string(aside).expect("it is kept"), "{");
        assert_eq!(Store::open(dir.path()).expect("opens").records(), [row("b", 0)]);
        // The new one lists the existing shard, so that its loss is noticed from now on.
        let shards = fs::read_dir(dir.path().join("shards")).expect("there");
        let second = shards.map(|entry| entry.expect("readable").path()).next().expect("a shard");
        let text = fs::read_to_string(&manifest).expect("there");
        let expected = format!("\"name\": \"{}\",\n      \"rows\": 1", name(&second));
        assert!(text.contains(&expected) && !text.contains(&name(&first)), "{text}");
        fs::remove_file(&second).expect("removes");
        assert_eq!(missing_shards(dir.path()).expect("reads"), [MissingShard { path: second, rows: 1 }]);
    }

    #[test]
    fn a_shard_that_is_not_what_was_written_is_found_and_set_aside() {
        for damage in [|bytes: &mut Vec<u8>| bytes[10] ^= 1, |bytes: &mut Vec<u8>| bytes.truncate(99)] {
            let (dir, shard) = compacted();
            let mut bytes = fs::read(&shard).expect("reads");
            damage(&mut bytes);
            fs::write(&shard, bytes).expect("writes");
            let error = read_records(dir.path()).expect_err("refused");
            assert!(matches!(&error, StoreError::BadFile { path, .. } if *path == shard), "{error}");
            let text = error.to_string();
            assert!(text.contains("another digest than its name") && text.contains("audit --repair"));
            let repairs = repair_store(dir.path()).expect("repairs");
            let is_aside = matches!(repairs.as_slice(), [Repair::Shard { aside, .. }] if aside.exists());
            assert!(is_aside, "{repairs:?}");
            assert_eq!(read_records(dir.path()).expect("reads"), []);
            assert_eq!(missing_shards(dir.path()).expect("reads"), []);
        }
    }

    #[test]
    fn plans_without_any_row_tell_of_lost_rows_where_there_is_no_manifest() {
        let dir = folder();
        drop(Store::open(dir.path()).expect("makes the store"));
        assert_eq!(audit_shards(dir.path(), false).expect("reads"), []);
        fs::write(dir.path().join("plans/x.parquet"), "x").expect("writes");
        let lost = sole_finding(audit_shards(dir.path(), false).expect("reads"), Fault::NoRows);
        assert!(lost.message.starts_with("there are 0 instances and 1 plans, but no rows;"));
        assert!(lost.is_loss_of_rows() && !lost.is_refutation());
        assert_eq!(audit_shards(dir.path(), true).expect("reads"), []);
    }

    #[test]
    fn a_table_of_rows_comes_back_as_rows() {
        let rows = [failed("a"), row("b", 0), row("b", 1)];
        let frame = planlab_results::frame::to_frame(&rows).expect("makes a table");
        assert_eq!((frame.height(), frame.width()), (3, 56));
        assert_eq!(planlab_results::frame::from_frame(frame).expect("reads"), rows);
        // Older tables lack later columns.
        for later in ["reported_ns", "orders_run", "orders_failed", "order_bound"] {
            let frame = planlab_results::frame::to_frame(&rows).expect("makes a table");
            let old = frame.drop(later).expect("it is there");
            assert_eq!(planlab_results::frame::from_frame(old).expect("reads"), rows);
        }
        let mut odd = planlab_results::frame::to_frame(&rows).expect("makes a table");
        odd.replace("stop", polars::prelude::Column::new("stop".into(), ["finished", "tired", "proved"]))
            .expect("as long");
        let error = planlab_results::frame::from_frame(odd).expect_err("refused").to_string();
        assert!(
            error.contains("column `stop`: unknown variant `tired`, expected one of `finished`"),
            "{error}"
        );
        let none = planlab_results::frame::to_frame(&[]).expect("makes a table");
        assert_eq!(planlab_results::frame::from_frame(none).expect("reads"), []);
    }
}

#[test]
fn a_folder_of_something_else_takes_no_results() {
    let home = folder();
    fs::write(home.path().join("lock"), "precious").expect("writes");
    fs::write(home.path().join("notes.txt"), "precious").expect("writes");
    let error = Store::open(home.path()).expect_err("refused");
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    let source = store_of(&[row("a", 0)]);
    merge_stores(&[source.path()], home.path()).expect_err("refused");
    // A foreign lock file is not overwritten, whatever is beside it.
    fs::create_dir(home.path().join("shards")).expect("makes a folder");
    Store::open(home.path()).expect_err("refused");
    assert_eq!(fs::read_to_string(home.path().join("lock")).expect("there"), "precious");
}

#[test]
fn a_merge_goes_nowhere_near_what_it_reads() {
    let home = folder();
    let path = |name: &str| home.path().join(name);
    for name in ["one", "one/two"] {
        append(&path(name), &row("a", 0));
    }
    for (from, into) in [("one", "one"), ("one", "one/new"), ("one/two", "one")] {
        let error = merge_stores(&[path(from)], path(into)).expect_err("refused");
        assert!(matches!(error, StoreError::Folder(_)), "{from} {into}: {error}");
    }
    merge_stores(&[path("one")], path("three")).expect("merges");
}

#[test]
fn a_merge_into_a_store_removes_what_a_killed_one_left_beside_it() {
    let (from, home) = (store_of(&[row("cell", 0)]), folder());
    let into = home.path().join("into");
    drop(Store::open(&into).expect("makes the store"));
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
    let left = home.path().join(format!(".planlab-tmp-{}-aB3xYz", &boot[..8]));
    fs::create_dir(&left).expect("writable");
    // Killed after the store got its name, with the lock file still in the folder.
    fs::write(left.join("lock"), "").expect("writable");
    merge_stores(&[from.path()], &into).expect("merges");
    assert!(!left.exists(), "it is not removed");
}
