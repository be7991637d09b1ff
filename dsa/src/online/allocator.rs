//! The contract of an online allocator.

use std::time::Duration;

use serde::Serialize;

use crate::performance::Missed;
use crate::{Address, Bytes, Stream};

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

    /// Gives whole unused segments back to the backing. Default: nothing happens; an allocator around another passes it on.
    fn release_cached(&mut self) {}

    /// Called when one propagation ends and the next begins. Default: nothing happens.
    fn end_propagation(&mut self) {}

    /// Names the kind of the propagation that begins; propagations of one kind make the same requests. Called between
    /// [`end_propagation`](Self::end_propagation) and the first request; without it, every propagation is of kind 0.
    /// Default: nothing happens.
    fn begin_propagation(&mut self, kind: u64) {
        let _ = kind;
    }

    /// Whether the allocator works only if it knows the operation of each request ([`enter_operation`](Self::enter_operation)). Default:
    /// no.
    fn wants_operations(&self) -> bool {
        false
    }

    /// Names the operation of the following requests, until the next call or the end of the propagation. Requests
    /// before the first call belong to operation 0. Default: nothing happens.
    fn enter_operation(&mut self, operation: u64) {
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

    fn enter_operation(&mut self, operation: u64) {
        (**self).enter_operation(operation);
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
    pub fn combined_with(self, other: Self) -> Self {
        Self {
            plans: self.plans + other.plans,
            time: self.time + other.time,
            planned: self.planned + other.planned,
            missed: self.missed.combined_with(other.missed),
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
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocError {
    /// A request for 0 bytes, which this allocator refuses.
    #[error("a request for 0 bytes")]
    ZeroSize,
    /// The backing had no memory, even after everything unused was given back.
    #[error("out of memory: {size} bytes were asked for, {reserved} are reserved")]
    OutOfMemory { size: Bytes, reserved: Bytes },
    /// The request, counted from 0 in its propagation, differs from the plan, and this allocator serves from a plan only.
    #[error("request {request}, of {size} bytes, is not as planned: {reason}")]
    NotPlanned { request: u64, size: Bytes, reason: &'static str },
}

/// The address is not that of a live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("address {address} is not live: it was freed before, or never handed out")]
pub struct NotLive {
    /// The address.
    pub address: Address,
}
