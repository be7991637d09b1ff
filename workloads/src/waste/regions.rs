//! The memory that a framework held at a moment, and what lay in it.

use std::collections::BTreeMap;

use crate::formats::import::Segment;

/// Who may use a segment: a stream, and a private pool or the common one.
type Owner = (u64, (u64, u64));

/// Memory in one piece, and how much of it is taken.
#[derive(Debug)]
struct Region {
    end: u64,
    owner: Owner,
    is_mapped: bool,
    taken: u64,
}

/// The segments of a moment by address; what was mapped piece by piece is one.
#[derive(Debug)]
pub(super) struct Regions(BTreeMap<u64, Region>);

/// Free bytes of a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Free {
    /// In partly used regions of the owner.
    pub(super) partly: u64,
    /// In partly used regions of others.
    pub(super) others: u64,
    /// In the owner's regions that hold nothing.
    pub(super) cached: u64,
    /// In the same of others.
    pub(super) cached_elsewhere: u64,
}

impl Regions {
    pub(super) fn from_segments(step: u64, segments: &[Segment]) -> Self {
        let mut held: Vec<&Segment> =
            segments.iter().filter(|segment| (segment.steps.0..segment.steps.1).contains(&step)).collect();
        held.sort_unstable_by_key(|segment| segment.address);
        let mut regions: BTreeMap<u64, Region> = BTreeMap::new();
        for segment in held {
            let (owner, is_mapped) = (segment_owner(segment), segment.is_mapped);
            let end = segment.address.saturating_add(segment.size);
            let before = regions.last_entry().map(std::collections::btree_map::OccupiedEntry::into_mut);
            // Where a history has holes, segments may overlap: no byte counts twice.
            let start = before.as_ref().map_or(segment.address, |before| segment.address.max(before.end));
            match before {
                Some(before)
                    if is_mapped
                        && before.is_mapped
                        && (before.end, before.owner) == (segment.address, owner) =>
                {
                    before.end = end;
                }
                _ if start < end => {
                    regions.insert(start, Region { end, owner, is_mapped, taken: 0 });
                }
                _ => {}
            }
        }
        Self(regions)
    }

    /// All bytes.
    pub(super) fn total_bytes(&self) -> u64 {
        self.0.iter().map(|(start, region)| region.end - start).fold(0, u64::saturating_add)
    }

    /// Takes bytes at an address; `false` if no region has room for them all there.
    pub(super) fn put_block(&mut self, address: u64, bytes: u64) -> bool {
        let Some((start, region)) = self.0.range_mut(..=address).next_back() else { return false };
        let taken = region.taken.checked_add(bytes).filter(|&taken| taken <= region.end - start);
        let fits = address.checked_add(bytes).is_some_and(|end| end <= region.end);
        match taken.filter(|_| fits) {
            Some(taken) => region.taken = taken,
            None => return false,
        }
        true
    }

    /// Free bytes, seen from one who owns some of them.
    pub(super) fn free_bytes(&self, owner: Option<Owner>) -> Free {
        let mut free = Free::default();
        for (start, region) in &self.0 {
            let sum = match (region.taken, Some(region.owner) == owner) {
                (0, true) => &mut free.cached,
                (0, false) => &mut free.cached_elsewhere,
                (_, true) => &mut free.partly,
                (_, false) => &mut free.others,
            };
            *sum = sum.saturating_add(region.end - start - region.taken);
        }
        free
    }
}

const fn segment_owner(segment: &Segment) -> Owner {
    (segment.stream, segment.pool)
}

/// Who got memory last up to a step.
pub(super) fn last_owner(step: u64, segments: &[Segment]) -> Option<Owner> {
    let before = segments.iter().filter(|segment| segment.steps.0 <= step);
    before.max_by_key(|segment| (segment.steps.0, segment.address)).map(segment_owner)
}
