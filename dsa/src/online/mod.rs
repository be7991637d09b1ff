//! Online allocation: the contract of pools, which do not know future requests, and of the memory under them.
//!
//! An [`OnlineAllocator`] answers requests one at a time. It takes *segments* from a [`Backing`] (a device, or
//! [`Simulated`] memory) and hands parts of them out. The memory that it holds from the backing is *reserved*, in use
//! or not. Compare its reserved peak with the height of a plan.
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

/// Why an allocator that [wants operations](OnlineAllocator::wants_operations) cannot play requests without them.
pub const NO_OPERATIONS: &str = "the trace names no operations, by which it knows requests (column `op`)";

/// Hands out parts of a backing's memory, one request at a time.
///
/// Whatever the caller does, live memory is never handed out again: [`free`](Self::free) refuses an address that is not
/// live and changes nothing.
pub trait OnlineAllocator: Send {
    /// Memory of at least `size` bytes for work on `stream`. A request for 0 bytes gets [`Address::NULL`], or
    /// [`AllocError::ZeroSize`] if the published allocator refuses it.
    ///
    /// # Errors
    ///
    /// [`AllocError`]; live memory stays live, and later requests may succeed.
    fn alloc(&mut self, size: Bytes, stream: Stream) -> Result<Address, AllocError>;

    /// Gives memory back to the allocator. Freeing [`Address::NULL`] has no effect.
    ///
    /// # Errors
    ///
    /// [`NotLive`] for an address that was already freed or never handed out.
    fn free(&mut self, address: Address) -> Result<(), NotLive>;

    /// Gives whole unused segments back to the backing.
    fn release_cached(&mut self);

    /// Called when one propagation ends and the next begins. Default: nothing happens.
    fn end_propagation(&mut self) {}

    /// Names the kind of the propagation that begins; propagations of one kind make the same requests. Called between
    /// [`end_propagation`](Self::end_propagation) and the first request; without it, every propagation is of kind 0.
    /// Default: nothing happens.
    fn begin_propagation(&mut self, kind: u64) {
        let _ = kind;
    }

    /// Whether the allocator works only if it knows the operation of each request ([`enter`](Self::enter)). Default:
    /// no.
    fn wants_operations(&self) -> bool {
        false
    }

    /// Names the operation of the following requests, until the next call or the end of the propagation. Requests
    /// before the first call belong to operation 0. Default: nothing happens.
    fn enter(&mut self, operation: u64) {
        let _ = operation;
    }

    /// The memory it holds, and its costs so far.
    fn usage(&self) -> Usage;

    /// The plans it made so far. Default: `None`, as it plans nothing.
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

/// The plans that an allocator has made so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planning {
    /// The number of plans.
    pub plans: u64,
    /// The time spent making them.
    pub time: Duration,
    /// Requests that a plan served.
    pub planned: u64,
    /// Requests that a plan should have served but did not.
    pub missed: Missed,
}

impl Planning {
    /// The sum for two allocators.
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

/// The memory that an allocator holds, and its costs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Bytes held from the backing.
    pub reserved: Bytes,
    /// The most bytes ever held.
    pub reserved_peak: Bytes,
    /// Bytes of the blocks in use, including padding.
    pub used: Bytes,
    /// How often the backing was asked for memory and provided it.
    pub device_allocations: u64,
    /// How often memory was given back.
    pub device_releases: u64,
    /// Free list entries inspected; a look-up in an ordered set or a table counts as one.
    pub search_steps: u64,
}

/// Why a request was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocError {
    /// A request for 0 bytes, which this allocator refuses.
    #[error("a request for 0 bytes")]
    ZeroSize,
    /// The backing had no memory, even after everything unused was given back.
    #[error("out of memory: {size} bytes were asked for, {reserved} are reserved")]
    OutOfMemory {
        /// The requested bytes.
        size: Bytes,
        /// The bytes that the allocator held then.
        reserved: Bytes,
    },
    /// The request differs from the plan, and this allocator serves from a plan only.
    #[error("request {request}, of {size} bytes, is not as planned: {reason}")]
    NotPlanned {
        /// The number of the request in its propagation, from 0.
        request: u64,
        /// The requested bytes.
        size: Bytes,
        /// The difference.
        reason: &'static str,
    },
}

/// The address is not that of a live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("address {address} is not live: it was freed before, or never handed out")]
pub struct NotLive {
    /// The address.
    pub address: Address,
}

/// A source of memory in segments: a device, host memory, or a simulation.
///
/// A backing releases everything it holds when it is dropped.
pub trait Backing: Send {
    /// Allocates a segment of `size` bytes, more than 0, that shares no address with any other. Its base is a multiple
    /// of 512 and not 0.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no room.
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused>;

    /// Takes back the whole segment at `base`.
    fn release(&mut self, base: Address);

    /// Reserves addresses for `size` bytes without memory under them, to be mapped piece by piece.
    ///
    /// # Errors
    ///
    /// [`Refused`], also if the backing does not support it, which is the default.
    fn reserve(&mut self, size: Bytes) -> Result<Address, Refused> {
        let _ = size;
        Err(Refused)
    }

    /// Like [`reserve`](Self::reserve), but only multiples of `page` from the base will be mapped and unmapped, so the
    /// backing may take memory in pieces of that size. Default: ignores `page`.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    fn reserve_pages(&mut self, size: Bytes, page: Bytes) -> Result<Address, Refused> {
        let _ = page;
        self.reserve(size)
    }

    /// Puts memory under a part of a reserved range that has no memory yet.
    ///
    /// # Errors
    ///
    /// [`Refused`] if there is no room.
    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        let _ = (at, size);
        Err(Refused)
    }

    /// Removes memory that [`map`](Self::map) put there: whole pages of the range, however they were mapped. A page is
    /// that of [`reserve_pages`](Self::reserve_pages), or else [`page`](Self::page). The backing may keep a page that
    /// lies only partly in the range.
    ///
    /// Returns the bytes of mapped memory that were removed, at most `size`. Default: 0.
    fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
        let _ = (at, size);
        Bytes::ZERO
    }

    /// The granularity of mapping in bytes: mapped pieces begin and end at multiples of it from the base. Default: 1.
    fn page(&self) -> Bytes {
        Bytes::new(1)
    }

    /// Free and total memory, if limited. Default: not known.
    fn memory(&self) -> Option<DeviceMemory> {
        None
    }
}

/// The memory of a backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes that are not in use.
    pub free: Bytes,
    /// All bytes.
    pub total: Bytes,
}

/// The backing has no room or does not support the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("the device has no memory to give")
    }
}

impl std::error::Error for Refused {}

/// A shared backing: for an allocator and an observer, or an allocator made of two.
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
