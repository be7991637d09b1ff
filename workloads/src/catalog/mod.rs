//! Finds every workload by its key, whatever its origin.

mod error;
mod origin;

use std::path::{Path, PathBuf};

use self::origin::{Families, Models, Origin, Processes, RecordedNets};
use crate::external::{self, External};
use crate::files::{self, FileWorkload};
use crate::formats::{InputLimits, Trace};
use crate::nearest::nearest;

pub use error::WorkloadError;

/// The available workloads: recorded ones, public ones in a corpus folder, synthetic ones, and the caller's own files.
///
/// ```
/// use planlab_workloads::Catalog;
///
/// let catalog = Catalog::new(None);
/// let trace = catalog.load("chainer/alexnet/infer/b1")?;
/// assert_eq!(trace.instance.load().bytes.get(), 10_169_344);
/// let error = catalog.load("chainer/alexnet/infer/b2").unwrap_err();
/// assert!(error.to_string().contains("did you mean `chainer/alexnet/infer/b1`"));
/// # Ok::<(), planlab_workloads::WorkloadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Catalog {
    corpus: Option<PathBuf>,
    external: Vec<External>,
    notices: Vec<String>,
    files: Vec<FileWorkload>,
    limits: InputLimits,
}

impl Catalog {
    /// The catalog, with the public instances of a corpus folder if given.
    #[must_use]
    pub fn new(corpus: Option<PathBuf>) -> Self {
        let (external, notices) = external::scan_corpus(corpus.as_deref());
        Self { corpus, external, notices, files: Vec::new(), limits: InputLimits::default() }
    }

    /// Adds files of the caller's own, each under its key. A file that was added before is not added again.
    #[must_use]
    pub fn with_files(mut self, files: impl IntoIterator<Item = FileWorkload>) -> Self {
        for file in files {
            if self.find_file(&file.key).is_none() {
                self.files.push(file);
            }
        }
        self
    }

    /// The file with a key.
    #[must_use]
    pub fn find_file(&self, key: &str) -> Option<&FileWorkload> {
        self.files.iter().find(|file| file.key == key)
    }

    /// Sets the limits for reading public instances and files. Default: enough for any trace.
    #[must_use]
    pub const fn with_limits(mut self, limits: InputLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The corpus folder, if given.
    #[must_use]
    pub fn corpus(&self) -> Option<&Path> {
        self.corpus.as_deref()
    }

    /// One sentence per missing source, on how to fetch it.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The origins, in the order of their keys.
    fn origins(&self) -> [&dyn Origin; 6] {
        [&RecordedNets, &Processes, &self.external, &self.files, &Models, &Families]
    }

    /// The keys of all recorded and public workloads, of the processes that contain recorded ones (see
    /// [`process`](crate::process)), of the caller's files, and of a selection of generated ones. Models and synthetic
    /// families have countless instances, see [`models`](crate::models) and [`synthetic`](crate::synthetic).
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.origins().iter().flat_map(|origin| origin.keys()).collect()
    }

    /// A description of a workload in one line; `None` if the key does not exist.
    #[must_use]
    pub fn describe(&self, key: &str) -> Option<String> {
        self.origins().iter().find_map(|origin| origin.describe(key))
    }

    /// The number of buffers of a workload; avoids reading the workload if possible.
    pub fn buffer_count(&self, key: &str) -> Result<usize, WorkloadError> {
        let buffers = self.origins().iter().find_map(|origin| origin.buffers(key, self.limits));
        buffers.unwrap_or_else(|| Err(self.unknown_key(key)))
    }

    /// Reads or generates a workload. Its metadata `workload` is the key.
    ///
    /// # Errors
    ///
    /// [`WorkloadError`]; for an unknown key it contains similar ones.
    pub fn load(&self, key: &str) -> Result<Trace, WorkloadError> {
        let trace = self.origins().iter().find_map(|origin| origin.load(key, self.limits));
        trace.unwrap_or_else(|| Err(self.unknown_key(key)))
    }

    /// Why this key has no workload.
    pub(crate) fn unknown_key(&self, key: &str) -> WorkloadError {
        if key.split('/').next() == Some(files::ROUTE) {
            let notice = "a key of this kind is that of a file in a bench; name the file itself".to_owned();
            return WorkloadError::Absent { key: key.to_owned(), notice };
        }
        let source = external::SOURCES.iter().find(|source| key.starts_with(&format!("{}/", source.name)));
        let absent = source.and_then(|source| {
            let start = format!("no {}/*", source.name);
            self.notices.iter().find(|notice| notice.starts_with(&start))
        });
        if let Some(notice) = absent {
            return WorkloadError::Absent { key: key.to_owned(), notice: notice.clone() };
        }
        let keys = self.keys();
        let nearest = nearest(key, keys.iter().map(String::as_str)).into_iter().map(str::to_owned).collect();
        WorkloadError::Unknown { key: key.chars().take(200).collect(), nearest }
    }
}
