//! Where the memory of a framework goes that a plan would not need.
//!
//! A framework's pool reserved `R` bytes at most, and a plan of the same buffers needs `H`. [`Waste::parts`] splits
//! `R - H` into causes whose bytes add up to it exactly. It looks at one moment: of the steps at which `R` bytes were
//! reserved, the one at which most bytes were live (pools keep what they have, so that this is nearly always the peak of
//! the load, too).
//!
//! ```
//! use planlab_workloads::formats::import::{Framework, Segment};
//! use planlab_workloads::formats::{ReadOptions, read_trace};
//! use planlab_workloads::waste::{Cause, Waste};
//!
//! // A pool of one segment of 100 bytes, in which a buffer of 60 takes 64; the plan needs 60.
//! let trace = read_trace("t.csv", b"id,lower,upper,size\na,0,2,60\n", &ReadOptions::default())?;
//! let mut pool = Framework::new("a pool");
//! pool.placement = vec![Some(1000)];
//! pool.taken = vec![64];
//! pool.segments = vec![Segment { address: 1000, size: 100, steps: (0, 2), stream: 0, is_mapped: false }];
//! let waste = Waste::of(&trace, &pool).expect("it says what it reserved");
//! let parts = waste.parts(60);
//! assert_eq!(parts.iter().find(|part| part.0 == Cause::Rounding), Some(&(Cause::Rounding, 4)));
//! assert_eq!(parts.iter().find(|part| part.0 == Cause::PartlyUsed), Some(&(Cause::PartlyUsed, 36)));
//! assert_eq!(parts.iter().map(|part| part.1).sum::<i128>(), 100 - 60);
//! # Ok::<(), planlab_workloads::FormatError>(())
//! ```

use std::collections::BTreeMap;

use planlab_dsa::BufferId;

use crate::formats::Trace;
use crate::formats::import::{Framework, Segment};

/// Why a framework holds bytes that a plan does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Buffers take whole blocks.
    Rounding,
    /// Free bytes in segments that hold buffers.
    PartlyUsed,
    /// The same in segments of other streams than the one that got a segment last: it may not use them.
    OtherStreams,
    /// Segments without a buffer, kept for later.
    Cached,
    /// Reserved bytes whose use the recording does not show.
    Unknown,
    /// The plan's height against what is live at the moment: 0 for a plan that meets the load there; negative where the
    /// buffers of the moment leave room that the plan needs at another step.
    Order,
}

impl Cause {
    /// A stable name for programs.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Rounding => "rounding",
            Self::PartlyUsed => "partly-used-segments",
            Self::OtherStreams => "other-streams",
            Self::Cached => "cache",
            Self::Unknown => "unknown",
            Self::Order => "order",
        }
    }
}

/// What a framework reserved at a moment, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waste {
    /// The moment: a step as the file has it.
    pub step: u64,
    /// Bytes that were reserved.
    pub reserved: u64,
    /// Bytes of the buffers that were live.
    pub live: u64,
    rounding: i128,
    partly_used: i128,
    other_streams: i128,
    cached: i128,
}

impl Waste {
    /// What a trace and its framework say; `None` where it is not known what was reserved.
    #[must_use]
    pub fn of(trace: &Trace, framework: &Framework) -> Option<Self> {
        if framework.segments.is_empty() {
            return Self::without_segments(trace, framework);
        }
        let (step, reserved, live) = moment(trace, &framework.segments);
        let mut regions = Regions::at(step, &framework.segments);
        let buffers = trace.instance.buffers();
        let mut rounding = 0;
        for index in (0..buffers.len()).filter(|&index| is_live(trace, index, step)) {
            let size = buffers[index].size.get();
            let taken = framework.taken.get(index).copied().unwrap_or(size);
            if let Some(&Some(address)) = framework.placement.get(index)
                && regions.put(address, taken)
            {
                rounding += i128::from(taken) - i128::from(size);
            }
        }
        let stream = last_stream(step, &framework.segments);
        let (partly_used, other_streams, cached) = regions.free(stream);
        Some(Self { step, reserved, live, rounding, partly_used, other_streams, cached })
    }

    /// At the peak of the load: nothing is known of single segments.
    fn without_segments(trace: &Trace, framework: &Framework) -> Option<Self> {
        let reserved = framework.reserved_peak.map(planlab_dsa::Bytes::get).or_else(|| said(trace))?;
        let load = trace.instance.load();
        let active = trace.instance.ids().filter(|&id| trace.instance.buffer(id).is_whole_at(load.step));
        let taken = active.filter_map(|id| {
            let taken = framework.taken.get(id.index())?;
            Some(i128::from(*taken) - i128::from(trace.instance.buffer(id).size.get()))
        });
        let rounding = taken.sum();
        let (step, live) = (original(trace, load.step.get()), load.bytes.get());
        Some(Self { step, reserved, live, rounding, partly_used: 0, other_streams: 0, cached: 0 })
    }

    /// The difference between what was reserved and the height of a plan, by cause.
    #[must_use]
    pub fn parts(&self, height: u64) -> [(Cause, i128); 6] {
        let Self { reserved, live, rounding, partly_used, other_streams, cached, .. } = *self;
        let (reserved, live) = (i128::from(reserved), i128::from(live));
        [
            (Cause::Rounding, rounding),
            (Cause::PartlyUsed, partly_used),
            (Cause::OtherStreams, other_streams),
            (Cause::Cached, cached),
            (Cause::Unknown, reserved - live - rounding - partly_used - other_streams - cached),
            (Cause::Order, live - i128::from(height)),
        ]
    }
}

/// What a trace's metadata say that a framework reserved.
fn said(trace: &Trace) -> Option<u64> {
    trace.labels.meta("torch-reserved-peak-bytes")?.parse().ok()
}

/// The buffers in use at the peak of the load, largest first, and the step as the file has it.
#[must_use]
pub fn peak(trace: &Trace) -> (u64, Vec<BufferId>) {
    let instance = &trace.instance;
    let step = instance.load().step;
    let is_active = |id: &BufferId| {
        let mut pieces = instance.buffer(*id).pieces();
        pieces.any(|piece| piece.steps.contains(step))
    };
    let mut active: Vec<BufferId> = instance.ids().filter(is_active).collect();
    active.sort_by_key(|&id| (std::cmp::Reverse(instance.buffer(id).size), id));
    (original(trace, step.get()), active)
}

/// Bytes that were reserved, and bytes that were live, at a step as the file has it.
#[must_use]
pub fn at(trace: &Trace, segments: &[Segment], step: u64) -> (u64, u64) {
    let held = segments.iter().filter(|segment| (segment.steps.0..segment.steps.1).contains(&step));
    let live = (0..trace.instance.len()).filter(|&index| is_live(trace, index, step));
    (
        held.map(|segment| segment.size).fold(0, u64::saturating_add),
        live.map(|index| trace.instance.buffers()[index].size.get()).fold(0, u64::saturating_add),
    )
}

/// The life of a buffer in the steps of the file.
fn life(trace: &Trace, index: usize) -> (u64, u64) {
    let live = trace.instance.buffers()[index].live;
    let ranked = || (u64::from(live.start().get()), u64::from(live.end().get()));
    trace.labels.buffers[index].original_steps.unwrap_or_else(ranked)
}

fn is_live(trace: &Trace, index: usize, step: u64) -> bool {
    let (start, end) = life(trace, index);
    (start..end).contains(&step)
}

/// A step in which a buffer begins, as the file has it.
fn original(trace: &Trace, step: u32) -> u64 {
    let mut all = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let begins = all.find(|(buffer, _)| buffer.live.start().get() == step);
    begins.and_then(|(_, label)| label.original_steps).map_or(u64::from(step), |(start, _)| start)
}

/// The step with most live bytes of those with most reserved ones, and both.
fn moment(trace: &Trace, segments: &[Segment]) -> (u64, u64, u64) {
    let mut changes: Vec<(u64, i128, i128)> = Vec::new();
    for segment in segments {
        let size = i128::from(segment.size);
        changes.extend([(segment.steps.0, size, 0), (segment.steps.1, -size, 0)]);
    }
    for (index, buffer) in trace.instance.buffers().iter().enumerate() {
        let (start, end) = life(trace, index);
        let size = i128::from(buffer.size.get());
        changes.extend([(start, 0, size), (end, 0, -size)]);
    }
    changes.sort_unstable();
    let (mut reserved, mut live) = (0, 0);
    let mut best = (0, 0, 0);
    for group in changes.chunk_by(|a, b| a.0 == b.0) {
        for (_, held, used) in group {
            reserved += held;
            live += used;
        }
        if (reserved, live) > (best.1, best.2) {
            best = (group[0].0, reserved, live);
        }
    }
    let bytes = |number: i128| u64::try_from(number).unwrap_or(u64::MAX);
    (best.0, bytes(best.1), bytes(best.2))
}

/// The stream that got memory last before a step.
fn last_stream(step: u64, segments: &[Segment]) -> Option<u64> {
    let before = segments.iter().filter(|segment| segment.steps.0 <= step);
    before.max_by_key(|segment| (segment.steps.0, segment.address)).map(|segment| segment.stream)
}

/// Memory in one piece, and how much of it is taken.
#[derive(Debug)]
struct Region {
    end: u64,
    stream: u64,
    is_mapped: bool,
    taken: u64,
}

/// The segments of a moment by address; what was mapped piece by piece is one.
#[derive(Debug)]
struct Regions(BTreeMap<u64, Region>);

impl Regions {
    fn at(step: u64, segments: &[Segment]) -> Self {
        let mut held: Vec<&Segment> =
            segments.iter().filter(|segment| (segment.steps.0..segment.steps.1).contains(&step)).collect();
        held.sort_unstable_by_key(|segment| segment.address);
        let mut regions: BTreeMap<u64, Region> = BTreeMap::new();
        for segment in held {
            let (stream, is_mapped) = (segment.stream, segment.is_mapped);
            let end = segment.address.saturating_add(segment.size);
            let before = regions.last_entry().map(std::collections::btree_map::OccupiedEntry::into_mut);
            match before {
                Some(before)
                    if is_mapped
                        && before.is_mapped
                        && (before.end, before.stream) == (segment.address, stream) =>
                {
                    before.end = end;
                }
                _ => {
                    regions.insert(segment.address, Region { end, stream, is_mapped, taken: 0 });
                }
            }
        }
        Self(regions)
    }

    /// Takes bytes at an address; `false` if no region has them all.
    fn put(&mut self, address: u64, bytes: u64) -> bool {
        let Some((_, region)) = self.0.range_mut(..=address).next_back() else { return false };
        let fits = address.checked_add(bytes).is_some_and(|end| end <= region.end);
        if fits {
            region.taken = region.taken.saturating_add(bytes);
        }
        fits
    }

    /// Free bytes in partly used regions of the stream, in those of other streams, and in regions that hold nothing.
    fn free(&self, stream: Option<u64>) -> (i128, i128, i128) {
        let (mut partly, mut others, mut cached) = (0, 0, 0);
        for (start, region) in &self.0 {
            let free = i128::from(region.end - start) - i128::from(region.taken);
            let sum = match region.taken {
                0 => &mut cached,
                _ if Some(region.stream) == stream => &mut partly,
                _ => &mut others,
            };
            *sum += free;
        }
        (partly, others, cached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{ReadOptions, read_trace};

    fn segment(address: u64, size: u64, steps: (u64, u64), stream: u64) -> Segment {
        Segment { address, size, steps, stream, is_mapped: false }
    }

    fn parts_of(waste: &Waste, height: u64) -> Vec<i128> {
        let parts = waste.parts(height);
        let sum: i128 = parts.iter().map(|part| part.1).sum();
        assert_eq!(sum, i128::from(waste.reserved) - i128::from(height));
        parts.iter().map(|part| part.1).collect()
    }

    fn pool(segments: Vec<Segment>, placement: &[u64], taken: &[u64]) -> Framework {
        Framework {
            placement: placement.iter().copied().map(Some).collect(),
            taken: taken.to_vec(),
            segments,
            ..Framework::new("a pool")
        }
    }

    #[test]
    fn every_byte_has_one_cause() {
        let text = "id,lower,upper,size\na,1,9,100\nb,2,5,30\nc,3,9,40\nd,1,3,60\n";
        let trace = read_trace("t.csv", text.as_bytes(), &ReadOptions::default()).expect("valid");
        let segments = vec![
            segment(0, 200, (0, 9), 0),
            segment(1000, 64, (2, 9), 0),
            segment(2000, 50, (1, 9), 7),
            segment(3000, 500, (2, 9), 0),
        ];
        let pool = pool(segments, &[0, 1000, 2000, 128], &[128, 32, 48, 64]);
        let waste = Waste::of(&trace, &pool).expect("segments");
        // From step 2 on 814 bytes are reserved; at step 2 a, b and d are live, at step 3 a, b and c.
        assert_eq!((waste.step, waste.reserved, waste.live), (2, 814, 190));
        assert_eq!(parts_of(&waste, 190), [34, 8 + 32, 0, 550, 0, 0]);
        assert_eq!(parts_of(&waste, 200)[5], -10);
    }

    #[test]
    fn what_another_stream_leaves_free_is_its_own() {
        let text = "id,lower,upper,size\na,1,9,100\nb,2,9,30\n";
        let trace = read_trace("t.csv", text.as_bytes(), &ReadOptions::default()).expect("valid");
        let segments = vec![segment(0, 200, (0, 9), 3), segment(1000, 64, (2, 9), 0)];
        let waste = Waste::of(&trace, &pool(segments, &[0, 1000], &[100, 30])).expect("segments");
        assert_eq!(parts_of(&waste, 130), [0, 34, 100, 0, 0, 0]);
    }

    #[test]
    fn a_buffer_may_span_what_was_mapped_in_turn() {
        let text = "id,lower,upper,size\na,1,9,100\n";
        let trace = read_trace("t.csv", text.as_bytes(), &ReadOptions::default()).expect("valid");
        let mapped = |address, step| Segment { is_mapped: true, ..segment(address, 64, (step, 9), 0) };
        let waste =
            Waste::of(&trace, &pool(vec![mapped(0, 0), mapped(64, 1)], &[0], &[100])).expect("segments");
        assert_eq!(parts_of(&waste, 100), [0, 28, 0, 0, 0, 0]);
        let whole = vec![segment(0, 64, (0, 9), 0), segment(64, 64, (1, 9), 0)];
        let waste = Waste::of(&trace, &pool(whole, &[0], &[100])).expect("segments");
        assert_eq!(parts_of(&waste, 100), [0, 0, 0, 128, -100, 0]);
    }

    #[test]
    fn without_segments_the_rest_is_unknown() {
        let text = "# alignment: 8\n# torch-reserved-peak-bytes: 100\nid,lower,upper,size\na,1,9,31\n";
        let trace = read_trace("t.csv", text.as_bytes(), &ReadOptions::default()).expect("valid");
        let waste = Waste::of(&trace, &Framework::default()).expect("metadata");
        assert_eq!(parts_of(&waste, 32), [0, 0, 0, 0, 68, 0]);
        let (step, buffers) = peak(&trace);
        assert_eq!((step, buffers.len()), (1, 1));
        assert_eq!(at(&trace, &[segment(0, 64, (0, 2), 0)], 1), (64, 32));
        let plain = read_trace("t.csv", b"id,lower,upper,size\na,1,9,31\n", &ReadOptions::default());
        assert_eq!(Waste::of(&plain.expect("valid"), &Framework::default()), None);
    }
}
