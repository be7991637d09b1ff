//! The memories that propagations are played on.
#![allow(unsafe_code, reason = "blocks are raw memory")]

use std::ffi::c_void;
use std::sync::Arc;

use planlab_dsa::{
    Address, AllocError, Backing, Bytes, Meter, Metered, NotLive, OnlineAllocator, Planning, Stream, Usage,
};

use super::backing::{Book, HostBacking};

/// Memory that hands out blocks of this process.
///
/// # Safety
///
/// An implementation promises this for an `address`, not 0, that [`alloc`](Self::alloc) returned for `size` bytes. If
/// [`is_backed`](Self::is_backed) returns `true`, these bytes may be read and written and no Rust value lies there, until the
/// address is freed or [`release_count`](Self::release_count) changes.
pub(super) unsafe trait Memory: Send {
    /// A block of `size` bytes; 0 is a valid answer to a request for no bytes.
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError>;

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// `address` is 0, or was handed out by this memory and not freed since.
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive>;

    /// Whether a block that was handed out is backed by memory. Default: unless it is null, as of an allocator that is
    /// trusted.
    #[inline]
    fn is_backed(&self, address: u64, _size: u64) -> bool {
        address != 0
    }

    /// A number that changes whenever memory is released. Default: memory is never released while blocks are live.
    fn release_count(&self) -> u64 {
        0
    }

    fn end_propagation(&mut self) {}

    /// Receives the kind of the propagation that begins. Default: does nothing.
    fn begin_propagation(&mut self, _kind: u64) {}

    /// Whether it needs the operation of each request. Default: no.
    fn wants_operations(&self) -> bool {
        false
    }

    /// Receives the operation of the requests that follow. Default: does nothing.
    fn enter_operation(&mut self, _operation: u64) {}

    /// What this memory itself holds; empty if only the process's usage is known.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// The most bytes that this memory held since the last call, if known for it alone.
    fn take_most_held(&self) -> Option<u64> {
        None
    }

    /// Bytes of the last range of addresses that was refused, if none was granted since.
    fn refused_range(&self) -> Option<u64> {
        None
    }

    /// The plans made so far, if this memory plans.
    fn planning(&self) -> Option<Planning> {
        None
    }

    /// The allocator's usage for the whole process, if that is what it counts.
    fn process_usage() -> Option<Usage> {
        None
    }

    /// Bytes of a live block, as the allocator rounds them, if it reports that for each.
    ///
    /// # Safety
    ///
    /// As [`free`](Self::free).
    unsafe fn usable_bytes(&self, _address: u64) -> Option<u64> {
        None
    }

    /// The time that threads have waited for the allocator's locks, in nanoseconds, if it reports that.
    fn lock_wait_ns() -> Option<u64> {
        None
    }
}

/// The address of a block of `size` bytes that an allocator returned; an error if it is null.
#[inline]
pub(super) fn block(found: *mut c_void, size: u64) -> Result<u64, AllocError> {
    if found.is_null() {
        return Err(AllocError::OutOfMemory { size: Bytes::new(size), reserved: Bytes::ZERO });
    }
    Ok(found.expose_provenance() as u64)
}

/// An online allocator over memory of the host.
pub(super) struct Online<A> {
    allocator: A,
    book: Arc<Book>,
    meter: Arc<Meter>,
}

impl<A: OnlineAllocator> Online<A> {
    pub(super) fn new<E>(
        backing: HostBacking,
        build: impl FnOnce(Box<dyn Backing>) -> Result<A, E>,
    ) -> Result<Self, E> {
        let book = backing.shared_book();
        let (backing, meter) = Metered::new(backing);
        Ok(Self { allocator: build(Box::new(backing))?, book, meter })
    }

    pub(super) fn allocator(&mut self) -> &mut A {
        &mut self.allocator
    }
}

// SAFETY: the allocator may be wrong, but `backs` asks the book of its backing, which only the backing writes.
unsafe impl<A: OnlineAllocator> Memory for Online<A> {
    #[inline]
    fn alloc(&mut self, size: u64) -> Result<u64, AllocError> {
        self.allocator.alloc(Bytes::new(size), Stream::default()).map(Address::get)
    }

    #[inline]
    unsafe fn free(&mut self, address: u64) -> Result<(), NotLive> {
        self.allocator.free(Address::new(address))
    }

    fn is_backed(&self, address: u64, size: u64) -> bool {
        self.book.is_backed(address, size)
    }

    #[inline]
    fn release_count(&self) -> u64 {
        self.book.release_count()
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
    fn enter_operation(&mut self, operation: u64) {
        self.allocator.enter_operation(operation);
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

/// No memory at all: measures the cost of the loop and the clock.
#[derive(Debug, Default)]
pub(super) struct EmptyLoop {
    next: u64,
}

// SAFETY: nothing that it hands out is memory, and `backs` says so.
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

    fn is_backed(&self, _: u64, _: u64) -> bool {
        false
    }
}
