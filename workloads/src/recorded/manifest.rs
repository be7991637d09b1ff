//! The manifest of the recorded workloads, and the embedded files that it lists.

use std::borrow::Cow;
use std::sync::OnceLock;

use include_dir::{Dir, File, include_dir};
use planlab_dsa::Digest;
use serde::{Deserialize, Serialize};

use crate::formats::{FormatError, ReadOptions, Trace, read_trace};

static DATA: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/data");

/// A recorded workload in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The workload's key.
    pub key: String,
    /// The file, relative to `data/`.
    pub file: String,
    /// The digest of the instance.
    pub digest: Digest,
    /// The number of buffers.
    pub buffers: usize,
    /// The load, in bytes.
    pub load: u64,
    /// How it was obtained.
    pub provenance: String,
}

/// Another file of the corpus: operation lists, expectations, samples of other tools' formats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// The file, relative to `data/`.
    pub file: String,
    /// The digest of its stored bytes.
    pub digest: Digest,
    /// How it was obtained.
    pub provenance: String,
}

/// The contents of `data/MANIFEST.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The workloads, by key.
    pub workload: Vec<Recorded>,
    /// The other files.
    pub file: Vec<DataFile>,
}

/// The embedded manifest.
#[must_use]
pub fn manifest() -> &'static Manifest {
    static MANIFEST: OnceLock<Manifest> = OnceLock::new();
    MANIFEST.get_or_init(|| {
        let text = DATA.get_file("MANIFEST.toml").and_then(|file| file.contents_utf8());
        toml::from_str(text.expect("the manifest is embedded")).expect("the manifest is valid")
    })
}

/// The recorded workload with a key.
#[must_use]
pub fn recorded(key: &str) -> Option<&'static Recorded> {
    let all = &manifest().workload;
    all.binary_search_by(|entry| entry.key.as_str().cmp(key)).ok().map(|index| &all[index])
}

/// The content of an embedded file, named relative to `data/`, decompressed if its name ends in `.zst`; `None` if the
/// file does not exist.
#[must_use]
pub fn data_file(file: &str) -> Option<Cow<'static, [u8]>> {
    let stored = stored_file(file)?;
    if !file.ends_with(".zst") {
        return Some(Cow::Borrowed(stored));
    }
    Some(Cow::Owned(zstd::decode_all(stored).expect("embedded files are whole")))
}

/// The stored bytes of an embedded file.
#[must_use]
pub fn stored_file(file: &str) -> Option<&'static [u8]> {
    DATA.get_file(file).map(File::contents)
}

/// Every embedded file's name, relative to `data/`.
#[must_use]
pub fn stored_files() -> Vec<&'static str> {
    let files = embedded_files(&DATA).into_iter();
    let mut names: Vec<&str> = files.filter_map(|file| file.path().to_str()).collect();
    names.sort_unstable();
    names
}

/// The files of a folder and of those in it.
pub(crate) fn embedded_files(folder: &'static Dir<'static>) -> Vec<&'static File<'static>> {
    folder.files().chain(folder.dirs().flat_map(embedded_files)).collect()
}

impl Recorded {
    /// Reads the embedded trace; its metadata `workload` is the key.
    pub fn read_trace(&self) -> Result<Trace, FormatError> {
        let missing = || FormatError::new(&self.file, 1, "the file is not embedded");
        let bytes = stored_file(&self.file).ok_or_else(missing)?;
        let mut trace = read_trace(&self.file, bytes, &ReadOptions::default())?;
        trace.name_workload(&self.key);
        Ok(trace)
    }
}
