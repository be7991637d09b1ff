//! The memory of one device: rounds and plans for each stream, a pool for the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use planlab_dsa::{Address, Bytes, OnlineAllocator, Stream};
use planlab_replay::cuda::{DriverError, SharedDevice, StreamHandle};
use planlab_solvers::online::PytorchCaching;
use rustc_hash::FxHashMap;

use super::ground::{ALIGN, DeviceGround, Memory, Pool, Segments, lock_pool};
use crate::machine::{Config, Machine, RequestAnswer};
use crate::planning::Planning;
use crate::tally::{DeviceTally, PlanTally, Tally};

/// A stream whose plans were evicted this often is not planned any more.
const MOST_EVICTIONS: u32 = 3;

/// The settings of a heap.
#[derive(Clone, Copy, Debug)]
pub struct HeapConfig {
    /// Settings of each stream's machine. Requests are rounded up to 512 bytes before it sees them.
    pub machine: Config,
    /// How rounds are planned; `None`: nothing is planned, and the pool serves everything.
    pub planning: Option<Planning>,
}

/// The source of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Plan,
    /// The pool, and whether the machine knows the request.
    Pool(bool),
    /// Memory that a graph may use for ever.
    Graph,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    lane: usize,
    source: Source,
    bytes: u64,
}

/// The state of one stream.
struct Lane {
    stream: StreamHandle,
    /// `None` if nothing is planned.
    machine: Option<Machine>,
    ground: DeviceGround,
    tally: Arc<Tally>,
    evictions: u32,
}

/// A device's memory for a program. Callers must ensure that one thread at a time uses it.
pub struct Heap {
    pub(super) memory: Arc<Memory>,
    pool: Pool,
    config: HeapConfig,
    lanes: Vec<Lane>,
    of_stream: FxHashMap<StreamHandle, usize>,
    /// Blocks in use, by address.
    live: BTreeMap<u64, Block>,
    /// The other streams that use each block.
    users: FxHashMap<u64, Vec<StreamHandle>>,
}

impl Heap {
    /// An empty heap.
    #[must_use]
    pub fn new(device: Arc<dyn SharedDevice>, config: HeapConfig) -> Self {
        let memory = Arc::new(Memory::new(device));
        let pool = PytorchCaching::new(Box::new(Segments(Arc::clone(&memory))));
        Self {
            memory,
            pool: Arc::new(pool.into()),
            config,
            lanes: Vec::new(),
            of_stream: FxHashMap::default(),
            live: BTreeMap::new(),
            users: FxHashMap::default(),
        }
    }

    /// The device's key.
    #[must_use]
    pub fn key(&self) -> &str {
        self.memory.device.key()
    }

    /// Bytes held of the device.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.memory.tally.reserved.get()
    }

    /// Counts of the device's memory.
    #[must_use]
    pub fn tally(&self) -> &DeviceTally {
        &self.memory.tally
    }

    /// The requests of each stream by outcome.
    pub fn streams(&self) -> impl Iterator<Item = (StreamHandle, &Tally)> {
        self.lanes.iter().map(|lane| (lane.stream, &*lane.tally))
    }

    /// The plans of all streams.
    pub fn plans(&self) -> impl Iterator<Item = &PlanTally> {
        self.lanes.iter().flat_map(|lane| lane.ground.plans.iter().map(|plan| &**plan))
    }

    /// Allocates `size` bytes, more than 0, for later launches on a stream.
    ///
    /// # Errors
    ///
    /// [`DriverError::OutOfMemory`] if there is no room even after all unused memory was given back; otherwise the
    /// driver's error.
    pub fn alloc(&mut self, size: Bytes, stream: StreamHandle) -> Result<Address, DriverError> {
        let bytes = size.get().checked_next_multiple_of(ALIGN).ok_or(DriverError::OutOfMemory { size })?;
        let lane = self.lane_index(stream);
        let placed = if self.is_capturing(stream) {
            self.allocate_for_good(bytes)
        } else {
            self.place_block(lane, bytes)
        };
        let Some((at, source)) = placed else {
            self.memory.tally.out_of_memory.add(1);
            return Err(self.memory.take_fault(size));
        };
        self.claim_block(at, Block { lane, source, bytes });
        Ok(at)
    }

    /// Records that a block is in use.
    fn claim_block(&mut self, at: Address, block: Block) {
        let at = at.get();
        let below = self.live.range(..=at).next_back().map_or(0, |(start, block)| start + block.bytes);
        let above = self.live.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
        assert!(below <= at && at + block.bytes <= above, "a block at {at:#x} overlaps a live one");
        self.live.insert(at, block);
        let used = &self.memory.tally.used;
        used.add(block.bytes);
        self.memory.tally.used_peak.set(self.memory.tally.used_peak.get().max(used.get()));
    }

    /// Whether a stream is being captured; `true` if unknown, which is safe.
    fn is_capturing(&self, stream: StreamHandle) -> bool {
        self.memory.device.is_capturing(stream).unwrap_or(true)
    }

    fn lane_index(&mut self, stream: StreamHandle) -> usize {
        if let Some(&lane) = self.of_stream.get(&stream) {
            return lane;
        }
        let tally = Arc::new(Tally::new());
        let planning = self.config.planning.unwrap_or_default();
        let ground = DeviceGround::new(Arc::clone(&self.memory), Arc::clone(&self.pool), planning);
        let machine = self.config.planning.map(|_| Machine::new(self.config.machine, Arc::clone(&tally)));
        self.lanes.push(Lane { stream, machine, ground, tally, evictions: 0 });
        self.of_stream.insert(stream, self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    /// Allocates memory that is never handed out again.
    fn allocate_for_good(&mut self, bytes: u64) -> Option<(Address, Source)> {
        self.memory.tally.captured.add(1);
        let at = self.memory.take_segment(bytes).or_else(|| {
            lock_pool(&self.pool).release_cached();
            self.memory.take_segment(bytes)
        })?;
        Some((at, Source::Graph))
    }

    /// An address from the plan or the pool.
    fn place_block(&mut self, lane: usize, bytes: u64) -> Option<(Address, Source)> {
        let least = self.config.machine.least_size;
        let Lane { machine, ground, tally, evictions, .. } = &mut self.lanes[lane];
        let answer = match machine {
            Some(machine) if bytes >= least => machine.handle_request(bytes, ALIGN, ground),
            _ => {
                tally.requests.add(1);
                tally.bytes.add(bytes);
                tally.unplanned.add(1);
                RequestAnswer::Foreign
            }
        };
        let before = *evictions;
        match answer {
            RequestAnswer::Planned(at) => Some((Address::new(at), Source::Plan)),
            RequestAnswer::Foreign => Some((self.pool_place(lane, bytes)?, Source::Pool(false))),
            RequestAnswer::HandThrough(number) => {
                let at = self.pool_place(lane, bytes)?;
                let Lane { machine, evictions, .. } = &mut self.lanes[lane];
                // A new machine does not know this request.
                let known = machine.as_mut().filter(|_| *evictions == before);
                let is_known = known.map(|machine| machine.record_placement(number, at.get())).is_some();
                Some((at, Source::Pool(is_known)))
            }
        }
    }

    fn pool_place(&mut self, lane: usize, bytes: u64) -> Option<Address> {
        let stream = Stream::new(u32::try_from(lane).unwrap_or(u32::MAX));
        let size = Bytes::new(bytes);
        let at = lock_pool(&self.pool).alloc(size, stream);
        // Plans are evicted only after the pool has given back what it can, because an existing plan may be used
        // again.
        at.or_else(|error| {
            if self.release_idle_plans() { lock_pool(&self.pool).alloc(size, stream) } else { Err(error) }
        })
        .ok()
    }

    /// Gives back the segments of plans without a block in use; whether there were any. Their streams start over.
    fn release_idle_plans(&mut self) -> bool {
        let config = self.config.machine;
        let mut is_any = false;
        for lane in &mut self.lanes {
            let is_idle = lane.machine.as_ref().is_some_and(Machine::is_idle);
            if is_idle && lane.ground.give_all_back() {
                is_any = true;
                lane.evictions += 1;
                let goes_on = lane.evictions < MOST_EVICTIONS;
                lane.machine = goes_on.then(|| Machine::new(config, Arc::clone(&lane.tally)));
                self.memory.tally.evictions.add(1);
            }
        }
        is_any
    }

    /// Frees a block that was last used on a stream; whether it was live.
    pub fn free(&mut self, at: Address, stream: StreamHandle) -> bool {
        let Some(block) = self.live.remove(&at.get()) else {
            self.memory.tally.wrong_frees.add(1);
            return false;
        };
        let used = &self.memory.tally.used;
        used.set(used.get().saturating_sub(block.bytes));
        let mut users = self.users.remove(&at.get()).unwrap_or_default();
        users.push(stream);
        let own = self.lanes[block.lane].stream;
        users.retain(|&user| user != own);
        if !users.is_empty() && !self.order_streams(own, &users) {
            self.memory.tally.kept.add(1);
            return true;
        }
        let Lane { machine, ground, .. } = &mut self.lanes[block.lane];
        match (block.source, machine) {
            (Source::Plan, Some(machine)) => drop(machine.free_planned(at.get(), ground)),
            (Source::Pool(is_known), machine) => {
                if let Some(machine) = machine.as_mut().filter(|_| is_known) {
                    machine.record_free(at.get(), ground);
                }
                // It is live there, as it was here.
                let _ = lock_pool(&self.pool).free(at);
            }
            (Source::Plan, None) | (Source::Graph, _) => {}
        }
        true
    }

    /// Makes a stream wait for other streams' work on its block. `false` if that is impossible: the block is then
    /// never used again.
    fn order_streams(&self, own: StreamHandle, users: &[StreamHandle]) -> bool {
        self.memory.tally.ordered.add(1);
        let in_graph = |&stream: &StreamHandle| self.is_capturing(stream);
        let waits = |&user: &StreamHandle| self.memory.device.wait(own, user).is_ok();
        !users.iter().chain([&own]).any(in_graph) && users.iter().all(waits)
    }

    /// Records that another stream also uses a block; whether the block is live.
    pub fn record_stream(&mut self, at: Address, stream: StreamHandle) -> bool {
        let Some(block) = self.live.get(&at.get()) else { return false };
        if self.lanes[block.lane].stream != stream {
            let users = self.users.entry(at.get()).or_default();
            if !users.contains(&stream) {
                users.push(stream);
            }
        }
        true
    }

    /// Gives back what no block and no plan uses.
    pub fn release_cached(&mut self) {
        lock_pool(&self.pool).release_cached();
    }

    /// Ends a round and begins the next, on all streams.
    pub fn mark_round(&mut self) {
        for Lane { machine, ground, .. } in &mut self.lanes {
            machine.iter_mut().for_each(|machine| machine.mark_round(ground));
        }
    }
}
