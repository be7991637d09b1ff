//! Files that are written whole or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::SaveError;
use crate::place::resolve_links;
use crate::temporary::TemporaryFile;

/// Opens a regular file for reading. Another program may have put anything there, and opening a pipe waits for ever.
///
/// # Errors
///
/// Errors of the file system; [`io::ErrorKind::InvalidInput`] for anything but a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// A file that will be written as a whole or not at all. Its place was tried when it was created. If it is dropped
/// before [`NewFile::write_all`], it leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// Through a temporary file beside it.
    Beside {
        temporary: TemporaryFile,
        target: PathBuf,
        /// The permissions of the file that is replaced.
        permissions: Option<Permissions>,
    },
    /// Directly into something other than a regular file.
    Into(File),
    /// A named pipe, whose opening waits for its reader.
    Pipe,
}

impl NewFile {
    /// Tries the place of a file. Anything but a regular file (a device, a pipe, a link to an open descriptor such as
    /// `/dev/stdout`) is written to directly. A link keeps pointing to the file that is replaced.
    pub fn create(path: &Path) -> Result<Self, SaveError> {
        let way = Way::from_path(path).map_err(|error| SaveError::new(path, error))?;
        Ok(Self { path: path.to_owned(), way })
    }

    /// The path as the caller named it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes, syncs and renames the file. An existing file's permissions are kept.
    ///
    /// # Errors
    ///
    /// [`SaveError`] with the path, and the system's reason as its source.
    pub fn write_all(self, bytes: &[u8]) -> Result<(), SaveError> {
        let Self { path, way } = self;
        way.write_bytes(&path, bytes).map_err(|error| SaveError::new(&path, error))
    }
}

/// [`NewFile::create`] and [`NewFile::write_all`].
pub fn save_file(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    NewFile::create(path)?.write_all(bytes)
}

/// Whether two paths lead to one regular file, by links or under another name, or will if it is written.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(a), Ok(b)) => a.is_file() && b.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (Err(_), Err(_)) => match (resolve_links(one), resolve_links(other)) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        },
        _ => false,
    }
}

impl Way {
    fn from_path(path: &Path) -> io::Result<Self> {
        let there = fs::metadata(path).ok();
        let is_folder = there.as_ref().is_some_and(fs::Metadata::is_dir);
        if is_folder || path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(rustix::io::Errno::ISDIR.into());
        }
        if there.as_ref().is_some_and(|there| there.file_type().is_fifo()) && !is_descriptor(path) {
            return Ok(Self::Pipe);
        }
        if there.as_ref().is_some_and(|there| !there.is_file()) || is_descriptor(path) {
            // A descriptor may be a file that another process has begun.
            return Ok(Self::Into(open_readable(path)?));
        }
        let target = resolve_links(path)?;
        let temporary = TemporaryFile::create_in(folder_of(&target))?;
        Ok(Self::Beside { temporary, target, permissions: there.map(|there| there.permissions()) })
    }

    fn write_bytes(self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (mut temporary, target, permissions) = match self {
            Self::Into(mut file) => return file.write_all(bytes),
            Self::Pipe => return open_readable(path)?.write_all(bytes),
            Self::Beside { temporary, target, permissions } => (temporary, target, permissions),
        };
        let file = temporary.file()?;
        file.write_all(bytes)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.sync_all()?;
        temporary.persist_as(&target)?;
        File::open(folder_of(&target))?.sync_all()
    }
}

fn open_readable(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_and_devices_are_not_regular_files() {
        let root = tempfile::tempdir().expect("a folder");
        let path = |name: &str| root.path().join(name);
        fs::write(path("file"), "x").expect("writable");
        assert!(open_regular(&path("file")).is_ok());
        let is_made = std::process::Command::new("mkfifo").arg(path("pipe")).status().expect("it runs");
        assert!(is_made.success());
        // Without a writer, an ordinary open waits for ever.
        for other in [path("pipe"), root.path().to_owned(), "/dev/zero".into()] {
            let error = open_regular(&other).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", other.display());
        }
        assert_eq!(open_regular(&path("none")).expect_err("refused").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_place_is_tried_before_there_is_anything_to_write() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("trace.csv");
        let file = NewFile::create(&path).expect("writable");
        assert!(!path.exists(), "it comes whole or not at all");
        file.write_all(b"whole").expect("writable");
        assert_eq!(fs::read(&path).expect("there"), b"whole");
        drop(NewFile::create(&path).expect("writable"));
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
        for wrong in ["missing/trace.csv", "", "new/"] {
            NewFile::create(&folder.path().join(wrong)).expect_err("no place for a file");
        }
    }

    #[test]
    fn a_link_to_what_is_not_there_is_kept() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::os::unix::fs::symlink("target", &link).expect("writable");
        save_file(&link, b"x").expect("writable");
        assert!(link.is_symlink());
        assert_eq!(fs::read(target).expect("there"), b"x");
    }

    #[test]
    fn one_file_is_known_under_every_name() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("trace.csv"), b"x").expect("writable");
        fs::write(at("other.csv"), b"x").expect("writable");
        fs::create_dir(at("sub")).expect("writable");
        std::os::unix::fs::symlink("trace.csv", at("link")).expect("writable");
        std::os::unix::fs::symlink("new.csv", at("to-new")).expect("writable");
        fs::hard_link(at("trace.csv"), at("second")).expect("writable");
        for (one, other, is_same) in [
            ("trace.csv", "trace.csv", true),
            ("trace.csv", "sub/../trace.csv", true),
            ("trace.csv", "link", true),
            ("trace.csv", "second", true),
            ("trace.csv", "other.csv", false),
            ("trace.csv", "new.csv", false),
            ("new.csv", "sub/../new.csv", true),
            ("new.csv", "to-new", true),
            ("new.csv", "newer.csv", false),
            // What is written through loses nothing.
            ("sub", "sub", false),
        ] {
            assert_eq!(is_same_file(&at(one), &at(other)), is_same, "{one} {other}");
        }
        assert!(!is_same_file(Path::new("/dev/null"), Path::new("/dev/null")));
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("missing/deeper/trace.csv");
        let error = save_file(&path, b"x").expect_err("no such folder");
        let (path, missing) = (path.display(), folder.path().join("missing"));
        let message = format!("{path}: cannot be written: there is no folder {}", missing.display());
        assert_eq!(error.to_string(), message);
        assert!(!error.is_disk_full());
    }

    #[test]
    fn a_reason_is_said_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = save_file(folder.path(), b"x").expect_err("a folder");
        assert_eq!(error.to_string(), format!("{}: cannot be written", folder.path().display()));
        let source = std::error::Error::source(&error).expect("the system's reason");
        let reason = source.downcast_ref::<io::Error>().expect("an I/O error");
        assert!(reason.raw_os_error().is_some() && source.source().is_none(), "{reason}");
        assert!(!reason.to_string().contains(".planlab-tmp"), "{reason}");
    }

    #[test]
    fn a_full_disk_is_told_apart() {
        let full = Path::new("/dev/full");
        if full.exists() {
            let error = save_file(full, b"x").expect_err("always full");
            assert!(error.is_disk_full());
            let source =
                std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
            assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
        }
    }

    #[test]
    fn permissions_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("trace.csv");
        for mode in [0o600, 0o664, 0o755] {
            fs::write(&path, b"before").expect("writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
            save_file(&path, b"after").expect("writable");
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
        save_file(Path::new("/dev/null"), b"gone").expect("takes everything");
        assert!(fs::metadata("/dev/null").expect("there").file_type().is_char_device());

        let (mut reader, writer) = io::pipe().expect("a pipe");
        save_file(Path::new(&format!("/proc/self/fd/{}", writer.as_raw_fd())), b"through").expect("open");
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
        save_file(&link, b"second").expect("open");
        assert_eq!(fs::read(&file).expect("there"), b"first,second");
        assert_eq!(fs::metadata(&file).expect("there").ino(), before);
        assert!(link.is_symlink());
    }
}
