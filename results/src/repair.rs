//! A damaged store becomes one that can be read: what is damaged is set aside, nothing is thrown away.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::journal::{self, Row};
use crate::manifest::{Manifest, Shard};
use crate::record::Record;
use crate::replay::{self, ReplayRow};
use crate::{StoreError, files, store};

/// What the name of a file ends in that holds what was damaged in another.
const ASIDE: &str = ".damaged";

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// Lines of a journal that are not what was written were moved to a file beside it: their rows are lost.
    Lines {
        /// The journal.
        path: PathBuf,
        /// Where they are now.
        aside: PathBuf,
        /// Which lines they were, from 1.
        lines: Vec<u64>,
    },
    /// A shard that is gone is no longer missed.
    Forgotten {
        /// The shard.
        path: PathBuf,
        /// How many rows it had.
        rows: u64,
    },
    /// A shard that is not what was written was set aside: its rows are lost.
    Shard {
        /// The shard.
        path: PathBuf,
        /// Where it is now.
        aside: PathBuf,
    },
    /// The manifest was damaged, and was made anew from the shards that are there.
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Where the damaged one is now.
        aside: PathBuf,
    },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines { path, aside, lines } => {
                let (count, plural) = (lines.len(), if lines.len() == 1 { "" } else { "s" });
                let numbers: Vec<String> = lines.iter().map(ToString::to_string).collect();
                let (path, aside, numbers) = (path.display(), aside.display(), numbers.join(", "));
                write!(f, "{path}: {count} damaged line{plural} set aside in {aside}: line{plural} {numbers}")
            }
            Self::Shard { path, aside } => {
                write!(f, "{}: the shard is damaged and set aside in {}", path.display(), aside.display())
            }
            Self::Forgotten { path, rows } => {
                write!(f, "{}: it is gone and no longer missed, with its {rows} rows", path.display())
            }
            Self::Manifest { path, aside } => {
                let (path, aside) = (path.display(), aside.display());
                write!(f, "{path}: it was damaged and is set aside in {aside}; made anew of what is there")
            }
        }
    }
}

/// Sets aside the damaged lines of a store's journal and replays, and makes its manifest name what is there. Nothing is
/// done to what is whole.
///
/// # Errors
///
/// As [`Store::open`](crate::Store::open), save for damage.
pub fn repair(dir: impl AsRef<Path>) -> Result<Vec<Repair>, StoreError> {
    let dir = dir.as_ref();
    std::fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
    let _lock = store::lock(&dir.join("lock"))?;
    let mut repairs: Vec<Repair> = lines::<Record>(&dir.join(store::JOURNAL))?.into_iter().collect();
    if replay::is_there(dir) {
        let path = dir.join(replay::FILE);
        let turn = replay::take_turn(&path)?;
        repairs.extend(lines::<ReplayRow>(&path)?);
        turn.unlock().map_err(StoreError::io("unlock", &path))?;
    }
    let aside = damaged_shards(dir)?;
    repairs.extend(manifest(dir, &aside)?);
    repairs.extend(aside);
    Ok(repairs)
}

/// Moves the damaged lines of a journal to the file beside it, which appears before they are gone.
fn lines<R: Row>(path: &Path) -> Result<Option<Repair>, StoreError> {
    let sorted = journal::sort::<R>(path)?;
    if sorted.numbers.is_empty() {
        return Ok(None);
    }
    let aside = aside(path);
    let mut damaged = files::read_if_there(&aside)?.unwrap_or_default();
    damaged.extend_from_slice(&sorted.damaged);
    files::write_whole(&aside, &damaged)?;
    files::write_whole(path, &sorted.whole)?;
    Ok(Some(Repair::Lines { path: path.to_path_buf(), aside, lines: sorted.numbers }))
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ASIDE);
    name.into()
}

/// Sets shards aside that cannot be read.
#[cfg(feature = "parquet")]
fn damaged_shards(dir: &Path) -> Result<Vec<Repair>, StoreError> {
    let mut repairs = Vec::new();
    for path in files::list(&dir.join(store::SHARDS), "parquet")? {
        match store::read_shard(&path) {
            Err(StoreError::BadFile { .. }) => repairs.push(Repair::Shard { aside: set_aside(&path)?, path }),
            rows => drop(rows?),
        }
    }
    Ok(repairs)
}

#[cfg(not(feature = "parquet"))]
const fn damaged_shards(_dir: &Path) -> Result<Vec<Repair>, StoreError> {
    Ok(Vec::new())
}

fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let aside = aside(path);
    std::fs::rename(path, &aside).map_err(StoreError::io("rename", path))?;
    files::sync_folder(path.parent().unwrap_or(Path::new(".")))?;
    Ok(aside)
}

/// Makes the manifest name what is there. Shards that were just set aside are not told a second time.
fn manifest(dir: &Path, told: &[Repair]) -> Result<Vec<Repair>, StoreError> {
    let mut manifest = match Manifest::read(dir) {
        Err(StoreError::BadFile { path, .. }) => {
            let aside = set_aside(&path)?;
            // Shards that it does not name count all the same: the next compaction names them.
            return Ok(vec![Repair::Manifest { path, aside }]);
        }
        manifest => manifest?,
    };
    let missing = manifest.missing(dir);
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    manifest.shards.retain(|shard| !missing.contains(shard));
    manifest.write(dir)?;
    let folder = dir.join(store::SHARDS);
    let forgotten = |shard: Shard| Repair::Forgotten { path: folder.join(shard.name), rows: shard.rows };
    let is_told = |path: &Path| {
        told.iter().any(|repair| matches!(repair, Repair::Shard { path: own, .. } if own == path))
    };
    let all = missing.into_iter().map(forgotten);
    Ok(all.filter(|repair| !matches!(repair, Repair::Forgotten { path, .. } if is_told(path))).collect())
}
