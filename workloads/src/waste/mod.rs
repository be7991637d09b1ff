//! Where the memory of a framework goes that a plan would not need.
//!
//! A framework's pool reserved `R` bytes at most, and a plan of the same buffers needs `H`. [`Waste::parts_at`] splits
//! `R - H` into causes whose bytes add up to it exactly. It looks at one moment: of the steps at which `R` bytes were
//! reserved, the one at which most bytes were live (pools keep what they have, so that this is nearly always the peak of
//! the load, too). If a plan needs more than is live at that moment, because its own peak is at another step, as many bytes
//! that are free at the moment are not wasted: the cache is charged with them first.
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
//! let steps = (0, 2);
//! pool.segments = vec![Segment { address: 1000, size: 100, steps, stream: 0, pool: (0, 0), is_mapped: false }];
//! let waste = Waste::from_framework(&trace, &pool).expect("it says what it reserved");
//! let parts = waste.parts_at(60);
//! assert_eq!(parts.iter().find(|part| part.0 == Cause::Rounding), Some(&(Cause::Rounding, 4)));
//! assert_eq!(parts.iter().find(|part| part.0 == Cause::PartlyUsed), Some(&(Cause::PartlyUsed, 36)));
//! assert_eq!(parts.iter().map(|part| part.1).sum::<i128>(), 100 - 60);
//! # Ok::<(), planlab_workloads::FormatError>(())
//! ```

mod moments;
mod regions;

use planlab_dsa::BufferId;

use self::moments::{is_live, original_step, reserved_moment};
use self::regions::{Free, Regions, last_owner};
use crate::formats::Trace;
use crate::formats::import::Framework;
pub use moments::{bytes_at, peak_buffers, reserved_at};

planlab_dsa::named_enum! {
    /// Why a framework holds bytes that a plan does not need. The first seven are counted at the moment.
    pub enum Cause {
        /// Requests are rounded up.
        Rounding = "rounding",
        /// Free blocks that were given out whole, though the request was smaller.
        Unsplit = "unsplit-blocks",
        /// Free bytes in segments that hold buffers.
        PartlyUsed = "partly-used-segments",
        /// The same in segments of other streams and pools than the one that got a segment last: it may not use them.
        OtherStreams = "other-streams",
        /// Segments without a buffer, kept for later.
        Cached = "cache",
        /// The same of other streams and pools.
        CachedElsewhere = "cache-of-other-streams",
        /// Reserved bytes whose use the recording does not show.
        Unknown = "unknown",
        /// Bytes that are live at the moment, and for which the plan needs no room of their own: outputs take the place
        /// of their inputs.
        InPlace = "in-place",
        /// Below 0 where the plan is higher than what was reserved, and then alone.
        PlanAbove = "plan-above",
    }
}

/// Those whose bytes a plan uses first for what is live at another step.
const CHARGED: [Cause; 7] = [
    Cause::Cached,
    Cause::CachedElsewhere,
    Cause::PartlyUsed,
    Cause::OtherStreams,
    Cause::Unknown,
    Cause::Unsplit,
    Cause::Rounding,
];

/// What a framework reserved at a moment, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waste {
    /// The moment: a step as the file has it.
    pub step: u64,
    /// Bytes that were reserved.
    pub reserved: u64,
    /// Bytes of the buffers that were live in them.
    pub live: u64,
    /// Bytes of live buffers that lie in nothing that was reserved, as far as the recording shows.
    pub outside: u64,
    /// What alignment adds to the live bytes in a plan.
    padding: u64,
    /// Bytes by cause, in the order of [`Cause::ALL`].
    counted: [u64; 7],
}

impl Waste {
    /// What a trace and its framework say; `None` if it is not known what was reserved.
    #[must_use]
    pub fn from_framework(trace: &Trace, framework: &Framework) -> Option<Self> {
        if framework.segments.is_empty() {
            return Self::without_segments(trace, framework);
        }
        let step = reserved_moment(trace, &framework.segments);
        let mut regions = Regions::from_segments(step, &framework.segments);
        let buffers = trace.instance.buffers();
        let (mut live, mut outside, mut padding, mut rounding, mut tails) =
            (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
        for index in (0..buffers.len()).filter(|&index| is_live(trace, index, step)) {
            let size = buffers[index].size.get();
            let taken = framework.taken.get(index).map_or(size, |&taken| taken.max(size));
            let place = framework.placement.get(index).copied().flatten();
            if place.is_some_and(|address| regions.put_block(address, taken)) {
                let tail = framework.tails.get(index).map_or(0, |&tail| tail.min(taken - size));
                live += size;
                tails += tail;
                rounding += taken - size - tail;
                padding = padding.saturating_add(padded_size(trace, index) - size);
            } else {
                outside = outside.saturating_add(size);
            }
        }
        let free = regions.free_bytes(last_owner(step, &framework.segments));
        let Free { partly, others, cached, cached_elsewhere } = free;
        let counted = [rounding, tails, partly, others, cached, cached_elsewhere, 0];
        Some(Self { step, reserved: regions.total_bytes(), live, outside, padding, counted })
    }

    /// At the peak of the load: nothing is known of single segments, but perhaps where the buffers lie.
    fn without_segments(trace: &Trace, framework: &Framework) -> Option<Self> {
        let written = || trace.labels.meta_value("torch-reserved-peak-bytes")?.parse::<u64>().ok();
        let reserved = framework.reserved_peak.map(planlab_dsa::Bytes::get).or_else(written)?;
        // An output that may take its input's place may have done so in the framework, too.
        let load = trace.instance.load();
        let live = load.bytes.get().min(reserved);
        let (mut rounding, mut padding) = (0_u64, 0_u64);
        let is_active = |&id: &BufferId| {
            trace.instance.buffer(id).is_whole_at(load.step) && trace.instance.counts_at(id, load.step)
        };
        let active = trace.instance.ids().filter(is_active);
        for index in active.map(BufferId::index) {
            let size = trace.instance.buffers()[index].size.get();
            let taken = framework.taken.get(index).map_or(0, |taken| taken.saturating_sub(size));
            rounding = rounding.saturating_add(taken).min(reserved - live);
            padding = padding.saturating_add(padded_size(trace, index) - size);
        }
        let rest = reserved - live - rounding;
        let (partly, unknown) = if framework.placement.is_empty() { (0, rest) } else { (rest, 0) };
        let step = original_step(trace, load.step.get());
        let counted = [rounding, 0, partly, 0, 0, 0, unknown];
        Some(Self { step, reserved, live, outside: 0, padding, counted })
    }

    /// The difference between what was reserved and the height of a plan, by cause. No part is below 0, but for that of
    /// [`Cause::PlanAbove`].
    #[must_use]
    pub fn parts_at(&self, height: u64) -> [(Cause, i128); 9] {
        let (counted, above) = self.charge_parts(height);
        let bytes = |cause: Cause| match cause {
            Cause::InPlace => i128::from(self.live.saturating_sub(height)),
            Cause::PlanAbove => -i128::from(above),
            _ => i128::from(counted[cause as usize]),
        };
        Cause::ALL.map(|cause| (cause, bytes(cause)))
    }

    /// Bytes that are free at the moment, and that a plan of such a height uses for what is live at another step.
    #[must_use]
    pub fn needed_elsewhere(&self, height: u64) -> u64 {
        let padding = self.padding.min(self.counted[0]);
        let more = height.saturating_sub(self.live).saturating_sub(padding);
        more - self.charge_parts(height).1
    }

    /// What is counted less what a plan needs beyond the live bytes, and what that leaves uncovered.
    fn charge_parts(&self, height: u64) -> ([u64; 7], u64) {
        let mut counted = self.counted;
        let mut needed = height.saturating_sub(self.live);
        let mut charge = |cause: Cause, most: u64| {
            let bytes = &mut counted[cause as usize];
            let paid = needed.min(most).min(*bytes);
            *bytes -= paid;
            needed -= paid;
        };
        // A plan rounds, too.
        charge(Cause::Rounding, self.padding);
        CHARGED.into_iter().for_each(|cause| charge(cause, u64::MAX));
        (counted, needed)
    }
}

/// The bytes of a buffer up to where the next may begin.
fn padded_size(trace: &Trace, index: usize) -> u64 {
    let buffer = &trace.instance.buffers()[index];
    buffer.align.round_up(buffer.size.get()).unwrap_or(buffer.size.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::import::Segment;
    use crate::formats::testing::trace;

    fn segment(address: u64, size: u64, steps: (u64, u64), stream: u64) -> Segment {
        Segment { address, size, steps, stream, pool: (0, 0), is_mapped: false }
    }

    /// The waste of a pool that has segments, or of one that says what it reserved.
    fn waste_of(trace: &Trace, pool: &Framework) -> Waste {
        Waste::from_framework(trace, pool).expect("known")
    }

    fn parts_of(waste: &Waste, height: u64) -> Vec<i128> {
        let parts = waste.parts_at(height);
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
        let trace = trace("id,lower,upper,size\na,1,9,100\nb,2,5,30\nc,3,9,40\nd,1,3,60\n");
        let segments = vec![
            segment(0, 200, (0, 9), 0),
            segment(1000, 64, (2, 9), 0),
            segment(2000, 50, (1, 9), 7),
            segment(3000, 500, (2, 9), 0),
        ];
        let mut pool = pool(segments, &[0, 1000, 2000, 128], &[128, 32, 48, 64]);
        let waste = waste_of(&trace, &pool);
        // From step 2 on 814 bytes are reserved; at step 2 a, b and d are live, at step 3 a, b and c.
        assert_eq!((waste.step, waste.reserved, waste.live), (2, 814, 190));
        assert_eq!(parts_of(&waste, 190), [34, 0, 8 + 32, 0, 500, 50, 0, 0, 0]);
        // Of a's 28 bytes 20 are what its request is rounded to, and 8 the rest of a block.
        pool.tails = vec![8, 0, 0, 0];
        let waste = waste_of(&trace, &pool);
        assert_eq!(parts_of(&waste, 190), [26, 8, 8 + 32, 0, 500, 50, 0, 0, 0]);
    }

    #[test]
    fn what_a_plan_needs_at_another_step_is_not_wasted() {
        let trace = trace("id,lower,upper,size\na,0,2,150\nb,3,9,40\n");
        let segments = vec![segment(0, 160, (0, 9), 0), segment(1000, 50, (3, 9), 0)];
        let waste = waste_of(&trace, &pool(segments, &[0, 1000], &[160, 48]));
        assert_eq!((waste.step, waste.reserved, waste.live), (3, 210, 40));
        assert_eq!(parts_of(&waste, 40), [8, 0, 2, 0, 160, 0, 0, 0, 0]);
        assert_eq!(
            (parts_of(&waste, 150), waste.needed_elsewhere(150)),
            (vec![8, 0, 2, 0, 50, 0, 0, 0, 0], 110)
        );
        assert_eq!(parts_of(&waste, 209), [1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((parts_of(&waste, 211)[8], waste.needed_elsewhere(211)), (-1, 170));
        assert_eq!(parts_of(&waste, 30)[7], 10);
    }

    #[test]
    fn a_plan_rounds_too() {
        let trace = trace("id,lower,upper,size,alignment\na,0,2,100,64\nb,0,2,10,64\n");
        let waste = waste_of(&trace, &pool(vec![segment(0, 512, (0, 2), 0)], &[0, 128], &[128, 64]));
        // At 0 and 128: the plan pads the first and not the last.
        assert_eq!(parts_of(&waste, 138), [54, 0, 320, 0, 0, 0, 0, 0, 0]);
        assert_eq!(waste.needed_elsewhere(138), 0);
    }

    #[test]
    fn what_others_hold_is_theirs() {
        let trace = trace("id,lower,upper,size\na,1,9,100\nb,2,9,30\n");
        let mut segments =
            vec![segment(0, 200, (0, 9), 3), segment(300, 7, (0, 9), 3), segment(1000, 64, (2, 9), 0)];
        let waste = waste_of(&trace, &pool(segments.clone(), &[0, 1000], &[100, 30]));
        assert_eq!(parts_of(&waste, 130), [0, 0, 34, 100, 0, 7, 0, 0, 0]);
        segments.iter_mut().for_each(|segment| segment.stream = 0);
        segments[2].pool = (1, 0);
        let waste = waste_of(&trace, &pool(segments, &[0, 1000], &[100, 30]));
        assert_eq!(parts_of(&waste, 130), [0, 0, 34, 100, 0, 7, 0, 0, 0]);
    }

    #[test]
    fn a_buffer_may_span_what_was_mapped_in_turn() {
        let trace = trace("id,lower,upper,size\na,1,9,100\n");
        let mapped = |address, step| Segment { is_mapped: true, ..segment(address, 64, (step, 9), 0) };
        let waste = waste_of(&trace, &pool(vec![mapped(0, 0), mapped(64, 1)], &[0], &[100]));
        assert_eq!(parts_of(&waste, 100), [0, 0, 28, 0, 0, 0, 0, 0, 0]);
        let whole = vec![segment(0, 64, (0, 9), 0), segment(64, 64, (1, 9), 0)];
        let waste = waste_of(&trace, &pool(whole, &[0], &[100]));
        assert_eq!((waste.live, waste.outside), (0, 100));
        assert_eq!(parts_of(&waste, 100), [0, 0, 0, 0, 28, 0, 0, 0, 0]);
    }

    #[test]
    fn no_byte_of_overlapping_segments_counts_twice() {
        let trace = trace("id,lower,upper,size\na,1,9,100\nb,1,9,100\n");
        let segments =
            vec![segment(0, 128, (0, 9), 0), segment(64, 128, (0, 9), 0), segment(70, 8, (0, 9), 0)];
        let waste = waste_of(&trace, &pool(segments, &[0, 0], &[100, 100]));
        assert_eq!((waste.reserved, waste.live, waste.outside), (192, 100, 100));
        assert_eq!(parts_of(&waste, 100), [0, 0, 28, 0, 64, 0, 0, 0, 0]);
    }

    #[test]
    fn without_segments_the_rest_is_unknown_or_between_the_buffers() {
        let reserved =
            trace("# alignment: 8\n# torch-reserved-peak-bytes: 100\nid,lower,upper,size\na,1,9,31\n");
        let waste = waste_of(&reserved, &Framework::default());
        assert_eq!(parts_of(&waste, 32), [0, 0, 0, 0, 0, 0, 68, 0, 0]);
        let waste = waste_of(&reserved, &pool(Vec::new(), &[0], &[]));
        assert_eq!(parts_of(&waste, 32), [0, 0, 68, 0, 0, 0, 0, 0, 0]);
        let (step, buffers) = peak_buffers(&reserved);
        assert_eq!((step, buffers.len()), (1, 1));
        assert_eq!(bytes_at(&reserved, &[segment(0, 64, (0, 2), 0)], 1), (64, 32));
        let plain = trace("id,lower,upper,size\na,1,9,31\n");
        assert_eq!(Waste::from_framework(&plain, &Framework::default()), None);
    }

    #[test]
    fn a_framework_that_overwrites_wastes_nothing() {
        let trace = trace("id,lower,upper,size,may_overwrite\na,0,2,64,\nb,1,3,64,a\n");
        let reserved =
            Framework { reserved_peak: Some(planlab_dsa::Bytes::new(64)), ..pool(Vec::new(), &[0, 0], &[]) };
        assert_eq!(parts_of(&waste_of(&trace, &reserved), 64), [0; 9]);
    }

    #[test]
    fn an_output_at_its_first_step_adds_no_rounding() {
        let trace = trace("id,lower,upper,size,may_overwrite\na,0,2,60,\nb,1,2,60,a\n");
        let taken = pool(Vec::new(), &[0, 0], &[64, 64]);
        let reserved = Framework { reserved_peak: Some(planlab_dsa::Bytes::new(200)), ..taken };
        let waste = waste_of(&trace, &reserved);
        assert_eq!((waste.live, waste.padding, waste.counted[0]), (60, 0, 4));
    }
}
