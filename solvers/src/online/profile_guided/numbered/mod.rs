//! The profile-guided allocator: plans one propagation, then serves the next ones from the plan.
//!
//! A pool serves the first propagation, and the allocator records the size of each request and when it was freed. A
//! planner then gives an offset to every buffer that the propagation both requested and freed, and one segment holds
//! them all. From then on request k lies at the base of the segment + offset k, without any search. The pool serves
//! buffers that outlive their propagation, and requests that differ from the plan.
//!
//! ```text
//!   propagation 1         propagation 2, 3, ...             one that differs
//!   pool, recorded  ->    base + x[0], base + x[1], ...  ->  what differs: pool  ->  new plan
//!                  plan
//! ```
//!
//! A plan also serves smaller requests, fewer requests and earlier frees. Three kinds of requests go to the pool: those
//! larger than planned, those not planned, and those whose place is still taken (by a buffer that lives longer than
//! planned). After such a propagation the allocator makes a new plan from the new record. If only sizes changed, it
//! plans for the larger of the old and the new size of each request.
//!
//! As long as all calls of a propagation come in their planned order, the allocator only counts them. At the first call
//! that differs, it enters those served so far in the books.
//!
//! Requests are numbered. If the caller names its operations ([`enter_operation`](ProfileGuided::enter_operation)), each operation numbers
//! its own requests: an operation that is left out, or makes one request more, does not shift the numbers of the
//! others. If propagations come in several kinds (for example sentence lengths), each kind can have its own plan
//! ([`with_kinds`](ProfileGuided::with_kinds)). The plans share a segment as large as the largest of them.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001, section 4.
//!
//! # Complexity
//!
//! O(1) for a planned call: one look into a table. The first call that differs from the plan costs O(1) for each call
//! before it. From there on, a request or a free costs O(1), with look-ups in hash tables, amortised over the
//! propagation, as long as nothing lives longer than planned; with l such buffers, a request costs O(l). Freeing a
//! block from outside the plan searches the blocks of the propagation that outlive it. A plan costs what the planner
//! costs, and O(n log n) more.
//!
//! # Deviations from the paper
//!
//! - Blocks that live longer than planned are tracked, so that live memory is never handed out twice.
//! - The plan is renewed between propagations, not inside one.
//! - Names of operations and plans by kind are additions; there is no interruption, whose requests no plan serves.

mod recorder;
mod script;
mod table;

use std::collections::BTreeMap;
use std::mem;

use planlab_dsa::{
    Address, AllocError, Backing, Budget, Bytes, NotLive, OnlineAllocator, Planning, Stream, Usage, execute,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Miss;
use super::memory::Memory;
use crate::online::blocks::UNIT;
use crate::placement::skyline::BestFit;
use recorder::{Recorder, RequestKey};
use script::{Call, CallKind, Script};
use table::Table;

/// Serves requests from the plan of an earlier propagation; key `profile-guided`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::ProfileGuided;
///
/// let mut memory = ProfileGuided::new(Box::new(Simulated::new()));
/// for _ in 0..3 {
///     let first = memory.alloc(Bytes::new(4096), Stream::default())?;
///     let second = memory.alloc(Bytes::new(512), Stream::default())?;
///     memory.free(first)?;
///     memory.free(second)?;
///     memory.end_propagation();
/// }
/// let planning = memory.planning().ok_or("it plans")?;
/// assert_eq!((planning.plans, planning.planned, planning.missed.total()), (1, 4, 2));
/// assert_eq!(memory.usage().reserved, Bytes::new(4608));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ProfileGuided {
    memory: Memory,
    /// The plan of each kind of propagation.
    tables: BTreeMap<u64, Table>,
    kind: u64,
    /// Whether callers name the kind of each propagation.
    has_kinds: bool,
    /// The calls served in this propagation, as long as it follows the plan; until then the books below are empty.
    script: Script,
    /// Scripts of other kinds of propagations.
    parked: BTreeMap<u64, Script>,
    propagation: Propagation,
    /// Blocks in use that lie in segments of plans, by address.
    live: FxHashMap<u64, PlacedBlock>,
    planning: Planning,
}

/// A block in use at a planned place.
struct PlacedBlock {
    /// The end of its place; a smaller request gets all of it.
    end: u64,
    /// The base of its segment.
    segment: u64,
    index: usize,
    /// The number of the propagation that requested it.
    propagation: u64,
}

/// The state of a propagation.
#[derive(Default)]
struct Propagation {
    number: u64,
    recorder: Recorder,
    /// The first request of the plan that is not passed yet.
    cursor: usize,
    /// Whether the block of each planned request is in use.
    is_live: Vec<bool>,
    /// Start and end addresses of blocks that live longer than planned.
    late: Vec<(u64, u64)>,
    /// Blocks of requests that outlived the recorded propagation.
    outliving: FxHashSet<Address>,
    /// Whether something differed from the plan.
    has_changed: bool,
}

impl ProfileGuided {
    /// An allocator that plans by `best-fit` and leaves the rest to `cupy4-pool`.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self {
            memory: Memory::new(backing),
            tables: BTreeMap::new(),
            kind: 0,
            has_kinds: false,
            script: Script::default(),
            parked: BTreeMap::new(),
            propagation: Propagation::default(),
            live: FxHashMap::default(),
            planning: Planning::default(),
        }
    }

    /// Uses a plan for each kind of propagation that [`begin_propagation`](OnlineAllocator::begin_propagation) names;
    /// key `profile-guided/kinds`. Default: the kind is ignored.
    #[must_use]
    pub const fn with_kinds(mut self) -> Self {
        self.has_kinds = true;
        self
    }

    /// Names the operation of the following requests: they are numbered within it. Default: operation 0.
    pub fn enter_operation(&mut self, operation: u64) {
        self.propagation.recorder.operation = operation;
    }

    fn planned_requests(&self) -> u64 {
        self.planning.planned + self.script.served_so_far().requests
    }

    /// The place of the next request in the plan, if it has one and the place is free.
    fn find_place(&mut self, key: RequestKey, size: u64) -> Result<Address, Miss> {
        let table = self.tables.get(&self.kind).ok_or(Miss::Unknown)?;
        let propagation = &mut self.propagation;
        let Some(index) = table.find_request(key, propagation.cursor) else {
            propagation.has_changed = true;
            return Err(Miss::Unknown);
        };
        let base = self.memory.current();
        for due in table.requests_due(propagation.cursor..index + 1) {
            let slot = table.slot(due).filter(|_| propagation.is_live[due]);
            propagation
                .late
                .extend(slot.zip(base).map(|(slot, base)| (base + slot.offset, base + slot.end())));
        }
        propagation.cursor = index + 1;
        let slot = table.slot(index).ok_or(Miss::Outliving)?;
        if size > slot.size {
            propagation.has_changed = true;
            return Err(Miss::Larger);
        }
        let height = || self.tables.values().map(|table| table.height).max();
        let segment = self.memory.segment(height).ok_or(Miss::NoMemory)?;
        let (start, end) = (segment + slot.offset, segment + slot.end());
        if propagation.late.iter().any(|&(low, high)| start < high && low < end) {
            propagation.has_changed = true;
            return Err(Miss::Taken);
        }
        let propagation = propagation.number;
        self.occupy_place(start, PlacedBlock { end, segment, index, propagation });
        Ok(Address::new(start))
    }

    fn occupy_place(&mut self, start: u64, placed: PlacedBlock) {
        self.propagation.is_live[placed.index] = true;
        self.memory.occupy(placed.segment, placed.end - start);
        self.planning.planned += 1;
        self.live.insert(start, placed);
    }

    /// Enters in the books what was served of a propagation that followed the plan until now.
    fn leave_script(&mut self) {
        let operation = self.propagation.recorder.operation;
        for (call, address) in self.script.leave_script() {
            self.enter_call(call, address);
        }
        self.propagation.recorder.operation = operation;
    }

    fn enter_call(&mut self, call: Call, address: Address) {
        let index = match call.kind {
            CallKind::Free(_) => {
                if let Some(placed) = self.live.remove(&address.get()) {
                    self.vacate_place(address.get(), &placed);
                }
                return self.propagation.recorder.record_free(address);
            }
            CallKind::Planned(index) | CallKind::Outliving(index) => index,
        };
        let size = call.asked.next_multiple_of(UNIT);
        let recorder = &mut self.propagation.recorder;
        recorder.operation = call.operation;
        recorder.record_alloc(size, address);
        self.propagation.cursor = index + 1;
        if matches!(call.kind, CallKind::Outliving(_)) {
            self.propagation.outliving.insert(address);
        }
        if let (CallKind::Planned(_), Some(segment)) = (call.kind, self.memory.current()) {
            let (end, propagation) = (address.get() + call.limit, self.propagation.number);
            let placed = PlacedBlock { end, segment, index, propagation };
            self.occupy_place(address.get(), placed);
        }
    }

    /// Follows the calls of the plan if there is one whose segment has no live blocks from before.
    fn follow_script(&mut self) {
        let (Some(table), Some(segment)) = (self.tables.get(&self.kind), self.memory.idle()) else { return };
        let of = (self.kind, table.number);
        if !self.script.is_of(of, segment.0) {
            let parked = self.parked.remove(&self.kind).filter(|script| script.is_of(of, segment.0));
            let script = parked.unwrap_or_else(|| Script::new(table, of, segment));
            let other = mem::replace(&mut self.script, script);
            self.parked.insert(other.kind(), other);
        }
        self.script.rewind_to_first();
    }

    /// Serves a request that is not the next call of the script.
    #[cold]
    fn alloc_astray(&mut self, size: Bytes, stream: Stream) -> Result<Address, AllocError> {
        if size == Bytes::ZERO {
            return Ok(Address::NULL);
        }
        let rounded =
            size.get().checked_next_multiple_of(UNIT).ok_or_else(|| self.memory.out_of_memory(size))?;
        let is_outliving = self.script.is_outliving(self.propagation.recorder.operation);
        let outliving = is_outliving.then(|| self.memory.pool.alloc(size, stream));
        if let Some(Ok(address)) = outliving {
            let address = self.memory.pooled(Ok(address), size, stream)?;
            self.planning.missed.outliving += 1;
            self.script.record_outliving(address, size.get());
            return Ok(address);
        }
        self.leave_script();
        let cursor = self.propagation.cursor;
        let address = self.find_place(self.propagation.recorder.next_key(), rounded).or_else(|miss| {
            let served = outliving.unwrap_or_else(|| self.memory.pool.alloc(size, stream));
            let address = self.memory.pooled(served, size, stream)?;
            *miss.counter_in(&mut self.planning.missed) += 1;
            if miss == Miss::Outliving {
                self.propagation.outliving.insert(address);
            }
            Ok(address)
        });
        match address {
            Ok(address) => self.propagation.recorder.record_alloc(rounded, address),
            // The same request may be made again.
            Err(_) => self.propagation.cursor = cursor,
        }
        address
    }

    /// Frees a block if that is not the next call of the script.
    #[cold]
    fn free_astray(&mut self, address: Address) -> Result<(), NotLive> {
        if self.script.position().is_none() || !self.script.is_foreign(address) {
            self.leave_script();
        }
        match self.live.remove(&address.get()) {
            Some(placed) => self.vacate_place(address.get(), &placed),
            None => self.memory.pool.free(address)?,
        }
        self.propagation.recorder.record_free(address);
        self.propagation.has_changed |= self.propagation.outliving.remove(&address);
        Ok(())
    }

    fn vacate_place(&mut self, address: u64, placed: &PlacedBlock) {
        self.propagation.late.retain(|&(start, _)| start != address);
        if placed.propagation == self.propagation.number {
            self.propagation.is_live[placed.index] = false;
        }
        self.memory.vacate(placed.segment, placed.end - address);
    }

    fn renew_plan(&mut self) {
        let old = self.tables.get(&self.kind);
        let profile = self.propagation.recorder.recorded_profile(old.map(|table| &table.profile));
        let Some(instance) = profile.placement_problem() else { return };
        let outcome = execute(&BestFit, &instance, Budget::default(), 0);
        self.planning.time += outcome.elapsed;
        let Some(plan) = outcome.best else { return };
        let Some(table) = Table::new(profile, &plan, self.planning.plans + 1) else { return };
        self.planning.plans += 1;
        self.memory.renew(table.height);
        self.tables.insert(self.kind, table);
    }

    /// Begins a propagation: blocks that are still live count as late.
    fn rewind_propagation(&mut self) {
        self.leave_script();
        let requests = self.tables.get(&self.kind).map_or(0, Table::len);
        let propagation = &mut self.propagation;
        propagation.number += 1;
        propagation.recorder.clear();
        propagation.cursor = 0;
        propagation.is_live.clear();
        propagation.is_live.resize(requests, false);
        propagation.late.clear();
        propagation.late.extend(self.live.iter().map(|(&start, placed)| (start, placed.end)));
        propagation.outliving.clear();
        propagation.has_changed = false;
        self.memory.begin();
        self.follow_script();
    }
}

impl OnlineAllocator for ProfileGuided {
    #[inline]
    fn alloc(&mut self, size: Bytes, stream: Stream) -> Result<Address, AllocError> {
        let operation = self.propagation.recorder.operation;
        match self.script.serve_alloc(size.get(), operation) {
            Some(address) => Ok(address),
            None => self.alloc_astray(size, stream),
        }
    }

    #[inline]
    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        if address == Address::NULL || self.script.serve_free(address) {
            return Ok(());
        }
        self.free_astray(address)
    }

    fn release_cached(&mut self) {
        self.leave_script();
        self.memory.release_cached();
    }

    fn end_propagation(&mut self) {
        self.memory.pool.end_propagation();
        if self.script.is_over() {
            self.planning.planned = self.planned_requests();
            self.propagation.recorder.operation = 0;
            self.script.rewind_to_first();
            return;
        }
        self.leave_script();
        let is_new = !self.tables.contains_key(&self.kind);
        if is_new || self.propagation.has_changed {
            self.renew_plan();
        }
        self.rewind_propagation();
    }

    fn begin_propagation(&mut self, kind: u64) {
        if self.has_kinds && kind != self.kind {
            self.kind = kind;
            self.rewind_propagation();
        }
    }

    fn usage(&self) -> Usage {
        self.memory.usage(self.script.served_so_far().used, self.planned_requests())
    }

    fn planning(&self) -> Option<Planning> {
        Some(Planning { planned: self.planned_requests(), ..self.planning })
    }
}

#[cfg(test)]
mod tests;
