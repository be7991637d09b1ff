//! The calls of a propagation that goes as planned: all that changes is the number of the next one.

use planlab_dsa::Address;
use rustc_hash::FxHashMap;

use super::table::Table;

/// A call as planned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Of the block that is handed out or freed.
    pub(super) address: u64,
    /// The most bytes that the request may ask for; 0 for what is not a request that a plan serves.
    pub(super) limit: u64,
    /// The operation that makes the request.
    pub(super) operation: u64,
    /// Bytes that were asked for, when the request was last made.
    pub(super) asked: u64,
    pub(super) kind: CallKind,
}

/// What a call does with the request of so much in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// It is served by the plan.
    Planned(usize),
    /// It outlives the propagation and is served by the pool.
    Outliving(usize),
    /// Its block is freed.
    Free(usize),
}

/// What plans served before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    /// Requests.
    pub(super) requests: u64,
    /// Bytes in use.
    pub(super) used: u64,
}

/// Where no call of a script is.
const ASTRAY: usize = usize::MAX;

/// The calls of a table whose plan lies in a segment, and how many of them were made.
///
/// While an interruption lasts, and when the caller leaves the script, no call comes next: whoever asks finds none,
/// without looking at anything else.
pub(super) struct Script {
    calls: Box<[Call]>,
    /// What was served before each call, and after the last.
    served: Box<[Served]>,
    /// Whether the calls are all of the propagation.
    is_whole: bool,
    /// First address and end of the segment.
    segment: (u64, u64),
    /// The kind of propagation, and the number of the plan.
    of: (u64, u64),
    next: usize,
    /// The call that comes after the interruption.
    held: Option<usize>,
    /// The call and the block of requests that outlive the propagation.
    outliving: Vec<(usize, Address)>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            calls: Box::default(),
            served: Box::default(),
            is_whole: false,
            segment: (0, 0),
            of: (0, 0),
            next: ASTRAY,
            held: None,
            outliving: Vec::new(),
        }
    }
}

impl Script {
    /// The calls of a table, the plan with a number of a kind of propagations, in a segment.
    pub(super) fn new(table: &Table, of: (u64, u64), segment: (u64, u64)) -> Self {
        let (calls, is_whole) = calls(table, segment.0);
        Self { served: served(&calls, table), calls, is_whole, segment, of, ..Self::default() }
    }

    /// Whether it is the script of this plan in this segment.
    pub(super) fn is_of(&self, of: (u64, u64), base: u64) -> bool {
        self.of == of && self.segment.0 == base
    }

    /// The kind of propagation.
    pub(super) fn kind(&self) -> u64 {
        self.of.0
    }

    /// The first call comes next, or after the interruption.
    pub(super) fn begin(&mut self, is_interrupted: bool) {
        self.outliving.clear();
        (self.next, self.held) = if is_interrupted { (ASTRAY, Some(0)) } else { (0, None) };
    }

    /// No call comes next, until [`resume`](Self::resume).
    pub(super) fn interrupt(&mut self) {
        if self.next != ASTRAY {
            self.held = Some(self.next);
            self.next = ASTRAY;
        }
    }

    pub(super) fn resume(&mut self) {
        self.next = self.held.take().unwrap_or(self.next);
    }

    /// The address for a request, if it is the planned call and the plan serves it; that call was then made.
    #[inline]
    pub(super) fn alloc(&mut self, size: u64, operation: u64) -> Option<Address> {
        let call = self.calls.get_mut(self.next)?;
        // A request for nothing wraps around to more than any limit.
        if size.wrapping_sub(1) >= call.limit || call.operation != operation {
            return None;
        }
        call.asked = size;
        self.next += 1;
        Some(Address::new(call.address))
    }

    /// Whether the free of a block, not of [`Address::NULL`], is the planned call; it was then made.
    #[inline]
    pub(super) fn free(&mut self, address: Address) -> bool {
        // What is not a request that a plan serves is a free, or has no address.
        let is_planned =
            self.calls.get(self.next).is_some_and(|call| call.limit == 0 && call.address == address.get());
        self.next += usize::from(is_planned);
        is_planned
    }

    /// The same as [`free`](Self::free), while an interruption lasts.
    pub(super) fn free_held(&mut self, address: Address) -> bool {
        let Some(at) = self.held else { return false };
        let is_planned =
            self.calls.get(at).is_some_and(|call| call.limit == 0 && call.address == address.get());
        self.held = Some(at + usize::from(is_planned));
        is_planned
    }

    /// Whether the next call is a request of an operation that outlives the propagation.
    pub(super) fn is_outliving(&self, operation: u64) -> bool {
        let call = self.calls.get(self.next).filter(|call| call.operation == operation);
        call.is_some_and(|call| matches!(call.kind, CallKind::Outliving(_)))
    }

    /// A block was handed out for the next call, which outlives the propagation.
    pub(super) fn outlives(&mut self, address: Address, size: u64) {
        self.calls[self.next].asked = size;
        self.outliving.push((self.next, address));
        self.next += 1;
    }

    /// Whether a block is none of this propagation.
    pub(super) fn is_foreign(&self, address: Address) -> bool {
        let (base, end) = self.segment;
        !(base..end).contains(&address.get()) && self.outliving.iter().all(|&(_, block)| block != address)
    }

    /// How many calls were made, as long as all are as planned.
    pub(super) fn position(&self) -> Option<usize> {
        if self.next == ASTRAY { self.held } else { Some(self.next) }
    }

    /// Whether all calls of the propagation were made, and no others.
    pub(super) fn is_over(&self) -> bool {
        self.is_whole && self.position() == Some(self.calls.len())
    }

    /// What plans served in this propagation.
    pub(super) fn served(&self) -> Served {
        self.position().map_or(Served::default(), |position| self.served[position])
    }

    /// The calls that were made, each with its address; from here on none comes.
    pub(super) fn leave(&mut self) -> Vec<(Call, Address)> {
        let Some(position) = self.position() else { return Vec::new() };
        (self.next, self.held) = (ASTRAY, None);
        let outliving: FxHashMap<usize, Address> = self.outliving.drain(..).collect();
        let address = |at: usize| outliving.get(&at).copied().unwrap_or(Address::new(self.calls[at].address));
        (0..position).map(|at| (self.calls[at], address(at))).collect()
    }
}

/// The calls of a table in their order, up to one that the recorded numbers do not tell; whether they are all.
fn calls(table: &Table, base: u64) -> (Box<[Call]>, bool) {
    let requests = &table.profile().requests;
    let mut steps: Vec<(u32, CallKind)> = Vec::with_capacity(2 * requests.len());
    for (index, request) in requests.iter().enumerate() {
        let is_planned = table.slot(index).is_some();
        let kind = if is_planned { CallKind::Planned(index) } else { CallKind::Outliving(index) };
        steps.push((request.start, kind));
        steps.extend(request.end.map(|end| (end, CallKind::Free(index))));
    }
    steps.sort_unstable_by_key(|&(step, _)| step);
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    let mut is_told = |kind: CallKind| {
        let (CallKind::Planned(index) | CallKind::Outliving(index)) = kind else { return true };
        let key = requests[index].key;
        let number = numbers.entry(key.operation).or_default();
        *number += 1;
        key.number + 1 == *number
    };
    let call = |kind| {
        let (index, limit) = match kind {
            CallKind::Planned(index) => (index, table.slot(index).map_or(0, |slot| slot.size)),
            CallKind::Outliving(index) | CallKind::Free(index) => (index, 0),
        };
        let address = table.slot(index).map_or(Address::NULL.get(), |slot| base + slot.offset);
        Call { address, limit, operation: requests[index].key.operation, asked: limit, kind }
    };
    let calls: Box<[Call]> =
        steps.iter().map(|&(_, kind)| kind).take_while(|&kind| is_told(kind)).map(call).collect();
    let is_whole = calls.len() == steps.len();
    (calls, is_whole)
}

fn served(calls: &[Call], table: &Table) -> Box<[Served]> {
    let mut now = Served::default();
    let mut all = vec![now];
    all.extend(calls.iter().map(|call| {
        match call.kind {
            CallKind::Planned(_) => {
                now.requests += 1;
                now.used += call.limit;
            }
            CallKind::Free(index) => now.used -= table.slot(index).map_or(0, |slot| slot.size),
            CallKind::Outliving(_) => {}
        }
        now
    }));
    all.into()
}
