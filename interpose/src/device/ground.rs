//! The ground of a stream's machine: device memory for plans, and the thread that makes them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use planlab_dsa::{Address, Backing, Bytes, OnlineAllocator, Refused};
use planlab_replay::cuda::{DriverError, SharedDevice};
use planlab_solvers::online::PytorchCaching;
use rustc_hash::FxHashMap;

use crate::calls::Round;
use crate::planning::{Job, Planning, Solved, Unsolved};
use crate::plans::{Ground, Segment};
use crate::tally::{DeviceTally, PlanTally};

/// The least alignment that a driver guarantees and plans assume, in bytes.
pub(super) const ALIGN: u64 = 512;

/// A device's memory, and what is held of it.
pub(super) struct Memory {
    pub(super) device: Arc<dyn SharedDevice>,
    pub(super) tally: Arc<DeviceTally>,
    /// Bytes of each held piece, by its first address.
    held: Mutex<FxHashMap<u64, u64>>,
    /// Why the last request failed.
    fault: Mutex<Option<DriverError>>,
}

pub(super) fn lock_ignoring_poison<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    pub(super) fn new(device: Arc<dyn SharedDevice>) -> Self {
        Self { device, tally: Arc::default(), held: Mutex::default(), fault: Mutex::default() }
    }

    /// Memory of the driver, or `None`; [`take_fault`](Self::take_fault) returns the reason.
    pub(super) fn take_segment(&self, size: u64) -> Option<Address> {
        let size = size.checked_next_multiple_of(ALIGN)?;
        let at = self.device.malloc(Bytes::new(size)).inspect_err(|error| self.note_fault(error)).ok()?;
        lock_ignoring_poison(&self.held).insert(at.get(), size);
        self.tally.device_allocations.add(1);
        self.tally.reserved.add(size);
        let reserved = self.tally.reserved.get();
        self.tally.reserved_peak.set(self.tally.reserved_peak.get().max(reserved));
        Some(at)
    }

    /// Gives memory back, after running work is done.
    pub(super) fn give_back(&self, at: Address) {
        let Some(size) = lock_ignoring_poison(&self.held).remove(&at.get()) else { return };
        self.tally.device_releases.add(1);
        self.tally.reserved.set(self.tally.reserved.get().saturating_sub(size));
        // If the driver refuses the memory, it stays with the process; nobody waits for the result.
        let _ = self.device.free(at).inspect_err(|error| self.note_fault(error));
    }

    fn note_fault(&self, error: &DriverError) {
        *lock_ignoring_poison(&self.fault) = Some(error.clone());
    }

    /// The reason why a request of this size, in bytes, got no memory.
    pub(super) fn take_fault(&self, size: Bytes) -> DriverError {
        match lock_ignoring_poison(&self.fault).take() {
            // The pool requests more bytes from the driver than the program requests from it.
            None | Some(DriverError::OutOfMemory { .. }) => DriverError::OutOfMemory { size },
            Some(other) => other,
        }
    }
}

/// The device's memory as the pool's backing.
pub(super) struct Segments(pub(super) Arc<Memory>);

impl Backing for Segments {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        self.0.take_segment(size.get()).ok_or(Refused)
    }

    fn release(&mut self, base: Address) {
        self.0.give_back(base);
    }
}

/// The pool of a device, for requests that no plan serves.
pub(super) type Pool = Arc<Mutex<PytorchCaching>>;

pub(super) fn lock_pool(pool: &Pool) -> MutexGuard<'_, PytorchCaching> {
    lock_ignoring_poison(pool)
}

pub(super) struct DeviceGround {
    memory: Arc<Memory>,
    pool: Pool,
    planning: Planning,
    job: Option<Job>,
    segments: Vec<Segment>,
    /// A counter instead of a clock.
    looks: u64,
    /// The plans that were taken up.
    pub(super) plans: Vec<Arc<PlanTally>>,
}

impl DeviceGround {
    pub(super) fn new(memory: Arc<Memory>, pool: Pool, planning: Planning) -> Self {
        Self { memory, pool, planning, job: None, segments: Vec::new(), looks: 0, plans: Vec::new() }
    }

    /// Gives all segments back after their machine is gone; whether there were any.
    pub(super) fn give_all_back(&mut self) -> bool {
        self.job = None;
        let segments = std::mem::take(&mut self.segments);
        segments.iter().for_each(|segment| self.memory.give_back(Address::new(segment.base)));
        !segments.is_empty()
    }
}

impl Ground for DeviceGround {
    fn acquire(&mut self, bytes: u64) -> Option<Segment> {
        let at = self.memory.take_segment(bytes).or_else(|| {
            // Between rounds the pool needs little of what it holds.
            lock_pool(&self.pool).release_cached();
            self.memory.take_segment(bytes)
        })?;
        let segment = Segment { base: at.get(), len: bytes };
        self.segments.push(segment);
        Some(segment)
    }

    fn release(&mut self, segment: Segment) {
        self.segments.retain(|held| *held != segment);
        self.memory.give_back(Address::new(segment.base));
    }

    /// Keeps the memory until another request needs it: on a device no pages come back by themselves.
    fn discard_pages(&mut self, _: Segment) {}

    fn submit_round(&mut self, round: Round) -> bool {
        self.job = Job::start_planning(round, self.planning);
        self.job.is_some()
    }

    fn collect_result(&mut self) -> Option<Result<Solved, Unsolved>> {
        let result = self.job.as_mut()?.collect_result()?;
        self.job = None;
        Some(result)
    }

    /// The thread that frees a block holds the device's lock and notifies the machine at once.
    fn next_foreign_free(&mut self) -> Option<u64> {
        None
    }

    /// Requests to a driver are expensive, however fast they come.
    fn clock_nanoseconds(&mut self) -> u64 {
        self.looks += u64::from(u32::MAX);
        self.looks
    }

    fn receive_tally(&mut self, tally: &Arc<PlanTally>) {
        self.plans.push(Arc::clone(tally));
    }

    fn settle_rounds(&mut self) {
        lock_pool(&self.pool).release_cached();
    }
}
