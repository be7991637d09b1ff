//! Allocation without knowing what comes: the contract of pools, and of the memory under them.
//!
//! An [`OnlineAllocator`] answers requests one at a time. It takes *segments* from a [`Backing`] (a device, or
//! [`Simulated`] memory) and hands parts of them out. What it holds from the backing is *reserved*, whether it
//! is in use or not; the most that it ever reserved stands beside the height of a plan.
//!
//! ```text
//!   alloc, free  -->  OnlineAllocator  --acquire, release-->  Backing
//!                     blocks of segments                      segments
//! ```

mod audit;
mod meter;
mod requests;
mod simulated;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::performance::Missed;
use crate::{Address, Bytes, Stream};

pub use audit::{Audit, AuditError};
pub use meter::{Meter, Metered};
pub use requests::{Call, Requests};
pub use simulated::Simulated;

/// Why an allocator that [wants operations](OnlineAllocator::wants_operations) is not played on requests without.
pub const NO_OPERATIONS: &str = "the trace names no operations, by which it knows requests (column `op`)";

/// Hands out parts of a backing's memory, one request at a time.
///
/// Whatever the caller does, memory that is live is never handed out again: an address that is not live is
/// refused by [`free`](Self::free), and nothing changes.
pub trait OnlineAllocator: Send {
    /// Memory of at least `size` bytes for work on `stream`. A request for no bytes gets [`Address::NULL`],
    /// or [`AllocError::ZeroSize`] where the published allocator refuses it.
    ///
    /// # Errors
    ///
    /// [`AllocError`]; what was live stays live, and later requests may succeed.
    fn alloc(&mut self, size: Bytes, stream: Stream) -> Result<Address, AllocError>;

    /// Gives memory back to the allocator. [`Address::NULL`] is accepted and means nothing.
    ///
    /// # Errors
    ///
    /// [`NotLive`] for an address that was freed before or never handed out.
    fn free(&mut self, address: Address) -> Result<(), NotLive>;

    /// Gives back to the backing what is whole and not in use.
    fn release_cached(&mut self);

    /// Says that one propagation is over and the next begins. Default: nothing happens.
    fn end_propagation(&mut self) {}

    /// Says of which kind the propagation is that begins: propagations of a kind make the same requests. Said between
    /// [`end_propagation`](Self::end_propagation) and the first call; a caller that does not say has one kind, 0.
    /// Default: nothing happens.
    fn begin_propagation(&mut self, kind: u64) {
        let _ = kind;
    }

    /// Whether it wants to know of which operation each request is ([`enter`](Self::enter)), and is nothing without.
    /// Default: no.
    fn wants_operations(&self) -> bool {
        false
    }

    /// Says of which operation the requests are that follow, until the next such call or the end of the propagation;
    /// those before the first are of operation 0. Default: nothing happens.
    fn enter(&mut self, operation: u64) {
        let _ = operation;
    }

    /// What it holds, and what it cost so far.
    fn usage(&self) -> Usage;

    /// The plans that it made so far. Default: `None`, it plans nothing.
    fn planning(&self) -> Option<Planning> {
        None
    }
}

impl<A: OnlineAllocator + ?Sized> OnlineAllocator for Box<A> {
    fn alloc(&mut self, size: Bytes, stream: Stream) -> Result<Address, AllocError> {
        (**self).alloc(size, stream)
    }

    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        (**self).free(address)
    }

    fn release_cached(&mut self) {
        (**self).release_cached();
    }

    fn end_propagation(&mut self) {
        (**self).end_propagation();
    }

    fn begin_propagation(&mut self, kind: u64) {
        (**self).begin_propagation(kind);
    }

    fn wants_operations(&self) -> bool {
        (**self).wants_operations()
    }

    fn enter(&mut self, operation: u64) {
        (**self).enter(operation);
    }

    fn usage(&self) -> Usage {
        (**self).usage()
    }

    fn planning(&self) -> Option<Planning> {
        (**self).planning()
    }
}

/// The plans that an allocator made so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planning {
    /// How many.
    pub plans: u64,
    /// The time that making them took.
    pub time: Duration,
    /// Requests that a plan served.
    pub planned: u64,
    /// Requests that it was to serve and did not.
    pub missed: Missed,
}

impl Planning {
    /// Of two allocators together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            plans: self.plans + other.plans,
            time: self.time + other.time,
            planned: self.planned + other.planned,
            missed: self.missed.and(other.missed),
        }
    }
}

/// What an allocator holds, and what it cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Bytes held from the backing.
    pub reserved: Bytes,
    /// The most bytes ever held.
    pub reserved_peak: Bytes,
    /// Bytes of the blocks in use, with what was added to the requests.
    pub used: Bytes,
    /// How often the backing was asked for memory and gave it.
    pub device_allocations: u64,
    /// How often memory went back.
    pub device_releases: u64,
    /// Entries of free lists that were looked at; one look-up in an ordered set or a table counts as one.
    pub search_steps: u64,
}

/// Why a request was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocError {
    /// A request for no bytes, where that is refused.
    #[error("a request for 0 bytes")]
    ZeroSize,
    /// The backing gave no memory, after all that could be given back was given back.
    #[error("out of memory: {size} bytes were asked for, {reserved} are reserved")]
    OutOfMemory {
        /// The request.
        size: Bytes,
        /// What the allocator held then.
        reserved: Bytes,
    },
    /// An allocator that serves from a plan alone was asked for something else.
    #[error("request {request}, of {size} bytes, is not as planned: {reason}")]
    NotPlanned {
        /// The number of the request in its propagation, from 0.
        request: u64,
        /// The request.
        size: Bytes,
        /// What differs.
        reason: &'static str,
    },
}

/// An address that is not that of a live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("address {address} is not live: it was freed before, or never handed out")]
pub struct NotLive {
    /// The address.
    pub address: Address,
}

/// Memory that comes in segments: a device, host memory, or a simulation.
///
/// A backing gives back everything that it holds when it is dropped.
pub trait Backing: Send {
    /// A segment of `size` bytes, more than 0, that shares no address with any other. Its base is a multiple
    /// of 512 and not 0.
    ///
    /// # Errors
    ///
    /// [`Refused`] where there is no room.
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused>;

    /// Takes a whole segment back, by its base.
    fn release(&mut self, base: Address);

    /// Addresses for `size` bytes without memory under them, to be mapped piece by piece.
    ///
    /// # Errors
    ///
    /// [`Refused`], also where the backing cannot do that, which is the default.
    fn reserve(&mut self, size: Bytes) -> Result<Address, Refused> {
        let _ = size;
        Err(Refused)
    }

    /// As [`reserve`](Self::reserve), of a range of which only multiples of `page` from its base will be mapped and
    /// unmapped: the backing may take memory in pieces that large. Default: `page` means nothing.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    fn reserve_pages(&mut self, size: Bytes, page: Bytes) -> Result<Address, Refused> {
        let _ = page;
        self.reserve(size)
    }

    /// Puts memory under part of a reserved range; no byte of it has memory yet.
    ///
    /// # Errors
    ///
    /// [`Refused`] where there is no room.
    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        let _ = (at, size);
        Err(Refused)
    }

    /// Takes memory away that [`map`](Self::map) put there: whole pages of the range, whatever was mapped at once.
    /// A page is that of [`reserve_pages`](Self::reserve_pages), else [`page`](Self::page). Of a page that lies
    /// there only in part, the backing may keep all.
    ///
    /// Gives the bytes of mapped memory that went; never more than `size`. Default: none.
    fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
        let _ = (at, size);
        Bytes::ZERO
    }

    /// Mapped pieces begin and end at multiples of it from the base of the range, in bytes. Default: 1.
    fn page(&self) -> Bytes {
        Bytes::new(1)
    }

    /// Free and total memory, where it is limited. Default: not known.
    fn memory(&self) -> Option<DeviceMemory> {
        None
    }
}

/// How much memory a backing has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes that nobody holds.
    pub free: Bytes,
    /// All bytes.
    pub total: Bytes,
}

/// The backing has no room, or cannot do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("the device has no memory to give")
    }
}

impl std::error::Error for Refused {}

/// A backing that several share: an allocator and whoever watches it, or an allocator made of two.
impl<B: Backing> Backing for Arc<Mutex<B>> {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        locked(self, |backing| backing.acquire(size))
    }

    fn release(&mut self, base: Address) {
        locked(self, |backing| backing.release(base));
    }

    fn reserve(&mut self, size: Bytes) -> Result<Address, Refused> {
        locked(self, |backing| backing.reserve(size))
    }

    fn reserve_pages(&mut self, size: Bytes, page: Bytes) -> Result<Address, Refused> {
        locked(self, |backing| backing.reserve_pages(size, page))
    }

    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        locked(self, |backing| backing.map(at, size))
    }

    fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
        locked(self, |backing| backing.unmap(at, size))
    }

    fn page(&self) -> Bytes {
        locked(self, |backing| backing.page())
    }

    fn memory(&self) -> Option<DeviceMemory> {
        locked(self, |backing| backing.memory())
    }
}

fn locked<B, T>(shared: &Mutex<B>, act: impl FnOnce(&mut B) -> T) -> T {
    act(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

impl<B: Backing + ?Sized> Backing for Box<B> {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        (**self).acquire(size)
    }

    fn release(&mut self, base: Address) {
        (**self).release(base);
    }

    fn reserve(&mut self, size: Bytes) -> Result<Address, Refused> {
        (**self).reserve(size)
    }

    fn reserve_pages(&mut self, size: Bytes, page: Bytes) -> Result<Address, Refused> {
        (**self).reserve_pages(size, page)
    }

    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        (**self).map(at, size)
    }

    fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
        (**self).unmap(at, size)
    }

    fn page(&self) -> Bytes {
        (**self).page()
    }

    fn memory(&self) -> Option<DeviceMemory> {
        (**self).memory()
    }
}
