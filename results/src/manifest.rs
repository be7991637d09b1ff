//! The manifest of a store: which shards were written, so that a lost one is missed.
//!
//! It is replaced as a whole whenever a shard was written. Stores of earlier versions have no manifest; what they hold is
//! taken to be complete. A shard that it does not name (a crash came between the two) counts all the same.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::journal::Row;
use crate::record::Record;
use crate::replay::ReplayRow;
use crate::schedule::ScheduleRow;
use crate::{StoreError, files};

const FILE: &str = "manifest.json";
/// The newest version of the file.
const VERSION: u32 = WITH_SCHEDULES;
/// The version that names shards of schedules.
const WITH_SCHEDULES: u32 = 3;
/// The version that names shards of replays: programs of before would miss their rows without a word.
const WITH_REPLAYS: u32 = 2;
const WITHOUT_REPLAYS: u32 = 1;

/// A shard that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shard {
    /// Its file's name in the folder of its kind, which holds a digest of its bytes.
    pub(crate) name: String,
    /// How many rows it has.
    pub(crate) rows: u64,
}

/// A shard that a store's manifest names and that is gone: its rows are lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingShard {
    /// Where it was.
    pub path: PathBuf,
    /// How many rows it had.
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

/// What the manifest of every version says.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Default for Manifest {
    fn default() -> Self {
        Self { version: WITHOUT_REPLAYS, shards: Vec::new(), replays: Vec::new(), schedules: Vec::new() }
    }
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join(FILE)
}

impl Manifest {
    /// The manifest of a store; an empty one where there is none.
    pub(crate) fn read(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self::read_if_there(dir)?.unwrap_or_default())
    }

    /// The manifest of a store, if there is one.
    pub(crate) fn read_if_there(dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = path(dir);
        let Some(bytes) = files::read_if_there(&path)? else { return Ok(None) };
        let bad = |error: serde_json::Error| StoreError::BadFile {
            path: path.clone(),
            reason: format!("not a manifest of shards: {error}; `planlab audit --repair` makes it anew"),
        };
        // The version first: a newer one may say all else in another way.
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
        let path = path(dir);
        self.version = match (self.schedules.is_empty(), self.replays.is_empty()) {
            (false, _) => WITH_SCHEDULES,
            (true, false) => WITH_REPLAYS,
            (true, true) => WITHOUT_REPLAYS,
        };
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| StoreError::BadFile { path: path.clone(), reason: error.to_string() })?;
        text.push(b'\n');
        files::write_whole(&path, &text)
    }

    /// The shards of one kind of rows, by their folder.
    #[cfg(feature = "parquet")]
    pub(crate) fn list(&mut self, folder: &str) -> &mut Vec<Shard> {
        match folder {
            ReplayRow::SHARDS => &mut self.replays,
            ScheduleRow::SHARDS => &mut self.schedules,
            _ => &mut self.shards,
        }
    }

    /// The shards that it names and that are not there.
    pub(crate) fn missing(&self, dir: &Path) -> Vec<MissingShard> {
        let of = |folder: &'static str, shards: &[Shard]| -> Vec<MissingShard> {
            let place =
                |shard: &Shard| MissingShard { path: dir.join(folder).join(&shard.name), rows: shard.rows };
            shards.iter().map(place).filter(|shard| !shard.path.exists()).collect()
        };
        [
            of(Record::SHARDS, &self.shards),
            of(ReplayRow::SHARDS, &self.replays),
            of(ScheduleRow::SHARDS, &self.schedules),
        ]
        .concat()
    }

    /// No longer names the shards that are not there.
    pub(crate) fn forget_missing(&mut self, dir: &Path) {
        self.shards.retain(|shard| dir.join(Record::SHARDS).join(&shard.name).exists());
        self.replays.retain(|shard| dir.join(ReplayRow::SHARDS).join(&shard.name).exists());
        self.schedules.retain(|shard| dir.join(ScheduleRow::SHARDS).join(&shard.name).exists());
    }
}

/// The shards that a store's manifest names and that are not there: their rows are lost. None where the store has no
/// manifest.
///
/// # Errors
///
/// [`StoreError::Io`] and [`StoreError::BadFile`] where the manifest cannot be read, [`StoreError::Schema`] where a newer
/// program wrote it.
pub fn missing_shards(dir: impl AsRef<Path>) -> Result<Vec<MissingShard>, StoreError> {
    let dir = dir.as_ref();
    Ok(Manifest::read(dir)?.missing(dir))
}
