//! Workloads in files of the user's own, in any format that [`formats`](crate::formats) reads.
//!
//! The key has the file's name and the digest of its content, so a file that changes is another workload:
//!
//! ```text
//! my.csv                                    file/my.csv/5f1c2a9b0d3e
//! snapshot.pickle with the part cuda:0      file/snapshot.pickle/cuda:0/0c77e1f2a4b6
//! ```

use std::fs::File;
use std::path::{Path, PathBuf};

use planlab_dsa::{Alignment, Digest};
use serde::{Deserialize, Serialize};

use crate::external::ExternalError;
use crate::formats::{InputLimits, ReadOptions, Trace, read_trace_from};

/// The first segment of the keys.
pub const ROUTE: &str = "file";

/// How a file is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOptions {
    /// Sizes are rounded up to it, in bytes, and offsets are multiples of it. Default: as the file says.
    pub align: Option<Alignment>,
    /// Whether the offsets of a plan become pins. Default: a plan is refused.
    pub pins: bool,
    /// The trace to take from a file that contains several.
    pub part: Option<String>,
    /// Values of dynamic dimensions, by name.
    pub dims: Vec<(String, u64)>,
    /// Whether the permissions to overwrite a buffer in place are left out.
    pub without_in_place: bool,
}

/// A trace in a file, as a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWorkload {
    /// The workload's key.
    pub key: String,
    /// What errors call the file.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// How it is read.
    pub options: FileOptions,
    /// The digest of the instance.
    pub digest: Digest,
    /// The number of buffers.
    pub buffers: usize,
}

impl FileOptions {
    fn read_options(&self, limits: InputLimits) -> ReadOptions {
        ReadOptions {
            pins: self.pins,
            alignment: self.align,
            limits,
            part: self.part.clone(),
            dims: self.dims.clone(),
            without_in_place: self.without_in_place,
            ..ReadOptions::default()
        }
    }

    fn read_file(&self, path: &Path, name: &str, limits: InputLimits) -> Result<Trace, ExternalError> {
        let input = File::open(path).map_err(|source| ExternalError::Io { file: name.to_owned(), source })?;
        Ok(read_trace_from(name, input, &self.read_options(limits))?)
    }
}

impl FileWorkload {
    /// Reads a file to find its key. `name` is the file as errors call it; the key has the last part of it. Returns the
    /// notices of the reader too.
    ///
    /// # Errors
    ///
    /// Why the file cannot be read, or the error in it with its place.
    pub fn open_file(
        path: &Path,
        name: &str,
        options: FileOptions,
        limits: InputLimits,
    ) -> Result<(Self, Vec<String>), ExternalError> {
        let Trace { instance, notices, .. } = options.read_file(path, name, limits)?;
        let digest = instance.digest();
        let key = Self::part_key(name, options.part.as_deref(), &digest);
        let (name, path, buffers) = (name.to_owned(), path.to_owned(), instance.len());
        Ok((Self { key, name, path, options, digest, buffers }, notices))
    }

    /// The key of a file's part, or of all of it, whose instance has this digest.
    #[must_use]
    pub fn part_key(name: &str, part: Option<&str>, digest: &Digest) -> String {
        let file = Path::new(name).file_name().map_or_else(|| name.into(), |file| file.to_string_lossy());
        let file = file.trim_matches(['<', '>']);
        let part = part.map(|part| format!("/{part}")).unwrap_or_default();
        format!("{ROUTE}/{file}{part}/{}", digest.short_text())
    }

    /// Reads the file again; the metadata `workload` is the key.
    ///
    /// # Errors
    ///
    /// Why the file cannot be read, or that its content is no longer that of the key.
    pub fn read_trace(&self, limits: InputLimits) -> Result<Trace, ExternalError> {
        let mut trace = self.options.read_file(&self.path, &self.name, limits)?;
        if trace.instance.digest() != self.digest {
            return Err(ExternalError::Changed { file: self.name.clone() });
        }
        trace.name_workload(&self.key);
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(path: &Path, options: FileOptions) -> Result<FileWorkload, ExternalError> {
        FileWorkload::open_file(path, &path.display().to_string(), options, InputLimits::default())
            .map(|(workload, _)| workload)
    }

    #[test]
    fn the_key_follows_the_content() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("my.csv");
        fs::write(&path, "id,lower,upper,size\nx,0,3,40\ny,1,2,8\n").expect("writable");
        let before = open(&path, FileOptions::default()).expect("valid");
        assert_eq!(before.key, format!("file/my.csv/{}", before.digest.short_text()));
        assert_eq!(before.buffers, 2);
        let trace = before.read_trace(InputLimits::default()).expect("unchanged");
        assert_eq!(trace.labels.meta_value("workload"), Some(before.key.as_str()));
        let aligned = FileOptions { align: Alignment::new(64), ..FileOptions::default() };
        assert_ne!(open(&path, aligned).expect("valid").key, before.key);
        fs::write(&path, "id,lower,upper,size\nx,0,3,40\ny,1,2,9\n").expect("writable");
        assert_ne!(open(&path, FileOptions::default()).expect("valid").key, before.key);
        let error = before.read_trace(InputLimits::default()).expect_err("changed");
        assert_eq!(
            error.to_string(),
            format!("{}: the file has changed since it was first read", path.display())
        );
    }

    #[test]
    fn an_error_names_the_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = folder.path().join("missing.csv");
        let error = open(&missing, FileOptions::default()).expect_err("missing");
        assert!(error.to_string().starts_with(&missing.display().to_string()), "{error}");
        let bad = folder.path().join("bad.csv");
        fs::write(&bad, "id,lower,upper,size\nx,0,0,1\n").expect("writable");
        let error = open(&bad, FileOptions::default()).expect_err("an empty life");
        assert!(error.to_string().starts_with(&format!("{}:2: ", bad.display())), "{error}");
    }
}
