//! The formats of profiles, known by their content.

use planlab_files::FormatError;

use super::measured::MeasuredNet;
use super::{partitioning, pipedream};

/// A format of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileFormat {
    /// The text of PipeDream's profiler (`graph.txt`).
    PipeDream,
    /// The JSON of msr-fiddle/dnn-partitioning.
    DnnPartitioning,
}

impl ProfileFormat {
    /// The format of a text; `None` if it is no profile.
    #[must_use]
    pub fn recognise(text: &str) -> Option<Self> {
        if pipedream::is_profile(text) {
            return Some(Self::PipeDream);
        }
        partitioning::is_graph(text).then_some(Self::DnnPartitioning)
    }

    /// What a file of this format is, for messages.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::PipeDream => "a profile of PipeDream",
            Self::DnnPartitioning => "a graph of dnn-partitioning",
        }
    }

    /// Reads a profile that was measured at a given batch. Errors name the file `file`.
    ///
    /// # Errors
    ///
    /// [`FormatError`] with the line, or with the place in the JSON: a batch of 0, invalid syntax, an invalid time or
    /// size, a layer without a size, an edge from or to a missing layer, edges in a circle, a graph without a backward pass.
    pub fn read(self, file: &str, text: &str, batch: u64) -> Result<MeasuredNet, FormatError> {
        if batch == 0 {
            return Err(FormatError::new(file, 1, "measured at a batch of 0"));
        }
        match self {
            Self::PipeDream => pipedream::read_profile(file, text, batch),
            Self::DnnPartitioning => partitioning::read_graph(file, text, batch),
        }
    }
}
