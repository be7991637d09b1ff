//! The contract of the memory under an online allocator.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Address, Bytes};

/// A source of memory in segments: a device, host memory, or a simulation.
///
/// A backing releases everything it holds when it is dropped.
pub trait Backing: Send {
    /// Allocates a segment of `size` bytes, more than 0, that shares no address with any other. Its base is a multiple
    /// of 512 and not 0.
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
    fn reserve_pages(&mut self, size: Bytes, page: Bytes) -> Result<Address, Refused> {
        let _ = page;
        self.reserve(size)
    }

    /// Puts memory under a part of a reserved range that has no memory yet.
    fn map(&mut self, at: Address, size: Bytes) -> Result<(), Refused> {
        let _ = (at, size);
        Err(Refused)
    }

    /// Removes memory that [`map`](Self::map) put there: whole pages of the range, however they were mapped. A page is
    /// that of [`reserve_pages`](Self::reserve_pages), or else [`page_size`](Self::page_size). The backing may keep a page that
    /// lies only partly in the range.
    ///
    /// Returns the bytes of mapped memory that were removed, at most `size`. Default: 0.
    fn unmap(&mut self, at: Address, size: Bytes) -> Bytes {
        let _ = (at, size);
        Bytes::ZERO
    }

    /// The granularity of mapping in bytes: mapped pieces begin and end at multiples of it from the base. Default: 1.
    fn page_size(&self) -> Bytes {
        Bytes::new(1)
    }

    /// Free and total memory, if limited. Default: not known.
    fn device_memory(&self) -> Option<DeviceMemory> {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the device has no memory to give")]
pub struct Refused;

/// Implements [`Backing`] for what holds another one.
macro_rules! forward_backing {
    ($type:ty, $this:ident => $backing:expr) => {
        impl<B: Backing + ?Sized> Backing for $type {
            fn acquire(&mut $this, size: Bytes) -> Result<Address, Refused> {
                $backing.acquire(size)
            }

            fn release(&mut $this, base: Address) {
                $backing.release(base);
            }

            fn reserve(&mut $this, size: Bytes) -> Result<Address, Refused> {
                $backing.reserve(size)
            }

            fn reserve_pages(&mut $this, size: Bytes, page: Bytes) -> Result<Address, Refused> {
                $backing.reserve_pages(size, page)
            }

            fn map(&mut $this, at: Address, size: Bytes) -> Result<(), Refused> {
                $backing.map(at, size)
            }

            fn unmap(&mut $this, at: Address, size: Bytes) -> Bytes {
                $backing.unmap(at, size)
            }

            fn page_size(&$this) -> Bytes {
                $backing.page_size()
            }

            fn device_memory(&$this) -> Option<DeviceMemory> {
                $backing.device_memory()
            }
        }
    };
}

forward_backing!(Box<B>, self => (**self));
// A shared backing: for an allocator and an observer, or an allocator made of two.
forward_backing!(Arc<Mutex<B>>, self => self.lock().unwrap_or_else(PoisonError::into_inner));
