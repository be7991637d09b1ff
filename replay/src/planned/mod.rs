//! A plan as an allocator: request k lies at base + offset\[k\].
//!
//! The allocator takes one segment of the plan's height when it is made. A backing aligns segments to 512 bytes; if
//! the plan needs a larger alignment, the segment is larger by that alignment less 1, and its begin is rounded up.
//! Requests are numbered in the order in which [`Requests`](planlab_dsa::Requests) makes them: by step, not by id.
//!
//! While the caller makes the planned calls in order, only the number of the next call changes, and it determines what
//! is live. A call is then one look-up in a table: of a request's address and size limit, or of the address to free.
//!
//! ```text
//!   call         0: alloc   1: alloc   2: free   3: alloc   4: free ...   end of the propagation: call 0
//!   address      base       base       base      base       base
//!                + x[0]     + x[1]     + x[0]    + x[2]     + x[1]
//! ```
//!
//! At the first other call, and at a request for no bytes, the allocator writes a ledger of what is live so far, and
//! keeps it for the rest of the propagation. The plan was verified for the order of the trace, so a request is then
//! served only if that order holds: there are no more requests than planned, this one is no larger than planned, and
//! every block planned to be free by then is free. Any other request is refused ([`AllocError::NotPlanned`]), so live
//! memory is never handed out, whatever the caller does. Smaller requests and earlier frees are as good as those
//! planned.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001, section 4.
//!
//! # Complexity
//!
//! O(1) for a planned call. The first call of a propagation that departs from the plan costs O(1) for each call before
//! it. From there on a free costs O(1), plus a look-up in a hash table if it is out of the planned order. A request
//! costs O(1) amortised over the propagation, because each planned free is looked at once.
//!
//! # Deviations from the paper
//!
//! - Blocks that live longer than planned are detected.
//! - There is no pool for requests that were not planned; `profile-guided` has one.

mod ledger;

use planlab_dsa::{
    Address, AllocError, Backing, Bytes, Instance, NotLive, OnlineAllocator, Refused, Stream, Usage,
    VerifiedPlan, greatest_common_divisor,
};

use ledger::Ledger;

use crate::sequence::Kind;

/// Serves the requests of a trace from a plan of that trace; key `plan`.
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
    /// The planned calls in order, up to the first that address and size alone cannot identify.
    calls: Box<[PlannedCall]>,
    /// The next call; [`ASTRAY`] if the caller left the planned order.
    next: usize,
    /// Bytes in use before each planned call, and after the last one.
    used: Box<[u64]>,
    /// Whether `calls` covers a whole propagation.
    is_whole: bool,
    /// Written when the caller leaves the planned order; empty before.
    ledger: Ledger,
    backing: Box<dyn Backing>,
    /// Bytes of the segment: the plan's height, and the padding to round its begin up.
    segment: u64,
    /// The alignment of offset 0, in bytes.
    align: u64,
    /// Where the backing's segment begins.
    held: Address,
    /// Where offset 0 lies: `held`, rounded up; 0 if there is no segment.
    base: u64,
    /// The base that the addresses of `calls` were computed from.
    calls_base: u64,
    peak: u64,
    acquisitions: u64,
    releases: u64,
}

/// A planned call.
#[derive(Clone, Copy, Debug)]
struct PlannedCall {
    /// The address of the block that is handed out or freed.
    address: u64,
    /// The most bytes that a request may ask for; 0 for a free.
    limit: u64,
}

impl PlannedCall {
    const fn kind(self) -> Kind {
        if self.limit == 0 { Kind::Free } else { Kind::Alloc }
    }
}

/// Stands for no planned call.
const ASTRAY: usize = usize::MAX;

/// Why a plan cannot be performed on its trace.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlannedError {
    /// Both buffers of a hand-over are live at one step; two requests cannot be served like that.
    #[error("the plan hands buffers over in place: a sequence of requests cannot")]
    HandOvers,
    /// Buffers that pause give up their memory without a free.
    #[error("buffers pause: a sequence of requests cannot")]
    Pauses,
    /// The plan lays out several arenas.
    #[error("the plan has {0} arenas: one segment cannot hold them")]
    Arenas(usize),
    /// The least common multiple of the alignments does not fit 64 bits.
    #[error("no address is a multiple of all alignments")]
    Alignments,
    /// The backing has no room for a segment of the plan's height.
    #[error("a segment of {height} bytes: {refused}")]
    NoMemory { height: Bytes, refused: Refused },
}

impl Planned {
    /// Takes a segment of the plan's height from a backing.
    ///
    /// # Errors
    ///
    /// [`PlannedError`] if a sequence of requests cannot follow the plan, or the backing has no memory.
    pub fn new(plan: &VerifiedPlan<'_>, backing: Box<dyn Backing>) -> Result<Self, PlannedError> {
        refuse_sharing(plan)?;
        let instance = plan.instance();
        let no_memory = |refused| PlannedError::NoMemory { height: plan.height(), refused };
        let align = common_alignment(instance).ok_or(PlannedError::Alignments)?;
        let spare = if PROMISED.is_multiple_of(align) { 0 } else { align - 1 };
        let segment = match plan.height() {
            Bytes::ZERO => 0,
            height => height.get().checked_add(spare).ok_or_else(|| no_memory(Refused))?,
        };
        let (ledger, script) = ledger::write_ledger(plan);
        let calls: Box<[_]> = planned_calls(plan, &script).collect();
        let mut planned = Self {
            used: used_before(&calls, &script, instance).into(),
            is_whole: calls.len() == script.len(),
            calls,
            next: ASTRAY,
            ledger,
            backing,
            segment,
            align,
            held: Address::NULL,
            base: 0,
            calls_base: 0,
            peak: 0,
            acquisitions: 0,
            releases: 0,
        };
        planned.acquire_segment().map_err(no_memory)?;
        planned.return_to_plan();
        Ok(planned)
    }

    /// Takes a segment; a plan without bytes needs none.
    fn acquire_segment(&mut self) -> Result<(), Refused> {
        if self.segment > 0 {
            self.held = self.backing.acquire(Bytes::new(self.segment))?;
            self.base = self.held.get().next_multiple_of(self.align);
            self.acquisitions += 1;
            self.peak = self.segment;
            let moved = self.base.wrapping_sub(self.calls_base);
            self.calls.iter_mut().for_each(|call| call.address = call.address.wrapping_add(moved));
            self.calls_base = self.base;
        }
        Ok(())
    }

    /// Returns to the planned calls if this propagation has made no request and nothing is live.
    fn return_to_plan(&mut self) {
        if self.ledger.is_fresh() && (self.base != 0 || self.segment == 0) {
            self.next = 0;
        }
    }

    /// From here on the ledger records what is live.
    fn leave_plan(&mut self) {
        if self.next != ASTRAY {
            self.ledger.follow_calls(self.calls[..self.next].iter().map(|call| call.kind()));
            self.next = ASTRAY;
        }
    }

    #[cold]
    fn alloc_astray(&mut self, size: Bytes) -> Result<Address, AllocError> {
        self.leave_plan();
        if let Err(refused) = self.ledger.check_request(size) {
            self.return_to_plan();
            return Err(refused);
        }
        if self.base == 0 && self.acquire_segment().is_err() {
            return Err(AllocError::OutOfMemory { size, reserved: Bytes::ZERO });
        }
        let offset = self.ledger.serve_request(size);
        Ok(offset.map_or(Address::NULL, |offset| Address::new(self.base + offset)))
    }

    #[cold]
    fn free_astray(&mut self, address: Address) -> Result<(), NotLive> {
        if address == Address::NULL {
            return Ok(());
        }
        let not_live = NotLive { address };
        let offset = address.get().checked_sub(self.base).ok_or(not_live)?;
        self.leave_plan();
        let is_freed = self.ledger.free_offset(offset);
        self.return_to_plan();
        if is_freed { Ok(()) } else { Err(not_live) }
    }
}

impl OnlineAllocator for Planned {
    /// # Errors
    ///
    /// [`AllocError::NotPlanned`] for a request that is not as planned; it does not count, and live blocks stay live.
    #[inline]
    fn alloc(&mut self, size: Bytes, _: Stream) -> Result<Address, AllocError> {
        match self.calls.get(self.next) {
            // The size 0 wraps around to more than any limit, and no size passes the limit of a free, 0.
            Some(call) if size.get().wrapping_sub(1) < call.limit => {
                self.next += 1;
                Ok(Address::new(call.address))
            }
            _ => self.alloc_astray(size),
        }
    }

    #[inline]
    fn free(&mut self, address: Address) -> Result<(), NotLive> {
        match self.calls.get(self.next) {
            Some(call) if call.limit == 0 && call.address == address.get() => {
                self.next += 1;
                Ok(())
            }
            _ => self.free_astray(address),
        }
    }

    fn release_cached(&mut self) {
        self.leave_plan();
        if self.ledger.live == 0 && self.base != 0 {
            self.backing.release(self.held);
            self.base = 0;
            self.releases += 1;
        }
        self.return_to_plan();
    }

    fn end_propagation(&mut self) {
        if self.is_whole && self.next == self.calls.len() {
            self.next = 0;
            return;
        }
        self.leave_plan();
        self.ledger.end_propagation();
        self.return_to_plan();
    }

    fn usage(&self) -> Usage {
        let used = self.used.get(self.next).copied().unwrap_or(self.ledger.used);
        Usage {
            reserved: Bytes::new(if self.base == 0 { 0 } else { self.segment }),
            reserved_peak: Bytes::new(self.peak),
            used: Bytes::new(used),
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

/// The calls of a script with their offsets, up to the first on a buffer of no bytes: its free names no address.
fn planned_calls<'a>(
    plan: &'a VerifiedPlan<'_>,
    script: &'a [(Kind, usize)],
) -> impl Iterator<Item = PlannedCall> + 'a {
    let buffers = plan.instance().buffers();
    script.iter().take_while(|&&(_, buffer)| buffers[buffer].size > Bytes::ZERO).map(|&(kind, buffer)| {
        let limit = if kind == Kind::Alloc { buffers[buffer].size.get() } else { 0 };
        PlannedCall { address: plan.offsets()[buffer].get(), limit }
    })
}

/// Bytes in use before each of the calls, and after the last one.
fn used_before(calls: &[PlannedCall], script: &[(Kind, usize)], instance: &Instance) -> Vec<u64> {
    let mut used = vec![0];
    let mut now = 0;
    used.extend(script[..calls.len()].iter().map(|&(kind, buffer)| {
        let size = instance.buffers()[buffer].size.get();
        now = if kind == Kind::Alloc { now + size } else { now - size };
        now
    }));
    used
}

/// The alignment of every backing's segments, in bytes.
const PROMISED: u64 = 512;

/// The least common multiple of all alignments; `None` if it does not fit 64 bits.
fn common_alignment(instance: &Instance) -> Option<u64> {
    instance.buffers().iter().try_fold(1_u64, |all, buffer| {
        let align = buffer.align.get();
        (all / greatest_common_divisor(all, align)).checked_mul(align)
    })
}

/// Refuses plans whose buffers share memory at one step.
fn refuse_sharing(plan: &VerifiedPlan<'_>) -> Result<(), PlannedError> {
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
