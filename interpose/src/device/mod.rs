//! Plans for the memory of GPUs, under a framework with a replaceable allocator.
//!
//! ```text
//!   the framework: malloc, free (size, device, stream)
//!        |
//!     Devices --> a Heap for each device --> a Machine for each stream --> a plan's segment
//!                    |                                                         |
//!                    +--> the pool, for what no plan serves ------> the device's driver
//! ```
//!
//! Memory that is freed on a stream is free for that stream's later work, because the device runs it later. So each
//! stream has its own rounds and plans. A block that other streams also use (because the framework says so, or because
//! it is freed on another stream) is free once its own stream waits for them, by an event. Memory requested during the
//! capture of a graph is never handed out again, because the graph may run at any time.

mod ground;
mod heap;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use planlab_dsa::{Address, Bytes};
use planlab_replay::cuda::{DriverError, SharedDevice, StreamHandle};

use ground::lock_ignoring_poison;

pub use heap::{Heap, HeapConfig};

/// The most devices of a process.
const MOST: usize = 64;

type Open = dyn Fn(u32) -> Result<Arc<dyn SharedDevice>, DriverError> + Send + Sync;

/// All devices of a process. Each is opened at its first request.
pub struct Devices {
    open: Box<Open>,
    config: HeapConfig,
    /// Reports errors to the user.
    say: fn(&str),
    slots: [OnceLock<Option<Mutex<Heap>>>; MOST],
    has_said: AtomicBool,
}

impl Devices {
    /// All devices, not yet open. `say` receives one message if a device cannot be opened, and one for the first
    /// failed request.
    pub fn new(
        open: impl Fn(u32) -> Result<Arc<dyn SharedDevice>, DriverError> + Send + Sync + 'static,
        config: HeapConfig,
        say: fn(&str),
    ) -> Self {
        let slots = [const { OnceLock::new() }; MOST];
        Self { open: Box::new(open), config, say, slots, has_said: AtomicBool::new(false) }
    }

    /// Memory of a device for work on a stream; `None` for no bytes, and if there is no memory.
    pub fn alloc(&self, size: Bytes, device: i32, stream: StreamHandle) -> Option<Address> {
        if size == Bytes::ZERO {
            return None;
        }
        let mut heap = self.lock_heap(device)?;
        let result = heap.alloc(size, stream);
        let held = heap.held_bytes();
        drop(heap);
        if let Err(error) = &result
            && !self.has_said.swap(true, Ordering::Relaxed)
        {
            (self.say)(&format!("planlab: GPU {device}: {error}; {held} bytes are held (said once)\n"));
        }
        result.ok()
    }

    /// Frees a block that was last used on a stream; whether it was live.
    pub fn free(&self, at: Address, device: i32, stream: StreamHandle) -> bool {
        at == Address::NULL || self.lock_heap(device).is_some_and(|mut heap| heap.free(at, stream))
    }

    /// Records that another stream also uses a block; whether the block is live on some device.
    pub fn record_stream(&self, at: Address, stream: StreamHandle) -> bool {
        self.opened_heaps().any(|mut heap| heap.record_stream(at, stream))
    }

    /// Gives back what no block and no plan uses.
    pub fn release_cached(&self) {
        self.opened_heaps().for_each(|mut heap| heap.release_cached());
    }

    /// Ends a round and begins the next, on all streams.
    pub fn mark_round(&self) {
        self.opened_heaps().for_each(|mut heap| heap.mark_round());
    }

    /// The open devices that no thread is using just now.
    pub fn idle_heaps(&self) -> impl Iterator<Item = MutexGuard<'_, Heap>> {
        self.slots.iter().filter_map(|slot| slot.get()?.as_ref()?.try_lock().ok())
    }

    fn opened_heaps(&self) -> impl Iterator<Item = MutexGuard<'_, Heap>> {
        self.slots.iter().filter_map(|slot| slot.get()?.as_ref().map(lock_ignoring_poison))
    }

    fn lock_heap(&self, device: i32) -> Option<MutexGuard<'_, Heap>> {
        let slot = usize::try_from(device).ok().and_then(|device| self.slots.get(device));
        let Some(slot) = slot else {
            let reason = "there is no such GPU".to_owned();
            self.refuse_device(device, &DriverError::Unavailable { reason });
            return None;
        };
        slot.get_or_init(|| self.open_heap(device)).as_ref().map(lock_ignoring_poison)
    }

    fn open_heap(&self, device: i32) -> Option<Mutex<Heap>> {
        let opened = (self.open)(device.unsigned_abs());
        let opened = opened.inspect_err(|error| self.refuse_device(device, error)).ok()?;
        Some(Mutex::new(Heap::new(opened, self.config)))
    }

    fn refuse_device(&self, device: i32, error: &DriverError) {
        (self.say)(&format!("planlab: no memory of GPU {device}: {error}\n"));
    }
}
