//! Checks where each block of a memory lies, and that its contents do not change until it is freed.
#![allow(unsafe_code, reason = "blocks are raw memory")]

use std::collections::BTreeMap;
use std::convert::Infallible;

use planlab_dsa::{Address, AllocError, Audit, AuditError, Backing, Bytes, NotLive, OnlineAllocator};

use super::backing::HostBacking;
use super::memory::{Memory, Online};
use crate::pattern;

/// A request that failed, or an error of the memory; `buffer` is that of the request or block.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A request was not served.
    #[error("buffer {buffer}: {error}")]
    Alloc { buffer: u32, error: AllocError },
    /// A live block could not be freed.
    #[error("buffer {buffer}: {error}")]
    Free { buffer: u32, error: NotLive },
    /// Live memory was handed out again.
    #[error("buffer {buffer}: {error}")]
    Overlap { buffer: u32, error: AuditError },
    /// A block of the requested size lies outside the allocator's memory.
    #[error("buffer {buffer}: {size} bytes at {address} are not the allocator's")]
    Outside { buffer: u32, address: Address, size: Bytes },
    /// The bytes written into a block have changed; `at` is the distance of the first from its begin, in bytes.
    #[error("buffer {buffer}: byte {at} is not what was written there")]
    Changed { buffer: u32, at: u64 },
    /// An address that was not live was freed.
    #[error("{address} was freed, but it was not live")]
    Stranger { address: Address },
}

impl Fault {
    /// Whether memory was corrupted, or would have been; `false` for a refused request.
    #[must_use]
    pub const fn is_corruption(&self) -> bool {
        !matches!(self, Self::Alloc { .. })
    }
}

/// Records live blocks and what was written into them.
#[derive(Debug)]
pub(super) struct Checker {
    audit: Audit,
    blocks: BTreeMap<u64, Block>,
    /// Whether blocks are written; otherwise only their addresses are checked.
    fills: bool,
    /// The number of blocks so far: each has its own key.
    number: u64,
    /// Bytes of live blocks, as the allocator rounds them.
    usable: u64,
    /// The most bytes in use at once, as the allocator rounds them.
    pub(super) usable_peak: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    buffer: u32,
    size: u64,
    key: u64,
    usable: u64,
}

impl Checker {
    pub(super) fn new(fills: bool) -> Self {
        Self { audit: Audit::default(), blocks: BTreeMap::new(), fills, number: 0, usable: 0, usable_peak: 0 }
    }

    /// Requests a block, checks where it lies, and writes it.
    pub(super) fn alloc_block<M: Memory>(
        &mut self,
        memory: &mut M,
        buffer: u32,
        size: u64,
    ) -> Result<u64, Fault> {
        let address = memory.alloc(size).map_err(|error| Fault::Alloc { buffer, error })?;
        if size == 0 {
            return Ok(address);
        }
        let (at, bytes) = (Address::new(address), Bytes::new(size));
        self.audit.handed_out(at, bytes).map_err(|error| Fault::Overlap { buffer, error })?;
        if !memory.is_backed(address, size) {
            return Err(Fault::Outside { buffer, address: at, size: bytes });
        }
        self.number += 1;
        let key = pattern::block_key(self.number);
        if self.fills {
            // SAFETY: the memory backs the block, and promises that a backed block may be written.
            unsafe { pattern::fill_block(address, size, key) };
        }
        // SAFETY: the memory has just handed the block out.
        let usable = unsafe { memory.usable_bytes(address) };
        let usable = usable.unwrap_or(size);
        self.blocks.insert(address, Block { buffer, size, key, usable });
        self.usable += usable;
        self.usable_peak = self.usable_peak.max(memory.usage().used.get().max(self.usable));
        Ok(address)
    }

    /// Checks the contents of a live block and frees it; `false` if no live block begins at `address`.
    pub(super) fn free_block<M: Memory>(&mut self, memory: &mut M, address: u64) -> Result<bool, Fault> {
        let Some(&block) = self.blocks.get(&address) else { return Ok(false) };
        self.check_block(memory, address, block)?;
        self.blocks.remove(&address);
        self.audit.remove_block(Address::new(address));
        self.usable -= block.usable;
        // SAFETY: this memory handed the block out, and the entry just removed shows that it was live.
        let freed = unsafe { memory.free(address) };
        freed.map_err(|error| Fault::Free { buffer: block.buffer, error })?;
        Ok(true)
    }

    fn check_block<M: Memory>(&self, memory: &M, address: u64, block: Block) -> Result<(), Fault> {
        let Block { buffer, size, key, .. } = block;
        if !memory.is_backed(address, size) {
            return Err(Fault::Outside { buffer, address: Address::new(address), size: Bytes::new(size) });
        }
        if !self.fills {
            return Ok(());
        }
        // SAFETY: the memory backs the block, which was written when it was handed out.
        match unsafe { pattern::first_wrong(address, size, key) } {
            Some(at) => Err(Fault::Changed { buffer, at }),
            None => Ok(()),
        }
    }

    /// Checks the contents of every live block.
    pub(super) fn look_at_all<M: Memory>(&self, memory: &M) -> Result<(), Fault> {
        self.blocks.iter().try_for_each(|(&address, &block)| self.check_block(memory, address, block))
    }
}

/// An online allocator over the host's memory that checks every byte: each block is written when it is handed out and
/// checked before it is freed. Callers may make any calls.
pub struct Guarded {
    memory: Online<Box<dyn OnlineAllocator>>,
    checker: Checker,
    requests: u32,
}

impl Guarded {
    /// Puts the allocator that `build` makes over a backing.
    #[must_use]
    pub fn new(
        backing: HostBacking,
        build: impl FnOnce(Box<dyn Backing>) -> Box<dyn OnlineAllocator>,
    ) -> Self {
        let Ok(memory) = Online::new(backing, |backing| Ok::<_, Infallible>(build(backing)));
        Self { memory, checker: Checker::new(true), requests: 0 }
    }

    /// Requests a block and writes every byte of it.
    ///
    /// # Errors
    ///
    /// [`Fault::Alloc`] if the allocator refuses; another fault if the allocator is wrong. The fault's buffer is the
    /// number of the request, from 1.
    pub fn alloc(&mut self, size: Bytes) -> Result<Address, Fault> {
        self.requests = self.requests.wrapping_add(1);
        self.checker.alloc_block(&mut self.memory, self.requests, size.get()).map(Address::new)
    }

    /// Frees a block. If no live block begins at the address, the allocator must refuse it.
    ///
    /// # Errors
    ///
    /// [`Fault`] if bytes of the block changed, or the allocator is wrong.
    pub fn free(&mut self, address: Address) -> Result<(), Fault> {
        if self.checker.free_block(&mut self.memory, address.get())? {
            return Ok(());
        }
        match self.memory.allocator().free(address) {
            Ok(()) if address != Address::NULL => Err(Fault::Stranger { address }),
            _ => Ok(()),
        }
    }

    /// The live blocks: address and requested size, ascending.
    pub fn live_blocks(&self) -> impl Iterator<Item = (Address, Bytes)> + '_ {
        self.checker.audit.live_blocks()
    }

    /// Checks the contents of every live block.
    ///
    /// # Errors
    ///
    /// [`Fault`] if bytes of a block changed.
    pub fn check_live(&self) -> Result<(), Fault> {
        self.checker.look_at_all(&self.memory)
    }

    /// Ends a propagation; the next one begins.
    pub fn end_propagation(&mut self) {
        self.memory.allocator().end_propagation();
    }

    /// Has the allocator give back its unused whole segments.
    pub fn release_cached(&mut self) {
        self.memory.allocator().release_cached();
    }
}
