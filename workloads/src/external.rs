//! Public instances that are not part of the repository: a folder that the user names.
//!
//! The folder has `minimalloc/` with `A.1048576.csv` to `K.1048576.csv` (the number is the capacity that
//! the instance is meant for) and `idealloc/` with `*.csv` or `*.csv.zst`.

use std::path::{Path, PathBuf};

use crate::formats::{FormatError, ReadOptions, Trace, read_trace};

/// The folders of a corpus whose files are workloads: each file's key is `<folder>/<name>`.
const FOLDERS: [&str; 2] = ["minimalloc", "idealloc"];

/// How to come by the instances, for people who have none.
pub const HOW_TO_FETCH: &str = "external instances are left out: name their folder by --corpus DIR or PLANLAB_CORPUS. \
     minimalloc/: benchmarks/challenging/*.csv of github.com/google/minimalloc; \
     idealloc/: benchmarks/*/*.csv of github.com/cappadokes/idealloc";

/// A folder of external instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    folder: PathBuf,
}

/// One file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExternalFile {
    /// The workload's key: `minimalloc/a`.
    pub key: String,
    /// Where it is.
    pub path: PathBuf,
    /// The capacity in bytes that it is meant for, where its name says so.
    pub capacity: Option<u64>,
}

impl External {
    /// The instances in a folder; nothing is read yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The files, by key. A folder that is not there has none.
    #[must_use]
    pub fn files(&self) -> Vec<ExternalFile> {
        let mut files: Vec<ExternalFile> = FOLDERS.iter().flat_map(|folder| self.files_of(folder)).collect();
        files.sort_by(|a, b| a.key.cmp(&b.key));
        files
    }

    fn files_of(&self, folder: &str) -> Vec<ExternalFile> {
        let Ok(entries) = std::fs::read_dir(self.folder.join(folder)) else { return Vec::new() };
        entries.filter_map(|entry| external_file(folder, &entry.ok()?.path())).collect()
    }

    /// Why there is nothing, where there is nothing.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let path = self.folder.display();
        self.files().is_empty().then(|| format!("{path} has no minimalloc/ or idealloc/ with instances; {HOW_TO_FETCH}"))
    }
}

fn external_file(folder: &str, path: &Path) -> Option<ExternalFile> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".csv").or_else(|| name.strip_suffix(".csv.zst"))?;
    let (name, capacity) = match stem.rsplit_once('.') {
        Some((name, digits)) if digits.parse::<u64>().is_ok() => (name, digits.parse().ok()),
        _ => (stem, None),
    };
    let key = format!("{folder}/{}", name.to_lowercase().replace('_', "-"));
    Some(ExternalFile { key, path: path.to_owned(), capacity })
}

impl ExternalFile {
    /// Reads the instance; its metadata `workload` is the key, `capacity` the capacity.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with file and line.
    pub fn trace(&self) -> Result<Trace, FormatError> {
        let name = self.path.display().to_string();
        let bytes = std::fs::read(&self.path).map_err(|error| FormatError::new(&name, 1, error.to_string()))?;
        let mut trace = read_trace(&name, &bytes, &ReadOptions::default())?;
        trace.name_workload(&self.key);
        if let Some(capacity) = self.capacity {
            trace.labels.metadata.push(("capacity".to_owned(), capacity.to_string()));
        }
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_capacities_come_from_names() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["minimalloc/A.1048576.csv", "idealloc/pangu_2.6b.csv", "idealloc/g-1.csv.zst", "idealloc/README.md"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            std::fs::write(path, "id,lower,upper,size\na,0,2,5\n").expect("writable");
        }
        let files = External::new(folder.path()).files();
        let found: Vec<(&str, Option<u64>)> = files.iter().map(|file| (file.key.as_str(), file.capacity)).collect();
        let expected = [("idealloc/g-1", None), ("idealloc/pangu-2.6b", None), ("minimalloc/a", Some(1_048_576))];
        assert_eq!(found, expected);
        let trace = files[2].trace().expect("a trace");
        assert_eq!(trace.labels.meta("capacity"), Some("1048576"));
        assert_eq!(trace.labels.meta("workload"), Some("minimalloc/a"));
    }

    #[test]
    fn an_empty_folder_says_how_to_fill_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let notice = External::new(folder.path()).notice().expect("a notice");
        assert!(notice.contains("google/minimalloc"), "{notice}");
    }
}
