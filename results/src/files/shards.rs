//! Shards: rows that were moved from a journal into Parquet files, `<n>-<digest>.parquet`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::disk;
#[cfg(feature = "parquet")]
use super::frame;
use super::journal::{self, Content, Journal};
use super::latest::Latest;
use super::manifest::Manifest;
#[cfg(feature = "parquet")]
use super::manifest::Shard;
use crate::StoreError;
use crate::rows::{Row, ShardedKind, each_kind};

/// The rows of one kind in a store that is open for writing: a journal, and the shards before it.
#[derive(Debug)]
pub(crate) struct Rows<R> {
    journal: Journal<R>,
    pub(crate) latest: Latest<R>,
    /// Indices of rows that are not in any shard yet.
    fresh: BTreeSet<usize>,
}

impl<R: ShardedKind> Rows<R> {
    /// Opens the journal; also returns an incomplete last line.
    pub(crate) fn open(dir: &Path) -> Result<(Self, Option<(u64, u64)>), StoreError> {
        let (journal, Content { rows, torn, .. }) = Journal::open(&dir.join(R::JOURNAL))?;
        let mut latest = Latest::from_rows(read_all(dir)?);
        let fresh = rows.into_iter().filter_map(|row| latest.put_row(row)).collect();
        Ok((Self { journal, latest, fresh }, torn))
    }

    /// Appends rows with one flush; on failure, the journal is unchanged.
    pub(crate) fn append(&mut self, rows: &[Row<R>]) -> Result<(), StoreError> {
        self.journal.append(rows)?;
        self.fresh.extend(rows.iter().filter_map(|row| self.latest.put_row(row.clone())));
        Ok(())
    }

    /// Moves the journal's rows into a new shard and returns its path; `None` if there are no rows to move. The shard
    /// is on disk and in the manifest before the journal is emptied.
    #[cfg(feature = "parquet")]
    pub(crate) fn compact(&mut self, dir: &Path) -> Result<Option<PathBuf>, StoreError> {
        let rows: Vec<&Row<R>> = self.fresh.iter().map(|&at| &self.latest.rows()[at]).collect();
        let shard = if rows.is_empty() { None } else { Some(write_shard(dir, &rows)?) };
        self.fresh.clear();
        if !self.journal.is_empty() {
            self.journal.clear()?;
        }
        Ok(shard)
    }
}

/// The latest row of each cell and repetition; a writer may be active.
pub(crate) fn read_latest<R: ShardedKind>(dir: &Path) -> Result<Vec<Row<R>>, StoreError> {
    // The journal first: rows that a writer moves to a shard meanwhile then appear in at least one of the two.
    let journal = journal::read_journal(&dir.join(R::JOURNAL))?;
    Ok(Latest::from_rows(read_all(dir)?.into_iter().chain(journal.rows)).into_rows())
}

pub(crate) fn list_shards<R: ShardedKind>(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    disk::list(&dir.join(R::SHARDS), "parquet")
}

/// The rows of all shards.
#[cfg(feature = "parquet")]
fn read_all<R: ShardedKind>(dir: &Path) -> Result<Vec<Row<R>>, StoreError> {
    let mut rows = Vec::new();
    for path in list_shards::<R>(dir)? {
        rows.append(&mut read_shard(&path)?);
    }
    Ok(rows)
}

#[cfg(not(feature = "parquet"))]
fn read_all<R: ShardedKind>(dir: &Path) -> Result<Vec<Row<R>>, StoreError> {
    match list_shards::<R>(dir)?.into_iter().next() {
        Some(path) => {
            Err(StoreError::bad_file(&path, &"this program was built without Parquet and cannot read shards"))
        }
        None => Ok(Vec::new()),
    }
}

/// The rows of a shard; an empty list if the file has disappeared meanwhile.
#[cfg(feature = "parquet")]
fn read_shard<R: ShardedKind>(path: &Path) -> Result<Vec<Row<R>>, StoreError> {
    checked_content(path)?.map_or(Ok(Vec::new()), |bytes| frame::decode_rows(path, bytes))
}

/// The content of a shard, checked against its name; `None` if the file has disappeared meanwhile.
#[cfg(feature = "parquet")]
pub(crate) fn checked_content(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(bytes) = disk::read_if_there(path)? else { return Ok(None) };
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let digest = planlab_dsa::Digest::of_bytes(&bytes).short_text();
    // A shard that someone else named has no digest to check.
    let is_ours = name.split_once('-').is_some_and(|(number, rest)| {
        number.parse::<u64>().is_ok()
            && rest.len() == digest.len()
            && rest.bytes().all(|b| b.is_ascii_hexdigit())
    });
    if is_ours && !name.ends_with(&digest) {
        let reason = "it is damaged: its content has another digest than its name says; \
                      `planlab audit --repair` sets it aside";
        return Err(StoreError::bad_file(path, &reason));
    }
    Ok(Some(bytes))
}

/// The shards that cannot be read.
#[cfg(feature = "parquet")]
pub(crate) fn damaged_shards<R: ShardedKind>(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut damaged = Vec::new();
    for path in list_shards::<R>(dir)? {
        match read_shard::<R>(&path) {
            Err(StoreError::BadFile { .. }) => damaged.push(path),
            rows => drop(rows?),
        }
    }
    Ok(damaged)
}

#[cfg(feature = "parquet")]
fn write_shard<R: ShardedKind>(dir: &Path, rows: &[&Row<R>]) -> Result<PathBuf, StoreError> {
    let bytes = frame::encode_rows(rows)?;
    let digest = planlab_dsa::Digest::of_bytes(&bytes).short_text();
    let folder = dir.join(R::SHARDS);
    disk::create_folder(&folder)?;
    let path = folder.join(format!("{:06}-{digest}.parquet", next_number::<R>(dir)?));
    let mut manifest = with_all(dir, Manifest::read(dir)?)?;
    disk::write_whole(&path, &bytes)?;
    manifest.shards_of(R::SHARDS).push(describe_shard(&path, rows.len()));
    manifest.write(dir)?;
    Ok(path)
}

#[cfg(feature = "parquet")]
fn next_number<R: ShardedKind>(dir: &Path) -> Result<u64, StoreError> {
    let shards = list_shards::<R>(dir)?;
    let numbers = shards.iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        name.split_once('-')?.0.parse::<u64>().ok()
    });
    Ok(numbers.max().map_or(1, |last| last + 1))
}

/// The manifest, completed with shards that it does not list yet.
#[cfg(feature = "parquet")]
pub(crate) fn with_all(dir: &Path, mut manifest: Manifest) -> Result<Manifest, StoreError> {
    each_kind!(R => name_all::<R>(dir, &mut manifest)?);
    Ok(manifest)
}

#[cfg(feature = "parquet")]
fn name_all<R: ShardedKind>(dir: &Path, manifest: &mut Manifest) -> Result<(), StoreError> {
    for path in list_shards::<R>(dir)? {
        let is_named = |known: &Shard| path.file_name().is_some_and(|name| name == known.name.as_str());
        if !manifest.shards_of(R::SHARDS).iter().any(is_named) {
            let rows = read_shard::<R>(&path)?.len();
            manifest.shards_of(R::SHARDS).push(describe_shard(&path, rows));
        }
    }
    Ok(())
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn with_all(dir: &Path, manifest: Manifest) -> Result<Manifest, StoreError> {
    each_kind!(R => drop(read_all::<R>(dir)?));
    Ok(manifest)
}

#[cfg(feature = "parquet")]
fn describe_shard(path: &Path, rows: usize) -> Shard {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Shard { name, rows: rows as u64 }
}
