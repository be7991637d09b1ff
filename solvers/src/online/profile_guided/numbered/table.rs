//! A plan as a table: the place of the k-th request of a propagation.

use std::ops::Range;

use planlab_dsa::VerifiedPlan;
use rustc_hash::FxHashMap;

use super::recorder::{Profile, RequestKey};
use crate::online::blocks::UNIT;
use crate::online::profile_guided::Request;

/// The place of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// In bytes from the base of the segment.
    pub(super) offset: u64,
    /// In bytes.
    pub(super) size: u64,
}

impl Slot {
    pub(super) const fn end(self) -> u64 {
        self.offset + self.size
    }
}

pub(super) struct Table {
    /// The number of the plan; no two plans share one.
    pub(super) number: u64,
    pub(super) profile: Profile,
    /// The place of each request that is freed within the propagation.
    slots: Vec<Option<Slot>>,
    /// Requests in the order in which they are freed.
    freed: Vec<usize>,
    /// For each request, the number of frees before it.
    frees_before: Vec<usize>,
    indices: FxHashMap<RequestKey, usize>,
    /// Bytes that the plan needs.
    pub(super) height: u64,
}

impl Table {
    /// The table of plan number `number` for the [instance](Profile::placement_problem) of a profile; `None` if its addresses
    /// exceed 64 bits.
    pub(super) fn new(profile: Profile, plan: &VerifiedPlan<'_>, number: u64) -> Option<Self> {
        let height = plan.height().get().checked_mul(UNIT)?;
        let mut offsets = plan.offsets().iter().map(|offset| offset.get() * UNIT);
        let mut slot = |request: &Request<RequestKey>| {
            request.live_range()?;
            Some(Slot { offset: offsets.next()?, size: request.size })
        };
        let requests = &profile.requests;
        let slots = requests.iter().map(&mut slot).collect();
        let mut freed: Vec<usize> =
            (0..requests.len()).filter(|&index| requests[index].live_range().is_some()).collect();
        freed.sort_unstable_by_key(|&index| requests[index].end);
        let frees_before = |request: &Request<RequestKey>| {
            freed.partition_point(|&index| requests[index].end <= Some(request.start))
        };
        let frees_before = requests.iter().map(frees_before).collect();
        let indices = requests.iter().enumerate().map(|(index, request)| (request.key, index)).collect();
        Some(Self { number, slots, freed, frees_before, indices, height, profile })
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slot(&self, index: usize) -> Option<Slot> {
        self.slots[index]
    }

    /// The request with a key, from `cursor` on.
    pub(super) fn find_request(&self, key: RequestKey, cursor: usize) -> Option<usize> {
        if self.profile.requests.get(cursor).is_some_and(|request| request.key == key) {
            return Some(cursor);
        }
        self.indices.get(&key).copied().filter(|&index| index > cursor)
    }

    /// The requests freed before the last of the given requests, and not before the predecessor of the first.
    pub(super) fn requests_due(&self, requests: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let from = requests.start.checked_sub(1).map_or(0, |before| self.frees_before[before]);
        let to = requests.end.checked_sub(1).map_or(0, |last| self.frees_before[last]);
        self.freed[from..to].iter().copied()
    }
}
