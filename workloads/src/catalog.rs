//! Every workload by its key.

use std::path::PathBuf;

use crate::external::{External, ExternalFile, HOW_TO_FETCH};
use crate::formats::{FormatError, Trace};
use crate::recorded::{self, manifest};
use crate::synthetic::{self, ParameterError};
use crate::{did_you_mean, nearest, suites};

/// Why a workload cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No workload of that key.
    #[error("there is no workload `{key}`{}", did_you_mean(.near))]
    Unknown {
        /// The key.
        key: String,
        /// What may have been meant.
        near: Vec<String>,
    },
    /// A key of an external corpus that was not named.
    #[error("the workload `{key}` is not here: {HOW_TO_FETCH}")]
    NotHere {
        /// The key.
        key: String,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A synthetic key with a family or parameters that do not exist.
    #[error("workload `{key}`: {error}")]
    Synthetic {
        /// The key.
        key: String,
        /// What is wrong with it.
        error: ParameterError,
    },
}

/// The recorded nets, the synthetic families, and the instances of an external corpus.
#[derive(Clone, Debug)]
pub struct Catalog {
    external: Option<External>,
    files: Vec<ExternalFile>,
}

impl Catalog {
    /// A catalog with an external corpus, or without one.
    #[must_use]
    pub fn new(corpus: Option<PathBuf>) -> Self {
        let external = corpus.map(External::new);
        let files = external.as_ref().map(External::files).unwrap_or_default();
        Self { external, files }
    }

    /// The keys of all workloads that suites name or that are recorded, ascending. Synthetic workloads of
    /// other sizes and seeds are there without being listed.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = manifest().workload.iter().map(|entry| entry.key.clone()).collect();
        keys.extend(self.files.iter().map(|file| file.key.clone()));
        keys.extend(suites::synthetic_keys());
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// What a user should know of workloads that are not there.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        match &self.external {
            None => vec![HOW_TO_FETCH.to_owned()],
            Some(external) => external.notice().into_iter().collect(),
        }
    }

    /// One line on a workload; `None` where there is none of that key.
    #[must_use]
    pub fn describe(&self, key: &str) -> Option<String> {
        if let Some(entry) = recorded::recorded(key) {
            return Some(format!("{} buffers, load {}; {}", entry.buffers, entry.load, entry.provenance));
        }
        if let Some(file) = self.file(key) {
            return Some(file.path.display().to_string());
        }
        synthetic::describe(key)
    }

    /// The number of buffers of a workload, without reading it where its key or the manifest tells.
    ///
    /// # Errors
    ///
    /// As [`Catalog::load`].
    pub fn buffers(&self, key: &str) -> Result<usize, WorkloadError> {
        if let Some(entry) = recorded::recorded(key) {
            return Ok(entry.buffers);
        }
        Ok(self.load(key)?.instance.len())
    }

    /// Reads or makes a workload.
    ///
    /// # Errors
    ///
    /// [`WorkloadError::Unknown`] with the nearest keys; [`WorkloadError::NotHere`] for an external key
    /// without its corpus; what is wrong with its file or its parameters.
    pub fn load(&self, key: &str) -> Result<Trace, WorkloadError> {
        if let Some(entry) = recorded::recorded(key) {
            return Ok(entry.trace()?);
        }
        if let Some(file) = self.file(key) {
            return Ok(file.trace()?);
        }
        if key.starts_with("synthetic/") {
            let bad = |error| WorkloadError::Synthetic { key: key.to_owned(), error };
            return synthetic::load(key).map_err(bad);
        }
        if self.files.is_empty() && (key.starts_with("minimalloc/") || key.starts_with("idealloc/")) {
            return Err(WorkloadError::NotHere { key: key.to_owned() });
        }
        let keys = self.keys();
        let near = nearest(key, keys.iter().map(String::as_str)).into_iter().map(str::to_owned).collect();
        Err(WorkloadError::Unknown { key: key.to_owned(), near })
    }

    fn file(&self, key: &str) -> Option<&ExternalFile> {
        self.files.iter().find(|file| file.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_key_has_a_description_and_small_ones_load() {
        let catalog = Catalog::new(None);
        let keys = catalog.keys();
        assert!(keys.len() > 150, "{}", keys.len());
        for key in &keys {
            assert!(catalog.describe(key).is_some_and(|text| !text.is_empty()), "{key}");
        }
        for key in ["chainer/alexnet/infer/b1", "synthetic/uniform/n10/s1"] {
            assert!(keys.iter().any(|listed| listed == key), "{key}");
            let trace = catalog.load(key).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(catalog.buffers(key), Ok(trace.instance.len()));
            assert_eq!(trace.labels.meta("workload"), Some(key));
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let catalog = Catalog::new(None);
        let text = |key: &str| catalog.load(key).expect_err("not there").to_string();
        assert!(text("chainer/alexnet/train/b33").contains("chainer/alexnet/train/b32"));
        assert!(text("minimalloc/a").contains("PLANLAB_CORPUS"));
        assert!(text("synthetic/unifrom/n10/s1").contains("uniform"));
    }
}
