//! The profile-guided allocator by operations: identifies a request by its operation, not by when it comes.
//!
//! [`ProfileGuided`](super::ProfileGuided) identifies a request by its number in the propagation. If operations run in
//! another legal order, or sentences have another length, the numbers mean other requests, and the plan serves few of
//! them. Here the caller names its operations ([`OnlineAllocator::enter_operation`]), and a request is identified by the
//! operation and its number there. It gets its place in the plan, whenever it comes.
//!
//! ```text
//!   recorded     f: a   g: b   h: c, d        planned   a0 -> 0     b0 -> 512   c0 -> 1024 ...
//!   another      g: b   f: a   h: c, d        served    b0 -> 512   a0 -> 0     c0 -> 1024 ...
//! ```
//!
//! A plan is made for some orders; another order may need two buffers at once that share an address. So a place is used
//! only if nothing live lies there: no order of calls makes the allocator hand out live memory. A request that is
//! larger than planned, or whose place is taken, gets the smallest hole of the segment that holds it. If there is no
//! such hole, or if the request was never seen, a pool serves it. All of this is counted
//! ([`Missed`](planlab_dsa::performance::Missed)).
//!
//! After a propagation with misses there is a new plan, for everything recorded so far. It gives a request the largest
//! size that it ever had, and no common address to two requests that were ever in use together. Requests of other
//! propagations (longer sentences, evaluation between training) keep their places; those that never met may share
//! theirs. So the segment is that of the largest propagation, not of their sum. A net whose operations run in any legal
//! order gets a plan that is safe for all orders so far.
//!
//! If the caller names no operation, all requests belong to one, and are identified by number, as in `profile-guided`.
//!
//! ```text
//!   GB held at the end of ten iterations of seq2seq         b32    b64    b128    b256
//!   cupy4-pool                                             1.71   3.13    4.14   12.03
//!   profile-guided                                         0.94   2.87    5.13    5.59
//!   profile-guided/scoped                                  0.90   2.51    2.66    5.59
//! ```
//!
//! (`just iterations`.) Without holes b64 ends at 2.87, and b128 holds at most 5.01 (4.11 with holes). The price is
//! that blocks in holes obstruct others.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001, section 4.
//! 2. ONNX Runtime, `mem_pattern_planner.h` and `execution_frame.cc`: a recorded pattern has a block for each value of
//!    the graph; a value whose size differs from its block goes to the arena. Pull request 872 disables patterns if
//!    operations run in parallel; the checks of places allow that here.
//!
//! # Complexity
//!
//! A request or free: a look-up in a hash table, and at most p / 64 words of bits for a plan of p places, far fewer for
//! small buffers. A miss also scans the holes. `enter`: a look-up. The end of a propagation of n requests in a new
//! order of calls costs O(n² / 64), and a new plan costs what the planner costs on top of that.
//!
//! # Deviations from the paper
//!
//! - Requests are identified by operations, and a plan survives propagations that differ.
//! - The plan is renewed between propagations, not inside one.
//! - A request is forgotten if it is absent from the propagations of 64 plans; sizes do not shrink before that.

mod keys;
mod layout;
mod profile;

use std::ops::Range;
use std::time::Duration;

use planlab_dsa::{
    Address, AllocError, Backing, Budget, Bytes, NotLive, OnlineAllocator, Planner, Planning, Stream, Usage,
    execute,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::memory::Memory;
use super::{Miss, Request};
use crate::online::blocks::UNIT;
use crate::placement::greedy::{GreedyByBreadth, GreedyBySize};
use crate::placement::skyline::BestFit;
use keys::{Key, Keys};
use layout::Layout;
use profile::{Problem, Profile};

/// Above this number of different requests, all are forgotten: names that never recur must not fill the memory.
const MOST_REQUESTS: usize = 1 << 20;
/// The most propagations whose digests are kept; a forgotten propagation is learned again.
const MOST_COURSES: usize = 1 << 12;

/// Serves the requests of operations from plans of earlier propagations; key `profile-guided/scoped`.
///
/// ```
/// use planlab_dsa::{Bytes, OnlineAllocator, Simulated, Stream};
/// use planlab_solvers::online::ProfileGuidedScoped;
///
/// let mut memory = ProfileGuidedScoped::new(Box::new(Simulated::new()));
/// for operations in [[1, 2], [1, 2], [2, 1]] {
///     let mut blocks = Vec::new();
///     for operation in operations {
///         memory.enter_operation(operation);
///         blocks.push(memory.alloc(Bytes::new(4096 * operation), Stream::default())?);
///     }
///     blocks.into_iter().try_for_each(|block| memory.free(block))?;
///     memory.end_propagation();
/// }
/// let planning = memory.planning().expect("it plans");
/// assert_eq!((planning.plans, planning.planned, planning.missed.total()), (1, 4, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ProfileGuidedScoped {
    memory: Memory,
    keys: Keys,
    profile: Profile,
    layout: Option<Layout>,
    /// Blocks in use, by address.
    blocks: FxHashMap<Address, Block>,
    /// The requests of this propagation.
    record: Vec<Request<Key>>,
    /// The number of requests and frees in this propagation.
    step: u32,
    /// A digest of these calls.
    course: u64,
    /// The digests of the propagations in the profile.
    courses: FxHashSet<u64>,
    propagation: u64,
    /// Whether something differed from the plan.
    has_changed: bool,
    planning: Planning,
}

/// A block in use.
#[derive(Clone, Debug)]
struct Block {
    home: Home,
    /// The index of its request in the record of a propagation.
    request: usize,
    propagation: u64,
}

/// The place of a block.
#[derive(Clone, Debug)]
enum Home {
    Pool,
    /// A segment, by its base; the cells and bytes used there.
    Segment(u64, Range<usize>, u64),
}

impl ProfileGuidedScoped {
    /// An allocator that plans by `best-fit`, or, if requests have to be kept apart, by the lower of two greedy plans,
    /// and leaves the rest to `cupy4-pool`.
    #[must_use]
    pub fn new(backing: Box<dyn Backing>) -> Self {
        Self {
            memory: Memory::new(backing),
            keys: Keys::default(),
            profile: Profile::default(),
            layout: None,
            blocks: FxHashMap::default(),
            record: Vec::new(),
            step: 0,
            course: 0,
            courses: FxHashSet::default(),
            propagation: 0,
            has_changed: false,
            planning: Planning::default(),
        }
    }

    /// Serves a request by its place in the plan, if possible.
    fn serve_place(&mut self, key: Key, size: u64) -> Result<Address, Miss> {
        let place = self.layout.as_ref().and_then(|layout| layout.place_of(key)).cloned();
        let Some(place) = place else {
            return Err(if self.profile.is_outliving(key) { Miss::Outliving } else { Miss::Unknown });
        };
        if size > place.size {
            return Err(Miss::Larger);
        }
        let height = || self.layout.as_ref().map(Layout::height);
        let segment = self.memory.segment(height).ok_or(Miss::NoMemory)?;
        if self.layout.as_ref().is_none_or(|layout| !layout.is_free(&place.cells)) {
            return Err(Miss::Taken);
        }
        self.planning.planned += 1;
        Ok(self.occupy_cells(segment, place.offset, place.cells, place.size))
    }

    /// Marks cells of the current segment as in use.
    fn occupy_cells(&mut self, segment: u64, offset: u64, cells: Range<usize>, size: u64) -> Address {
        if let Some(layout) = &mut self.layout {
            layout.take_cells(&cells);
        }
        self.memory.occupy(segment, size);
        let address = Address::new(segment + offset);
        self.enter_block(address, Home::Segment(segment, cells, size));
        address
    }

    fn enter_block(&mut self, address: Address, home: Home) {
        let block = Block { home, request: self.record.len(), propagation: self.propagation };
        self.blocks.insert(address, block);
    }

    /// Serves a request that its place cannot serve.
    fn serve_miss(
        &mut self,
        miss: Miss,
        size: u64,
        asked: Bytes,
        stream: Stream,
    ) -> Result<Address, AllocError> {
        let hole = match miss {
            Miss::Larger | Miss::Taken => self.layout.as_ref().and_then(|layout| layout.smallest_hole(size)),
            _ => None,
        };
        let address = match (hole, self.memory.current()) {
            (Some((offset, cells)), Some(segment)) => self.occupy_cells(segment, offset, cells, size),
            _ => self.serve_from_pool(asked, stream)?,
        };
        let missed = &mut self.planning.missed;
        *miss.counter_in(missed) += 1;
        self.has_changed |= matches!(miss, Miss::Unknown | Miss::Larger | Miss::Taken);
        Ok(address)
    }

    fn serve_from_pool(&mut self, size: Bytes, stream: Stream) -> Result<Address, AllocError> {
        let served = self.memory.pool.alloc(size, stream);
        let address = self.memory.pooled(served, size, stream)?;
        self.enter_block(address, Home::Pool);
        Ok(address)
    }

    /// Removes a block from its segment.
    fn vacate_cells(&mut self, base: u64, cells: &Range<usize>, size: u64) {
        if let Some(layout) = self.layout.as_mut().filter(|_| self.memory.current() == Some(base)) {
            layout.give_back(cells);
        }
        self.memory.vacate(base, size);
    }

    /// Records that the block of a key was requested or freed.
    fn count_step(&mut self, key: Key, is_request: bool) {
        self.step = self.step.saturating_add(1);
        let call = u64::from(key) << 1 | u64::from(is_request);
        self.course = (self.course.rotate_left(5) ^ call).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// Adds the propagation to the profile, unless one with the same calls is there. This includes one that was served
    /// as planned: it may be the first in which two requests meet.
    fn learn_propagation(&mut self) {
        if self.courses.len() >= MOST_COURSES {
            self.courses.clear();
        }
        let is_new = self.courses.insert(self.course);
        if is_new || self.has_changed {
            self.profile.record_propagation(&self.record, self.keys.len());
        }
    }

    fn renew_plan(&mut self) {
        let Some(Problem { instance, keys }) = self.profile.placement_problem() else { return };
        let planners: &[&dyn Planner] = if instance.keep_apart_pairs().is_empty() {
            &[&BestFit]
        } else {
            &[&GreedyBySize, &GreedyByBreadth]
        };
        let outcomes: Vec<_> =
            planners.iter().map(|planner| execute(*planner, &instance, Budget::default(), 0)).collect();
        self.planning.time += outcomes.iter().map(|outcome| outcome.elapsed).sum::<Duration>();
        let plans = outcomes.iter().filter_map(|outcome| outcome.best.as_ref());
        let Some(plan) = plans.min_by_key(|plan| plan.height()) else { return };
        if plan.height().get().checked_mul(UNIT).is_none() {
            return;
        }
        let offsets = plan.offsets().iter().map(|offset| offset.get() * UNIT);
        let places: Vec<(Key, u64, u64)> = keys
            .iter()
            .zip(offsets)
            .map(|(&key, offset)| (key, offset, self.profile.largest_size(key)))
            .collect();
        self.planning.plans += 1;
        let layout = Layout::new(&places, self.keys.len());
        self.memory.renew(layout.height());
        self.layout = Some(layout);
    }

    /// Forgets all requests; live blocks stay in place.
    fn start_anew(&mut self) {
        self.memory.retire();
        (self.keys, self.profile, self.layout) = (Keys::default(), Profile::default(), None);
        self.courses.clear();
    }
}

impl OnlineAllocator for ProfileGuidedScoped {
    fn alloc(&mut self, size: Bytes, stream: Stream) -> Result<Address, AllocError> {
        if size == Bytes::ZERO {
            return Ok(Address::NULL);
        }
        let rounded =
            size.get().checked_next_multiple_of(UNIT).ok_or_else(|| self.memory.out_of_memory(size))?;
        let key = self.keys.take_key();
        let served = match self.serve_place(key, rounded) {
            Ok(address) => Ok(address),
            Err(miss) => self.serve_miss(miss, rounded, size, stream),
        };
        match served {
            Ok(_) => {
                self.record.push(Request { key, size: rounded, start: self.step, end: None });
                self.count_step(key, true);
            }
            // The same request may be made again.
            Err(_) => self.keys.put_back(),
        }
        served
    }

    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        if address == Address::NULL {
            return Ok(());
        }
        let block = self.blocks.remove(&address).ok_or(NotLive { address })?;
        match &block.home {
            Home::Pool => self.memory.pool.free(address)?,
            Home::Segment(base, cells, size) => self.vacate_cells(*base, cells, *size),
        }
        if block.propagation == self.propagation {
            let request = &mut self.record[block.request];
            request.end = Some(self.step);
            let key = request.key;
            self.has_changed |= self.profile.is_outliving(key);
            self.count_step(key, false);
        }
        Ok(())
    }

    fn release_cached(&mut self) {
        self.memory.release_cached();
    }

    fn end_propagation(&mut self) {
        self.memory.pool.end_propagation();
        // A planned block is still in use.
        self.has_changed |= self.memory.has_live();
        self.learn_propagation();
        if self.has_changed {
            self.renew_plan();
        }
        if self.keys.len() > MOST_REQUESTS {
            self.start_anew();
        }
        self.record.clear();
        self.keys.rewind_propagation();
        (self.step, self.course) = (0, 0);
        self.propagation += 1;
        self.has_changed = false;
        self.memory.begin();
    }

    fn wants_operations(&self) -> bool {
        true
    }

    fn enter_operation(&mut self, operation: u64) {
        self.keys.enter_operation(operation);
    }

    fn usage(&self) -> Usage {
        self.memory.usage(0, self.planning.planned)
    }

    fn planning(&self) -> Option<Planning> {
        Some(self.planning)
    }
}

#[cfg(test)]
mod tests;
