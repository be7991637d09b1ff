//! Every later version can read the curated records.

use std::fs;
use std::path::{Path, PathBuf};

use planlab_results::audit::{audit, audit_replays, audit_schedules};
use planlab_results::framework::read_frameworks;
use planlab_results::replay::read_rows;
use planlab_results::schedule::read_schedules;
use planlab_results::{Store, merge_stores, read_records};
use tempfile::TempDir;

use crate::common::folder;

/// The numbers of rows, replays, schedules and framework rows in each folder.
const RECORDS: [(&str, [usize; 4]); 16] = [
    ("2026-11-21-2-core-vm", [4757, 0, 0, 0]),
    ("2026-11-21-2-core-vm-exact", [1125, 0, 0, 0]),
    ("2026-11-21-2-core-vm-planners", [759, 0, 0, 0]),
    ("2026-11-21-2-core-vm-scale", [1154, 0, 0, 0]),
    ("2026-11-22-2-core-vm-allocators", [0, 1287, 0, 0]),
    ("2026-11-22-2-core-vm-replay-host", [0, 474, 0, 0]),
    ("2026-11-23-2-core-vm-d", [11, 0, 0, 0]),
    ("2026-11-23-2-core-vm-frameworks", [0, 0, 0, 80]),
    ("2026-11-23-2-core-vm-frameworks-batches", [0, 0, 0, 219]),
    ("2026-11-23-2-core-vm-models", [1529, 432, 0, 0]),
    ("2026-11-24-2-core-vm-leaderboard", [881, 0, 0, 0]),
    // Pictures, without rows.
    ("2026-11-24-2-core-vm-pages", [0, 0, 0, 0]),
    ("2026-11-25-2-core-vm-pages", [0, 0, 0, 0]),
    ("2026-11-25-2-core-vm-tilings", [623, 0, 0, 0]),
    ("2026-11-25-2-core-vm-viewer", [0, 0, 0, 0]),
    ("2026-11-26-2-core-vm-offload", [0, 0, 1030, 0]),
];

fn curated() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("records")
}

/// A store of a folder of records: its tables as shards, its replays as the single file of earlier versions.
pub(crate) fn copy_records(name: &str) -> TempDir {
    let copy = folder();
    let store = copy.path();
    for folder in ["shards", "schedules"] {
        fs::create_dir_all(store.join(folder)).expect("makes folders");
    }
    for entry in fs::read_dir(curated().join(name)).expect("there") {
        let path = entry.expect("readable").path();
        let file = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if file == "schedules.parquet" {
            fs::copy(&path, store.join("schedules/000001.parquet")).expect("copies");
        } else if file.ends_with(".parquet") {
            fs::copy(&path, store.join("shards").join(file)).expect("copies");
        } else if let Some(plain) = file.strip_suffix(".jsonl.zst") {
            let packed = fs::File::open(&path).expect("opens");
            let text = zstd::decode_all(packed).expect("unpacks");
            fs::write(store.join(plain).with_extension("jsonl"), text).expect("writes");
        }
    }
    copy
}

#[test]
fn every_folder_is_known() {
    let folders = fs::read_dir(curated()).expect("there").map(|entry| entry.expect("readable").file_name());
    let mut folders: Vec<String> = folders.map(|name| name.to_string_lossy().into_owned()).collect();
    folders.sort_unstable();
    assert_eq!(folders, RECORDS.map(|(name, _)| name));
}

#[test]
fn all_rows_are_read_and_none_contradicts_another() {
    for (name, counts) in RECORDS {
        let dir = copy_records(name);
        let (records, played) = (read_records(dir.path()).expect(name), read_rows(dir.path()).expect(name));
        let schedules = read_schedules(dir.path()).expect(name);
        let frameworks = read_frameworks(dir.path()).expect(name);
        let read = [records.len(), played.len(), schedules.len(), frameworks.len()];
        assert_eq!(read, counts, "{name}");
        let refuted = audit(&records).into_iter().chain(audit_replays(&played));
        let refuted = refuted.chain(audit_schedules(&schedules));
        assert_eq!(refuted.filter(|finding| finding.is_refutation()).count(), 0, "{name}");
        assert!(records.iter().all(|row| !row.workload.route().is_empty()));
    }
}

#[test]
fn an_old_file_of_replays_is_merged_and_compacted_without_a_loss() {
    let (old, new) = (copy_records("2026-11-22-2-core-vm-allocators"), folder());
    let mut before = read_rows(old.path()).expect("reads");
    merge_stores(&[old.path()], new.path()).expect("merges");
    let mut store = Store::open(new.path()).expect("opens");
    store.compact_replays().expect("compacts").expect("there are rows");
    drop(store);
    assert_eq!(fs::metadata(new.path().join("replays.jsonl")).expect("there").len(), 0);
    let mut after = read_rows(new.path()).expect("reads");
    before.sort_by(|a, b| (&a.cell, a.repetition).cmp(&(&b.cell, b.repetition)));
    after.sort_by(|a, b| (&a.cell, a.repetition).cmp(&(&b.cell, b.repetition)));
    assert_eq!(after, before);
}
