//! Writes files that appear whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Writes `bytes` to `path`: a temporary file beside it, fsync, rename, fsync of the folder.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    planlab_files::save_file(path, bytes)
        .map_err(|error| StoreError::from_io("write", path)(error.into_source()))
}

/// The prefix of temporary files in earlier versions.
const TEMPORARY: &str = ".tmp-";

/// Whether `path` still refers to this open file.
pub(crate) fn is_open_as(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), fs::metadata(path)) else { return false };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

/// Makes the file names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let open = File::open(folder).map_err(StoreError::from_io("open", folder))?;
    open.sync_all().map_err(StoreError::from_io("flush", folder))
}

pub(crate) fn create_folder(path: &Path) -> Result<(), StoreError> {
    planlab_files::create_folders(path).map_err(StoreError::from_io("create", path))
}

/// Files of a folder with this extension, by name; an empty list if the folder does not exist.
pub(crate) fn list(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::from_io("read", folder)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(StoreError::from_io("read", folder))?.path();
        let is_temporary =
            path.file_name().and_then(OsStr::to_str).is_none_or(|name| name.starts_with(TEMPORARY));
        if path.extension() == Some(OsStr::new(extension)) && !is_temporary {
            found.push(path);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The whole file, or `None` if it does not exist.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::from_io("read", path)(error)),
    }
}
