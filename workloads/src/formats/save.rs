//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// zstd's level for files: small enough to commit, quick enough to wait for.
const LEVEL: i32 = 9;

/// A file that could not be written; nothing of it is there. The system's reason is the error's source.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written{}", path.display(), without(missing.as_deref()))]
pub struct SaveError {
    path: PathBuf,
    /// The outermost folder of the path that does not exist.
    missing: Option<PathBuf>,
    source: io::Error,
}

fn without(folder: Option<&Path>) -> String {
    folder.map_or_else(String::new, |folder| format!(": there is no folder {}", folder.display()))
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

/// Writes a file through a temporary one beside it: synced, then renamed; an existing file's permissions
/// are kept. Compresses where the name ends in `.zst`. What is no regular file (a device, a pipe, a link to
/// an open descriptor such as `/dev/stdout`) is written to directly.
///
/// # Errors
///
/// [`SaveError`] with the path, and the system's reason as its source.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    let failed = |source: io::Error| {
        let missing = if source.kind() == io::ErrorKind::NotFound { missing_folder(path) } else { None };
        SaveError { path: path.to_owned(), missing, source }
    };
    let compressed;
    let bytes = if path.extension().is_some_and(|extension| extension == "zst") {
        compressed = compress(bytes, LEVEL).map_err(failed)?;
        &compressed
    } else {
        bytes
    };
    write_whole(path, bytes).map_err(failed)
}

fn missing_folder(path: &Path) -> Option<PathBuf> {
    let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders.take_while(|folder| !folder.exists()).last().map(Path::to_owned)
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
    let target = match path.canonicalize() {
        Ok(target) => target,
        // Links that lead to each other lead to no file that could be replaced.
        Err(error) if path.is_symlink() && error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => path.to_owned(),
    };
    let there = fs::metadata(path).ok();
    let is_stream = there.as_ref().is_some_and(|there| !there.is_file() && !there.is_dir());
    if is_stream || is_descriptor(path) {
        // A descriptor may be a file that somebody else has begun.
        return OpenOptions::new().append(true).open(path)?.write_all(bytes);
    }
    let folder = folder_of(&target);
    let mut temporary = new_file(folder)?;
    // Through the file itself, whose errors do not tell the temporary name.
    temporary.as_file_mut().write_all(bytes)?;
    if let Some(there) = there {
        temporary.as_file().set_permissions(there.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Whether a path leads to an open descriptor, as `/dev/stdout` does.
fn is_descriptor(path: &Path) -> bool {
    const LINKS: usize = 8;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(folder) = folder_of(&path).canonicalize() else { return false };
        if folder == Path::new("/dev/fd") || folder.starts_with("/proc") && folder.ends_with("fd") {
            return true;
        }
        let Ok(link) = fs::read_link(&path) else { return false };
        path = folder.join(link);
    }
    false
}

/// A new file with what an ordinary one gets for its permissions.
fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".planlab-");
    builder.make_in(folder, |path| OpenOptions::new().read(true).write(true).create_new(true).open(path))
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
        let path = folder.path().join("missing/deeper/trace.csv");
        let error = save(&path, b"x").expect_err("no such folder");
        let (path, missing) = (path.display(), folder.path().join("missing"));
        let message = format!("{path}: cannot be written: there is no folder {}", missing.display());
        assert_eq!(error.to_string(), message);
        assert!(!error.is_disk_full());
    }

    #[test]
    fn a_reason_is_said_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = save(folder.path(), b"x").expect_err("a folder");
        assert_eq!(error.to_string(), format!("{}: cannot be written", folder.path().display()));
        let source = std::error::Error::source(&error).expect("the system's reason");
        let reason = source.downcast_ref::<io::Error>().expect("an I/O error");
        assert!(reason.raw_os_error().is_some() && source.source().is_none(), "{reason}");
        assert!(!reason.to_string().contains(".planlab-"), "{reason}");
    }

    #[test]
    fn a_full_disk_is_told_apart() {
        let full = Path::new("/dev/full");
        if full.exists() {
            let error = save(full, b"x").expect_err("always full");
            assert!(error.is_disk_full());
            let source =
                std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
            assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_in_a_circle_are_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let link = folder.path().join("link.csv");
        std::os::unix::fs::symlink("link.csv", &link).expect("writable");
        save(&link, b"x").expect_err("leads nowhere");
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("trace.csv");
        for mode in [0o600, 0o664, 0o755] {
            fs::write(&path, b"before").expect("writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
            save(&path, b"after").expect("writable");
            let there = fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(there & 0o777, mode);
            assert_eq!(fs::read(&path).expect("readable"), b"after");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_regular_file_is_written_through() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        save(Path::new("/dev/null"), b"gone").expect("takes everything");
        assert!(fs::metadata("/dev/null").expect("there").file_type().is_char_device());

        let (mut reader, writer) = io::pipe().expect("a pipe");
        save(Path::new(&format!("/proc/self/fd/{}", writer.as_raw_fd())), b"through").expect("open");
        drop(writer);
        let mut read = String::new();
        reader.read_to_string(&mut read).expect("text");
        assert_eq!(read, "through");

        let folder = tempfile::tempdir().expect("a temporary folder");
        let (file, link) = (folder.path().join("out.csv"), folder.path().join("stdout"));
        let mut open = File::create(&file).expect("writable");
        open.write_all(b"first,").expect("writable");
        let before = fs::metadata(&file).expect("there").ino();
        let descriptor = format!("/proc/self/fd/{}", open.as_raw_fd());
        std::os::unix::fs::symlink(descriptor, &link).expect("writable");
        save(&link, b"second").expect("open");
        assert_eq!(fs::read(&file).expect("there"), b"first,second");
        assert_eq!(fs::metadata(&file).expect("there").ino(), before);
        assert!(link.is_symlink());
    }
}
