//! Block building: joins buffers to blocks that leave little empty, as in a puzzle.
//!
//! If memory is tight, what ends at a step must leave its room to what starts there. So the steps alone show which
//! buffers probably lie side by side. Those with the same live range lie on one another, in a *stack*. One that ends where
//! another of about the same size starts lies beside it, in a *row*. Five lie around each other in a *wheel* (see the
//! module `forest`).
//! The search joins the least doubtful first, as far as the load of the blocks stays below a capacity, and treats
//! blocks like buffers. What no join fits any more shows that an earlier one was wrong: it takes apart a few blocks that
//! start or end at one step, some levels deep, joins again under some noise, and keeps what has no more blocks than
//! before. If fewer are left than ever, first fit places them, and then an exact search as low as it can (see the module
//! `residual`). First fit in the order of the resulting offsets gives the plan, so that every state leads to a valid one.
//!
//! Where that no longer helps, an *attempt* takes a larger region apart as a whole and builds it again, and goes back if it
//! ends with more blocks. After many attempts in vain the search starts over. The capacity is the bound, in every
//! third course one between it and the best height.
//!
//! # References
//!
//! 1. P. Y. Wang, *Two algorithms for constrained two-dimensional cutting stock problems*, Operations Research 31(3),
//!    1983, doi:10.1287/opre.31.3.573 (rectangles joined while little is wasted).
//! 2. T.-C. Wang and D. F. Wong, *An optimal algorithm for floorplan area optimization*, DAC 1990,
//!    doi:10.1145/123186.123253 (wheels beside straight cuts).
//! 3. G. Schrimpf, J. Schneider, H. Stamm-Wilbrandt and G. Dueck, *Record breaking optimization results using the ruin
//!    and recreate principle*, Journal of Computational Physics 159(2), 2000, doi:10.1006/jcph.1999.6413.
//!
//! # Complexity
//!
//! Anytime. The first blocks take O(n log n) if few buffers start or end at each step; a step then depends on the blocks
//! that it takes apart, not on n.
//!
//! # Deviations from the paper
//!
//! - Live ranges fix where buffers lie in time, so only joins whose steps agree count. Wang keeps all blocks that waste
//!   less than a limit; this search has one partition into blocks at a time, and corrects it.

mod forest;
mod joins;
mod residual;
mod search;

use planlab_dsa::{Descriptor, Halt, Honours, Planner, Run};

pub(crate) use self::search::BlockSearch;
use crate::arenas::{has_arenas, plan_each_arena};
use crate::placement::search::decoding::Search;
use crate::placement::search::{HONOURS, anytime_descriptor, start};
use crate::placement::start_from_hints::offer_hints;

/// Units of work between two looks at whether the search goes on.
const TURN: u64 = 5_000_000;

/// Joins buffers to blocks without waste; key `block-building`.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockBuilding;

impl Planner for BlockBuilding {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "block-building".into(),
            summary: "joins buffers to blocks that leave little empty, and corrects the joins".into(),
            honours: Honours { hint: true, ..HONOURS },
            reference: "Wang 1983, doi:10.1287/opre.31.3.573",
            ..anytime_descriptor()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        offer_hints(run)?;
        if start::best_start(run)?.is_none() {
            return Ok(());
        }
        let Some(mut search) = BlockSearch::new(run) else { return Ok(()) };
        while search.run_slice(run, TURN)? {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::guillotine_instance;
    use planlab_dsa::{Budget, Bytes, Instance, Outcome, execute};

    use super::*;
    use crate::placement::testing::{self, almost_tight};

    fn plan(instance: &Instance, work: u64, seed: u64) -> Outcome<'_> {
        execute(&BlockBuilding, instance, Budget { work: Some(work), ..Budget::default() }, seed)
    }

    /// A rectangle of steps and sizes cut into wheels, and these into wheels, `depth` levels deep; the centres lack
    /// one granule.
    fn wheels(depth: u32) -> Instance {
        let mut open = vec![(0_u32, 3_u32.pow(depth), 3_u64.pow(depth) * 4)];
        for _ in 0..depth {
            let parts = |(start, end, size): (u32, u32, u64)| {
                let (step, part) = ((end - start) / 3, size / 3);
                let (left, right) = (start + step, end - step);
                let centre = (left, right, part - 1);
                [
                    (start, right, part),
                    (right, end, 2 * part),
                    (left, end, part),
                    (start, left, 2 * part),
                    centre,
                ]
            };
            open = open.into_iter().flat_map(parts).collect();
        }
        let rows: Vec<_> = open.into_iter().map(|(start, end, size)| (size, start, end)).collect();
        testing::test_instance(&rows)
    }

    #[test]
    fn wheels_of_wheels_are_put_together() {
        let instance = wheels(2);
        assert_eq!(instance.len(), 25);
        let outcome = plan(&instance, 400_000, 1);
        assert!(outcome.is_optimal(), "{:?} over a load of {}", outcome.height(), instance.load().bytes);
    }

    #[test]
    fn what_straight_lines_cut_is_put_together() {
        for seed in 0..4 {
            let (instance, _) = guillotine_instance(150, Bytes::new(1 << 30), seed);
            let outcome = plan(&instance, 400_000, seed);
            assert!(outcome.is_optimal(), "seed {seed}: {:?}", outcome.height());
        }
    }

    #[test]
    fn blocks_that_do_not_fit_the_load_are_placed_a_little_above_it() {
        for seed in 0..4 {
            let instance = almost_tight(400, seed);
            let outcome = plan(&instance, 4_000_000, seed);
            let (height, load) = (outcome.height().expect("a plan").get(), instance.load().bytes.get());
            assert!(height <= load / 100 * 104, "seed {seed}: {height} over a load of {load}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        let (instance, _) = guillotine_instance(300, Bytes::new(1 << 30), 9);
        let offsets = |seed| plan(&instance, 240_000, seed).best.map(|best| best.offsets().to_vec());
        assert_eq!(offsets(3), offsets(3));
        assert_ne!(offsets(3), offsets(4), "the seed decides");
    }

    #[test]
    fn it_ends_if_nothing_fits_together() {
        // Starts are even and ends odd; a load of 4 and an optimum of 5.
        let instance = testing::test_instance(&[
            (2, 0, 5),
            (1, 4, 11),
            (1, 6, 11),
            (1, 14, 15),
            (2, 8, 13),
            (2, 12, 15),
            (1, 4, 7),
            (2, 0, 3),
        ]);
        let outcome = plan(&instance, 1 << 22, 1);
        assert_eq!(outcome.height(), Some(Bytes::new(5)));
        assert_eq!(outcome.end, Ok(planlab_dsa::Stop::Finished));
    }
}
