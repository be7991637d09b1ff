//! Public instances outside the repository, read from a folder if it exists.
//!
//! ```text
//! <corpus>/minimalloc/A.1048576.csv     minimalloc/a, capacity 1048576
//! <corpus>/idealloc/G_1.csv[.zst]       idealloc/g-1
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::formats::{FormatError, InputLimits, ReadOptions, Trace, read_trace_from};

/// A source of public instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The folder in the corpus, which is also the first segment of the keys.
    pub name: &'static str,
    /// Instructions to fetch it.
    pub fetch: &'static str,
}

/// All sources.
pub const SOURCES: [Source; 2] = [
    Source {
        name: "minimalloc",
        fetch: "copy benchmarks/challenging/*.csv of github.com/google/minimalloc (Apache-2.0) to \
                <corpus>/minimalloc",
    },
    Source {
        name: "idealloc",
        fetch: "copy benchmarks/iopddl/*.csv and benchmarks/somas_tensors/*.csv of \
                github.com/cappadokes/idealloc (MIT) to <corpus>/idealloc",
    },
];

/// A public instance in the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// The workload's key.
    pub key: String,
    /// The file.
    pub path: PathBuf,
    /// The capacity in bytes, from the file's name.
    pub capacity: Option<u64>,
}

/// The instances in a corpus folder, by key, and a notice for each missing source.
#[must_use]
pub fn scan_corpus(corpus: Option<&Path>) -> (Vec<External>, Vec<String>) {
    let (mut found, mut notices) = (Vec::new(), Vec::new());
    for source in SOURCES {
        let folder = corpus.map(|corpus| corpus.join(source.name));
        let before = found.len();
        let problem = match &folder {
            None => Some("no corpus folder is given (--corpus or PLANLAB_CORPUS)".to_owned()),
            Some(folder) => match list_instances(source, folder) {
                Ok(files) => {
                    found.extend(files);
                    (found.len() == before).then(|| format!("{} holds no .csv", folder.display()))
                }
                Err(error) => Some(format!("{}: {error}", folder.display())),
            },
        };
        if let Some(problem) = problem {
            notices
                .push(format!("no {}/* workloads: {problem}; to have them, {}", source.name, source.fetch));
        }
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    (found, notices)
}

fn list_instances(source: Source, folder: &Path) -> io::Result<Vec<External>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let Some(stem) = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".csv") else { continue };
        let (stem, capacity) = match stem.rsplit_once('.').map(|(stem, last)| (stem, last.parse().ok())) {
            Some((stem, Some(capacity))) => (stem, Some(capacity)),
            _ => (stem, None),
        };
        let key = format!("{}/{}", source.name, stem.to_lowercase().replace('_', "-"));
        found.push(External { key, path, capacity });
    }
    // A file and its compressed copy are the same workload.
    found.sort_by(|a, b| (&a.key, &a.path).cmp(&(&b.key, &b.path)));
    found.dedup_by(|a, b| a.key == b.key);
    Ok(found)
}

impl External {
    /// Reads the instance; its metadata `workload` is the key, and `capacity` comes from the file's name.
    ///
    /// # Errors
    ///
    /// Why the file cannot be read, or the error in it.
    pub fn read_trace(&self, limits: InputLimits) -> Result<Trace, ExternalError> {
        let file = self.path.display().to_string();
        let input =
            fs::File::open(&self.path).map_err(|source| ExternalError::Io { file: file.clone(), source })?;
        let mut trace = read_trace_from(&file, input, &ReadOptions { limits, ..ReadOptions::default() })?;
        trace.name_workload(&self.key);
        if let Some(capacity) = self.capacity {
            trace.labels.metadata.push(("capacity".to_owned(), capacity.to_string()));
        }
        Ok(trace)
    }
}

/// Why a public instance, or a file of the user's own, cannot be read.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io { file: String, source: io::Error },
    /// The file is invalid.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The file no longer has the content that its key names.
    #[error("{file}: the file has changed since it was first read")]
    Changed { file: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_become_keys() {
        let corpus = tempfile::tempdir().expect("a temporary folder");
        for name in
            ["minimalloc/A.1048576.csv", "idealloc/pangu_2.6B.csv", "idealloc/g-1.csv", "idealloc/LICENSE"]
        {
            let path = corpus.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(path, "id,lower,upper,size\nb1,0,3,4\n").expect("writable");
        }
        let (found, notices) = scan_corpus(Some(corpus.path()));
        let keys: Vec<&str> = found.iter().map(|external| external.key.as_str()).collect();
        assert_eq!(keys, ["idealloc/g-1", "idealloc/pangu-2.6b", "minimalloc/a"]);
        assert!(notices.is_empty());
        let trace = found[2].read_trace(InputLimits::default()).expect("valid");
        assert_eq!(trace.labels.meta_value("capacity"), Some("1048576"));
        assert_eq!(trace.labels.meta_value("workload"), Some("minimalloc/a"));
    }

    #[test]
    fn without_a_corpus_there_is_a_notice_for_each_source() {
        let (found, notices) = scan_corpus(None);
        assert!(found.is_empty());
        assert_eq!(notices.len(), 2);
        assert!(notices[0].contains("github.com/google/minimalloc"), "{}", notices[0]);
        let (_, notices) = scan_corpus(Some(Path::new("/nowhere/at/all")));
        assert!(notices[1].contains("/nowhere/at/all/idealloc"), "{}", notices[1]);
    }
}
