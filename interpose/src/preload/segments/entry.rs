//! A segment of the process: whose it is, whether its pages may go, the sizes of its blocks, and those that other threads
//! have freed.
#![allow(unsafe_code, reason = "links in freed blocks, and a mapped array")]

use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use super::marks::Marks;
use crate::plans::Segment;
use crate::preload::system::{is_frozen, word};

/// A segment, the thread that plans in it, and the blocks that other threads have freed there.
pub(crate) struct Entry {
    pub(super) base: AtomicU64,
    pub(super) len: AtomicU64,
    /// The size of the block that begins in each piece.
    pub(super) sizes: AtomicPtr<AtomicU64>,
    pub(super) shift: AtomicU32,
    /// The number of the state of the thread that uses it; 0: no thread.
    pub(super) owner: AtomicUsize,
    pub(super) is_used: AtomicBool,
    /// Whether it is claimed, and otherwise whether its pages hold memory.
    state: AtomicU8,
    claims: AtomicU32,
    /// The address of the last block that another thread freed; its first bytes hold the address of the one before.
    freed: AtomicU64,
    pub(crate) marks: Marks,
}

/// The number of the process that watches this memory, while it uses it; the kernel clears it, however that process ends.
pub(super) static ALIVE: AtomicI32 = AtomicI32::new(0);

/// Whether no process watches this memory. Makes no system call.
pub(super) fn has_watcher_ended() -> bool {
    ALIVE.load(Ordering::Acquire) == 0
}

/// The states of a segment: its thread uses it, or may use it.
const CLAIMED: u8 = 0;
/// Nothing is live in it.
const IDLE: u8 = 1;
/// Its pages are being given back.
const LEAVING: u8 = 2;
/// Its pages were given back since then.
const GIVEN_BACK: u8 = 3;

impl Entry {
    pub(super) const fn new() -> Self {
        Self {
            base: AtomicU64::new(0),
            len: AtomicU64::new(0),
            sizes: AtomicPtr::new(ptr::null_mut()),
            shift: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
            is_used: AtomicBool::new(false),
            state: AtomicU8::new(CLAIMED),
            claims: AtomicU32::new(0),
            freed: AtomicU64::new(0),
            marks: Marks::new(),
        }
    }

    #[inline]
    pub(crate) fn segment(&self) -> Segment {
        Segment { base: self.base.load(Ordering::Relaxed), len: self.len.load(Ordering::Relaxed) }
    }

    #[inline]
    pub(crate) fn owner(&self) -> usize {
        self.owner.load(Ordering::Relaxed)
    }

    /// Called before its thread uses it: its pages stay from now on. Returns whether they were given back.
    #[inline]
    pub(crate) fn claim(&self) -> bool {
        self.claims.store(self.claims().wrapping_add(1), Ordering::Relaxed);
        loop {
            let before = self.state.load(Ordering::Acquire);
            if before == LEAVING {
                self.wait();
            } else if self.change(before, CLAIMED) {
                return before == GIVEN_BACK;
            }
        }
    }

    /// Lets the process go on that gives its pages back, unless that process has been ended in the middle of it. In a
    /// frozen process without a system call.
    #[cold]
    fn wait(&self) {
        if has_watcher_ended() {
            self.end_giving_back();
        } else if is_frozen() {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }

    /// Called when nothing is live in it any more.
    #[inline]
    pub(crate) fn unclaim(&self) {
        self.state.store(IDLE, Ordering::Release);
    }

    /// How often it was claimed.
    pub(crate) fn claims(&self) -> u32 {
        self.claims.load(Ordering::Relaxed)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.state.load(Ordering::Relaxed) == IDLE
    }

    /// Whether it may hold pages now, or could give some back later.
    pub(crate) fn holds_pages(&self) -> bool {
        self.is_used.load(Ordering::Relaxed) && self.state.load(Ordering::Relaxed) != GIVEN_BACK
    }

    /// Gives its pages back, unless it is claimed. Any task that shares the memory may call this.
    pub(crate) fn give_back_idle(&self, discard: impl Fn(Segment)) {
        if self.change(IDLE, LEAVING) {
            discard(self.segment());
            self.state.store(GIVEN_BACK, Ordering::Release);
        }
    }

    /// Called when the process that gave pages back has ended, or does not exist here.
    pub(super) fn end_giving_back(&self) {
        self.change(LEAVING, GIVEN_BACK);
    }

    #[inline]
    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn size(&self, address: u64) -> &AtomicU64 {
        let segment = self.segment();
        assert!(segment.contains_address(address), "an address of another segment");
        let piece = (address - segment.base) >> self.shift.load(Ordering::Relaxed);
        // SAFETY: there is an entry for each piece of the segment, and the array is never unmapped.
        unsafe { &*self.sizes.load(Ordering::Relaxed).add(usize::try_from(piece).unwrap_or(0)) }
    }

    /// The size of the live block at an address, in bytes.
    #[inline]
    pub(crate) fn size_of(&self, address: u64) -> u64 {
        self.size(address).load(Ordering::Relaxed)
    }

    /// Records the size of a block that lies there from now on.
    #[inline]
    pub(crate) fn set_size(&self, address: u64, bytes: u64) {
        self.size(address).store(bytes, Ordering::Relaxed);
    }

    /// Frees a block of at least 8 bytes that belongs to another thread's plan.
    pub(crate) fn push_freed(&self, address: u64) {
        let block = ptr::with_exposed_provenance_mut::<u64>(word(address));
        self.freed.update(Ordering::Release, Ordering::Relaxed, |before| {
            // SAFETY: the block belongs to the thread that frees it, and is large enough and aligned for a word.
            unsafe { block.write(before) };
            address
        });
    }

    /// Takes all blocks that other threads have freed; returns the last, or 0 if there is no block. [`before`] leads
    /// on.
    pub(crate) fn take_freed(&self) -> u64 {
        if self.freed.load(Ordering::Relaxed) == 0 { 0 } else { self.freed.swap(0, Ordering::Acquire) }
    }
}

/// The block that was freed before this one by [`Entry::push_freed`].
pub(crate) fn before(freed: u64) -> u64 {
    // SAFETY: the block was taken from a list of freed blocks, and no other thread has it.
    unsafe { ptr::with_exposed_provenance::<u64>(word(freed)).read() }
}
