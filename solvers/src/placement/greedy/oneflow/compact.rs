//! Compact insertion: a buffer may go into a gap that is too small for it.
//!
//! The gaps are those below a placed buffer that is live with the new one, and the room up to the top of the arena. The
//! smallest sufficient gap is taken; if all are too small, the one that lacks the fewest bytes (ties: the lowest). Then
//! everything that begins at the gap's end or above rises by as much, whether it is live at the time or not.
//!
//! ```text
//!                                [ c ]      rises, although it is not live with the new one
//!            [ c ]           [   b   ]      rises
//!    [   b   ]                [ new ]
//!     too low         ->      [ new ]
//!    [   a     ]             [   a     ]
//! ```

use planlab_dsa::{Alignment, BufferId, Halt, Honours, Instance, Offset, Plan, Run, greatest_common_divisor};

use super::lifted::Lifted;
use crate::demands::fits_arenas;
use crate::trees::Neighbours;

/// What compact insertion supports. Pins could not stay in place.
pub(super) const HONOURS: Honours =
    Honours { alignment: true, arenas: true, apart: true, work_limit: true, ..Honours::NONE };

/// Places every buffer in `order`. No plan if it exceeds the capacities of the arenas.
pub(super) fn place_compactly(run: &mut Run<'_>, order: &[BufferId]) -> Result<Option<Plan>, Halt> {
    let instance = run.instance();
    let neighbours = Neighbours::with_room(instance, 0, &mut |work| run.tick(work))?;
    let mut pools = Pools::new(instance);
    let mut scratch = Vec::new();
    for &id in order {
        let work = pools.insert_buffer(id, neighbours.neighbours_of(id.get(), &mut scratch));
        run.tick(work)?;
    }
    let offset = |id: BufferId| pools.lifted.offset_of(id.get()).expect("every buffer was placed");
    let plan = Plan::from_offsets(instance.ids().map(|id| Offset::new(offset(id))).collect::<Vec<_>>());
    Ok(fits_arenas(instance, &plan.offsets).then_some(plan))
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The lowest aligned offset in it.
    offset: u64,
    end: u64,
    /// Bytes to spare, or lacking.
    rest: Rest,
}

/// The smaller, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rest {
    Left(u64),
    Lacking(u64),
}

impl Gap {
    fn new(low: u64, end: u64, size: u64, align: Alignment) -> Self {
        let offset = align.round_up(low).expect("an instance leaves room for all padding");
        let after = offset + size;
        let rest = if after <= end { Rest::Left(end - after) } else { Rest::Lacking(after - end) };
        Self { offset, end, rest }
    }
}

/// The placed buffers, by arena.
struct Pools<'i> {
    instance: &'i Instance,
    /// Every lift is a multiple of this, so that everything stays aligned. `None` if there is no such number: then
    /// nothing is lifted.
    unit: Option<Alignment>,
    lifted: Lifted,
    tops: Vec<u64>,
    /// The buffers that are live with the current one, as (offset, end).
    walls: Vec<(u64, u64)>,
}

impl<'i> Pools<'i> {
    fn new(instance: &'i Instance) -> Self {
        let arenas = instance.arenas().len();
        Self {
            instance,
            unit: common_unit(instance),
            lifted: Lifted::new(instance.len(), arenas),
            tops: vec![0; arenas],
            walls: Vec::new(),
        }
    }

    /// Places a buffer; returns the work that it took.
    fn insert_buffer(&mut self, id: BufferId, neighbours: &[u32]) -> u64 {
        let arena = self.instance.buffer(id).arena.index();
        self.collect_neighbours(id, neighbours);
        let mut work = 1 + neighbours.len() as u64;
        let Gap { offset, end, rest } = self.choose_gap(id);
        if let Rest::Lacking(bytes) = rest {
            if end == self.tops[arena] {
                self.tops[arena] += bytes;
            } else {
                let rounded = self.unit.and_then(|unit| unit.round_up(bytes));
                let bytes = rounded.expect("chosen only if it can be rounded");
                work += self.lifted.lift_from(arena, end, bytes);
                self.tops[arena] += bytes;
            }
        }
        self.lifted.insert_at(arena, id.get(), offset);
        work
    }

    /// Collects the placed neighbours in the same arena, by offset.
    fn collect_neighbours(&mut self, id: BufferId, neighbours: &[u32]) {
        let Self { instance, lifted, walls, .. } = self;
        let arena = instance.buffer(id).arena;
        walls.clear();
        walls.extend(neighbours.iter().filter_map(|&other| {
            let offset = lifted.offset_of(other)?;
            let other = instance.buffer(BufferId::new(other));
            (other.arena == arena).then(|| (offset, offset + other.size.get()))
        }));
        walls.sort_unstable();
    }

    fn choose_gap(&self, id: BufferId) -> Gap {
        let buffer = self.instance.buffer(id);
        let gap = |low: u64, end: u64| Gap::new(low, end, buffer.size.get(), buffer.align);
        let (mut low, mut best) = (0, None::<Gap>);
        for &(start, end) in &self.walls {
            if low < start {
                let new = gap(low, start);
                let is_possible = self.unit.is_some() || matches!(new.rest, Rest::Left(_));
                if is_possible && best.is_none_or(|best| new.rest < best.rest) {
                    best = Some(new);
                }
            }
            low = low.max(end);
        }
        let last = gap(low, self.tops[buffer.arena.index()]);
        best.filter(|best| best.rest <= last.rest).unwrap_or(last)
    }
}

/// The least common multiple of all alignments, if every sum of sizes with that padding fits in 64 bits.
fn common_unit(instance: &Instance) -> Option<Alignment> {
    let mut unit = 1_u64;
    let mut total = 0_u128;
    for buffer in instance.buffers() {
        let align = buffer.align.get();
        unit = (unit / greatest_common_divisor(unit, align)).checked_mul(align)?;
        total += u128::from(buffer.size.get()) + u128::from(align);
    }
    let padding = u128::from(unit) * instance.len() as u128;
    (total + padding <= u128::from(u64::MAX)).then(|| Alignment::new(unit)).flatten()
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances};
    use planlab_dsa::{Buffer, Bytes};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::greedy::oneflow::{Insertion, OneFlow, Order};
    use crate::placement::testing::{
        aligned, place_buffers, planned_offsets, scripted, test_buffer, test_descriptor,
    };

    /// The published loop: sorts all placed buffers by offset again for every buffer.
    fn published(instance: &Instance, order: &[BufferId]) -> Vec<u64> {
        let size = |id: BufferId| instance.buffer(id).size.get();
        let (mut offsets, mut placed) = (vec![0_u64; instance.len()], Vec::new());
        let mut top = 1_u64;
        for &id in order {
            placed.sort_by_key(|other: &BufferId| offsets[other.index()]);
            let (mut head, mut best) = (0, None::<(i128, u64)>);
            let mut consider = |low: u64, end: u64| {
                let difference = i128::from(end) - i128::from(low) - i128::from(size(id));
                let is_better = |old: i128| match (difference >= 0, old >= 0) {
                    (true, true) => difference < old,
                    (false, false) => difference > old,
                    (suffices, _) => suffices,
                };
                if best.is_none_or(|(old, _)| is_better(old)) {
                    best = Some((difference, low));
                }
            };
            let live = |other: &&BufferId| instance.buffer(**other).live.overlaps(instance.buffer(id).live);
            for &other in placed.iter().filter(live) {
                let low = offsets[other.index()];
                if head < low {
                    consider(head, low);
                }
                head = head.max(low + size(other));
            }
            consider(head, top);
            let (difference, offset) = best.expect("the last gap at least");
            if let Ok(lacking @ 1..) = u64::try_from(-difference) {
                top += lacking;
                let end = offset + size(id) - lacking;
                for other in &placed {
                    let offset = &mut offsets[other.index()];
                    *offset += if *offset >= end { lacking } else { 0 };
                }
            }
            offsets[id.index()] = offset;
            placed.push(id);
        }
        offsets
    }

    proptest! {
        #[test]
        fn plans_are_those_of_the_published_loop(
            instance in instances(Shape::plain_buffers().with_max_buffers(60).with_max_steps(30).with_max_size(40)),
        ) {
            for order in Order::ALL {
                let planner = OneFlow::new(order, Insertion::Compact);
                prop_assert_eq!(planned_offsets(&planner, &instance), published(&instance, &order.sort_buffers(&instance)));
            }
        }

        #[test]
        fn one_alignment_of_all_sizes_changes_nothing(
            instance in instances(Shape::plain_buffers().with_max_buffers(40).with_max_steps(30)),
            unit in 1..600_u64,
        ) {
            let aligned = |buffer: &Buffer| {
                let align = Alignment::new(unit).expect("positive");
                Buffer::new(Bytes::new(buffer.size.get() * unit), buffer.live).with_align(align)
            };
            let other = Instance::from_buffers(instance.buffers().iter().map(aligned).collect());
            let planner = OneFlow::new(Order::MemSizeFirst, Insertion::Compact);
            let expected: Vec<u64> = planned_offsets(&planner, &instance).iter().map(|offset| offset * unit).collect();
            prop_assert_eq!(planned_offsets(&planner, &other.expect("valid")), expected);
        }
    }

    fn in_id_order(buffers: Vec<Buffer>) -> Vec<u64> {
        let in_id_order = scripted(test_descriptor("in-id-order", HONOURS), |run| {
            let order: Vec<BufferId> = run.instance().ids().collect();
            let plan = place_compactly(run, &order)?.expect("no capacity");
            run.offer(plan)
        });
        place_buffers(&in_id_order, buffers)
    }

    #[test]
    fn what_rises_stays_aligned() {
        let all = vec![test_buffer(4, 0, 4), test_buffer(3, 0, 1), aligned(4, 0, 4, 4), test_buffer(5, 2, 3)];
        // The gap of 4 at 4 lacks 1 byte; the buffer above it rises by 4. The top, at 12, would take 5.
        assert_eq!(in_id_order(all), [0, 4, 12, 4]);
    }

    #[test]
    fn alignments_without_a_common_multiple_lift_nothing() {
        let far = [aligned(4, 8, 9, 1 << 40), aligned(4, 9, 10, 3_u64.pow(20))];
        let mut all =
            vec![test_buffer(4, 0, 4), test_buffer(3, 0, 1), test_buffer(4, 0, 4), test_buffer(5, 2, 3)];
        assert_eq!(in_id_order(all.clone()), [0, 4, 9, 4]);
        all.extend(far);
        assert_eq!(in_id_order(all), [0, 4, 7, 11, 0, 0]);
    }
}
