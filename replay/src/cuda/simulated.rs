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

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use planlab_dsa::{Address, Bytes, DeviceMemory};

use super::driver::{DeviceInfo, Driver, DriverError, Faults, Graph, Kernel, Mark, PoolMemory, SLOTS, WORD};
use super::pattern;

/// Memory comes in multiples of this number of bytes.
const GRANULE: u64 = 2 << 20;

/// Segments of the pool have at least this many bytes.
const SEGMENT: u64 = 32 << 20;

/// Blocks of the pool are multiples of this number of bytes.
const UNIT: u64 = 512;

/// Nanoseconds for a launch, alone and within a graph.
const LAUNCH: u64 = 2000;
const GRAPH_LAUNCH: u64 = 1000;

/// Bytes per nanosecond.
const BANDWIDTH: u64 = 1000;

/// The simulated device.
pub(super) struct SimulatedDriver {
    info: DeviceInfo,
    state: Mutex<State>,
    /// How often the queue was run to its end.
    #[cfg(test)]
    waits: std::sync::atomic::AtomicU64,
    /// How often the free memory was queried.
    #[cfg(test)]
    questions: std::sync::atomic::AtomicU64,
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
}

/// Parts of a driver that may be loaded late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Memset,
    Pool,
    Graph,
    Ranges,
}

impl Part {
    #[cfg(test)]
    const ALL: [Self; 4] = [Self::Memset, Self::Pool, Self::Graph, Self::Ranges];
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

/// A 16-byte word of memory.
type Word = [u64; 2];

/// The memory, and the addresses without memory.
#[derive(Default)]
struct Memory {
    capacity: u64,
    held: u64,
    next: u64,
    /// Memory by its base.
    blocks: BTreeMap<u64, Vec<Word>>,
    /// Base and end of addresses that may be mapped.
    reserved: BTreeMap<u64, u64>,
}

impl Memory {
    fn range(&mut self, size: u64) -> u64 {
        // One granule is left free, so that no access runs from one block into the next.
        let base = self.next;
        self.next = base + size.next_multiple_of(GRANULE) + GRANULE;
        base
    }

    fn take(&mut self, base: u64, size: u64) -> Result<(), DriverError> {
        let refused = DriverError::OutOfMemory { size: Bytes::new(size) };
        let physical = size.checked_next_multiple_of(GRANULE).ok_or(refused.clone())?;
        if physical == 0 || physical > self.capacity - self.held {
            return Err(refused);
        }
        let words = usize::try_from(size.div_ceil(WORD)).map_err(|_| refused)?;
        self.held += physical;
        self.blocks.insert(base, vec![[0; 2]; words]);
        Ok(())
    }

    fn acquire(&mut self, size: u64) -> Result<u64, DriverError> {
        if size > self.capacity {
            return Err(DriverError::OutOfMemory { size: Bytes::new(size) });
        }
        let base = self.next;
        self.take(base, size)?;
        Ok(self.range(size))
    }

    fn release(&mut self, base: u64, call: &'static str) -> Result<(), DriverError> {
        let block = self.blocks.remove(&base);
        let words = block.ok_or_else(|| DriverError::failed(call, format!("nothing begins at {base}")))?;
        self.held -= (words.len() as u64 * WORD).next_multiple_of(GRANULE);
        Ok(())
    }

    /// Walks over words in pieces; `act` receives the index of a piece's first word, and the piece.
    fn walk(&mut self, at: u64, words: u64, mut act: impl FnMut(u64, &mut [Word])) -> Result<(), String> {
        let mut done = 0;
        while done < words {
            let here = at + done * WORD;
            let stray = || format!("an illegal access at address {here}");
            let (base, block) = self.blocks.range_mut(..=here).next_back().ok_or_else(stray)?;
            let first = (here - base) / WORD;
            let count = (block.len() as u64).saturating_sub(first).min(words - done);
            if count == 0 || !(here - base).is_multiple_of(WORD) {
                return Err(stray());
            }
            #[expect(clippy::cast_possible_truncation, reason = "less than the length of a vector")]
            let piece = &mut block[first as usize..(first + count) as usize];
            act(done, piece);
            done += count;
        }
        Ok(())
    }
}

/// Segments, cut by best fit.
#[derive(Default)]
struct Pool {
    /// Base and bytes.
    segments: BTreeMap<u64, u64>,
    /// First address and bytes of the free blocks, joined within a segment.
    free: BTreeMap<u64, u64>,
    /// First address and bytes of the blocks in use.
    live: BTreeMap<u64, u64>,
    figures: PoolMemory,
}

impl Pool {
    fn alloc(&mut self, memory: &mut Memory, size: u64) -> Result<u64, DriverError> {
        let refused = DriverError::OutOfMemory { size: Bytes::new(size) };
        let rounded = size.max(1).checked_next_multiple_of(UNIT).ok_or(refused)?;
        let best = self.free.iter().filter(|(_, bytes)| **bytes >= rounded).min_by_key(|(_, bytes)| **bytes);
        let (base, bytes) = match best.map(|(&base, &bytes)| (base, bytes)) {
            Some(found) => found,
            None => self.grow(memory, rounded)?,
        };
        self.free.remove(&base);
        if bytes > rounded {
            self.free.insert(base + rounded, bytes - rounded);
        }
        self.live.insert(base, rounded);
        self.figures.used += rounded;
        self.figures.used_peak = self.figures.used_peak.max(self.figures.used);
        Ok(base)
    }

    fn grow(&mut self, memory: &mut Memory, size: u64) -> Result<(u64, u64), DriverError> {
        let size = size.max(SEGMENT).checked_next_multiple_of(GRANULE);
        let size = size.ok_or(DriverError::OutOfMemory { size: Bytes::new(u64::MAX) })?;
        let base = memory.acquire(size).or_else(|error| {
            self.trim(memory, 0)?;
            memory.acquire(size).map_err(|_| error)
        })?;
        self.segments.insert(base, size);
        self.figures.reserved += size;
        self.figures.reserved_peak = self.figures.reserved_peak.max(self.figures.reserved);
        Ok((base, size))
    }

    fn free(&mut self, at: u64) -> Result<(), DriverError> {
        let bytes = self.live.remove(&at);
        let bytes = bytes.ok_or_else(|| DriverError::failed("free_async", format!("{at} is not in use")))?;
        self.figures.used -= bytes;
        let (mut start, mut end) = (at, at + bytes);
        let before = self.free.range(..at).next_back().map(|(&base, &bytes)| (base, base + bytes));
        if let Some((base, _)) = before.filter(|&(_, stop)| stop == at && !self.segments.contains_key(&at)) {
            self.free.remove(&base);
            start = base;
        }
        if !self.segments.contains_key(&end) {
            end += self.free.remove(&end).unwrap_or(0);
        }
        self.free.insert(start, end - start);
        Ok(())
    }

    /// Gives idle segments back until at most `keep` bytes are held.
    fn trim(&mut self, memory: &mut Memory, keep: u64) -> Result<(), DriverError> {
        let idle: Vec<u64> = self.free.keys().filter(|base| self.is_idle(**base)).copied().collect();
        for base in idle {
            if self.figures.reserved <= keep {
                break;
            }
            let bytes = self.segments.remove(&base).unwrap_or(0);
            self.free.remove(&base);
            self.figures.reserved -= bytes;
            memory.release(base, "trim")?;
        }
        Ok(())
    }

    /// Whether a segment begins at `base` and is completely free.
    fn is_idle(&self, base: u64) -> bool {
        self.segments.get(&base).is_some_and(|bytes| self.free.get(&base) == Some(bytes))
    }
}

impl State {
    /// Loads a part at its first use; the memory that it takes is never given back.
    fn load(&mut self, part: Part) {
        let before = self.unloaded.len();
        self.unloaded.retain(|&unloaded| unloaded != part);
        let loaded = (before - self.unloaded.len()) as u64;
        self.memory.capacity -= loaded * GRANULE;
    }

    /// Runs everything in the queue.
    fn drain(&mut self) -> Result<(), DriverError> {
        for task in std::mem::take(&mut self.queue) {
            if self.fault.is_some() {
                break;
            }
            match task {
                Task::Run(kernel, launch) => {
                    self.clock += launch;
                    self.fault = self.run(kernel).err();
                }
                Task::Note(mark) => self.marks[mark as usize] = self.clock,
                Task::Clear => self.slots.fill(0),
            }
        }
        self.check()
    }

    fn check(&self) -> Result<(), DriverError> {
        match &self.fault {
            None => Ok(()),
            Some(reason) => Err(DriverError::failed("simulated device", reason.clone())),
        }
    }

    fn run(&mut self, kernel: Kernel) -> Result<(), String> {
        let memory = &mut self.memory;
        match kernel {
            Kernel::Fill { at, words, seed } => {
                self.clock += words * WORD / BANDWIDTH;
                memory.walk(at.get(), words, |first, piece| {
                    (first..).zip(piece).for_each(|(index, word)| *word = pattern::word(seed, index));
                })
            }
            Kernel::Sum { at, words, slot } => {
                self.clock += words * WORD / BANDWIDTH;
                let slot = &mut self.slots[slot as usize % SLOTS];
                memory.walk(at.get(), words, |_, piece| {
                    *slot = piece.iter().flatten().fold(*slot, |sum, half| sum.wrapping_add(*half));
                })
            }
            Kernel::Verify { at, words, seed, slot } => {
                self.clock += words * WORD / BANDWIDTH;
                let slot = &mut self.slots[slot as usize % SLOTS];
                memory.walk(at.get(), words, |first, piece| {
                    let wrong =
                        (first..).zip(piece).filter(|(index, word)| **word != pattern::word(seed, *index));
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
    pub(super) fn new(capacity: Bytes) -> Self {
        let memory = Memory { capacity: capacity.get(), next: GRANULE, ..Memory::default() };
        let state = State { memory, slots: vec![0; SLOTS], ..State::default() };
        let name = format!("simulated device of {capacity} bytes, no GPU");
        let info = DeviceInfo { key: "simulated-cuda".to_owned(), name, is_simulated: true, l2_bytes: None };
        Self {
            info,
            state: Mutex::new(state),
            #[cfg(test)]
            waits: std::sync::atomic::AtomicU64::default(),
            #[cfg(test)]
            questions: std::sync::atomic::AtomicU64::default(),
        }
    }

    /// The state, if there was no fault so far.
    fn state(&self) -> Result<MutexGuard<'_, State>, DriverError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.check()?;
        Ok(state)
    }

    /// The state after everything in the queue has run; an error while a graph is captured.
    fn settled(&self, call: &'static str) -> Result<MutexGuard<'_, State>, DriverError> {
        let mut state = self.state()?;
        if state.capture.is_some() {
            return Err(DriverError::failed(call, "not while a graph is captured"));
        }
        #[cfg(test)]
        self.waits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        state.drain()?;
        Ok(state)
    }

    /// How often the queue was run to its end.
    #[cfg(test)]
    pub(super) fn waits(&self) -> u64 {
        self.waits.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// How often the free memory was queried.
    #[cfg(test)]
    pub(super) fn questions(&self) -> u64 {
        self.questions.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Makes the driver load its parts at their first use, and keep a granule for each.
    #[cfg(test)]
    pub(super) fn loading_late(self) -> Self {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).unloaded = Part::ALL.to_vec();
        self
    }

    /// First address and bytes of each mapped piece.
    #[cfg(test)]
    pub(super) fn pieces(&self) -> Vec<(u64, u64)> {
        let state = self.state().expect("no fault");
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

    fn memory(&self) -> Result<DeviceMemory, DriverError> {
        #[cfg(test)]
        self.questions.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let state = self.state()?;
        let Memory { capacity, held, .. } = state.memory;
        Ok(DeviceMemory { free: Bytes::new(capacity - held), total: Bytes::new(capacity) })
    }

    fn malloc(&self, size: Bytes) -> Result<Address, DriverError> {
        let mut state = self.settled("malloc")?;
        Ok(Address::new(state.memory.acquire(size.get())?))
    }

    fn free(&self, at: Address) -> Result<(), DriverError> {
        let mut state = self.settled("free")?;
        if state.pool.segments.contains_key(&at.get()) {
            return Err(DriverError::failed("free", format!("{at} is the pool's")));
        }
        state.memory.release(at.get(), "free")
    }

    fn malloc_async(&self, size: Bytes) -> Result<Address, DriverError> {
        let mut state = self.state()?;
        state.load(Part::Pool);
        let State { memory, pool, capture, .. } = &mut *state;
        let pool = capture.as_mut().map_or(pool, |graph| &mut graph.pool);
        let at = pool.alloc(memory, size.get())?;
        state.count_graphs();
        Ok(Address::new(at))
    }

    fn free_async(&self, at: Address) -> Result<(), DriverError> {
        let mut state = self.state()?;
        let State { pool, capture, .. } = &mut *state;
        capture.as_mut().map_or(pool, |graph| &mut graph.pool).free(at.get())
    }

    fn pool(&self) -> Result<PoolMemory, DriverError> {
        Ok(self.state()?.pool.figures)
    }

    fn keep_in_pool(&self, threshold: Bytes) -> Result<(), DriverError> {
        self.state()?.threshold = threshold.get();
        Ok(())
    }

    fn reset_pool(&self) -> Result<(), DriverError> {
        let mut state = self.settled("reset")?;
        let State { memory, pool, .. } = &mut *state;
        pool.trim(memory, 0)?;
        pool.figures.reserved_peak = pool.figures.reserved;
        pool.figures.used_peak = pool.figures.used;
        Ok(())
    }

    fn reserve(&self, size: Bytes) -> Result<Address, DriverError> {
        let mut state = self.state()?;
        // A device has this many addresses and no more.
        if size.get() > 1 << 47 {
            return Err(DriverError::OutOfMemory { size });
        }
        let base = state.memory.range(size.get());
        state.memory.reserved.insert(base, base + size.get());
        Ok(Address::new(base))
    }

    fn unreserve(&self, at: Address, size: Bytes) -> Result<(), DriverError> {
        let mut state = self.state()?;
        let end = at.get() + size.get();
        if state.memory.reserved.get(&at.get()) != Some(&end) {
            return Err(DriverError::failed("unreserve", format!("{at} is not reserved")));
        }
        if state.memory.blocks.range(at.get()..end).next().is_some() {
            return Err(DriverError::failed("unreserve", format!("{at} is mapped")));
        }
        state.memory.reserved.remove(&at.get());
        Ok(())
    }

    fn map(&self, at: Address, size: Bytes, piece: Bytes) -> Result<(), DriverError> {
        let mut state = self.state()?;
        let (base, end, piece) = (at.get(), at.get() + size.get(), piece.get());
        let range = state.memory.reserved.range(..=base).next_back();
        let is_reserved = range.is_some_and(|(_, &stop)| end <= stop);
        let before = state.memory.blocks.range(..end).next_back();
        let is_bare = before.is_none_or(|(start, words)| start + words.len() as u64 * WORD <= base);
        let is_whole = piece > 0 && piece.is_multiple_of(GRANULE) && size.get().is_multiple_of(piece);
        if !is_reserved || !is_bare || !base.is_multiple_of(GRANULE) || !is_whole {
            return Err(DriverError::failed("map", format!("{at} cannot be mapped")));
        }
        state.load(Part::Ranges);
        if size.get() > state.memory.capacity - state.memory.held {
            return Err(DriverError::OutOfMemory { size: Bytes::new(piece) });
        }
        (0..size.get() / piece).try_for_each(|number| state.memory.take(base + number * piece, piece))
    }

    fn unmap(&self, pieces: &[Address]) -> Result<(), DriverError> {
        let mut state = self.settled("unmap")?;
        let mut faults = Faults::default();
        for at in pieces {
            let range = state.memory.reserved.range(..=at.get()).next_back();
            let end = if range.is_some_and(|(_, &stop)| at.get() < stop) {
                state.memory.release(at.get(), "unmap")
            } else {
                Err(DriverError::failed("unmap", format!("{at} is not reserved")))
            };
            faults.note(end);
        }
        faults.end()
    }

    fn page(&self) -> Bytes {
        Bytes::new(GRANULE)
    }

    unsafe fn launch(&self, kernel: Kernel) -> Result<(), DriverError> {
        let mut state = self.state()?;
        match &mut state.capture {
            Some(graph) => graph.kernels.push(kernel),
            None => state.queue.push(Task::Run(kernel, LAUNCH)),
        }
        Ok(())
    }

    fn clear_slots(&self) -> Result<(), DriverError> {
        let mut state = self.state()?;
        state.load(Part::Memset);
        state.queue.push(Task::Clear);
        Ok(())
    }

    fn slots(&self) -> Result<Vec<u64>, DriverError> {
        Ok(self.settled("slots")?.slots.clone())
    }

    fn record(&self, mark: Mark) -> Result<(), DriverError> {
        self.state()?.queue.push(Task::Note(mark));
        Ok(())
    }

    fn between_marks(&self) -> Result<Duration, DriverError> {
        let [begin, end] = self.settled("between_marks")?.marks;
        Ok(Duration::from_nanos(end.saturating_sub(begin)))
    }

    fn synchronise(&self) -> Result<(), DriverError> {
        let mut state = self.settled("synchronise")?;
        let State { memory, pool, threshold, .. } = &mut *state;
        pool.trim(memory, *threshold)
    }

    fn begin_capture(&self) -> Result<(), DriverError> {
        self.settled("begin_capture")?.capture = Some(Captured::default());
        Ok(())
    }

    fn end_capture(&self) -> Result<Graph, DriverError> {
        let mut state = self.state()?;
        let graph = state.capture.take();
        let graph = graph.ok_or_else(|| DriverError::failed("end_capture", "nothing is captured"))?;
        if !graph.pool.live.is_empty() {
            return Err(DriverError::failed("end_capture", "the graph does not free all its memory"));
        }
        state.next_graph += 1;
        let number = state.next_graph;
        state.graphs.insert(number, graph);
        Ok(Graph(number))
    }

    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DriverError> {
        let mut state = self.state()?;
        state.load(Part::Graph);
        let State { graphs, queue, .. } = &mut *state;
        let found =
            graphs.get(&graph.0).ok_or_else(|| DriverError::failed("launch_graph", "no such graph"))?;
        queue.extend(found.kernels.iter().map(|kernel| Task::Run(*kernel, GRAPH_LAUNCH)));
        Ok(())
    }

    fn drop_graph(&self, graph: Graph) -> Result<(), DriverError> {
        let mut state = self.settled("drop_graph")?;
        let State { memory, graphs, .. } = &mut *state;
        if let Some(mut dropped) = graphs.remove(&graph.0) {
            dropped.pool.trim(memory, 0)?;
        }
        state.graph_peak = (0, 0);
        state.count_graphs();
        Ok(())
    }

    fn graph_memory(&self) -> Result<PoolMemory, DriverError> {
        let mut state = self.state()?;
        let (reserved, used) = state.count_graphs();
        let (reserved_peak, used_peak) = state.graph_peak;
        Ok(PoolMemory { reserved, reserved_peak, used, used_peak })
    }

    fn break_down(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.fault = Some("an illegal access (error 700)".to_owned());
    }

    fn close(&mut self) -> Result<(), DriverError> {
        match self.settled("close")?.memory.held {
            0 => Ok(()),
            held => Err(DriverError::failed("close", format!("{held} bytes were not given back"))),
        }
    }
}

#[cfg(test)]
mod tests;
