//! Makes a damaged store readable: damaged data is set aside, and nothing is thrown away.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{folder, replays};
use crate::StoreError;
use crate::files::{Manifest, MissingShard, disk, journal, manifest, shards};
#[cfg(feature = "parquet")]
use crate::rows::each_kind;
use crate::rows::{PlannerRun, ReplayRun, RowKind, SchedulerRun};

/// The suffix of files that hold the damaged parts of others.
const ASIDE: &str = ".damaged";

/// One action of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// Damaged lines of a journal, including an incomplete last line, were moved to a file beside it: their rows are
    /// lost.
    Lines {
        /// The journal.
        path: PathBuf,
        /// The file with the damaged lines.
        aside: PathBuf,
        /// The line numbers, from 1.
        lines: Vec<u64>,
    },
    /// A lost shard was removed from the manifest.
    Forgotten {
        /// The shard.
        shard: MissingShard,
        /// The previous manifest, which still lists it.
        aside: PathBuf,
    },
    /// A damaged shard was set aside: its rows are lost.
    Shard {
        /// The shard.
        path: PathBuf,
        /// Its new path.
        aside: PathBuf,
    },
    /// The damaged manifest was replaced by one made from the existing shards.
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The new path of the damaged one.
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
            Self::Forgotten { shard: MissingShard { path, rows }, aside } => {
                let (path, aside, plural) =
                    (path.display(), aside.display(), if *rows == 1 { "" } else { "s" });
                write!(
                    f,
                    "{path}: the shard is gone with its {rows} row{plural}; it was taken out of the manifest, and the \
                     manifest before is kept in {aside}"
                )
            }
            Self::Manifest { path, aside } => {
                let (path, aside) = (path.display(), aside.display());
                write!(
                    f,
                    "{path}: the manifest was damaged and is set aside in {aside}; the new one names the shards that \
                     are there"
                )
            }
        }
    }
}

/// Sets aside the damaged lines and shards of all kinds of rows in a store, and updates its manifest to the existing
/// shards. Intact files and folders that are not stores stay unchanged.
///
/// # Errors
///
/// Like [`Store::open`](crate::Store::open), except for damage; [`StoreError::NoResults`] if the folder is not a store.
pub fn repair_store(dir: impl AsRef<Path>) -> Result<Vec<Repair>, StoreError> {
    let dir = dir.as_ref();
    folder::require_store(dir)?;
    let _lock = folder::lock(&dir.join("lock"))?;
    match Manifest::read(dir) {
        Err(StoreError::BadFile { .. }) => {}
        // Refuses a manifest of a newer program before any change.
        manifest => drop(manifest?),
    }
    let mut repairs: Vec<Repair> = set_aside_lines::<PlannerRun>(dir)?.into_iter().collect();
    repairs.extend(set_aside_lines::<SchedulerRun>(dir)?);
    let path = dir.join(ReplayRun::JOURNAL);
    if path.exists() {
        let turn = replays::take_turn(&path)?;
        repairs.extend(set_aside_lines::<ReplayRun>(dir)?);
        turn.unlock().map_err(StoreError::from_io("unlock", &path))?;
    }
    let aside = damaged_shards(dir)?;
    repairs.extend(amend_manifest(dir, &aside)?);
    repairs.extend(aside);
    Ok(repairs)
}

/// Moves the damaged lines of a journal to the file beside it; the copy is complete before they are removed.
fn set_aside_lines<R: RowKind>(dir: &Path) -> Result<Option<Repair>, StoreError> {
    let path = dir.join(R::JOURNAL);
    let sorted = journal::sort_lines::<R>(&path)?;
    if sorted.numbers.is_empty() {
        return Ok(None);
    }
    let aside = aside_path(&path);
    let mut damaged = disk::read_if_there(&aside)?.unwrap_or_default();
    damaged.extend_from_slice(&sorted.damaged);
    disk::write_whole(&aside, &damaged)?;
    disk::write_whole(&path, &sorted.whole)?;
    Ok(Some(Repair::Lines { path, aside, lines: sorted.numbers }))
}

fn aside_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ASIDE);
    name.into()
}

/// A name beside a file that no earlier repair used: `x.damaged`, `x.damaged.2`, ...
fn free_aside(path: &Path) -> PathBuf {
    let first = aside_path(path);
    let numbered = |number: u32| {
        let mut name = first.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let mut names = std::iter::once(first.clone()).chain((2..).map(numbered));
    names.find(|name| !name.exists()).unwrap_or_else(|| first.clone())
}

/// Sets aside the shards that cannot be read.
#[cfg(feature = "parquet")]
fn damaged_shards(dir: &Path) -> Result<Vec<Repair>, StoreError> {
    let damaged = each_kind!(R => shards::damaged_shards::<R>(dir)?).concat();
    damaged.into_iter().map(|path| Ok(Repair::Shard { aside: set_aside(&path)?, path })).collect()
}

#[cfg(not(feature = "parquet"))]
const fn damaged_shards(_dir: &Path) -> Result<Vec<Repair>, StoreError> {
    Ok(Vec::new())
}

#[cfg(feature = "parquet")]
fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let aside = free_aside(path);
    std::fs::rename(path, &aside).map_err(StoreError::from_io("rename", path))?;
    disk::sync_folder(path.parent().unwrap_or(Path::new(".")))?;
    Ok(aside)
}

/// Updates the manifest to the existing shards. Shards in `told`, just set aside, are not reported again.
fn amend_manifest(dir: &Path, told: &[Repair]) -> Result<Vec<Repair>, StoreError> {
    let mut manifest = match Manifest::read(dir) {
        Err(StoreError::BadFile { .. }) => return Ok(vec![new_manifest(dir)?]),
        manifest => manifest?,
    };
    let missing = manifest.missing_shards(dir);
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    manifest.forget_missing(dir);
    let aside = replace_manifest(dir, &mut manifest)?;
    let is_told = |shard: &MissingShard| {
        told.iter().any(|repair| matches!(repair, Repair::Shard { path, .. } if *path == shard.path))
    };
    let forgotten = missing.into_iter().filter(|shard| !is_told(shard));
    Ok(forgotten.map(|shard| Repair::Forgotten { shard, aside: aside.clone() }).collect())
}

/// Replaces a damaged manifest.
fn new_manifest(dir: &Path) -> Result<Repair, StoreError> {
    let mut manifest = shards::with_all(dir, Manifest::default())?;
    let aside = replace_manifest(dir, &mut manifest)?;
    Ok(Repair::Manifest { path: manifest::manifest_path(dir), aside })
}

/// Writes the manifest and keeps the previous one, whose new path it returns. A manifest exists at every moment.
fn replace_manifest(dir: &Path, manifest: &mut Manifest) -> Result<PathBuf, StoreError> {
    let path = manifest::manifest_path(dir);
    let aside = free_aside(&path);
    let old = std::fs::read(&path).map_err(StoreError::from_io("read", &path))?;
    disk::write_whole(&aside, &old)?;
    manifest.write(dir)?;
    Ok(aside)
}
