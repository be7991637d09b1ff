//! Checks that an allocator never hands out live memory twice.

use std::collections::BTreeMap;

use crate::{Address, Bytes};

/// Checks that live memory is never handed out again. It works for any allocator: it sees only requests and answers.
///
/// ```
/// use planlab_dsa::{Address, Audit, Bytes};
///
/// let mut audit = Audit::default();
/// audit.handed_out(Address::new(512), Bytes::new(100))?;
/// assert!(audit.handed_out(Address::new(600), Bytes::new(8)).is_err());
/// audit.remove_block(Address::new(512));
/// audit.handed_out(Address::new(600), Bytes::new(8))?;
/// # Ok::<(), planlab_dsa::AuditError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// First address and end of each live block.
    live: BTreeMap<u64, u64>,
}

/// An error that an allocator must never make.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// Live memory was handed out again.
    #[error("{size} bytes at {address} were handed out over the live bytes from {other} to {end}")]
    Overlap { address: Address, size: Bytes, other: Address, end: Address },
    /// An impossible address: 0, or memory past 2^64 - 1.
    #[error("{size} bytes at {address} are no memory")]
    Nowhere { address: Address, size: Bytes },
}

impl Audit {
    /// Records the answer to a request for `size` bytes, more than 0.
    pub fn handed_out(&mut self, address: Address, size: Bytes) -> Result<(), AuditError> {
        let end = address.get().checked_add(size.get()).filter(|_| address != Address::NULL);
        let end = end.ok_or(AuditError::Nowhere { address, size })?;
        match self.live.range(..end).next_back() {
            Some((&start, &stop)) if stop > address.get() => {
                let (other, end) = (Address::new(start), Address::new(stop));
                Err(AuditError::Overlap { address, size, other, end })
            }
            _ => {
                self.live.insert(address.get(), end);
                Ok(())
            }
        }
    }

    /// Removes a freed block; returns whether it was live.
    pub fn remove_block(&mut self, address: Address) -> bool {
        self.live.remove(&address.get()).is_some()
    }

    /// The live blocks in ascending order: address and requested size.
    pub fn live_blocks(&self) -> impl Iterator<Item = (Address, Bytes)> + '_ {
        self.live.iter().map(|(&start, &end)| (Address::new(start), Bytes::new(end - start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_overlap_is_seen() {
        for (address, size) in [(100, 10), (95, 10), (105, 10), (102, 2), (90, 40), (109, 1)] {
            let mut audit = Audit::default();
            audit.handed_out(Address::new(100), Bytes::new(10)).expect("free");
            assert!(audit.handed_out(Address::new(address), Bytes::new(size)).is_err(), "{address} {size}");
        }
        let mut audit = Audit::default();
        for address in [100, 90, 110] {
            audit.handed_out(Address::new(address), Bytes::new(10)).expect("free");
        }
        assert!(audit.handed_out(Address::NULL, Bytes::new(1)).is_err());
        assert!(audit.handed_out(Address::new(u64::MAX), Bytes::new(2)).is_err());
        assert!(audit.remove_block(Address::new(90)) && !audit.remove_block(Address::new(90)));
    }
}
