//! Joins stores: the shards of one bench that ran on several machines, or several benches.

use std::collections::BTreeMap;
use std::path::Path;

use crate::record::{Record, Status};
use crate::store::{Store, read_records};
use crate::{StoreError, files};

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Rows read from the stores that were merged.
    pub read: usize,
    /// Rows that the result did not have, or had an earlier version of.
    pub changed: usize,
    /// Instances and plans copied.
    pub files: usize,
}

/// Puts the rows, instances and plans of `dirs` into the store `into`.
///
/// Of several rows of one cell and repetition the one that started last counts, and one that was
/// interrupted only where there is no other: the result depends neither on the order of the folders nor on
/// how often they are merged. Give [`Store::records`] of the result to
/// [`missing_cells`] to see whether the set is complete.
///
/// # Errors
///
/// As [`Store::open`] for `into`, as [`read_records`] for each of `dirs`.
pub fn merge<P: AsRef<Path>>(dirs: &[P], into: impl AsRef<Path>) -> Result<Merged, StoreError> {
    let mut store = Store::open(&into)?;
    let mut merged = Merged::default();
    let mut best: BTreeMap<(String, u32), Record> = BTreeMap::new();
    for dir in dirs {
        for record in read_records(dir)? {
            merged.read += 1;
            keep_later(&mut best, record);
        }
        for folder in ["instances", "plans"] {
            merged.files += copy_missing(&dir.as_ref().join(folder), &into.as_ref().join(folder))?;
        }
    }
    let is_news = |new: &Record| match store.record(&new.cell, new.repetition) {
        Some(old) => rank(new) > rank(old),
        None => true,
    };
    let news: Vec<Record> = best.into_values().filter(is_news).collect();
    merged.changed = news.len();
    store.append_all(&news)?;
    Ok(merged)
}

/// The cells of `expected` that have no row in `records`.
pub fn missing_cells<'a>(records: &[Record], expected: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let there: std::collections::BTreeSet<&str> = records.iter().map(|r| r.cell.as_str()).collect();
    expected.into_iter().filter(|cell| !there.contains(cell)).collect()
}

fn keep_later(best: &mut BTreeMap<(String, u32), Record>, record: Record) {
    let key = (record.cell.clone(), record.repetition);
    match best.get_mut(&key) {
        Some(old) if rank(&record) <= rank(old) => {}
        Some(old) => *old = record,
        None => drop(best.insert(key, record)),
    }
}

/// The text comes last, so that no two different rows are equal.
fn rank(record: &Record) -> (bool, u64, String) {
    let text = serde_json::to_string(record).unwrap_or_default();
    (record.status != Status::Interrupted, record.started_ns, text)
}

fn copy_missing(from: &Path, to: &Path) -> Result<usize, StoreError> {
    let mut copied = 0;
    for path in files::list(from, "parquet")? {
        let Some(target) = path.file_name().map(|name| to.join(name)) else { continue };
        if !target.exists()
            && let Some(bytes) = files::read_if_there(&path)?
        {
            files::write_whole(&target, &bytes)?;
            copied += 1;
        }
    }
    Ok(copied)
}
