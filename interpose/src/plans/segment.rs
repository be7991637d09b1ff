//! A piece of memory for plans.

/// A piece of memory for plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address; a multiple of 512, not 0.
    pub base: u64,
    /// Bytes.
    pub len: u64,
}

impl Segment {
    /// Whether an address lies in the segment.
    #[must_use]
    pub const fn contains_address(self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.len
    }
}
