//! SOMAS: bands of addresses, each as high as its first block, or one object for all.
//!
//! The blocks are taken in an order by size. With *many objects*, a block goes into the lowest band that has a gap for
//! it among the blocks of the band that are live with it. If no band has one, the block lies above all bands and begins
//! a new one, as high as itself. With a *single object* there is one band without an end. Every sorting is tried with
//! every fitting, and the lowest plan is kept.
//!
//! # References
//!
//! 1. MindSpore, `mindspore/ccsrc/backend/common/somas/somas_solver_{alg,core,pre}.cc` and `CalcLowerBound`
//!    of `somas.cc`, <https://github.com/mindspore-ai/mindspore>.
//!
//! # Complexity
//!
//! O(n g log n) for each combination if a buffer has g gaps to compare; the published code compares every two buffers.
//! Four combinations for each kind of object.
//!
//! # Deviations from the published code
//!
//! - *Default: repaired.* The lowest plan of all combinations wins. The published choice takes a single object only if
//!   it saves more than 100 MiB against many objects, so that plans depend on the unit of the sizes.
//!   `somas/best/published` is the published rule.
//! - *Published.* Only the first band uses the requested fitting; the bands above it always use the best fit. The two
//!   sortings and two fittings are those of the release build; the debug build tries more.
//! - Blocks are single buffers. There are no runs of tensors that must be contiguous, no tensors marked as living
//!   throughout (the original stacks those on top of the plan), and no graph outputs to be taken first.
//! - Pins, alignment, pauses, arenas (each with its own bands) and kept-apart pairs are honoured. A block that begins a
//!   band lies at the lowest free offset from the band's start.

mod bands;
mod sorting;

use planlab_dsa::{BufferId, Bytes, Descriptor, Halt, Honours, Plan, Planner, Run};

use self::bands::{Bands, Fitting};
use self::sorting::SORTINGS;
use super::HONOURS;
use super::placer::Placer;

/// In the published code a single object must save more than this.
const RELUCTANCE: Bytes = Bytes::new(100 << 20);

/// The containers of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Objects {
    /// Bands, each as high as its first block.
    Many,
    /// One band without an end.
    Single,
}

/// The memory solver of MindSpore; keys `somas/many-objects`, `somas/single-object`, `somas/best` and
/// `somas/best/published`.
#[derive(Clone, Copy, Debug)]
pub struct Somas {
    key: &'static str,
    objects: &'static [Objects],
    /// A plan of one single object must save more than this to replace one of many objects.
    reluctance: Bytes,
}

impl Somas {
    const fn new(key: &'static str, objects: &'static [Objects]) -> Self {
        Self { key, objects, reluctance: Bytes::ZERO }
    }

    /// Bands alone.
    #[must_use]
    pub const fn many_objects() -> Self {
        Self::new("somas/many-objects", &[Objects::Many])
    }

    /// One object alone.
    #[must_use]
    pub const fn single_object() -> Self {
        Self::new("somas/single-object", &[Objects::Single])
    }

    /// Both, bands first.
    #[must_use]
    pub const fn lower_of_both() -> Self {
        Self::new("somas/best", &[Objects::Many, Objects::Single])
    }

    /// Both, as the published code chooses: a single object if it saves more than 100 MiB.
    #[must_use]
    pub const fn best_as_published() -> Self {
        Self { key: "somas/best/published", reluctance: RELUCTANCE, ..Self::lower_of_both() }
    }

    /// Whether a plan of `objects` replaces the lowest of those before it.
    fn prefers_plan(&self, (height, objects): (Bytes, Objects), to: (Bytes, Objects)) -> bool {
        let saved = to.0.get().saturating_sub(height.get());
        let gives_up = to.1 == Objects::Many && objects == Objects::Single;
        let enough = if gives_up { self.reluctance.get() } else { 0 };
        saved > enough
    }
}

/// Places every buffer in `order`. No plan if the pins or the capacities of the arenas do not admit one.
fn place_objects(
    run: &mut Run<'_>,
    order: &[BufferId],
    objects: Objects,
    fitting: Fitting,
) -> Result<Option<Plan>, Halt> {
    let instance = run.instance();
    let Some(mut placer) = Placer::new(instance, false) else { return Ok(None) };
    let none = if objects == Objects::Single { Bands::single_object() } else { Bands::default() };
    let mut bands = vec![none; instance.arenas().len()];
    let in_band = |band| if band == 0 { fitting } else { Fitting::Best };
    for &id in order.iter().filter(|id| instance.buffer(**id).pin.is_none()) {
        let buffer = instance.buffer(id);
        let mut blocked = placer.blocked_offsets(id, false);
        let bands = &mut bands[buffer.arena.index()];
        let offset = bands.take_spot(blocked.free_rooms(0), buffer.size.get(), buffer.align, in_band);
        let work = blocked.look_count() + 1;
        placer.put_at(id, offset, None);
        run.tick(work)?;
    }
    Ok(placer.finish_plan())
}

impl Planner for Somas {
    fn descriptor(&self) -> Descriptor {
        let objects = match self.objects {
            [Objects::Many] => "bands as high as their first block",
            [Objects::Single] => "one object",
            _ if self.reluctance > Bytes::ZERO => {
                "bands as high as their first block, or one object where that saves much"
            }
            _ => "bands as high as their first block, or one object",
        };
        let combinations = self.objects.len() * SORTINGS.len() * Fitting::ALL.len();
        Descriptor {
            key: self.key.into(),
            summary: format!("{objects}; the lowest of {combinations} plans by sorting and fitting").into(),
            honours: Honours { in_place: false, ..HONOURS },
            reference: "MindSpore, somas_solver_alg.cc and somas_solver_pre.cc",
            complexity: "n g log n for g gaps to compare",
            practical: Some(200_000),
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let instance = run.instance();
        let mut chosen: Option<(Bytes, Objects)> = None;
        for &objects in self.objects {
            for sorting in SORTINGS {
                let order = sorting(instance);
                for fitting in Fitting::ALL {
                    let Some(plan) = place_objects(run, &order, objects, fitting)? else { continue };
                    let Some(height) = plan.height(instance) else { continue };
                    if chosen.is_none_or(|chosen| self.prefers_plan((height, objects), chosen)) {
                        chosen = Some((height, objects));
                        run.offer(plan)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Instance;
    use planlab_dsa::testing::{Shape, instances};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::testing::{planned_offsets, scripted, test_descriptor};

    /// The published loops: footprints, each with its blocks; a block tries them one after the other.
    struct Footprint {
        offset: u64,
        end: Option<u64>,
        fitting: Fitting,
        blocks: Vec<BufferId>,
    }

    fn footprints(instance: &Instance, order: &[BufferId], single: bool, fittings: [Fitting; 2]) -> Vec<u64> {
        let mut offsets = vec![0; instance.len()];
        let mut bands: Vec<Footprint> = Vec::new();
        for &id in order {
            let size = instance.buffer(id).size.get();
            let gap = |band: &Footprint| gap(instance, &offsets, band, id);
            let found = bands.iter().enumerate().find_map(|(at, band)| Some((at, gap(band)?)));
            if let Some((band, offset)) = found {
                offsets[id.index()] = offset;
                bands[band].blocks.push(id);
                continue;
            }
            let offset = bands.last().map_or(0, |band| band.end.expect("a single object takes all"));
            let fitting = fittings[usize::from(!bands.is_empty())];
            let end = (!single).then_some(offset + size);
            offsets[id.index()] = offset;
            bands.push(Footprint { offset, end, fitting, blocks: vec![id] });
        }
        offsets
    }

    /// Walks over the blocks of a footprint that are live with a block, by offset.
    fn gap(instance: &Instance, offsets: &[u64], band: &Footprint, id: BufferId) -> Option<u64> {
        let (size, live) = (instance.buffer(id).size.get(), instance.buffer(id).live);
        let with_it = band.blocks.iter().filter(|&&other| instance.buffer(other).live.overlaps(live));
        let mut walls: Vec<(u64, u64)> = with_it
            .map(|other| {
                let offset = offsets[other.index()];
                (offset, offset + instance.buffer(*other).size.get())
            })
            .collect();
        walls.sort_unstable();
        walls.push((band.end.unwrap_or(u64::MAX), u64::MAX));
        let (mut at, mut gaps) = (band.offset, Vec::new());
        for (low, high) in walls {
            if at + size <= low {
                gaps.push((at, low - at));
            }
            at = at.max(high);
        }
        let best = gaps.into_iter().min_by_key(|&(edge, bytes)| match band.fitting {
            Fitting::Best => (bytes, edge),
            Fitting::Smallest => (edge, bytes),
        });
        best.map(|(edge, _)| edge)
    }

    fn one(objects: Objects, sorting: usize, fitting: Fitting) -> impl Planner {
        scripted(test_descriptor("one", Somas::lower_of_both().descriptor().honours), move |run| {
            let order = SORTINGS[sorting](run.instance());
            let plan = place_objects(run, &order, objects, fitting)?;
            plan.map_or(Ok(()), |plan| run.offer(plan))
        })
    }

    proptest! {
        #[test]
        fn plans_are_those_of_the_published_loops(
            instance in instances(Shape::plain_buffers().with_max_buffers(40).with_max_steps(25).with_max_size(40)),
            sorting in 0..SORTINGS.len(),
            number in 0..Fitting::ALL.len(),
        ) {
            let (order, fitting) = (SORTINGS[sorting](&instance), Fitting::ALL[number]);
            for objects in [Objects::Many, Objects::Single] {
                let expected = footprints(&instance, &order, objects == Objects::Single, [fitting, Fitting::Best]);
                prop_assert_eq!(planned_offsets(&one(objects, sorting, fitting), &instance), expected);
            }
        }
    }

    #[test]
    fn a_single_object_has_to_save_more_than_the_reluctance() {
        let published = Somas::best_as_published();
        assert_eq!(published.reluctance, Bytes::new(104_857_600));
        assert_eq!(published.descriptor().key, "somas/best/published");
        let somas = Somas { reluctance: Bytes::new(10), ..Somas::lower_of_both() };
        let many = |bytes| (Bytes::new(bytes), Objects::Many);
        let single = |bytes| (Bytes::new(bytes), Objects::Single);
        assert!(!somas.prefers_plan(single(90), many(100)));
        assert!(somas.prefers_plan(single(89), many(100)));
        assert!(somas.prefers_plan(single(88), single(89)));
        assert!(somas.prefers_plan(many(99), many(100)));
        assert!(!somas.prefers_plan(single(100), single(100)));
    }
}
