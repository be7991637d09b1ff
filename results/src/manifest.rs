//! The manifest of a store: which shards were written, so that a lost one is missed.
//!
//! It is replaced as a whole whenever a shard was written. A store of before there were manifests has none: then what is
//! there is taken for all there was. A shard that it does not name (a crash came between the two) counts all the same.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{StoreError, files};

const FILE: &str = "manifest.json";
/// The version of the file.
const VERSION: u32 = 1;

/// A shard that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Its file's name in the folder `shards`, which holds a digest of its bytes.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    pub(crate) shards: Vec<Shard>,
}

impl Default for Manifest {
    fn default() -> Self {
        Self { version: VERSION, shards: Vec::new() }
    }
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join(FILE)
}

impl Manifest {
    /// The manifest of a store; an empty one where there is none.
    pub(crate) fn read(dir: &Path) -> Result<Self, StoreError> {
        let path = path(dir);
        let Some(bytes) = files::read_if_there(&path)? else { return Ok(Self::default()) };
        let bad = |error: serde_json::Error| StoreError::BadFile {
            path: path.clone(),
            reason: format!("not a manifest of shards: {error}; `planlab audit --repair` makes it anew"),
        };
        let manifest: Self = serde_json::from_slice(&bytes).map_err(bad)?;
        if manifest.version > VERSION {
            return Err(StoreError::Schema { path, found: manifest.version, known: VERSION });
        }
        Ok(manifest)
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<(), StoreError> {
        let path = path(dir);
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| StoreError::BadFile { path: path.clone(), reason: error.to_string() })?;
        text.push(b'\n');
        files::write_whole(&path, &text)
    }

    /// The shards that it names and that are not there.
    pub(crate) fn missing(&self, dir: &Path) -> Vec<Shard> {
        let folder = dir.join(crate::store::SHARDS);
        self.shards.iter().filter(|shard| !folder.join(&shard.name).exists()).cloned().collect()
    }
}

/// The shards that a store's manifest names and that are not there: their rows are lost. None where the store has no
/// manifest.
///
/// # Errors
///
/// [`StoreError::Io`] and [`StoreError::BadFile`] where the manifest cannot be read, [`StoreError::Schema`] where a newer
/// program wrote it.
pub fn missing_shards(dir: impl AsRef<Path>) -> Result<Vec<Shard>, StoreError> {
    let dir = dir.as_ref();
    Ok(Manifest::read(dir)?.missing(dir))
}
