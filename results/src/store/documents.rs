//! Documents that rows of schedules name: problems and schedules, and timelines for reports.
//!
//! ```text
//! <dir>/problems/<digest>.jsonl   training nets with machine and capacity
//! <dir>/events/<digest>.jsonl     schedules
//! <dir>/timelines/<digest>.json   when each event of a schedule runs, see [`Timeline`]
//! ```

use std::path::Path;

use planlab_dsa::Digest;
use serde::{Deserialize, Serialize};

use super::writer::Store;
use crate::StoreError;
use crate::files::disk;

planlab_dsa::named_enum! {
    /// Kinds of documents that the store keeps for schedules, with the names of their folders.
    pub enum Document {
        /// A training net with machine and capacity.
        Problem = "problems",
        /// A schedule with offsets.
        Schedule = "events",
        /// The data that a report draws for a schedule, under the schedule's digest.
        Timeline = "timelines",
    }
}

impl Document {
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Problem | Self::Schedule => "jsonl",
            Self::Timeline => "json",
        }
    }

    fn path(self, dir: &Path, digest: &str) -> std::path::PathBuf {
        dir.join(self.name()).join(format!("{digest}.{}", self.extension()))
    }
}

impl Store {
    /// Stores a problem or a schedule under the digest of its text; returns the digest.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn put_document(&self, document: Document, text: &str) -> Result<String, StoreError> {
        let digest = Digest::of_bytes(text.as_bytes()).to_string();
        put_as(self.dir(), document, &digest, text)?;
        Ok(digest)
    }

    /// Stores the timeline of a schedule under the schedule's digest.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn put_timeline(&self, schedule: &str, timeline: &Timeline) -> Result<(), StoreError> {
        let text = serde_json::to_string(timeline).map_err(|error| StoreError::Row {
            cell: schedule.to_owned(),
            repetition: 0,
            reason: error.to_string(),
        })?;
        put_as(self.dir(), Document::Timeline, schedule, &text)
    }
}

/// Stores a document under a digest, unless it exists already.
fn put_as(dir: &Path, document: Document, digest: &str, text: &str) -> Result<(), StoreError> {
    let path = document.path(dir, digest);
    if path.exists() {
        return Ok(());
    }
    disk::create_folder(&dir.join(document.name()))?;
    disk::write_whole(&path, text.as_bytes())
}

/// The text of a document that a row names.
///
/// # Errors
///
/// [`StoreError::Io`] if it is missing, [`StoreError::BadFile`] if it is not text, or differs from what was stored.
pub fn load_document(dir: impl AsRef<Path>, document: Document, digest: &str) -> Result<String, StoreError> {
    let path = document.path(dir.as_ref(), digest);
    let text = std::fs::read(&path).map_err(StoreError::from_io("read", &path))?;
    if document != Document::Timeline && Digest::of_bytes(&text).to_string() != digest {
        let reason = "it is damaged: its content has another digest than its name says";
        return Err(StoreError::bad_file(&path, &reason));
    }
    String::from_utf8(text).map_err(|error| StoreError::bad_file(&path, &error))
}

/// The times of a schedule's events, and its memory over time, for a report to draw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// All events, by engine in the order `compute`, `out`, `in`, and in the engine's order.
    pub spans: Vec<TimelineSpan>,
    /// Bytes in use, base included, from each moment on; ascending, from 0.
    pub memory: Vec<MemoryStep>,
    /// The available memory in bytes.
    pub capacity: u64,
    /// Nanoseconds from the start to the last completion.
    pub iteration_ns: u64,
}

/// An event of a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineSpan {
    /// `compute`, `out` or `in`.
    pub engine: String,
    /// `forward`, `recompute`, `backward`, `accumulate`, `copy-out` or `copy-in`.
    pub task: String,
    /// The name of the function or feature map.
    pub name: String,
    /// Bytes copied or written.
    pub bytes: u64,
    /// Nanoseconds from the start of the iteration to the start of the event.
    pub start_ns: u64,
    /// Nanoseconds to its completion.
    pub end_ns: u64,
}

/// One step of a timeline's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStep {
    /// Nanoseconds from the start of the iteration.
    pub at_ns: u64,
    /// Bytes in use from then on.
    pub bytes: u64,
}

/// The timeline of a schedule.
///
/// # Errors
///
/// Like [`load_document`]; [`StoreError::BadFile`] if it is not a timeline.
pub fn load_timeline(dir: impl AsRef<Path>, schedule: &str) -> Result<Timeline, StoreError> {
    let dir = dir.as_ref();
    let text = load_document(dir, Document::Timeline, schedule)?;
    let bad = |error: serde_json::Error| {
        StoreError::bad_file(&Document::Timeline.path(dir, schedule), &format!("not a timeline: {error}"))
    };
    serde_json::from_str(&text).map_err(bad)
}
