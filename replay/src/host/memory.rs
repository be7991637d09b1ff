//! What a propagation is played on.
#![allow(unsafe_code, reason = "blocks are raw memory")]

use std::sync::Arc;

use planlab_dsa::{
    Address, AllocError, Backing, Bytes, Meter, Metered, NotLive, OnlineAllocator, Planning, Stream, Usage,
    VerifiedPlan,
};

use super::backing::{Book, HostBacking};
use crate::planned::{Planned, PlannedError};

/// Memory that hands out blocks of this process.
///
/// # Safety
///
/// Whoever implements it promises: where [`alloc`](Self::alloc) answered `address`, not 0, for `size` bytes, and
/// [`backs`](Self::backs) says so, these bytes may be read and written and no Rust value lies there, until the
/// address is freed or [`releases`](Self::releases) changes.
pub(super) unsafe trait Memory: Send {
    /// A block of `size` bytes; 0 may answer a request for none.
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError>;

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// `address` is 0, or was handed out by this memory and not freed since.
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive>;

    /// Whether a block that was handed out is memory.
    fn backs(&self, address: u64, size: u64) -> bool;

    /// A number that changes whenever memory went back. Default: never while blocks are live.
    fn releases(&self) -> u64 {
        0
    }

    fn end_propagation(&mut self) {}

    /// Says of which kind the propagation is that begins. Default: nothing happens.
    fn begin_propagation(&mut self, kind: u64) {
        let _ = kind;
    }

    /// Whether it wants to know of which operation each request is. Default: no.
    fn wants_operations(&self) -> bool {
        false
    }

    /// Says of which operation the requests are that follow. Default: nothing happens.
    fn enter(&mut self, operation: u64) {
        let _ = operation;
    }

    /// What it holds itself; nothing where that is known of the process alone.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// The most bytes that it held since this was last asked, where that is known of it alone.
    fn take_most_held(&self) -> Option<u64> {
        None
    }

    /// Bytes of the last range of addresses that it asked for and did not get, if it got none since.
    fn refused_range(&self) -> Option<u64> {
        None
    }

    /// The plans that it made so far, where it plans.
    fn planning(&self) -> Option<Planning> {
        None
    }

    /// What the allocator holds for the whole process, where that is how it counts.
    fn process_usage() -> Option<Usage> {
        None
    }

    /// Bytes of a live block, as the allocator rounds them, where it says so for each.
    ///
    /// # Safety
    ///
    /// As [`free`](Self::free).
    unsafe fn usable(&self, address: u64) -> Option<u64> {
        let _ = address;
        None
    }

    /// The time that threads waited for the allocator's locks so far, in nanoseconds, where it says so.
    fn lock_wait_ns() -> Option<u64> {
        None
    }
}

/// An online allocator over memory of the host.
pub(super) struct Online {
    allocator: Box<dyn OnlineAllocator>,
    book: Arc<Book>,
    meter: Arc<Meter>,
}

impl Online {
    pub(super) fn new(
        backing: HostBacking,
        build: impl FnOnce(Box<dyn Backing>) -> Box<dyn OnlineAllocator>,
    ) -> Self {
        let book = backing.book();
        let (backing, meter) = Metered::new(backing);
        Self { allocator: build(Box::new(backing)), book, meter }
    }

    pub(super) fn allocator(&mut self) -> &mut dyn OnlineAllocator {
        self.allocator.as_mut()
    }
}

// SAFETY: the allocator may be wrong; what is memory, the book of its backing says, which only the backing writes.
unsafe impl Memory for Online {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        self.allocator.alloc(Bytes::new(size), Stream::default()).map(Address::get)
    }

    #[inline]
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive> {
        self.allocator.free(Address::new(address))
    }

    fn backs(&self, address: u64, size: u64) -> bool {
        self.book.backs(address, size)
    }

    #[inline]
    fn releases(&self) -> u64 {
        self.book.releases()
    }

    fn end_propagation(&mut self) {
        self.allocator.end_propagation();
    }

    fn begin_propagation(&mut self, kind: u64) {
        self.allocator.begin_propagation(kind);
    }

    fn wants_operations(&self) -> bool {
        self.allocator.wants_operations()
    }

    #[inline]
    fn enter(&mut self, operation: u64) {
        self.allocator.enter(operation);
    }

    fn usage(&self) -> Usage {
        self.allocator.usage()
    }

    fn take_most_held(&self) -> Option<u64> {
        Some(self.meter.take_most().get())
    }

    fn refused_range(&self) -> Option<u64> {
        self.book.refused_range()
    }

    fn planning(&self) -> Option<Planning> {
        self.allocator.planning()
    }
}

/// A plan over a segment of the host.
pub(super) struct PlanMemory {
    planned: Planned,
    meter: Arc<Meter>,
}

impl PlanMemory {
    pub(super) fn new(plan: &VerifiedPlan<'_>, backing: HostBacking) -> Result<Self, PlannedError> {
        let (backing, meter) = Metered::new(backing);
        Ok(Self { planned: Planned::new(plan, Box::new(backing))?, meter })
    }
}

// SAFETY: the plan was verified: a block that `Planned` hands out lies inside its segment, which the backing has
// mapped, and which goes back only when nothing is live.
unsafe impl Memory for PlanMemory {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        self.planned.alloc(Bytes::new(size), Stream::default()).map(Address::get)
    }

    #[inline]
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive> {
        self.planned.free(Address::new(address))
    }

    #[inline]
    fn backs(&self, address: u64, _: u64) -> bool {
        address != 0
    }

    fn end_propagation(&mut self) {
        self.planned.end_propagation();
    }

    fn usage(&self) -> Usage {
        self.planned.usage()
    }

    fn take_most_held(&self) -> Option<u64> {
        Some(self.meter.take_most().get())
    }
}

/// No memory at all: what the loop and the clock cost by themselves.
#[derive(Debug, Default)]
pub(super) struct EmptyLoop {
    next: u64,
}

// SAFETY: nothing that it hands out is memory, and it says so.
unsafe impl Memory for EmptyLoop {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        self.next = self.next.wrapping_add(size);
        Ok(self.next)
    }

    #[inline]
    unsafe fn free(&mut self, _: u64) -> Result<(), NotLive> {
        Ok(())
    }

    fn backs(&self, _: u64, _: u64) -> bool {
        false
    }
}
