//! Simulated streams: queues of simulated kernels over the memory of the simulated device.
//!
//! Launched work waits in its stream's queue until everything is run: one task at a time, from a random stream that
//! need not wait. So if one stream gets memory on which another still has work, the contents reveal it: some order of
//! the streams overwrites it in between.

#![allow(
    unsafe_code,
    reason = "a launch is unsafe on a real device, and so it is in the trait; none is done here"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use planlab_dsa::{Address, Bytes};
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::shared_device::{SharedDevice, StreamHandle};
use crate::cuda::driver::{Driver, DriverError, Kernel, SimulatedDriver, WORD};

/// A simulated device with streams. Copies are the same device.
#[derive(Clone)]
pub struct SimulatedStreams(Arc<Inner>);

struct Inner {
    driver: SimulatedDriver,
    queues: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    streams: BTreeMap<StreamHandle, VecDeque<Task>>,
    capturing: BTreeSet<StreamHandle>,
    events: u64,
}

enum Task {
    Run(Kernel),
    Record(u64),
    Wait(u64),
}

impl SimulatedStreams {
    /// A device with `capacity` bytes of memory.
    #[must_use]
    pub fn new(capacity: Bytes) -> Self {
        Self(Arc::new(Inner { driver: SimulatedDriver::new(capacity), queues: Mutex::default() }))
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.0.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, stream: StreamHandle, task: Task) {
        self.queues().streams.entry(stream).or_default().push_back(task);
    }

    /// Launches a kernel that writes the pattern of a seed over a block.
    pub fn fill(&self, stream: StreamHandle, at: Address, size: Bytes, seed: u64) {
        self.push(stream, Task::Run(Kernel::Fill { at, words: size.get() / WORD, seed }));
    }

    /// Launches a kernel that counts the words of a block that differ from the pattern of a seed.
    pub fn verify(&self, stream: StreamHandle, at: Address, size: Bytes, seed: u64) {
        self.push(stream, Task::Run(Kernel::Verify { at, words: size.get() / WORD, seed, slot: 0 }));
    }

    /// Begins or ends the capture of a stream's launches in a graph.
    pub fn set_capturing(&self, stream: StreamHandle, is_capturing: bool) {
        let mut queues = self.queues();
        if is_capturing {
            queues.capturing.insert(stream);
        } else {
            queues.capturing.remove(&stream);
        }
    }

    /// Runs everything that was launched, in an order that the streams allow, chosen by a seed. Returns the number of
    /// wrong words found so far.
    ///
    /// # Errors
    ///
    /// [`DriverError::Failed`] after an illegal access.
    pub fn run(&self, seed: u64) -> Result<u64, DriverError> {
        self.run_queues(&mut self.queues(), seed)?;
        Ok(self.0.driver.read_slots()?[0])
    }

    fn run_queues(&self, queues: &mut Queues, seed: u64) -> Result<(), DriverError> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut recorded = BTreeSet::new();
        loop {
            let is_ready = |queue: &VecDeque<Task>| match queue.front() {
                Some(Task::Wait(event)) => recorded.contains(event),
                task => task.is_some(),
            };
            let ready: Vec<StreamHandle> = queues
                .streams
                .iter()
                .filter(|(_, queue)| is_ready(queue))
                .map(|(&stream, _)| stream)
                .collect();
            // An event is recorded in another queue before a stream waits for it, so only empty queues are left.
            let Some(stream) = ready.choose(&mut rng) else { return Ok(()) };
            match queues.streams.get_mut(stream).and_then(VecDeque::pop_front) {
                // SAFETY: the kernel runs on the simulated device, which refuses addresses that are not its own.
                Some(Task::Run(kernel)) => unsafe { self.0.driver.launch_kernel(kernel) }?,
                Some(Task::Record(event)) => drop(recorded.insert(event)),
                Some(Task::Wait(_)) | None => {}
            }
        }
    }
}

impl SharedDevice for SimulatedStreams {
    fn key(&self) -> &str {
        "simulated-cuda"
    }

    fn malloc(&self, size: Bytes) -> Result<Address, DriverError> {
        self.0.driver.malloc(size)
    }

    fn free(&self, at: Address) -> Result<(), DriverError> {
        let mut queues = self.queues();
        let seed = queues.events;
        self.run_queues(&mut queues, seed)?;
        self.0.driver.free(at)
    }

    fn wait(&self, waits: StreamHandle, awaited: StreamHandle) -> Result<(), DriverError> {
        let mut queues = self.queues();
        queues.events += 1;
        let event = queues.events;
        queues.streams.entry(awaited).or_default().push_back(Task::Record(event));
        queues.streams.entry(waits).or_default().push_back(Task::Wait(event));
        Ok(())
    }

    fn is_capturing(&self, stream: StreamHandle) -> Result<bool, DriverError> {
        Ok(self.queues().capturing.contains(&stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(1024);

    /// Wrong words found in a block after each of many orders; stream 1 writes and reads it, stream 2 writes it.
    fn wrong(is_ordered: bool) -> Vec<u64> {
        let one_order = |seed: u64| {
            let device = SimulatedStreams::new(Bytes::new(8 << 20));
            let at = device.malloc(SIZE).expect("room");
            device.fill(StreamHandle(1), at, SIZE, 1);
            device.verify(StreamHandle(1), at, SIZE, 1);
            if is_ordered {
                device.wait(StreamHandle(2), StreamHandle(1)).expect("noted");
            }
            device.fill(StreamHandle(2), at, SIZE, 2);
            device.run(seed).expect("legal")
        };
        (0..50).map(one_order).collect()
    }

    #[test]
    fn streams_run_in_any_order_that_they_are_not_bound_to() {
        assert!(wrong(false).iter().any(|&words| words > 0));
        assert!(wrong(true).iter().all(|&words| words == 0));
    }

    #[test]
    fn memory_goes_back_after_what_runs_on_it() {
        let device = SimulatedStreams::new(Bytes::new(2 << 20));
        let at = device.malloc(SIZE).expect("room");
        assert_eq!(device.malloc(SIZE), Err(DriverError::OutOfMemory { size: SIZE }));
        device.fill(StreamHandle(0), at, SIZE, 1);
        device.free(at).expect("held");
        let memory = device.0.driver.device_memory().expect("no fault");
        assert_eq!((device.run(0), memory.free), (Ok(0), Bytes::new(2 << 20)));
        assert!(device.free(at).is_err());
    }

    #[test]
    fn a_stream_is_captured_until_it_is_not() {
        let device = SimulatedStreams::new(Bytes::new(2 << 20));
        device.set_capturing(StreamHandle(5), true);
        assert_eq!([4, 5].map(|stream| device.is_capturing(StreamHandle(stream))), [Ok(false), Ok(true)]);
        device.set_capturing(StreamHandle(5), false);
        assert_eq!(device.is_capturing(StreamHandle(5)), Ok(false));
    }
}
