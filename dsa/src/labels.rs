//! What a person calls the buffers: kept beside the instance, never seen by a planner.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// The labels of one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The id in the file that the buffer was read from; unique in the instance.
    pub name: String,
    /// What the buffer is for: `param`, `activation`, `gradient`, `workspace`, ...
    pub category: Option<String>,
    /// The operation that made it.
    pub op: Option<String>,
    /// The bytes that were asked for, before rounding up to the alignment.
    pub requested: Option<Bytes>,
    /// The steps as the file had them, where they were ranked (nanoseconds, say).
    pub original_steps: Option<(u64, u64)>,
    /// The line of the file, from 1.
    pub row: Option<u64>,
    /// An offset that was suggested as a warm start; a hint, not a pin.
    pub hint: Option<u64>,
}

/// Labels of all buffers of an instance, by buffer id, and the file's own metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// One label for each buffer.
    pub buffers: Vec<Label>,
    /// `key: value` metadata in the file's order.
    pub metadata: Vec<(String, String)>,
}

impl Labels {
    /// Labels `0`, `1`, ... for `count` buffers that have no names of their own.
    #[must_use]
    pub fn numbered(count: usize) -> Self {
        let buffers = (0..count).map(|id| Label { name: id.to_string(), ..Label::default() }).collect();
        Self { buffers, metadata: Vec::new() }
    }

    /// The value of a metadata key.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}
