//! Names and origins of the buffers for people: kept beside the instance, never visible to a planner.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// The labels of one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The id in the file that the buffer was read from; unique in the instance.
    pub name: String,
    /// What the buffer is for: `param`, `activation`, `gradient`, `workspace`, ...
    pub category: Option<String>,
    /// The operation that allocated it.
    pub op: Option<String>,
    /// The requested bytes, before rounding up to the alignment.
    pub requested: Option<Bytes>,
    /// The steps in the file (nanoseconds, say), if they were replaced by ranks.
    pub original_steps: Option<(u64, u64)>,
    /// The line in the file, from 1.
    pub row: Option<u64>,
    /// An offset suggested as a warm start; a hint, not a pin.
    pub hint: Option<u64>,
}

/// Labels of all buffers of an instance, by buffer id, and the metadata of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// One label for each buffer.
    pub buffers: Vec<Label>,
    /// `key: value` metadata in file order.
    pub metadata: Vec<(String, String)>,
}

impl Labels {
    /// Labels `0`, `1`, ... for `count` buffers without names.
    #[must_use]
    pub fn from_numbers(count: usize) -> Self {
        let buffers = (0..count).map(|id| Label { name: id.to_string(), ..Label::default() }).collect();
        Self { buffers, metadata: Vec::new() }
    }

    /// The value of a metadata key.
    #[must_use]
    pub fn meta_value(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}
