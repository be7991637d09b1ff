//! The manifest of a store: it lists the shards, so that a lost one is noticed.
//!
//! It is replaced as a whole after each new shard. Stores of earlier versions have no manifest and count as complete. A
//! shard that is not in the manifest (a crash came in between) is still read.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::disk;
use crate::StoreError;
use crate::rows::{PlannerRun, ReplayRun, SchedulerRun, ShardedKind as _, each_kind};

const FILE: &str = "manifest.json";
/// The newest version of the file.
const VERSION: u32 = WITH_SCHEDULES;
/// The version that lists shards of schedules.
const WITH_SCHEDULES: u32 = 3;
/// The version that lists shards of replays: without it, older programs would silently ignore their rows.
const WITH_REPLAYS: u32 = 2;
const WITHOUT_REPLAYS: u32 = 1;

/// A shard that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shard {
    /// The file name in the folder of its kind; it contains a digest of the file's bytes.
    pub(crate) name: String,
    pub(crate) rows: u64,
}

/// A missing shard that a store's manifest lists: its rows are lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingShard {
    /// Its path.
    pub path: PathBuf,
    /// The number of its rows.
    pub rows: u64,
}

impl fmt::Display for MissingShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, rows } = self;
        let (plural, them) = if *rows == 1 { ("", "it") } else { ("s", "them") };
        write!(
            f,
            "{}: the shard is gone, and {rows} row{plural} with it; `planlab bench` makes {them} again, \
             `planlab audit --repair` stops this reminder",
            path.display()
        )
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    shards: Vec<Shard>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replays: Vec<Shard>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    schedules: Vec<Shard>,
}

/// The fields common to the manifests of all versions.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Default for Manifest {
    fn default() -> Self {
        Self { version: WITHOUT_REPLAYS, shards: Vec::new(), replays: Vec::new(), schedules: Vec::new() }
    }
}

pub(crate) fn manifest_path(dir: &Path) -> PathBuf {
    dir.join(FILE)
}

impl Manifest {
    /// The manifest of a store; an empty one if the file does not exist.
    pub(crate) fn read(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self::read_if_there(dir)?.unwrap_or_default())
    }

    /// The manifest of a store, if there is one.
    pub(crate) fn read_if_there(dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = manifest_path(dir);
        let Some(bytes) = disk::read_if_there(&path)? else { return Ok(None) };
        let bad = |error: serde_json::Error| StoreError::BadFile {
            path: path.clone(),
            reason: format!("not a manifest of shards: {error}; `planlab audit --repair` makes it again"),
        };
        // Check the version first: newer manifests may have other fields.
        let Versioned { version } = serde_json::from_slice(&bytes).map_err(bad)?;
        if version > VERSION {
            return Err(StoreError::Schema { path, found: version, known: VERSION });
        }
        if version == 0 {
            return Err(bad(serde::de::Error::custom("there was never a version 0")));
        }
        serde_json::from_slice(&bytes).map(Some).map_err(bad)
    }

    pub(crate) fn write(&mut self, dir: &Path) -> Result<(), StoreError> {
        let path = manifest_path(dir);
        self.version = match (self.schedules.is_empty(), self.replays.is_empty()) {
            (false, _) => WITH_SCHEDULES,
            (true, false) => WITH_REPLAYS,
            (true, true) => WITHOUT_REPLAYS,
        };
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|error| StoreError::bad_file(&path, &error))?;
        text.push(b'\n');
        disk::write_whole(&path, &text)
    }

    /// The shards of one kind of rows, by their folder.
    pub(crate) fn shards_of(&mut self, folder: &str) -> &mut Vec<Shard> {
        match folder {
            PlannerRun::SHARDS => &mut self.shards,
            ReplayRun::SHARDS => &mut self.replays,
            SchedulerRun::SHARDS => &mut self.schedules,
            _ => unreachable!("the manifest has no list for the shards in `{folder}`"),
        }
    }

    /// The listed shards that are missing.
    pub(crate) fn missing_shards(&mut self, dir: &Path) -> Vec<MissingShard> {
        let place = |folder: &str, shard: &Shard| MissingShard {
            path: dir.join(folder).join(&shard.name),
            rows: shard.rows,
        };
        let listed = each_kind!(R => self.shards_of(R::SHARDS).iter().map(|shard| place(R::SHARDS, shard)).collect::<Vec<_>>());
        listed.into_iter().flatten().filter(|shard| !shard.path.exists()).collect()
    }

    pub(crate) fn forget_missing(&mut self, dir: &Path) {
        each_kind!(R => {
            let folder = dir.join(R::SHARDS);
            self.shards_of(R::SHARDS).retain(|shard| folder.join(&shard.name).exists());
        });
    }
}

/// The missing shards that a store's manifest lists: their rows are lost. An empty list if the store has no manifest.
///
/// # Errors
///
/// [`StoreError::Io`] and [`StoreError::BadFile`] if the manifest cannot be read, [`StoreError::Schema`] if a newer
/// program wrote it.
pub fn missing_shards(dir: impl AsRef<Path>) -> Result<Vec<MissingShard>, StoreError> {
    let dir = dir.as_ref();
    Ok(Manifest::read(dir)?.missing_shards(dir))
}
