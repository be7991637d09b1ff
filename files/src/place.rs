//! Resolves the path of a folder, and checks that it may be replaced.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::FolderError;

/// The most links followed one after the other.
const LINKS: usize = 40;

/// The place of a folder that exists or will be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedFolder {
    /// The path as the caller named it.
    named: PathBuf,
    /// The path without links; missing parts come last.
    target: PathBuf,
}

impl ResolvedFolder {
    /// Resolves `named`, following links whether their target exists or not. `reads` are the paths that are read to
    /// fill the folder. None of them may lie inside the folder, nor the folder inside one of them.
    ///
    /// # Errors
    ///
    /// [`FolderError::NotAFolder`], [`FolderError::Nested`], [`FolderError::Io`] if the path cannot be examined.
    pub fn resolve_target<P: AsRef<Path>>(named: &Path, reads: &[P]) -> Result<Self, FolderError> {
        let target = resolve_links(named).map_err(FolderError::from_io("find", named))?;
        if target.exists() && !target.is_dir() {
            return Err(FolderError::NotAFolder { path: named.to_owned() });
        }
        for read in reads.iter().map(AsRef::as_ref) {
            let resolved = resolve_links(read).map_err(FolderError::from_io("find", read))?;
            if resolved.starts_with(&target) || target.starts_with(&resolved) {
                return Err(FolderError::Nested { path: named.to_owned(), read: read.to_owned() });
            }
        }
        Ok(Self { named: named.to_owned(), target })
    }

    /// The path as the caller named it.
    #[must_use]
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// The folder itself: absolute, without links.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The parent of the folder, which may be missing.
    ///
    /// # Errors
    ///
    /// [`FolderError::InUse`] for the root, which has no parent.
    pub fn parent(&self) -> Result<&Path, FolderError> {
        self.target.parent().ok_or_else(|| self.in_use("it is the root"))
    }

    /// Refuses a folder that cannot be renamed: one that the process runs in, or a mount point.
    ///
    /// # Errors
    ///
    /// [`FolderError::InUse`], [`FolderError::Io`].
    pub fn check_replaceable(&self) -> Result<(), FolderError> {
        if !self.target.exists() {
            return Ok(());
        }
        let here = std::env::current_dir().and_then(|here| here.canonicalize());
        if here.is_ok_and(|here| here.starts_with(&self.target)) {
            return Err(self.in_use("the command runs in it"));
        }
        let parent = self.parent()?;
        if device_number(&self.target)? != device_number(parent)? {
            return Err(self.in_use("it is a mount point"));
        }
        Ok(())
    }

    fn in_use(&self, reason: &'static str) -> FolderError {
        FolderError::InUse { path: self.named.clone(), reason }
    }
}

fn device_number(path: &Path) -> Result<u64, FolderError> {
    Ok(fs::metadata(path).map_err(FolderError::from_io("read", path))?.dev())
}

/// The absolute path without links; names of missing files stay as they are.
pub(crate) fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..LINKS {
        match path.canonicalize() {
            Ok(whole) => return Ok(whole),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { break };
        let parent = resolve_links(parent)?;
        match fs::read_link(parent.join(name)) {
            // A link whose target is missing.
            Ok(link) => path = parent.join(link),
            Err(_) => return Ok(parent.join(name)),
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_to_what_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("there");
        std::os::unix::fs::symlink("not/yet", root.join("link")).expect("writable");
        assert_eq!(resolve_links(&root.join("link/deep")).expect("found"), root.join("not/yet/deep"));
        assert_eq!(resolve_links(&root.join("a/b")).expect("found"), root.join("a/b"));
        std::os::unix::fs::symlink("b", root.join("a")).expect("writable");
        std::os::unix::fs::symlink("a", root.join("b")).expect("writable");
        assert!(resolve_links(&root.join("a")).is_err(), "links that lead in a circle");
    }

    #[test]
    fn what_is_read_and_what_is_written_lie_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("out/store")).expect("writable");
        std::os::unix::fs::symlink(path("out/store"), path("link")).expect("writable");
        for (out, read) in [("out", "out/store"), ("out", "out"), ("out/store/new", "out"), ("out", "link")] {
            let error = ResolvedFolder::resolve_target(&path(out), &[path(read)]).expect_err("nested");
            assert!(matches!(error, FolderError::Nested { .. }), "{out} {read}: {error}");
        }
        ResolvedFolder::resolve_target(&path("output"), &[path("out")])
            .expect("a name that begins alike is no folder inside");
    }
}
