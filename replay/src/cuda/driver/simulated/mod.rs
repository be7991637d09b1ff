//! A simulated device: host memory behind device addresses, and kernels that are loops over it.
//!
//! It lets the replay be tested without a GPU, and detects the same errors. Launched work waits in a queue until a
//! call waits for it, so memory that was given away too early is overwritten before it is read. Its capacity is a
//! limit, in granules of 2 MiB. Its pool takes segments of 32 MiB, uses best fit, and gives idle segments back at a
//! synchronisation, down to the threshold. Memory is unmapped in the same pieces as it was mapped. After an access
//! outside memory every call fails, as on a real device.
//!
//! Its clock counts what kernels would take at a fixed bandwidth. That is no measurement; it only lets the tests check
//! that times arrive where they should.

#![allow(
    unsafe_code,
    reason = "a launch is unsafe on a real device, and so it is in the trait; none is done here"
)]

mod memory;
mod pool;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use planlab_dsa::{Address, Bytes, DeviceMemory};

use super::interface::{
    DeviceInfo, Driver, DriverError, Faults, GRANULE, Graph, Kernel, Mark, PoolMemory, SLOTS, WORD,
};
use super::pattern;
use memory::Memory;
use pool::Pool;

/// Nanoseconds for a launch, alone and within a graph.
const LAUNCH: u64 = 2000;
const GRAPH_LAUNCH: u64 = 1000;

/// Bytes per nanosecond.
const BANDWIDTH: u64 = 1000;

/// The simulated device.
pub(crate) struct SimulatedDriver {
    info: DeviceInfo,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    memory: Memory,
    pool: Pool,
    threshold: u64,
    queue: Vec<Task>,
    /// What is recorded instead of queued.
    capture: Option<Captured>,
    graphs: BTreeMap<u64, Captured>,
    next_graph: u64,
    /// The most that graphs held since one was dropped.
    graph_peak: (u64, u64),
    slots: Vec<u64>,
    /// The device's time in nanoseconds.
    clock: u64,
    marks: [u64; 2],
    /// The device's fault, if any; nothing works afterwards.
    fault: Option<String>,
    /// Parts of the driver that are not loaded before their first use.
    unloaded: Vec<Part>,
    /// How often the queue was run to its end, and how often the free memory was queried.
    waits: u64,
    questions: u64,
}

/// Parts of a driver that may be loaded late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Memset,
    Pool,
    Graph,
    Ranges,
}

#[derive(Clone, Copy)]
enum Task {
    /// A kernel, and the nanoseconds that its launch takes.
    Run(Kernel, u64),
    Note(Mark),
    Clear,
}

#[derive(Default)]
struct Captured {
    kernels: Vec<Kernel>,
    pool: Pool,
}

impl State {
    /// Loads a part at its first use; the memory that it takes is never given back.
    fn load_part(&mut self, part: Part) {
        let before = self.unloaded.len();
        self.unloaded.retain(|&unloaded| unloaded != part);
        let loaded = (before - self.unloaded.len()) as u64;
        self.memory.capacity -= loaded * GRANULE;
    }

    /// Runs everything in the queue.
    fn run_queue(&mut self) -> Result<(), DriverError> {
        for task in std::mem::take(&mut self.queue) {
            if self.fault.is_some() {
                break;
            }
            match task {
                Task::Run(kernel, launch) => {
                    self.clock += launch;
                    self.fault = self.run_kernel(kernel).err();
                }
                Task::Note(mark) => self.marks[mark as usize] = self.clock,
                Task::Clear => self.slots.fill(0),
            }
        }
        self.check_fault()
    }

    fn check_fault(&self) -> Result<(), DriverError> {
        match &self.fault {
            None => Ok(()),
            Some(reason) => Err(DriverError::from_failure("simulated device", reason.clone())),
        }
    }

    fn run_kernel(&mut self, kernel: Kernel) -> Result<(), String> {
        let memory = &mut self.memory;
        match kernel {
            Kernel::Fill { at, words, seed } => {
                self.clock += words * WORD / BANDWIDTH;
                memory.walk_words(at.get(), words, |first, piece| {
                    (first..).zip(piece).for_each(|(index, word)| *word = pattern::pattern_word(seed, index));
                })
            }
            Kernel::Sum { at, words, slot } => {
                self.clock += words * WORD / BANDWIDTH;
                let slot = &mut self.slots[slot as usize % SLOTS];
                memory.walk_words(at.get(), words, |_, piece| {
                    *slot = piece.iter().flatten().fold(*slot, |sum, half| sum.wrapping_add(*half));
                })
            }
            Kernel::Verify { at, words, seed, slot } => {
                self.clock += words * WORD / BANDWIDTH;
                let slot = &mut self.slots[slot as usize % SLOTS];
                memory.walk_words(at.get(), words, |first, piece| {
                    let wrong = (first..)
                        .zip(piece)
                        .filter(|(index, word)| **word != pattern::pattern_word(seed, *index));
                    *slot += wrong.count() as u64;
                })
            }
            Kernel::Spin { nanoseconds } => {
                self.clock += nanoseconds;
                Ok(())
            }
        }
    }

    /// Updates and returns what graphs hold.
    fn count_graphs(&mut self) -> (u64, u64) {
        let graphs = self.graphs.values().chain(&self.capture);
        let (reserved, used) = graphs.fold((0, 0), |(reserved, used), graph| {
            (reserved + graph.pool.figures.reserved, used + graph.pool.figures.used_peak)
        });
        self.graph_peak = (self.graph_peak.0.max(reserved), self.graph_peak.1.max(used));
        (reserved, used)
    }
}

impl SimulatedDriver {
    /// A device with `capacity` bytes of memory.
    pub(crate) fn new(capacity: Bytes) -> Self {
        let memory = Memory { capacity: capacity.get(), next: GRANULE, ..Memory::default() };
        let state = State { memory, slots: vec![0; SLOTS], ..State::default() };
        let name = format!("simulated device of {capacity} bytes, no GPU");
        let info = DeviceInfo { key: "simulated-cuda".to_owned(), name, is_simulated: true, l2_bytes: None };
        Self { info, state: Mutex::new(state) }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if there was no fault so far.
    fn lock_state(&self) -> Result<MutexGuard<'_, State>, DriverError> {
        let state = self.locked();
        state.check_fault()?;
        Ok(state)
    }

    /// The state after everything in the queue has run; an error while a graph is captured.
    fn lock_settled(&self, call: &'static str) -> Result<MutexGuard<'_, State>, DriverError> {
        let mut state = self.lock_state()?;
        if state.capture.is_some() {
            return Err(DriverError::from_failure(call, "not while a graph is captured"));
        }
        state.waits += 1;
        state.run_queue()?;
        Ok(state)
    }

    /// How often the queue was run to its end.
    #[cfg(test)]
    pub(crate) fn wait_count(&self) -> u64 {
        self.locked().waits
    }

    /// How often the free memory was queried.
    #[cfg(test)]
    pub(crate) fn question_count(&self) -> u64 {
        self.locked().questions
    }

    /// Makes the driver load its parts at their first use, and keep a granule for each.
    #[cfg(test)]
    pub(crate) fn loading_late(self) -> Self {
        self.locked().unloaded = vec![Part::Memset, Part::Pool, Part::Graph, Part::Ranges];
        self
    }

    /// First address and bytes of each mapped piece.
    #[cfg(test)]
    pub(crate) fn mapped_pieces(&self) -> Vec<(u64, u64)> {
        let state = self.lock_state().expect("no fault");
        let Memory { blocks, reserved, .. } = &state.memory;
        let is_reserved = |at: u64| reserved.range(..=at).next_back().is_some_and(|(_, &end)| at < end);
        let mapped = blocks.iter().filter(|(at, _)| is_reserved(**at));
        mapped.map(|(&at, words)| (at, words.len() as u64 * WORD)).collect()
    }
}

impl Driver for SimulatedDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn device_memory(&self) -> Result<DeviceMemory, DriverError> {
        let mut state = self.lock_state()?;
        state.questions += 1;
        let Memory { capacity, held, .. } = state.memory;
        Ok(DeviceMemory { free: Bytes::new(capacity - held), total: Bytes::new(capacity) })
    }

    fn malloc(&self, size: Bytes) -> Result<Address, DriverError> {
        let mut state = self.lock_settled("malloc")?;
        Ok(Address::new(state.memory.acquire(size.get())?))
    }

    fn free(&self, at: Address) -> Result<(), DriverError> {
        let mut state = self.lock_settled("free")?;
        if state.pool.segments.contains_key(&at.get()) {
            return Err(DriverError::from_failure("free", format!("{at} is the pool's")));
        }
        state.memory.release(at.get(), "free")
    }

    fn malloc_async(&self, size: Bytes) -> Result<Address, DriverError> {
        let mut state = self.lock_state()?;
        state.load_part(Part::Pool);
        let State { memory, pool, capture, .. } = &mut *state;
        let pool = capture.as_mut().map_or(pool, |graph| &mut graph.pool);
        let at = pool.alloc(memory, size.get())?;
        state.count_graphs();
        Ok(Address::new(at))
    }

    fn free_async(&self, at: Address) -> Result<(), DriverError> {
        let mut state = self.lock_state()?;
        let State { pool, capture, .. } = &mut *state;
        capture.as_mut().map_or(pool, |graph| &mut graph.pool).free(at.get())
    }

    fn pool_memory(&self) -> Result<PoolMemory, DriverError> {
        Ok(self.lock_state()?.pool.figures)
    }

    fn keep_in_pool(&self, threshold: Bytes) -> Result<(), DriverError> {
        self.lock_state()?.threshold = threshold.get();
        Ok(())
    }

    fn reset_pool(&self) -> Result<(), DriverError> {
        let mut state = self.lock_settled("reset")?;
        let State { memory, pool, .. } = &mut *state;
        pool.trim_idle(memory, 0)?;
        pool.figures.reserved_peak = pool.figures.reserved;
        pool.figures.used_peak = pool.figures.used;
        Ok(())
    }

    fn reserve(&self, size: Bytes) -> Result<Address, DriverError> {
        let mut state = self.lock_state()?;
        // A device has this many addresses and no more.
        if size.get() > 1 << 47 {
            return Err(DriverError::OutOfMemory { size });
        }
        let base = state.memory.new_range(size.get());
        state.memory.reserved.insert(base, base + size.get());
        Ok(Address::new(base))
    }

    fn unreserve(&self, at: Address, size: Bytes) -> Result<(), DriverError> {
        let mut state = self.lock_state()?;
        let end = at.get() + size.get();
        if state.memory.reserved.get(&at.get()) != Some(&end) {
            return Err(DriverError::from_failure("unreserve", format!("{at} is not reserved")));
        }
        if state.memory.blocks.range(at.get()..end).next().is_some() {
            return Err(DriverError::from_failure("unreserve", format!("{at} is mapped")));
        }
        state.memory.reserved.remove(&at.get());
        Ok(())
    }

    fn map(&self, at: Address, size: Bytes, piece: Bytes) -> Result<(), DriverError> {
        let mut state = self.lock_state()?;
        let (base, end, piece) = (at.get(), at.get() + size.get(), piece.get());
        let range = state.memory.reserved.range(..=base).next_back();
        let is_reserved = range.is_some_and(|(_, &stop)| end <= stop);
        let before = state.memory.blocks.range(..end).next_back();
        let is_bare = before.is_none_or(|(start, words)| start + words.len() as u64 * WORD <= base);
        let is_whole = piece > 0 && piece.is_multiple_of(GRANULE) && size.get().is_multiple_of(piece);
        if !is_reserved || !is_bare || !base.is_multiple_of(GRANULE) || !is_whole {
            return Err(DriverError::from_failure("map", format!("{at} cannot be mapped")));
        }
        state.load_part(Part::Ranges);
        if size.get() > state.memory.capacity - state.memory.held {
            return Err(DriverError::OutOfMemory { size: Bytes::new(piece) });
        }
        (0..size.get() / piece).try_for_each(|number| state.memory.take_bytes(base + number * piece, piece))
    }

    fn unmap(&self, pieces: &[Address]) -> Result<(), DriverError> {
        let mut state = self.lock_settled("unmap")?;
        let mut faults = Faults::default();
        for at in pieces {
            let range = state.memory.reserved.range(..=at.get()).next_back();
            let end = if range.is_some_and(|(_, &stop)| at.get() < stop) {
                state.memory.release(at.get(), "unmap")
            } else {
                Err(DriverError::from_failure("unmap", format!("{at} is not reserved")))
            };
            faults.note_end(end);
        }
        faults.as_result()
    }

    fn page_size(&self) -> Bytes {
        Bytes::new(GRANULE)
    }

    unsafe fn launch_kernel(&self, kernel: Kernel) -> Result<(), DriverError> {
        let mut state = self.lock_state()?;
        match &mut state.capture {
            Some(graph) => graph.kernels.push(kernel),
            None => state.queue.push(Task::Run(kernel, LAUNCH)),
        }
        Ok(())
    }

    fn clear_slots(&self) -> Result<(), DriverError> {
        let mut state = self.lock_state()?;
        state.load_part(Part::Memset);
        state.queue.push(Task::Clear);
        Ok(())
    }

    fn read_slots(&self) -> Result<Vec<u64>, DriverError> {
        Ok(self.lock_settled("slots")?.slots.clone())
    }

    fn record_mark(&self, mark: Mark) -> Result<(), DriverError> {
        self.lock_state()?.queue.push(Task::Note(mark));
        Ok(())
    }

    fn between_marks(&self) -> Result<Duration, DriverError> {
        let [begin, end] = self.lock_settled("between_marks")?.marks;
        Ok(Duration::from_nanos(end.saturating_sub(begin)))
    }

    fn synchronise(&self) -> Result<(), DriverError> {
        let mut state = self.lock_settled("synchronise")?;
        let State { memory, pool, threshold, .. } = &mut *state;
        pool.trim_idle(memory, *threshold)
    }

    fn begin_capture(&self) -> Result<(), DriverError> {
        self.lock_settled("begin_capture")?.capture = Some(Captured::default());
        Ok(())
    }

    fn end_capture(&self) -> Result<Graph, DriverError> {
        let mut state = self.lock_state()?;
        let graph = state.capture.take();
        let graph = graph.ok_or_else(|| DriverError::from_failure("end_capture", "nothing is captured"))?;
        if !graph.pool.live.is_empty() {
            return Err(DriverError::from_failure("end_capture", "the graph does not free all its memory"));
        }
        state.next_graph += 1;
        let number = state.next_graph;
        state.graphs.insert(number, graph);
        Ok(Graph(number))
    }

    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DriverError> {
        let mut state = self.lock_state()?;
        state.load_part(Part::Graph);
        let State { graphs, queue, .. } = &mut *state;
        let found =
            graphs.get(&graph.0).ok_or_else(|| DriverError::from_failure("launch_graph", "no such graph"))?;
        queue.extend(found.kernels.iter().map(|kernel| Task::Run(*kernel, GRAPH_LAUNCH)));
        Ok(())
    }

    fn drop_graph(&self, graph: Graph) -> Result<(), DriverError> {
        let mut state = self.lock_settled("drop_graph")?;
        let State { memory, graphs, .. } = &mut *state;
        if let Some(mut dropped) = graphs.remove(&graph.0) {
            dropped.pool.trim_idle(memory, 0)?;
        }
        state.graph_peak = (0, 0);
        state.count_graphs();
        Ok(())
    }

    fn graph_memory(&self) -> Result<PoolMemory, DriverError> {
        let mut state = self.lock_state()?;
        let (reserved, used) = state.count_graphs();
        let (reserved_peak, used_peak) = state.graph_peak;
        Ok(PoolMemory { reserved, reserved_peak, used, used_peak })
    }

    fn break_down(&self) {
        self.locked().fault = Some("an illegal access (error 700)".to_owned());
    }

    fn close(&mut self) -> Result<(), DriverError> {
        match self.lock_settled("close")?.memory.held {
            0 => Ok(()),
            held => Err(DriverError::from_failure("close", format!("{held} bytes were not given back"))),
        }
    }
}
