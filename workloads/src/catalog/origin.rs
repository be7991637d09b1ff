//! Where workloads come from: each origin knows the keys of its own.

use super::error::WorkloadError;
use crate::external::External;
use crate::files::FileWorkload;
use crate::formats::{InputLimits, Trace};
use crate::models;
use crate::process::{self, Process};
use crate::recorded::{self, Recorded};
use crate::synthetic;

/// An origin of workloads. Its methods return `None` for the key of another origin.
pub(super) trait Origin {
    /// The keys to list: all, or a selection if there are countless.
    fn keys(&self) -> Vec<String>;

    /// A workload in one line.
    fn describe(&self, key: &str) -> Option<String>;

    /// Reads or generates a workload.
    fn load(&self, key: &str, limits: InputLimits) -> Option<Result<Trace, WorkloadError>>;

    /// The number of buffers, if possible without reading the workload.
    fn buffers(&self, key: &str, limits: InputLimits) -> Option<Result<usize, WorkloadError>> {
        Some(self.load(key, limits)?.map(|trace| trace.instance.len()))
    }
}

/// The embedded workloads.
pub(super) struct RecordedNets;

impl Origin for RecordedNets {
    fn keys(&self) -> Vec<String> {
        recorded::manifest().workload.iter().map(|entry| entry.key.clone()).collect()
    }

    fn describe(&self, key: &str) -> Option<String> {
        let entry = recorded::recorded(key)?;
        Some(format!("{} buffers, load {}; {}", entry.buffers, entry.load, entry.provenance))
    }

    fn load(&self, key: &str, _limits: InputLimits) -> Option<Result<Trace, WorkloadError>> {
        Some(recorded::recorded(key)?.read_trace().map_err(WorkloadError::from))
    }

    fn buffers(&self, key: &str, _limits: InputLimits) -> Option<Result<usize, WorkloadError>> {
        Some(Ok(recorded::recorded(key)?.buffers))
    }
}

/// The processes that contain recorded workloads.
pub(super) struct Processes;

impl Processes {
    /// The recorded workload from which the process of a key is reconstructed.
    fn window(key: &str) -> Option<&'static Recorded> {
        process::window_of(key).and_then(recorded::recorded)
    }

    fn trace(key: &str, window: &Recorded) -> Result<Trace, WorkloadError> {
        let process = Process::from_pid(&window.read_trace()?).and_then(|process| process.trace());
        let mut trace = process.map_err(|source| WorkloadError::Process { key: key.to_owned(), source })?;
        trace.name_workload(key);
        Ok(trace)
    }
}

impl Origin for Processes {
    fn keys(&self) -> Vec<String> {
        recorded::manifest().workload.iter().filter_map(|entry| process::process_of(&entry.key)).collect()
    }

    fn describe(&self, key: &str) -> Option<String> {
        let window = Self::window(key)?;
        let parts = "initialisation, a warm-up iteration, the window";
        Some(format!("the process that {} was cut from, by its own marks: {parts}", window.key))
    }

    fn load(&self, key: &str, _limits: InputLimits) -> Option<Result<Trace, WorkloadError>> {
        Some(Self::trace(key, Self::window(key)?))
    }
}

/// The public instances of a corpus.
impl Origin for Vec<External> {
    fn keys(&self) -> Vec<String> {
        self.iter().map(|entry| entry.key.clone()).collect()
    }

    fn describe(&self, key: &str) -> Option<String> {
        let entry = self.iter().find(|entry| entry.key == key)?;
        let capacity = entry.capacity.map(|bytes| format!(", capacity {bytes}")).unwrap_or_default();
        Some(format!("public instance, {}{capacity}", entry.path.display()))
    }

    fn load(&self, key: &str, limits: InputLimits) -> Option<Result<Trace, WorkloadError>> {
        let entry = self.iter().find(|entry| entry.key == key)?;
        Some(entry.read_trace(limits).map_err(WorkloadError::from))
    }
}

/// The caller's own files.
impl Origin for Vec<FileWorkload> {
    fn keys(&self) -> Vec<String> {
        self.iter().map(|file| file.key.clone()).collect()
    }

    fn describe(&self, key: &str) -> Option<String> {
        let file = self.iter().find(|file| file.key == key)?;
        Some(format!("{} buffers, {}", file.buffers, file.path.display()))
    }

    fn load(&self, key: &str, limits: InputLimits) -> Option<Result<Trace, WorkloadError>> {
        let file = self.iter().find(|file| file.key == key)?;
        Some(file.read_trace(limits).map_err(WorkloadError::from))
    }

    fn buffers(&self, key: &str, _limits: InputLimits) -> Option<Result<usize, WorkloadError>> {
        Some(Ok(self.iter().find(|file| file.key == key)?.buffers))
    }
}

/// The nets.
pub(super) struct Models;

impl Origin for Models {
    fn keys(&self) -> Vec<String> {
        models::listed_keys()
    }

    fn describe(&self, key: &str) -> Option<String> {
        models::describe_key(key)
    }

    fn load(&self, key: &str, _limits: InputLimits) -> Option<Result<Trace, WorkloadError>> {
        key.starts_with("model/").then(|| Ok(models::load_trace(key)?))
    }
}

/// The synthetic families.
pub(super) struct Families;

impl Origin for Families {
    fn keys(&self) -> Vec<String> {
        synthetic::listed_keys()
    }

    fn describe(&self, key: &str) -> Option<String> {
        synthetic::describe_key(key)
    }

    fn load(&self, key: &str, _limits: InputLimits) -> Option<Result<Trace, WorkloadError>> {
        key.starts_with("synthetic/").then(|| Ok(synthetic::load_trace(key)?))
    }

    fn buffers(&self, key: &str, _limits: InputLimits) -> Option<Result<usize, WorkloadError>> {
        key.starts_with("synthetic/").then(|| Ok(synthetic::buffer_count(key)?))
    }
}
