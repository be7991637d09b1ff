//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// zstd's level for files: small enough to commit, quick enough to wait for.
const LEVEL: i32 = 9;

/// A file that could not be written; nothing of it is there.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written: {source}", path.display())]
pub struct SaveError {
    path: PathBuf,
    source: io::Error,
}

impl SaveError {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the disk is full (rather than the folder missing or read-only).
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Writes a file through a temporary one beside it: synced, then renamed. Compresses where the name ends
/// in `.zst`. A device or pipe is written to directly.
///
/// # Errors
///
/// [`SaveError`] with the path and the system's reason.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    let failed = |source| SaveError { path: path.to_owned(), source };
    let compressed;
    let bytes = if path.extension().is_some_and(|extension| extension == "zst") {
        compressed = compress(bytes, LEVEL).map_err(failed)?;
        &compressed
    } else {
        bytes
    };
    write_whole(path, bytes).map_err(failed)
}

/// zstd at a level from 1 to 22, with a checksum.
///
/// # Errors
///
/// What the compressor says.
pub fn compress(bytes: &[u8], level: i32) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), level)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link keeps pointing to the file that is replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return fs::OpenOptions::new().write(true).open(&target)?.write_all(bytes);
    }
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut temporary = new_file(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".planlab-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What an ordinary new file gets; the process's mask takes its part off.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{ReadOptions, read_trace};

    #[test]
    fn a_saved_file_is_whole_and_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["plain.csv", "small.csv.zst"] {
            let path = folder.path().join(name);
            save(&path, b"first").expect("writable");
            save(&path, b"id,lower,upper,size\na,0,1,2\n").expect("replaced");
            let bytes = fs::read(&path).expect("there");
            assert_eq!(bytes.starts_with(b"id,"), name == "plain.csv");
            assert_eq!(read_trace(name, &bytes, &ReadOptions::default()).expect("valid").instance.len(), 1);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 2);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("missing/trace.csv");
        let error = save(&path, b"x").expect_err("no such folder");
        assert!(error.to_string().contains("missing/trace.csv"), "{error}");
        assert!(!error.is_disk_full());
    }

    #[test]
    fn a_full_disk_is_told_apart() {
        let full = Path::new("/dev/full");
        if full.exists() {
            assert!(save(full, b"x").expect_err("always full").is_disk_full());
        }
    }
}
