//! The numbers of a dict, and the errors for other values.

use crate::formats::FormatError;
use crate::formats::import::pickle::{Heap, Value};

/// The error for an entry that is not a dict, or that was read already. Events, segments and blocks must be dicts of their
/// own: otherwise a small file could stand for a recording of any length.
pub(crate) fn no_dict(file: &str, heap: &Heap, place: &str, value: Value) -> FormatError {
    if heap.is_taken(value) {
        let reason = format!("{place} is a dict that was read already: each is there once");
        return FormatError::at_byte(file, heap.byte_of(value).unwrap_or(0), reason);
    }
    FormatError::at_byte(file, 0, format!("{place} is a value of type {}, not a dict", value.type_name()))
}

/// The private pool that a pair of numbers names; what says nothing belongs to the common one.
pub(crate) fn pool_of(heap: &Heap, pair: Option<Value>) -> (u64, u64) {
    let numbers = pair.and_then(|pair| heap.items(pair)).unwrap_or_default();
    match numbers {
        &[first, second] => (heap.whole(first).unwrap_or(0), heap.whole(second).unwrap_or(0)),
        _ => (0, 0),
    }
}

/// Reads the numbers of a dict.
pub(crate) struct Numbers<'s> {
    pub(crate) file: &'s str,
    pub(crate) heap: &'s Heap,
    pub(crate) byte: u64,
    /// What the dict is called in Python.
    pub(crate) place: &'s dyn Fn() -> String,
}

impl Numbers<'_> {
    pub(crate) fn missing_error(&self, what: &str) -> FormatError {
        FormatError::at_byte(self.file, self.byte, format!("{} {what}", (self.place)()))
    }

    pub(crate) fn required_number(&self, value: Option<Value>, name: &str) -> Result<u64, FormatError> {
        match value {
            Some(value) => self.heap.whole(value).ok_or_else(|| {
                let shown = match self.heap.integer(value) {
                    Some(number) => format!("is {number}, which is not from 0 to 2^64 - 1"),
                    None => format!("is a value of type {}", value.type_name()),
                };
                self.missing_error(&format!("has a bad `{name}`: it {shown}"))
            }),
            None => Err(self.missing_error(&format!("has no `{name}`"))),
        }
    }

    pub(crate) fn or_zero(&self, value: Option<Value>, name: &str) -> Result<u64, FormatError> {
        if value.is_none() { Ok(0) } else { self.required_number(value, name) }
    }
}
