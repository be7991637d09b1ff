//! Records which blocks of a plan are live once the caller leaves the planned order.

use planlab_dsa::{AllocError, Bytes, Requests, VerifiedPlan};
use rustc_hash::FxHashMap;

use crate::sequence::{Kind, Sequence};

/// The requests made so far in a propagation, and the blocks in use.
#[derive(Default)]
pub(super) struct Ledger {
    /// The requests in their order.
    slots: Box<[Slot]>,
    /// The requests in the order of their planned frees.
    freed: Box<[u32]>,
    /// The number of each offset that the plan uses.
    places: FxHashMap<u64, u32>,
    /// The request last served at each of these offsets.
    occupants: Box<[u32]>,
    /// The next request.
    next: usize,
    /// The first `due` entries of `freed` are known to be free.
    due: usize,
    /// The next entry of `freed`, if all is as planned.
    expected: usize,
    /// The number of the propagation, from 1.
    propagation: u32,
    /// Blocks in use from earlier propagations.
    late: u32,
    /// Blocks in use.
    pub(super) live: u32,
    /// Bytes of the blocks in use.
    pub(super) used: u64,
}

/// A planned request.
#[derive(Clone, Copy, Debug)]
struct Slot {
    offset: u64,
    /// Bytes.
    size: u64,
    /// The number of planned frees before this request.
    frees_before: u32,
    /// Its index in `freed`.
    order: u32,
    /// The number of its offset.
    place: u32,
    /// The propagation whose block is in use; 0 if the slot is free.
    propagation: u32,
}

/// A fresh ledger of a plan, and the calls of a propagation in order, each with its buffer.
pub(super) fn write_ledger(plan: &VerifiedPlan<'_>) -> (Ledger, Vec<(Kind, usize)>) {
    let sequence = Sequence::new(&Requests::new(plan.instance()));
    let script: Vec<_> = sequence.calls().map(|(kind, buffer)| (kind, buffer as usize)).collect();
    let (order, freed) = request_and_free_orders(&script, plan.instance().len());
    let (places, numbers) = number_offsets(plan, &order);
    let ledger = Ledger {
        slots: build_slots(plan, &order, &freed, &numbers),
        freed: freed.into(),
        occupants: vec![0; places.len()].into(),
        places,
        propagation: 1,
        ..Ledger::default()
    };
    (ledger, script)
}

impl Ledger {
    /// Whether nothing is in use and this propagation has made no request.
    pub(super) fn is_fresh(&self) -> bool {
        self.live == 0 && self.next == 0
    }

    /// Records the first calls of a propagation, all of them as planned. The ledger must be fresh.
    pub(super) fn follow_calls(&mut self, calls: impl Iterator<Item = Kind>) {
        debug_assert!(self.is_fresh(), "planned calls come first in a propagation");
        // A free of a late block may have moved both.
        (self.due, self.expected) = (0, 0);
        for kind in calls {
            match kind {
                Kind::Alloc => drop(self.serve_request(Bytes::new(self.slots[self.next].size))),
                Kind::Free => self.vacate_request(self.freed[self.expected] as usize),
            }
        }
    }

    /// Whether the next request may have this size.
    pub(super) fn check_request(&mut self, size: Bytes) -> Result<(), AllocError> {
        let reason = match self.slots.get(self.next).copied() {
            None => "the plan has no more requests",
            Some(slot) if size.get() > slot.size => "it is larger than planned",
            Some(_) if self.late > 0 => "a block of an earlier propagation is in use",
            Some(slot) if !self.is_cleared(slot.frees_before) => {
                "a block that was planned to be free is in use"
            }
            Some(_) => return Ok(()),
        };
        Err(AllocError::NotPlanned { request: self.next as u64, size, reason })
    }

    /// Whether every block is free that the plan frees before a request.
    fn is_cleared(&mut self, frees_before: u32) -> bool {
        while self.due < frees_before as usize {
            if self.slots[self.freed[self.due] as usize].propagation != 0 {
                return false;
            }
            self.due += 1;
        }
        true
    }

    /// Records the next request, which `check` accepted, and returns its offset; `None` for a request of no bytes.
    pub(super) fn serve_request(&mut self, size: Bytes) -> Option<u64> {
        let request = self.next;
        self.next += 1;
        if size == Bytes::ZERO {
            return None;
        }
        let slot = &mut self.slots[request];
        slot.propagation = self.propagation;
        #[expect(clippy::cast_possible_truncation, reason = "an instance holds at most 2^32 - 1 buffers")]
        let occupant = request as u32;
        self.occupants[slot.place as usize] = occupant;
        self.live += 1;
        self.used += slot.size;
        Some(slot.offset)
    }

    /// Frees the block at an offset; `false` if no block is live there.
    pub(super) fn free_offset(&mut self, offset: u64) -> bool {
        let planned = self.freed.get(self.expected).map(|&request| request as usize);
        let is_live_there = |&request: &usize| {
            let slot = &self.slots[request];
            slot.propagation != 0 && slot.offset == offset
        };
        let request = planned.filter(is_live_there).or_else(|| self.occupant(offset).filter(is_live_there));
        request.map(|request| self.vacate_request(request)).is_some()
    }

    /// The request last served at an offset.
    fn occupant(&self, offset: u64) -> Option<usize> {
        self.places.get(&offset).map(|&place| self.occupants[place as usize] as usize)
    }

    fn vacate_request(&mut self, request: usize) {
        let slot = &mut self.slots[request];
        let is_late = slot.propagation != self.propagation;
        self.late -= u32::from(is_late);
        // A block of an earlier propagation may be requested again in this one, so it is not free for good.
        self.due += usize::from(slot.order as usize == self.due && !is_late);
        slot.propagation = 0;
        self.live -= 1;
        self.used -= slot.size;
        self.expected = slot.order as usize + 1;
    }

    /// Ends a propagation: blocks still in use are late.
    pub(super) fn end_propagation(&mut self) {
        // 0 marks a free slot. A number that recurs after 2^32 propagations cannot meet an older block: no request is
        // served while one is in use.
        self.propagation = self.propagation.checked_add(1).unwrap_or(1);
        self.late = self.live;
        (self.next, self.due, self.expected) = (0, 0, 0);
    }
}

/// The buffers in the order of their requests, and the requests in the order of their frees.
fn request_and_free_orders(script: &[(Kind, usize)], buffers: usize) -> (Vec<usize>, Vec<u32>) {
    let (mut order, mut freed) = (Vec::with_capacity(buffers), Vec::with_capacity(buffers));
    let mut number_of = vec![0; buffers];
    for &(kind, buffer) in script {
        if kind == Kind::Alloc {
            number_of[buffer] =
                u32::try_from(order.len()).expect("an instance holds at most 2^32 - 1 buffers");
            order.push(buffer);
        } else {
            freed.push(number_of[buffer]);
        }
    }
    (order, freed)
}

/// A number for each offset in use, and the number of each request's offset.
fn number_offsets(plan: &VerifiedPlan<'_>, order: &[usize]) -> (FxHashMap<u64, u32>, Vec<u32>) {
    let mut places = FxHashMap::default();
    let mut number = |&buffer: &usize| {
        let new = u32::try_from(places.len()).expect("an instance holds at most 2^32 - 1 buffers");
        *places.entry(plan.offsets()[buffer].get()).or_insert(new)
    };
    let numbers = order.iter().map(&mut number).collect();
    (places, numbers)
}

fn build_slots(plan: &VerifiedPlan<'_>, order: &[usize], freed: &[u32], places: &[u32]) -> Box<[Slot]> {
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
