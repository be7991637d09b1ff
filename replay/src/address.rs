//! Converts addresses between numbers and pointers.

use std::ptr;

/// A pointer to an address from a backing or an allocator, which exposed its provenance.
pub(crate) fn pointer_to<T>(address: u64) -> *mut T {
    ptr::with_exposed_provenance_mut(as_word(address))
}

/// A size or an address of this process as a word.
#[expect(clippy::cast_possible_truncation, reason = "addresses have 64 bits on every supported machine")]
pub(crate) const fn as_word(value: u64) -> usize {
    value as usize
}
