//! What was there at the last compaction of a heap, and what changed since.

use rustc_hash::FxHashMap;

use super::value::{Kind, Value, map_room};

/// What is known of old and young.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) old: Lengths,
    /// Old lists by the hash of their entries.
    pub(crate) known: FxHashMap<u64, (u32, u32)>,
    pub(crate) generation: u64,
    /// Whether something old has changed, and may lie among the young or refer to them.
    pub(crate) is_off: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lengths {
    pub(crate) slab: usize,
    pub(crate) spans: usize,
    pub(crate) dicts: usize,
    pub(crate) wide: usize,
    pub(crate) huge: usize,
    pub(crate) floats: usize,
    pub(crate) memo: usize,
}

impl Survey {
    /// Bytes of what is known.
    pub(crate) fn room_bytes(&self) -> usize {
        map_room(&self.known)
    }

    /// Notes that a list or a dict gets values, and may move.
    pub(crate) fn note_change(&mut self, container: Value) {
        let old = if container.is_dict() { self.old.dicts } else { self.old.spans };
        self.is_off |= container.index() < old;
    }

    /// Notes that a shape gets a key: one that is no text would have to move with the values.
    pub(crate) fn has_key(&mut self, key: Value) {
        self.is_off |= key.kind() != Kind::Text;
    }
}
