//! What a pickle may ask for again.

use rustc_hash::FxHashMap;

use super::value::{Value, map_room};

/// Values that may be asked for again. Picklers number them 0, 1, 2, ...; other numbers are kept apart, so that a large
/// one costs no more than a small one.
#[derive(Default)]
pub(crate) struct Memo {
    dense: Vec<Value>,
    sparse: FxHashMap<u64, Value>,
    /// Whether a number was given twice.
    has_changed: bool,
}

impl Memo {
    pub(crate) fn count(&self) -> u64 {
        (self.dense.len() + self.sparse.len()) as u64
    }

    /// Bytes of its entries.
    pub(crate) fn room_bytes(&self) -> usize {
        size_of_val(&*self.dense) + map_room(&self.sparse)
    }

    pub(crate) fn get(&self, index: u64) -> Option<Value> {
        let dense = usize::try_from(index).ok().and_then(|index| self.dense.get(index));
        dense.or_else(|| self.sparse.get(&index)).copied()
    }

    pub(crate) fn put(&mut self, index: u64, value: Value) {
        let length = self.dense.len() as u64;
        if index == length && !self.sparse.contains_key(&index) {
            self.dense.push(value);
        } else if let Some(old) = usize::try_from(index).ok().and_then(|index| self.dense.get_mut(index)) {
            *old = value;
            self.has_changed = true;
        } else {
            self.sparse.insert(index, value);
        }
    }

    /// The values with numbers from this on; `None` where the numbers are not those of a pickler.
    pub(crate) fn values_since(&mut self, number: usize) -> Option<&mut [Value]> {
        let usual = self.sparse.is_empty() && !self.has_changed;
        self.dense.get_mut(number..).filter(|_| usual)
    }
}
