//! A plan as an allocator: request k lies at base + offset\[k\].
//!
//! One segment of the plan's height is taken when the allocator is made; where an alignment is above the 512
//! bytes that a backing promises, it is larger by that alignment less 1, and its begin is rounded up.
//! Requests are numbered in the order in which [`Requests`] makes them (that of the steps, not that of the
//! ids); the k-th of a propagation is served from the table, without any search, by adding two numbers. A
//! free takes a mark away.
//!
//! ```text
//!   k          0      1      2      3        end of the propagation: k = 0
//!   answer   base   base   base   base
//!            + x[0] + x[1] + x[2] + x[3]
//! ```
//!
//! The plan was verified for the order of the trace, so a request is served only where that order holds: no more
//! requests than planned, none larger than planned, and every block that was to be freed by then is free. What is
//! not so is refused ([`AllocError::NotPlanned`]), never served: whatever the caller does, live memory is not
//! handed out. Smaller requests and earlier frees are as good as those planned.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001, section 4.
//!
//! # Complexity
//!
//! O(1) for a free, and for a request O(1) amortised over a propagation: each planned free is looked at once. A
//! free out of the planned order costs a look-up in a hash table.
//!
//! # Deviations from the paper
//!
//! - Blocks that live longer than planned are watched for.
//! - There is no pool for what was not planned; `profile-guided` has one.

use planlab_dsa::{
    Address, AllocError, Backing, Bytes, Call, Instance, NotLive, OnlineAllocator, Refused, Requests, Stream,
    Usage, VerifiedPlan,
};
use rustc_hash::FxHashMap;

/// Serves the requests of a trace from a plan of it; key `plan`.
///
/// ```
/// use planlab_dsa::{
///     Buffer, Bytes, Instance, LiveRange, Offset, OnlineAllocator, Plan, Simulated, Stream,
/// };
/// use planlab_replay::Planned;
///
/// let instance = Instance::from_buffers(vec![
///     Buffer::new(Bytes::new(64), LiveRange::new(0, 2)?),
///     Buffer::new(Bytes::new(32), LiveRange::new(1, 3)?),
/// ])?;
/// let plan = instance.verify(Plan::from_offsets([0, 64].map(Offset::new)))?;
/// let mut memory = Planned::new(&plan, Box::new(Simulated::new()))?;
/// let first = memory.alloc(Bytes::new(64), Stream::default())?;
/// let second = memory.alloc(Bytes::new(32), Stream::default())?;
/// assert_eq!(second.get(), first.get() + 64);
/// assert!(memory.alloc(Bytes::new(1), Stream::default()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Planned {
    backing: Box<dyn Backing>,
    /// The requests in the order in which they come.
    slots: Box<[Slot]>,
    /// Requests in the order in which they are to be freed.
    freed: Box<[u32]>,
    /// The number of each offset that the plan uses.
    places: FxHashMap<u64, u32>,
    /// The request that was last served at each such offset.
    occupants: Box<[u32]>,
    /// Bytes of the segment: the plan's height, and what rounding its begin up may take.
    segment: u64,
    /// What all addresses of the plan's offset 0 are to be a multiple of.
    align: u64,
    /// Where the backing's segment begins.
    held: Address,
    /// The same, rounded up: where offset 0 lies; 0 while there is no segment.
    base: u64,
    /// The request that comes.
    next: usize,
    /// So many of `freed` were found free.
    due: usize,
    /// The one of `freed` that comes, if all is as planned.
    expected: usize,
    /// The number of the propagation, from 1.
    propagation: u32,
    /// Blocks in use that an earlier propagation asked for.
    late: u32,
    /// Blocks in use.
    live: u32,
    used: u64,
    peak: u64,
    acquisitions: u64,
    releases: u64,
}

/// A planned request.
#[derive(Clone, Copy, Debug)]
struct Slot {
    offset: u64,
    /// Bytes.
    size: u64,
    /// So many of the planned frees come before it.
    frees_before: u32,
    /// Its own place among the planned frees.
    order: u32,
    /// The number of its offset.
    place: u32,
    /// The propagation whose block is in use; 0 if none is.
    propagation: u32,
}

/// Why a plan cannot be performed on its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlannedError {
    /// Both buffers of a hand-over are live at one step: no two requests can be served so.
    #[error("the plan hands buffers over in place: a sequence of requests cannot")]
    HandOvers,
    /// Buffers that pause give their memory up without a free.
    #[error("buffers pause: a sequence of requests cannot")]
    Pauses,
    /// The plan lays out several arenas.
    #[error("the plan has {0} arenas: one segment cannot hold them")]
    Arenas(usize),
    /// The least common multiple of the alignments does not fit 64 bits.
    #[error("no address is a multiple of all alignments")]
    Alignments,
    /// The backing has no room for the segment.
    #[error("a segment of {height} bytes: {refused}")]
    NoMemory {
        /// The height of the plan.
        height: Bytes,
        /// What the backing says.
        refused: Refused,
    },
}

impl Planned {
    /// Takes a segment of the plan's height from a backing.
    ///
    /// # Errors
    ///
    /// [`PlannedError`] for plans that a sequence of requests cannot follow, and where there is no memory.
    pub fn new(plan: &VerifiedPlan<'_>, backing: Box<dyn Backing>) -> Result<Self, PlannedError> {
        refuse(plan)?;
        let instance = plan.instance();
        let (order, freed) = orders(instance);
        let (places, numbers) = places(plan, &order);
        let no_memory = |refused| PlannedError::NoMemory { height: plan.height(), refused };
        let align = common_alignment(instance).ok_or(PlannedError::Alignments)?;
        let spare = if PROMISED.is_multiple_of(align) { 0 } else { align - 1 };
        let segment = match plan.height() {
            Bytes::ZERO => 0,
            height => height.get().checked_add(spare).ok_or_else(|| no_memory(Refused))?,
        };
        let mut planned = Self {
            backing,
            slots: slots(plan, &order, &freed, &numbers),
            freed: freed.into(),
            occupants: vec![0; places.len()].into(),
            places,
            segment,
            align,
            held: Address::NULL,
            base: 0,
            next: 0,
            due: 0,
            expected: 0,
            propagation: 1,
            late: 0,
            live: 0,
            used: 0,
            peak: 0,
            acquisitions: 0,
            releases: 0,
        };
        planned.acquire().map_err(no_memory)?;
        Ok(planned)
    }

    /// The number of requests in one propagation.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.slots.len()
    }

    /// Sees to it that there is a segment; a plan without buffers needs none.
    #[cold]
    fn acquire(&mut self) -> Result<(), Refused> {
        if self.base == 0 && self.segment > 0 {
            self.held = self.backing.acquire(Bytes::new(self.segment))?;
            self.base = self.held.get().next_multiple_of(self.align);
            self.acquisitions += 1;
            self.peak = self.segment;
        }
        Ok(())
    }

    /// Whether everything is free that was planned to be free when a request comes.
    #[inline]
    fn is_cleared(&mut self, frees_before: u32) -> bool {
        while self.due < frees_before as usize {
            if self.slots[self.freed[self.due] as usize].propagation != 0 {
                return false;
            }
            self.due += 1;
        }
        true
    }

    #[cold]
    fn refused(&self, size: Bytes) -> AllocError {
        let reason = match self.slots.get(self.next) {
            None => "the plan has no more requests",
            Some(slot) if size.get() > slot.size => "it is larger than planned",
            Some(_) if self.late > 0 => "a block of an earlier propagation is in use",
            Some(_) => "a block that was planned to be free is in use",
        };
        AllocError::NotPlanned { request: self.next as u64, size, reason }
    }

    #[inline]
    fn vacate(&mut self, request: usize) {
        let slot = &mut self.slots[request];
        let is_late = slot.propagation != self.propagation;
        self.late -= u32::from(is_late);
        // One of an earlier propagation may come again in this one, and is not free for good.
        self.due += usize::from(slot.order as usize == self.due && !is_late);
        slot.propagation = 0;
        self.live -= 1;
        self.used -= slot.size;
        self.expected = slot.order as usize + 1;
    }

    /// Frees a block that was not planned to be the next.
    #[cold]
    fn free_out_of_order(&mut self, address: Address) -> Result<(), NotLive> {
        let not_live = NotLive { address };
        let offset = address.get().checked_sub(self.base).ok_or(not_live)?;
        let place = *self.places.get(&offset).ok_or(not_live)?;
        let request = self.occupants[place as usize] as usize;
        let slot = &self.slots[request];
        if slot.propagation == 0 || slot.place != place {
            return Err(not_live);
        }
        self.vacate(request);
        Ok(())
    }
}

impl OnlineAllocator for Planned {
    /// # Errors
    ///
    /// [`AllocError::NotPlanned`] for a request that is not as planned; it does not count, and what was live stays
    /// live.
    #[inline]
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        let Some(&slot) = self.slots.get(self.next) else { return Err(self.refused(size)) };
        if size.get() > slot.size || self.late > 0 || !self.is_cleared(slot.frees_before) {
            return Err(self.refused(size));
        }
        if self.base == 0 && self.acquire().is_err() {
            return Err(AllocError::OutOfMemory { size, reserved: Bytes::ZERO });
        }
        let request = self.next;
        self.next += 1;
        if size == Bytes::ZERO {
            return Ok(Address::NULL);
        }
        self.slots[request].propagation = self.propagation;
        #[expect(clippy::cast_possible_truncation, reason = "an instance holds at most 2^32 - 1 buffers")]
        let occupant = request as u32;
        self.occupants[slot.place as usize] = occupant;
        self.live += 1;
        self.used += slot.size;
        Ok(Address::new(self.base + slot.offset))
    }

    #[inline]
    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        if address == Address::NULL {
            return Ok(());
        }
        if let Some(&request) = self.freed.get(self.expected) {
            let slot = &self.slots[request as usize];
            if slot.propagation != 0 && address.get() == self.base + slot.offset {
                self.vacate(request as usize);
                return Ok(());
            }
        }
        self.free_out_of_order(address)
    }

    fn release_cached(&mut self) {
        if self.live == 0 && self.base != 0 {
            self.backing.release(self.held);
            self.base = 0;
            self.releases += 1;
        }
    }

    fn end_propagation(&mut self) {
        // 0 marks what is free; a number that comes again after 2^32 propagations meets no older block, as
        // nothing is served while one is in use.
        self.propagation = self.propagation.checked_add(1).unwrap_or(1);
        self.late = self.live;
        (self.next, self.due, self.expected) = (0, 0, 0);
    }

    fn usage(&self) -> Usage {
        Usage {
            reserved: Bytes::new(if self.base == 0 { 0 } else { self.segment }),
            reserved_peak: Bytes::new(self.peak),
            used: Bytes::new(self.used),
            device_allocations: self.acquisitions,
            device_releases: self.releases,
            search_steps: 0,
        }
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        if self.base != 0 {
            self.backing.release(self.held);
        }
    }
}

/// What every backing's segments begin at a multiple of, in bytes.
const PROMISED: u64 = 512;

/// The least common multiple of all alignments, if it fits.
fn common_alignment(instance: &Instance) -> Option<u64> {
    instance.buffers().iter().try_fold(1_u64, |all, buffer| {
        let align = buffer.align.get();
        (all / greatest_common_divisor(all, align)).checked_mul(align)
    })
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Refuses plans whose buffers share memory at one step.
fn refuse(plan: &VerifiedPlan<'_>) -> Result<(), PlannedError> {
    let instance = plan.instance();
    if !plan.in_place().is_empty() {
        return Err(PlannedError::HandOvers);
    }
    if instance.buffers().iter().any(|buffer| !buffer.pauses.is_empty()) {
        return Err(PlannedError::Pauses);
    }
    match instance.arenas().len() {
        0 | 1 => Ok(()),
        arenas => Err(PlannedError::Arenas(arenas)),
    }
}

/// The buffers in the order in which they are asked for, and the requests in the order in which they are freed;
/// what lives to the end is freed there, by the buffers' ids.
fn orders(instance: &Instance) -> (Vec<usize>, Vec<u32>) {
    let requests = Requests::new(instance);
    let mut order = Vec::with_capacity(instance.len());
    let mut number_of = vec![None; instance.len()];
    let mut freed = Vec::with_capacity(instance.len());
    for call in requests.events() {
        match call {
            Call::Alloc(id) => {
                number_of[id.index()] = u32::try_from(order.len()).ok();
                order.push(id.index());
            }
            Call::Free(id) => freed.extend(number_of[id.index()].take()),
        }
    }
    freed.extend(number_of.into_iter().flatten());
    (order, freed)
}

/// A number for each offset in use, and that of each request.
fn places(plan: &VerifiedPlan<'_>, order: &[usize]) -> (FxHashMap<u64, u32>, Vec<u32>) {
    let mut places = FxHashMap::default();
    let mut number = |&buffer: &usize| {
        let new = u32::try_from(places.len()).expect("an instance holds at most 2^32 - 1 buffers");
        *places.entry(plan.offsets()[buffer].get()).or_insert(new)
    };
    let numbers = order.iter().map(&mut number).collect();
    (places, numbers)
}

fn slots(plan: &VerifiedPlan<'_>, order: &[usize], freed: &[u32], places: &[u32]) -> Box<[Slot]> {
    let mut place_freed = vec![0; order.len()];
    for (place, &request) in (0_u32..).zip(freed) {
        place_freed[request as usize] = place;
    }
    let buffers = plan.instance().buffers();
    let frees_before = |request: usize| {
        let start = buffers[order[request]].live.start();
        let count = freed.partition_point(|&other| buffers[order[other as usize]].live.end() <= start);
        u32::try_from(count).expect("an instance holds at most 2^32 - 1 buffers")
    };
    let slot = |(request, &buffer): (usize, &usize)| Slot {
        offset: plan.offsets()[buffer].get(),
        size: buffers[buffer].size.get(),
        frees_before: frees_before(request),
        order: place_freed[request],
        place: places[request],
        propagation: 0,
    };
    order.iter().enumerate().map(slot).collect()
}
