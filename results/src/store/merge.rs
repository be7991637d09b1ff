//! Joins stores: the shards of a bench that ran on several machines, or several benches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use planlab_files::{ResolvedFolder, TemporaryFolder, remove_leftovers};

use super::documents::Document;
use super::read::{read_frameworks, read_records, read_rows, read_schedules};
use super::replays::append_rows;
use super::writer::Store;
use crate::StoreError;
use crate::files::{Journal, Latest, disk};
use crate::rows::{FrameworkRun, PlannerRun, ReplayRun, Row, RowKind, SchedulerRun, rank_row};

/// The result of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Rows of all kinds that were read from the sources.
    pub read: usize,
    /// Rows that are new in the result, or replace an earlier version.
    pub changed: usize,
    /// Instances and plans copied.
    pub files: usize,
}

/// Merges the rows, replays, instances and plans of `dirs` into the store `into`.
///
/// Among several rows of one cell and repetition, one with an answer is preferred to one without; an interrupted row is
/// the last choice. Among equals, the one that started last counts. So the result depends neither on the order of the
/// folders nor on the number of merges.
///
/// All of `dirs` are read before anything is written. A new store appears whole or not at all. None of `dirs` may be
/// `into`, lie in it, or contain it.
///
/// # Errors
///
/// Like [`Store::open`] for `into`, like [`read_records`] for each of `dirs`; [`StoreError::Folder`] if `into` cannot
/// be created or is among `dirs`.
pub fn merge_stores<P: AsRef<Path>>(dirs: &[P], into: impl AsRef<Path>) -> Result<Merged, StoreError> {
    let goal = Goal::find(into.as_ref(), dirs)?;
    Sources::read(dirs)?.put(goal)
}

/// The target of a merge, determined before it begins.
enum Goal {
    /// An existing store.
    There(Store),
    /// A new store, filled under a temporary name.
    New { place: ResolvedFolder, temporary: TemporaryFolder },
}

impl Goal {
    fn find<P: AsRef<Path>>(into: &Path, dirs: &[P]) -> Result<Self, StoreError> {
        let place = ResolvedFolder::resolve_target(into, dirs)?;
        if !is_absent_or_empty(place.target()) {
            // A merge may have been killed right after the store got its name.
            remove_leftovers(&place)?;
            return Ok(Self::There(Store::open(into)?));
        }
        place.check_replaceable()?;
        let temporary = TemporaryFolder::beside(&place)?;
        Ok(Self::New { place, temporary })
    }
}

/// The contents of the stores to merge.
#[derive(Default)]
struct Sources {
    /// The number of rows read.
    read: usize,
    records: Best<PlannerRun>,
    replays: Best<ReplayRun>,
    schedules: Best<SchedulerRun>,
    frameworks: Best<FrameworkRun>,
    /// Folder and path of each instance, plan and document.
    files: Vec<(&'static str, PathBuf)>,
}

impl Sources {
    fn read<P: AsRef<Path>>(dirs: &[P]) -> Result<Self, StoreError> {
        let mut sources = Self::default();
        for dir in dirs {
            sources.read += keep_better(&mut sources.records, read_records(dir)?);
            sources.read += keep_better(&mut sources.replays, read_rows(dir)?);
            sources.read += keep_better(&mut sources.schedules, read_schedules(dir)?);
            sources.read += keep_better(&mut sources.frameworks, read_frameworks(dir)?);
            let documents = Document::ALL.map(|document| (document.name(), document.extension()));
            for (folder, extension) in
                [("instances", "parquet"), ("plans", "parquet")].into_iter().chain(documents)
            {
                let paths = disk::list(&dir.as_ref().join(folder), extension)?;
                sources.files.extend(paths.into_iter().map(|path| (folder, path)));
            }
        }
        Ok(sources)
    }

    fn put(self, goal: Goal) -> Result<Merged, StoreError> {
        let (place, temporary) = match goal {
            Goal::There(store) => return self.put_into(store),
            Goal::New { place, temporary } => (place, temporary),
        };
        // A folder inside the temporary one: temporary folders are private, results are not.
        let merged = self.put_into(Store::open(temporary.path().join(FRESH))?)?;
        temporary.hand_out(FRESH, place.target()).map_err(StoreError::from_io("write", place.named()))?;
        disk::sync_folder(place.parent()?)?;
        Ok(merged)
    }

    /// Files first: a row never exists without the files that it names.
    fn put_into(self, mut store: Store) -> Result<Merged, StoreError> {
        let into = store.dir().to_path_buf();
        let mut merged = Merged { read: self.read, ..Merged::default() };
        for (folder, path) in &self.files {
            merged.files += usize::from(copy_missing(path, &into.join(folder))?);
        }
        let records = news(self.records, |record| store.record(&record.cell, record.repetition));
        let there = Latest::from_rows(read_rows(&into)?);
        let replays = news(self.replays, |row| there.get(&row.cell, row.repetition));
        let schedules = news(self.schedules, |row| store.schedule(&row.cell, row.repetition));
        let measured = Latest::from_rows(read_frameworks(&into)?);
        let frameworks = news(self.frameworks, |row| measured.get(&row.cell, row.repetition));
        merged.changed = records.len() + replays.len() + schedules.len() + frameworks.len();
        store.append_all(&records)?;
        schedules.iter().try_for_each(|row| store.append_schedule(row))?;
        if !replays.is_empty() {
            append_rows(&into, &replays)?;
        }
        if !frameworks.is_empty() {
            Journal::<FrameworkRun>::open(&into.join(FrameworkRun::JOURNAL))?.0.append(&frameworks)?;
            disk::sync_folder(&into)?;
        }
        Ok(merged)
    }
}

/// The name of the new store within the temporary folder.
const FRESH: &str = "store";

fn is_absent_or_empty(folder: &Path) -> bool {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The best row of each cell and repetition.
type Best<R> = BTreeMap<(String, u32), Row<R>>;

/// Keeps the best row of each cell and repetition; returns the number of rows given.
fn keep_better<R: RowKind>(best: &mut Best<R>, rows: Vec<Row<R>>) -> usize {
    let count = rows.len();
    for row in rows {
        let (cell, repetition) = row.key();
        let key = (cell.to_owned(), repetition);
        match best.get_mut(&key) {
            Some(old) if rank(&row) <= rank(old) => {}
            Some(old) => *old = row,
            None => drop(best.insert(key, row)),
        }
    }
    count
}

/// The rows that are new or better than the existing ones.
fn news<'s, R: RowKind + 's>(best: Best<R>, there: impl Fn(&Row<R>) -> Option<&'s Row<R>>) -> Vec<Row<R>> {
    best.into_values().filter(|row| there(row).is_none_or(|old| rank(row) > rank(old))).collect()
}

/// Ends with the text, so that different rows never rank equal.
fn rank<R: RowKind>(row: &Row<R>) -> ((u8, u64), String) {
    (rank_row(row), serde_json::to_string(row).unwrap_or_default())
}

/// Copies the file if it is missing; returns whether it did.
fn copy_missing(path: &Path, folder: &Path) -> Result<bool, StoreError> {
    let Some(target) = path.file_name().map(|name| folder.join(name)) else { return Ok(false) };
    if target.exists() {
        return Ok(false);
    }
    disk::create_folder(folder)?;
    let Some(bytes) = disk::read_if_there(path)? else { return Ok(false) };
    disk::write_whole(&target, &bytes)?;
    Ok(true)
}
