//! The search of block building: takes blocks apart, joins their parts to others, and places what is left.

use planlab_dsa::{Buffer, BufferId, Bytes, Halt, Run, Scope};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::forest::Forest;
use super::joins::Joins;
use super::residual;
use crate::demands::can_stand;
use crate::placement::Order;
use crate::placement::greedy::first_fit;
use crate::placement::order::by_offset;
use crate::placement::search::decoding::{Search, random_below};
use crate::placement::search::start;
use crate::placement::search::window::{self, Piece};
use crate::tick::{Tick, count_for_both};
use crate::trees::Columns;

/// Steps without fewer blocks before an attempt, and one for each block.
const QUIET: u64 = 200;
/// Steps of an attempt, and the parts that it begins with.
const ATTEMPT: u32 = 400;
const LEAST_REGION: usize = 30;
const MOST_REGION: usize = 600;
/// Draws of a block that lies within the region.
const DRAWS: u32 = 16;
/// Attempts in vain before the search starts over, and one for every four blocks.
const STAGNATION_LIMIT: u64 = 10;
/// The most levels of blocks taken apart in a step, fewer than this, and the most parts.
const DEPTH: u32 = 7;
const MOST_PARTS: usize = 200;
/// The most blocks at the step that are taken apart.
const MOST_AT_ONCE: usize = 24;
/// One step in this many may leave one block more.
const WORSE: u32 = 50;
/// The most blocks that exact search places, and the units of work for one of its own.
const MOST_EXACT: usize = 384;
const WORK_PER_UNIT: u64 = 16;
/// It may take this part of the work so far, or the least.
const PLACING: u64 = 8;
const LEAST_PLACING: u64 = 50_000;
/// Up to this number of blocks, each that is fewer counts; above it, one in sixteen.
const EACH: usize = 24;
/// The orders in which first fit places blocks.
const ORDERS: [Order; 3] = [Order::Size, Order::Area, Order::Width];
/// Plans may take this part of the work.
const PLANNING: u64 = 4;

/// A region, columns `[start, end)`, that is being built again.
#[derive(Clone, Debug)]
struct Attempt {
    saved: Forest,
    start: u32,
    end: u32,
    steps: u32,
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
    /// The number of courses begun.
    pub(crate) courses: u64,
    /// The fewest blocks of any course, and of this one, and the fewest that were placed.
    fewest_ever: usize,
    fewest: usize,
    placed: usize,
    attempt: Option<Attempt>,
    /// Steps since there were fewer blocks than ever, or since the last attempt.
    quiet: u64,
    /// Attempts in vain since then.
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
        let grain = instance.offset_granularity();
        let columns = Columns::of_live_ranges(instance);
        let number = |index: usize| u32::try_from(index).expect("fewer than 2^32 columns");
        let buffer = |buffer: &Buffer| {
            let range = columns.columns_of(buffer.live);
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
            fewest_ever: buffers.len(),
            fewest: buffers.len(),
            placed: usize::MAX,
            attempt: None,
            quiet: 0,
            failures: 0,
            work: 0,
            planning: 0,
            buffers,
        })
    }

    /// Whether the fewest blocks of any course are at most half as many as buffers.
    pub(crate) const fn is_promising(&self) -> bool {
        2 * self.fewest_ever <= self.buffers.len()
    }

    /// Counts work, for this search and for the run.
    fn spend_work(&mut self, run: &mut Run<'_>, units: u64) -> Result<(), Halt> {
        self.work += units;
        run.tick(units)
    }

    /// Looks whether there are fewer blocks than ever in this course, and whether to place them.
    fn check_fewest(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let blocks = self.forest.roots().len();
        if blocks < self.fewest {
            (self.fewest, self.quiet, self.failures) = (blocks, 0, 0);
            self.fewest_ever = self.fewest_ever.min(blocks);
        }
        self.try_planning(run)
    }

    /// Begins a course. False if nothing could be joined.
    fn begin_course(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        debug_assert!(self.forest.roots().len() > 1 || self.placed == 1, "a perfect packing is offered");
        if self.courses > 0 && self.forest.roots().len() > 1 {
            self.place_blocks(run)?;
        }
        self.capacity = self.draw_capacity(run);
        self.spend_work(run, self.buffers.len() as u64)?;
        self.forest = Forest::new(&self.buffers, self.columns, self.capacity);
        self.joins.vary_noise(&mut self.rng);
        self.join_new(run, &[])?;
        self.forest.keep_changes();
        self.courses += 1;
        (self.attempt, self.quiet, self.failures) = (None, 0, 0);
        (self.fewest, self.placed) = (self.buffers.len(), usize::MAX);
        self.check_fewest(run)?;
        Ok(self.fewest < self.buffers.len())
    }

    fn draw_capacity(&mut self, run: &Run<'_>) -> u64 {
        let granules = |bytes: Bytes| bytes.get() / self.grain;
        let bound = run.bound().best_claim(Scope::NoHandOver).value.get().div_ceil(self.grain);
        let best = run.height_to_beat().map_or(bound, granules);
        match self.courses % 3 {
            1 => run.target().map_or(bound, granules).max(bound),
            2 if best > bound => self.rng.random_range(bound..best),
            _ => bound,
        }
    }

    fn join_new(&mut self, run: &mut Run<'_>, new: &[u32]) -> Result<(), Halt> {
        let mut tick = count_for_both(&mut self.work, run);
        self.joins.make_joins(&mut self.forest, new, &mut self.rng, &mut tick)
    }

    /// Takes apart blocks that start or end at one column, down to `depth` levels. Returns their parts.
    fn ruin_blocks(
        &mut self,
        run: &mut Run<'_>,
        depth: u32,
        chance: f64,
        most: usize,
    ) -> Result<Vec<u32>, Halt> {
        let Some(first) = self.choose_root() else { return Ok(Vec::new()) };
        let block = self.forest.block(first);
        let column = if self.rng.random() { block.start } else { block.end };
        let mut open = vec![first];
        let near = self.forest.roots_starting(column).iter().chain(self.forest.roots_ending(column));
        open.extend(near.copied().filter(|&other| other != first).take(MOST_AT_ONCE));
        let mut done = 0;
        for level in 0..depth {
            let last = open.len();
            for at in done..last {
                if open.len() < most && (level == 0 || self.rng.random_bool(chance)) {
                    self.forest.split_root(open[at], &mut open);
                }
            }
            done = last;
            if done == open.len() {
                break;
            }
        }
        self.spend_work(run, open.len() as u64)?;
        open.retain(|&id| self.forest.is_root(id));
        Ok(open)
    }

    /// A random root; during an attempt, if possible, one of its region.
    fn choose_root(&mut self) -> Option<u32> {
        let roots = self.forest.roots();
        let mut chosen = None;
        for _ in 0..DRAWS {
            let id = roots[random_below(&mut self.rng, roots.len())?];
            chosen = Some(id);
            let block = self.forest.block(id);
            let is_within = |attempt: &Attempt| attempt.start <= block.start && block.end <= attempt.end;
            if self.attempt.as_ref().is_none_or(is_within) {
                break;
            }
        }
        chosen
    }

    /// Begins to build a region again.
    fn begin_attempt(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let saved = self.forest.clone();
        self.spend_work(run, self.buffers.len() as u64)?;
        let most = self.rng.random_range(LEAST_REGION..MOST_REGION);
        let parts = self.ruin_blocks(run, u32::MAX, 1.0, most)?;
        let blocks = parts.iter().map(|&id| self.forest.block(id));
        let start = blocks.clone().map(|block| block.start).min().unwrap_or(0);
        let end = blocks.map(|block| block.end).max().unwrap_or(0);
        self.join_new(run, &parts)?;
        self.forest.keep_changes();
        self.attempt = Some(Attempt { saved, start, end, steps: 0 });
        self.check_fewest(run)
    }

    /// Ends an attempt that has led to fewer blocks, or has lasted long enough: goes back if there are more.
    fn settle_attempt(&mut self) {
        let blocks = self.forest.roots().len();
        let Some(attempt) = &mut self.attempt else { return };
        attempt.steps += 1;
        let before = attempt.saved.roots().len();
        if blocks >= before && attempt.steps < ATTEMPT {
            return;
        }
        self.failures += 1;
        self.quiet = 0;
        if let Some(attempt) = self.attempt.take().filter(|_| blocks > before) {
            self.forest = attempt.saved;
        }
    }

    /// Places the blocks if there are clearly fewer than ever, and planning has not taken too large a part of the work.
    fn try_planning(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let blocks = self.forest.roots().len();
        let is_due = if blocks <= EACH { blocks < self.placed } else { blocks <= self.placed / 16 * 15 };
        if !is_due || (blocks > 1 && self.planning * PLANNING > self.work) {
            return Ok(());
        }
        self.placed = blocks;
        self.place_blocks(run)
    }

    /// Places the blocks by first fit, and then, if there are few, as low as an exact search gets.
    fn place_blocks(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let before = self.work;
        let piece = |&id: &u32| {
            let block = self.forest.block(id);
            Piece { start: block.start, end: block.end, size: block.size, align: 1 }
        };
        let pieces: Vec<Piece> = self.forest.roots().iter().map(piece).collect();
        let offsets = lowest_first_fit(&pieces, &mut count_for_both(&mut self.work, run))?;
        self.offer_offsets(run, &offsets)?;
        if pieces.len() <= MOST_EXACT {
            let least = self.forest.highest_load();
            let beat = run.height_to_beat().map_or(u64::MAX, |height| height.get().div_ceil(self.grain));
            let limit = (before / PLACING).max(LEAST_PLACING) / WORK_PER_UNIT;
            let seed = self.rng.random();
            let work = &mut self.work;
            let found = residual::lowest_residual(&pieces, (least, beat), (limit, seed), &mut |units| {
                *work += WORK_PER_UNIT * units;
                run.tick(WORK_PER_UNIT * units)
            })?;
            if let Some(offsets) = found {
                self.offer_offsets(run, &offsets)?;
            }
        }
        self.planning += self.work - before;
        Ok(())
    }

    /// Offers the plan that offsets of the blocks lead to.
    fn offer_offsets(&mut self, run: &mut Run<'_>, offsets: &[u64]) -> Result<(), Halt> {
        let offsets = self.forest.spread_offsets(offsets);
        let order = by_offset(&offsets);
        self.spend_work(run, order.len() as u64)?;
        start::in_order(run, order).map(drop)
    }
}

/// The offsets of the lowest of a few first fits; all 0 if the pieces are too large for an instance.
fn lowest_first_fit(pieces: &[Piece], tick: &mut Tick<'_>) -> Result<Vec<u64>, Halt> {
    let Some(instance) = window::instance(pieces, &[]) else { return Ok(vec![0; pieces.len()]) };
    let mut best: Option<(u64, Vec<u64>)> = None;
    for order in ORDERS {
        let order: Vec<u32> = order.sort_buffers(&instance).into_iter().map(BufferId::get).collect();
        let offsets = first_fit(&instance, &order, tick)?;
        let ends = offsets.iter().zip(pieces).map(|(offset, piece)| offset + piece.size);
        let height = ends.max().unwrap_or(0);
        if best.as_ref().is_none_or(|(least, _)| height < *least) {
            best = Some((height, offsets));
        }
    }
    Ok(best.map_or_else(Vec::new, |(_, offsets)| offsets))
}

impl Search for BlockSearch {
    fn make_step(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        self.spend_work(run, 1)?;
        self.settle_attempt();
        let blocks = self.forest.roots().len();
        if self.courses == 0 || self.failures > STAGNATION_LIMIT + blocks as u64 / 4 || blocks == 1 {
            return self.begin_course(run);
        }
        self.joins.vary_noise(&mut self.rng);
        if self.attempt.is_none() && self.quiet > QUIET + blocks as u64 {
            self.begin_attempt(run)?;
            return Ok(true);
        }
        let (depth, chance) = (self.rng.random_range(1..DEPTH), self.rng.random_range(0.3..0.9));
        let parts = self.ruin_blocks(run, depth, chance, MOST_PARTS)?;
        self.join_new(run, &parts)?;
        let most = blocks + usize::from(self.rng.random_range(0..WORSE) == 0);
        let left = self.forest.roots().len();
        self.quiet += 1;
        if left > most {
            self.forest.undo_changes();
            return Ok(true);
        }
        self.forest.keep_changes();
        self.check_fewest(run)?;
        Ok(true)
    }

    fn work_done(&self) -> u64 {
        self.work
    }
}
