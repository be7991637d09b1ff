//! Block building: joins buffers to blocks that leave little empty, as in a puzzle.
//!
//! Where memory is tight, what ends at a step must leave its room to what starts there. So the steps alone tell which
//! buffers probably lie side by side: those with the same live range on one another (a *stack*), one that ends where
//! another of about the same size starts in a *row*, and five around each other in a *wheel* (see the module `forest`).
//! The search joins the least doubtful first, as far as the load of the blocks stays below a capacity, and treats
//! blocks like buffers. What no join fits any more shows that an earlier one was wrong: it takes apart a few blocks that
//! start or end at one step, some levels deep, joins again under some noise, and keeps what has no more blocks than
//! before. If fewer are left than ever, an exact search (or first fit) places them. First fit in the order of the
//! resulting offsets gives the plan, so that every state leads to a valid one.
//!
//! After a long time without progress it starts over. The capacity is the bound, in every third course one between it
//! and the best height.
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

use planlab_dsa::{
    Buffer, BufferId, Bytes, Descriptor, Guarantee, Halt, Honours, Instance, LiveRange, Planner, Run, Scope,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::forest::Forest;
use self::joins::Joins;
use super::HONOURS;
use super::model::can_stand;
use super::moves::below;
use super::neighbours::Tick;
use super::start;
use super::walk::Search;
use super::window::{self, Answer, Piece};
use crate::arenas::{has_arenas, plan_each_arena};
use crate::placement::Order;
use crate::placement::columns::Columns;
use crate::placement::start_from_hints::offer_hints;

/// Units of work between two looks at whether the search goes on.
const TURN: u64 = 5_000_000;
/// Failures in a row before the search starts over: this, and so many for each block.
const PATIENCE: u64 = 1_000;
const PATIENCE_PER_BLOCK: u64 = 10;
/// The most levels of blocks taken apart in a step, fewer than this, and the most parts.
const DEPTH: u32 = 7;
const MOST_PARTS: usize = 200;
/// The most blocks at the step that are taken apart.
const MOST_AT_ONCE: usize = 24;
/// One step in this many may leave one block more.
const WORSE: u32 = 50;
/// Nodes of the exact search for each block.
const NODES_PER_BLOCK: u64 = 100;
/// The most blocks that it places, and the units of work for one of its own.
const MOST_EXACT: usize = 100;
const WORK_PER_UNIT: u64 = 16;
/// The orders in which first fit places blocks.
const ORDERS: [Order; 3] = [Order::Size, Order::Area, Order::Width];
/// Plans may take this part of the work.
const PLANNING: u64 = 4;

/// Joins buffers to blocks without waste; key `block-building`.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::placement::search::BlockBuilding;
///
/// // A wheel: four buffers around a fifth.
/// let buffers = [(2, 0, 2), (4, 2, 3), (2, 1, 3), (4, 0, 1), (2, 1, 2)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let outcome = execute(&BlockBuilding, &instance, Budget::default(), 0);
/// assert!(outcome.is_optimal());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockBuilding;

impl Planner for BlockBuilding {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "block-building".into(),
            summary: "joins buffers to blocks that leave little empty, and corrects the joins".into(),
            guarantee: Guarantee::Heuristic,
            honours: Honours { hint: true, ..HONOURS },
            randomized: true,
            reference: "Wang 1983, doi:10.1287/opre.31.3.573",
            complexity: "anytime",
            practical: Some(super::PRACTICAL),
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        offer_hints(run)?;
        if start::best(run)?.is_none() {
            return Ok(());
        }
        let Some(mut search) = BlockSearch::new(run) else { return Ok(()) };
        while search.slice(run, TURN)? {}
        Ok(())
    }
}

/// Block building that can be resumed.
#[derive(Clone, Debug)]
pub(crate) struct BlockSearch {
    /// Columns and granules of each buffer.
    buffers: Vec<(u32, u32, u64)>,
    columns: usize,
    grain: u64,
    capacity: u64,
    forest: Forest,
    joins: Joins,
    rng: ChaCha8Rng,
    courses: u64,
    /// The fewest blocks of this course, and the fewest that were placed.
    fewest: usize,
    placed: usize,
    failures: u64,
    work: u64,
    planning: u64,
}

impl BlockSearch {
    /// `None` if no plan without hand-overs exists, or there is nothing to join.
    pub(crate) fn new(run: &mut Run<'_>) -> Option<Self> {
        let instance = run.instance();
        if instance.len() < 2 || !can_stand(instance) {
            return None;
        }
        let grain = instance.granularity();
        let columns = Columns::of_live_ranges(instance);
        let number = |index: usize| u32::try_from(index).expect("fewer than 2^32 columns");
        let buffer = |buffer: &Buffer| {
            let range = columns.of(buffer.live);
            (number(range.start), number(range.end), buffer.size.get().div_ceil(grain))
        };
        let buffers: Vec<_> = instance.buffers().iter().map(buffer).collect();
        Some(Self {
            forest: Forest::new(&buffers, columns.len(), 0),
            columns: columns.len(),
            grain,
            capacity: 0,
            joins: Joins::default(),
            rng: ChaCha8Rng::seed_from_u64(run.rng().random()),
            courses: 0,
            fewest: buffers.len(),
            placed: usize::MAX,
            failures: 0,
            work: 0,
            planning: 0,
            buffers,
        })
    }

    /// The number of courses begun.
    pub(crate) const fn courses(&self) -> u64 {
        self.courses
    }

    /// Whether the fewest blocks of this course are at most half as many as buffers.
    pub(crate) const fn is_promising(&self) -> bool {
        2 * self.fewest <= self.buffers.len()
    }

    /// Begins a course. False if nothing could be joined.
    fn begin(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        self.capacity = self.draw_capacity(run);
        self.forest = Forest::new(&self.buffers, self.columns, self.capacity);
        self.joins.vary(&mut self.rng);
        self.join(run, &[])?;
        self.forest.keep();
        self.courses += 1;
        (self.fewest, self.placed, self.failures) = (self.forest.roots().len(), usize::MAX, 0);
        self.try_planning(run)?;
        Ok(self.fewest < self.buffers.len())
    }

    fn draw_capacity(&mut self, run: &Run<'_>) -> u64 {
        let granules = |bytes: Bytes| bytes.get() / self.grain;
        let bound = run.bound().of(Scope::NoHandOver).value.get().div_ceil(self.grain);
        let best = run.height_to_beat().map_or(bound, granules);
        match self.courses % 3 {
            1 => run.target().map_or(bound, granules).max(bound),
            2 if best > bound => self.rng.random_range(bound..best),
            _ => bound,
        }
    }

    fn join(&mut self, run: &mut Run<'_>, new: &[u32]) -> Result<(), Halt> {
        let work = &mut self.work;
        self.joins.make(&mut self.forest, new, &mut self.rng, &mut |units| {
            *work += units;
            run.tick(units)
        })
    }

    /// Takes apart blocks that start or end at one column. Returns their parts.
    fn ruin(&mut self) -> Vec<u32> {
        let rng = &mut self.rng;
        let roots = self.forest.roots();
        let Some(at) = below(rng, roots.len()) else { return Vec::new() };
        let block = self.forest.block(roots[at]);
        let column = if rng.random() { block.start } else { block.end };
        let mut open = vec![roots[at]];
        let near = self.forest.starting(column).iter().chain(self.forest.ending(column));
        open.extend(near.copied().filter(|&other| other != roots[at]).take(MOST_AT_ONCE));
        let depth = rng.random_range(1..DEPTH);
        let chance = rng.random_range(0.3..0.9);
        let mut first = 0;
        for level in 0..depth {
            let last = open.len();
            for at in first..last {
                if open.len() < MOST_PARTS && (level == 0 || rng.random_bool(chance)) {
                    self.forest.split(open[at], &mut open);
                }
            }
            first = last;
        }
        self.work += open.len() as u64;
        open.retain(|&id| self.forest.is_root(id));
        open
    }

    /// Places the blocks if there are fewer than ever, and planning has not taken too large a part of the work.
    fn try_planning(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let blocks = self.forest.roots().len();
        if blocks >= self.placed || (blocks > 1 && self.planning * PLANNING > self.work) {
            return Ok(());
        }
        self.placed = blocks;
        let before = self.work;
        let offsets = self.place(run)?;
        let mut order: Vec<u32> = (0..).take(self.buffers.len()).collect();
        order.sort_by_key(|&id| offsets[id as usize]);
        self.work += order.len() as u64;
        start::in_order(run, order)?;
        self.planning += self.work - before;
        Ok(())
    }

    /// The offset of each buffer, in granules, by an exact search for those of the blocks, or else by first fit.
    fn place(&mut self, run: &mut Run<'_>) -> Result<Vec<u64>, Halt> {
        let piece = |&id: &u32| {
            let block = self.forest.block(id);
            Piece { start: block.start, end: block.end, size: block.size, align: 1 }
        };
        let pieces: Vec<Piece> = self.forest.roots().iter().map(piece).collect();
        if pieces.len() <= MOST_EXACT {
            let (nodes, seed) = (NODES_PER_BLOCK * pieces.len() as u64, self.rng.random());
            let work = &mut self.work;
            let answer = window::search((&pieces, &[]), self.capacity, (nodes, seed), &mut |units| {
                *work += WORK_PER_UNIT * units;
                run.tick(WORK_PER_UNIT * units)
            })?;
            if let Answer::Placed(offsets) = answer {
                return Ok(self.forest.spread(&offsets));
            }
        }
        let work = &mut self.work;
        let offsets = lowest_first_fit(&pieces, &mut |units| {
            *work += units;
            run.tick(units)
        })?;
        Ok(self.forest.spread(&offsets))
    }
}

/// The offsets of the lowest of a few first fits; all 0 if the pieces are too large for an instance.
fn lowest_first_fit(pieces: &[Piece], tick: &mut Tick<'_>) -> Result<Vec<u64>, Halt> {
    let buffer = |piece: &Piece| {
        let live = LiveRange::new(piece.start, piece.end).ok()?;
        Some(Buffer::new(Bytes::new(piece.size), live))
    };
    let buffers = pieces.iter().map(buffer).collect::<Option<Vec<_>>>();
    let Some(instance) = buffers.and_then(|buffers| Instance::from_buffers(buffers).ok()) else {
        return Ok(vec![0; pieces.len()]);
    };
    let mut best: Option<(u64, Vec<u64>)> = None;
    for order in ORDERS {
        let order: Vec<u32> = order.of(&instance).into_iter().map(BufferId::get).collect();
        let offsets = start::first_fit(&instance, &order, tick)?;
        let ends = offsets.iter().zip(pieces).map(|(offset, piece)| offset + piece.size);
        let height = ends.max().unwrap_or(0);
        if best.as_ref().is_none_or(|(least, _)| height < *least) {
            best = Some((height, offsets));
        }
    }
    Ok(best.map_or_else(Vec::new, |(_, offsets)| offsets))
}

impl Search for BlockSearch {
    fn step(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        self.work += 1;
        run.tick(1)?;
        let blocks = self.forest.roots().len();
        let patience = PATIENCE + PATIENCE_PER_BLOCK * blocks as u64;
        if self.courses == 0 || self.failures > patience || blocks == 1 {
            return self.begin(run);
        }
        self.joins.vary(&mut self.rng);
        let parts = self.ruin();
        self.join(run, &parts)?;
        let most = blocks + usize::from(self.rng.random_range(0..WORSE) == 0);
        let left = self.forest.roots().len();
        self.failures += 1;
        if left > most {
            self.forest.undo();
            return Ok(true);
        }
        self.forest.keep();
        if left < self.fewest {
            (self.fewest, self.failures) = (left, 0);
        }
        self.try_planning(run)?;
        Ok(true)
    }

    fn work(&self) -> u64 {
        self.work
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::guillotine;
    use planlab_dsa::{Budget, Outcome, execute};

    use super::*;

    fn plan(instance: &Instance, work: u64, seed: u64) -> Outcome<'_> {
        execute(&BlockBuilding, instance, Budget { work: Some(work), ..Budget::default() }, seed)
    }

    /// A rectangle of steps and sizes cut into wheels, and these into wheels, `depth` levels deep; the centres lack
    /// one granule.
    fn wheels(depth: u32) -> Vec<Buffer> {
        let mut open = vec![(0_u32, 3_u32.pow(depth), 3_u64.pow(depth) * 4)];
        for _ in 0..depth {
            let parts = |(start, end, size): (u32, u32, u64)| {
                let (step, part) = ((end - start) / 3, size / 3);
                let (left, right) = (start + step, end - step);
                let centre = (left, right, part - 1);
                [(start, right, part), (right, end, 2 * part), (left, end, part), (start, left, 2 * part), centre]
            };
            open = open.into_iter().flat_map(parts).collect();
        }
        let buffer = |(start, end, size): (u32, u32, u64)| {
            Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
        };
        open.into_iter().map(buffer).collect()
    }

    #[test]
    fn wheels_of_wheels_are_put_together() {
        let instance = Instance::from_buffers(wheels(3)).expect("valid");
        assert_eq!(instance.len(), 125);
        let outcome = plan(&instance, 400_000, 1);
        assert!(outcome.is_optimal(), "{:?} over a load of {}", outcome.height(), instance.load().bytes);
    }

    #[test]
    fn what_straight_lines_cut_is_put_together() {
        for seed in 0..4 {
            let (instance, _) = guillotine(150, Bytes::new(1 << 30), seed);
            let outcome = plan(&instance, 400_000, seed);
            assert!(outcome.is_optimal(), "seed {seed}: {:?}", outcome.height());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        let (instance, _) = guillotine(300, Bytes::new(1 << 30), 9);
        let offsets = |seed| plan(&instance, 60_000, seed).best.map(|best| best.offsets().to_vec());
        assert_eq!(offsets(3), offsets(3));
    }

    #[test]
    fn it_takes_no_work_where_nothing_fits_together() {
        let buffer = |start| Buffer::new(Bytes::new(5), LiveRange::new(start, start + 3).expect("not empty"));
        let instance = Instance::from_buffers((0..9).map(buffer).collect()).expect("valid");
        let outcome = plan(&instance, 1 << 40, 1);
        assert!(outcome.end.is_ok_and(|stop| stop != planlab_dsa::Stop::WorkLimit));
    }
}
