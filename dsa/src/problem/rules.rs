//! The rules of a problem beside its buffers: who may overwrite whom, who is kept apart, and the arenas.

use serde::{Deserialize, Serialize};

use crate::{BufferId, Bytes};

/// Permission: `output` may overwrite `input` at its first step, which is the input's last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InPlace {
    /// The buffer that is read for the last time.
    pub input: BufferId,
    /// The buffer that may take its place.
    pub output: BufferId,
}

/// Two buffers that must not share an address even though their live ranges do not overlap (they are
/// used on parallel streams, say).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeepApart {
    /// One of the two.
    pub first: BufferId,
    /// The other.
    pub second: BufferId,
}

/// A memory pool that buffers lie in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Arena {
    /// Its name in files and reports.
    pub name: String,
    /// The most bytes that it can hold; `None`: no limit.
    pub capacity: Option<Bytes>,
}
