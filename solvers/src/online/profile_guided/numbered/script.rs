//! The calls of a propagation that follows its plan: only the number of the next call changes.

use planlab_dsa::Address;
use rustc_hash::FxHashMap;

use super::table::Table;

/// A planned call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The address of the block that is handed out or freed.
    pub(super) address: u64,
    /// The largest size that the request may have; 0 unless it is a request that a plan serves.
    pub(super) limit: u64,
    /// The operation that makes the request.
    pub(super) operation: u64,
    /// The size in bytes of the request when it was last made.
    pub(super) asked: u64,
    pub(super) kind: CallKind,
}

/// What a call does; the number is that of the request in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// The plan serves it.
    Planned(usize),
    /// The pool serves it, since it outlives the propagation.
    Outliving(usize),
    /// Frees its block.
    Free(usize),
}

/// What the plan has served before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) requests: u64,
    /// Bytes in use.
    pub(super) used: u64,
}

/// The position of no call: off the script.
const ASTRAY: usize = usize::MAX;

/// The calls of a table whose plan lies in a segment, and the number of calls made so far.
///
/// After the caller leaves the script, there is no next call; the position alone is enough to know.
pub(super) struct Script {
    calls: Box<[Call]>,
    /// The totals before each call, and after the last.
    served: Box<[Served]>,
    /// Whether the calls are those of the whole propagation.
    is_whole: bool,
    /// Start and end addresses of the segment.
    segment: (u64, u64),
    /// The kind of propagation, and the number of the plan.
    of: (u64, u64),
    next: usize,
    /// Requests that outlive the propagation: the call and the block.
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
            outliving: Vec::new(),
        }
    }
}

impl Script {
    /// The script for a table in a segment; `of` is the kind of propagation and the number of the plan.
    pub(super) fn new(table: &Table, of: (u64, u64), segment: (u64, u64)) -> Self {
        let (calls, is_whole) = script_calls(table, segment.0);
        Self { served: running_totals(&calls, table), calls, is_whole, segment, of, ..Self::default() }
    }

    /// Whether it is the script of this plan in this segment.
    pub(super) fn is_of(&self, of: (u64, u64), base: u64) -> bool {
        self.of == of && self.segment.0 == base
    }

    pub(super) fn kind(&self) -> u64 {
        self.of.0
    }

    pub(super) fn rewind_to_first(&mut self) {
        self.outliving.clear();
        self.next = 0;
    }

    /// The address for a request if it is the planned call and the plan serves it. The call then counts as made.
    #[inline]
    pub(super) fn serve_alloc(&mut self, size: u64, operation: u64) -> Option<Address> {
        let call = self.calls.get_mut(self.next)?;
        // A request for 0 bytes wraps around to more than any limit.
        if size.wrapping_sub(1) >= call.limit || call.operation != operation {
            return None;
        }
        call.asked = size;
        self.next += 1;
        Some(Address::new(call.address))
    }

    /// Whether the free of a block, not of [`Address::NULL`], is the planned call. It then counts as made.
    #[inline]
    pub(super) fn serve_free(&mut self, address: Address) -> bool {
        // Apart from requests that a plan serves, calls are frees or have no address.
        let is_planned =
            self.calls.get(self.next).is_some_and(|call| call.limit == 0 && call.address == address.get());
        self.next += usize::from(is_planned);
        is_planned
    }

    /// Whether the next call is a request of an operation that outlives the propagation.
    pub(super) fn is_outliving(&self, operation: u64) -> bool {
        let call = self.calls.get(self.next).filter(|call| call.operation == operation);
        call.is_some_and(|call| matches!(call.kind, CallKind::Outliving(_)))
    }

    /// Records the block handed out for the next call, which outlives the propagation.
    pub(super) fn record_outliving(&mut self, address: Address, size: u64) {
        self.calls[self.next].asked = size;
        self.outliving.push((self.next, address));
        self.next += 1;
    }

    /// Whether a block does not belong to this propagation.
    pub(super) fn is_foreign(&self, address: Address) -> bool {
        let (base, end) = self.segment;
        !(base..end).contains(&address.get()) && self.outliving.iter().all(|&(_, block)| block != address)
    }

    /// The number of calls made, as long as all followed the plan.
    pub(super) fn position(&self) -> Option<usize> {
        (self.next != ASTRAY).then_some(self.next)
    }

    /// Whether exactly the calls of the propagation were made.
    pub(super) fn is_over(&self) -> bool {
        self.is_whole && self.position() == Some(self.calls.len())
    }

    /// What the plan has served in this propagation.
    pub(super) fn served_so_far(&self) -> Served {
        self.position().map_or(Served::default(), |position| self.served[position])
    }

    /// The calls that were made, each with its address; leaves the script.
    pub(super) fn leave_script(&mut self) -> Vec<(Call, Address)> {
        let Some(position) = self.position() else { return Vec::new() };
        self.next = ASTRAY;
        let outliving: FxHashMap<usize, Address> = self.outliving.drain(..).collect();
        let address = |at: usize| outliving.get(&at).copied().unwrap_or(Address::new(self.calls[at].address));
        (0..position).map(|at| (self.calls[at], address(at))).collect()
    }
}

/// The calls of a table in their order, up to the first request whose recorded number is not the next one of its
/// operation. Also returns whether they are all calls.
fn script_calls(table: &Table, base: u64) -> (Box<[Call]>, bool) {
    let requests = &table.profile.requests;
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

fn running_totals(calls: &[Call], table: &Table) -> Box<[Served]> {
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
