//! Finds every workload by its key, whatever its origin.

use std::path::{Path, PathBuf};

use crate::external::{self, External, ExternalError};
use crate::files::{self, FileWorkload};
use crate::formats::{FormatError, InputLimits, Trace};
use crate::models::{self, ModelError};
use crate::nearest::{did_you_mean, nearest};
use crate::process::{self, Process, ProcessError};
use crate::recorded::{self, Recorded};
use crate::synthetic::{self, ParameterError};

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

/// Why a workload is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No workload has this key.
    #[error("there is no workload `{key}`{}", did_you_mean(nearest))]
    Unknown {
        /// The given key.
        key: String,
        /// Similar keys.
        nearest: Vec<String>,
    },
    /// The key names a public instance, but its source is missing.
    #[error("there is no workload `{key}`: {notice}")]
    Absent {
        /// The given key.
        key: String,
        /// What is missing, and how to fetch it.
        notice: String,
    },
    /// The synthetic key does not name an instance.
    #[error(transparent)]
    Synthetic(#[from] ParameterError),
    /// The model key does not name an instance.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A recorded file is damaged.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A public instance, or a file of the caller's own, cannot be read.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// A recorded trace does not determine the process that contains it.
    #[error("there is no workload `{key}`: {source}")]
    Process {
        /// The given key.
        key: String,
        /// What the trace lacks.
        source: ProcessError,
    },
}

impl Catalog {
    /// The catalog, with the public instances of a corpus folder if given.
    #[must_use]
    pub fn new(corpus: Option<PathBuf>) -> Self {
        let (external, notices) = external::scan(corpus.as_deref());
        Self { corpus, external, notices, files: Vec::new(), limits: InputLimits::default() }
    }

    /// Adds files of the caller's own, each under its key. A file that was added before is not added again.
    #[must_use]
    pub fn with_files(mut self, files: impl IntoIterator<Item = FileWorkload>) -> Self {
        for file in files {
            if self.file(&file.key).is_none() {
                self.files.push(file);
            }
        }
        self
    }

    /// The file with a key.
    #[must_use]
    pub fn file(&self, key: &str) -> Option<&FileWorkload> {
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

    /// The keys of all recorded and public workloads, of the processes that contain recorded ones (see [`process`]), of
    /// the caller's files, and of a selection of generated ones. Models and synthetic families have countless instances, see [`models`] and
    /// [`synthetic`].
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let recorded = || recorded::manifest().workload.iter().map(|entry| entry.key.clone());
        let processes = recorded().filter_map(|key| process::process_of(&key));
        let external = self.external.iter().map(|entry| entry.key.clone());
        let generated = models::selection().into_iter().chain(synthetic::selection());
        let files = self.files.iter().map(|file| file.key.clone());
        recorded().chain(processes).chain(external).chain(files).chain(generated).collect()
    }

    /// A description of a workload in one line; `None` if the key does not exist.
    #[must_use]
    pub fn describe(&self, key: &str) -> Option<String> {
        if let Some(entry) = recorded::recorded(key) {
            return Some(describe_recorded(entry));
        }
        if let Some(window) = recorded_window(key) {
            let parts = "initialisation, a warm-up iteration, the window";
            return Some(format!("the process that {} was cut from, by its own marks: {parts}", window.key));
        }
        if let Some(entry) = self.external(key) {
            let capacity = entry.capacity.map(|bytes| format!(", capacity {bytes}")).unwrap_or_default();
            return Some(format!("public instance, {}{capacity}", entry.path.display()));
        }
        if let Some(file) = self.file(key) {
            return Some(format!("{} buffers, {}", file.buffers, file.path.display()));
        }
        models::describe(key).or_else(|| synthetic::describe(key))
    }

    /// The number of buffers of a workload; avoids reading the workload if possible.
    ///
    /// # Errors
    ///
    /// Like [`Catalog::load`].
    pub fn buffers(&self, key: &str) -> Result<usize, WorkloadError> {
        if let Some(entry) = recorded::recorded(key) {
            return Ok(entry.buffers);
        }
        if let Some(file) = self.file(key) {
            return Ok(file.buffers);
        }
        if is_synthetic(key) {
            return Ok(synthetic::buffers(key)?);
        }
        Ok(self.load(key)?.instance.len())
    }

    /// Reads or generates a workload. Its metadata `workload` is the key.
    ///
    /// # Errors
    ///
    /// [`WorkloadError`]; for an unknown key it contains similar ones.
    pub fn load(&self, key: &str) -> Result<Trace, WorkloadError> {
        if let Some(entry) = recorded::recorded(key) {
            return Ok(entry.trace()?);
        }
        if let Some(window) = recorded_window(key) {
            return process_trace(key, &window.trace()?);
        }
        if let Some(entry) = self.external(key) {
            return Ok(entry.trace(self.limits)?);
        }
        if let Some(file) = self.file(key) {
            return Ok(file.trace(self.limits)?);
        }
        if is_synthetic(key) {
            return Ok(synthetic::load(key)?);
        }
        if models::is_model(key) {
            return Ok(models::load(key)?);
        }
        Err(self.unknown(key))
    }

    fn external(&self, key: &str) -> Option<&External> {
        self.external.iter().find(|entry| entry.key == key)
    }

    /// Why this key has no workload.
    pub(crate) fn unknown(&self, key: &str) -> WorkloadError {
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

fn is_synthetic(key: &str) -> bool {
    key.starts_with("synthetic/")
}

/// The recorded workload from which the process of a key is reconstructed.
fn recorded_window(key: &str) -> Option<&'static Recorded> {
    process::window_of(key).and_then(recorded::recorded)
}

fn process_trace(key: &str, window: &Trace) -> Result<Trace, WorkloadError> {
    let process = Process::of(window).and_then(|process| process.trace());
    let mut trace = process.map_err(|source| WorkloadError::Process { key: key.to_owned(), source })?;
    trace.name_workload(key);
    Ok(trace)
}

fn describe_recorded(entry: &Recorded) -> String {
    format!("{} buffers, load {}; {}", entry.buffers, entry.load, entry.provenance)
}
