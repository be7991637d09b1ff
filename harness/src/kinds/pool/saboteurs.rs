//! Allocators that break their contract, for the tests of replays. They exist only if the environment sets
//! `PLANLAB_SABOTEURS=1`.

use planlab_dsa::{Address, AllocError, Backing, Bytes, NotLive, OnlineAllocator, Stream, Usage};

use crate::cells::sabotage;

/// Breaks a simulated device that it is played on; elsewhere it behaves like `saboteur/overlap`.
pub(crate) const BROKEN_DEVICE: &str = "saboteur/broken-device";

/// The keys of all saboteurs.
pub(crate) const KEYS: [&str; 5] =
    ["saboteur/overlap", "saboteur/outside", "saboteur/crash", "saboteur/hang", BROKEN_DEVICE];

/// The size in bytes of the segment in which `saboteur/overlap` places every block.
const SEGMENT: u64 = 1 << 30;

/// Builds a saboteur over a backing.
pub(crate) fn build(key: &'static str, mut backing: Box<dyn Backing>) -> Box<dyn OnlineAllocator> {
    let base = backing.acquire(Bytes::new(SEGMENT)).map_or(0, Address::get);
    Box::new(Saboteur { key, base, _backing: backing })
}

struct Saboteur {
    key: &'static str,
    base: u64,
    /// Keeps the segment alive.
    _backing: Box<dyn Backing>,
}

impl OnlineAllocator for Saboteur {
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        match self.key {
            "saboteur/crash" => std::process::abort(),
            "saboteur/hang" => sabotage::hang(),
            "saboteur/outside" => Ok(Address::new(self.base + SEGMENT)),
            _ if size.get() > SEGMENT => Err(AllocError::OutOfMemory { size, reserved: Bytes::new(SEGMENT) }),
            _ => Ok(Address::new(self.base)),
        }
    }

    fn free(&mut self, _: Address) -> Result<(), NotLive> {
        Ok(())
    }

    fn release_cached(&mut self) {}

    fn usage(&self) -> Usage {
        Usage { reserved: Bytes::new(SEGMENT), reserved_peak: Bytes::new(SEGMENT), ..Usage::default() }
    }
}
