//! One large neighbourhood search: which buffers it frees, and what it makes of the answers.

use std::sync::Arc;

use planlab_dsa::{Buffer, Bytes, Halt, Run};
use rand::RngExt;

use crate::demands::is_kept_apart;
use crate::feasibility::Verdict;
use crate::placement::greedy::first_fit;
use crate::placement::order::by_offset;
use crate::placement::search::IDLE;
use crate::placement::search::decoding::{Model, Part, Search, random_below};
use crate::placement::search::start::Start;
use crate::placement::search::window::{self, Piece};
use crate::tick::count_for_both;

/// Nodes of one search for each freed buffer: this, doubled at random fewer than `DOUBLINGS` times.
const NODES_PER_BUFFER: u64 = 5;
const DOUBLINGS: u32 = 5;
/// Units of work for one unit of the exact search: a node examines every buffer of the window.
const WORK_PER_UNIT: u64 = 16;
/// The ceiling begins this fraction of the best height below it.
const AMBITION: u64 = 64;
/// The fewest buffers of a neighbourhood, and below it the number in the first.
const FEWEST: usize = 6;
const FIRST: usize = 16;
/// The most buffers of a neighbourhood.
const MOST: usize = 384;
/// Steps without a smaller excess before the ceiling rises.
const STAGNATION_LIMIT: u64 = 300;

/// A large neighbourhood search that can be resumed.
#[derive(Clone, Debug)]
pub(crate) struct LnsSearch {
    pub(super) model: Arc<Model>,
    lives: Vec<(u32, u32)>,
    /// Buffers that may be freed.
    is_free: Vec<bool>,
    offsets: Vec<u64>,
    /// The height of the lowest plan that any search has found.
    best: u64,
    /// The lowest plan of this search, and its height.
    pub(super) own: u64,
    pub(super) best_offsets: Vec<u64>,
    /// The lowest offsets of this course, and their height.
    course_offsets: Vec<u64>,
    course_height: u64,
    ceiling: u64,
    /// The distance of the ceiling below the best height.
    ambition: u64,
    /// The buffers that end above the ceiling.
    tall: Vec<u32>,
    least_excess: u128,
    failures: u64,
    size: usize,
    work: u64,
    idle: u32,
    /// The step that last visited each buffer.
    seen: Vec<u64>,
    generation: u64,
}

impl LnsSearch {
    pub(crate) fn new(run: &Run<'_>, model: Arc<Model>, start: &Start) -> Self {
        let instance = run.instance();
        let lives: Vec<(u32, u32)> = instance.buffers().iter().map(|buffer| buffer.live.into()).collect();
        let is_plain = |(buffer, is_apart): (&Buffer, bool)| {
            buffer.pin.is_none() && buffer.pauses.is_empty() && !is_apart
        };
        let is_free = instance.buffers().iter().zip(is_kept_apart(instance)).map(is_plain).collect();
        let offsets: Vec<u64> = start.offsets.iter().map(|offset| offset / model.grain).collect();
        let best = height(&model, &offsets);
        let mut this = Self {
            lives,
            is_free,
            best_offsets: offsets.clone(),
            course_offsets: offsets.clone(),
            course_height: best,
            offsets,
            best,
            own: best,
            ceiling: 0,
            ambition: (best / AMBITION).max(1),
            tall: Vec::new(),
            least_excess: 0,
            failures: 0,
            size: FIRST,
            work: 0,
            idle: 0,
            seen: vec![0; model.len()],
            generation: 0,
            model,
        };
        this.set_ceiling(run);
        this
    }

    fn set_ceiling(&mut self, run: &Run<'_>) {
        let lowest = self.model.known_bound(run);
        let target = run.target().map_or(u64::MAX, |target| target.get() / self.model.grain);
        let wanted = self.best.saturating_sub(self.ambition).max(lowest);
        self.ceiling = wanted.min(target.max(lowest));
        self.failures = 0;
        self.find_tall();
        self.least_excess = self.excess_over_ceiling();
    }

    fn end_of(&self, id: u32) -> u64 {
        self.offsets[id as usize] + self.model.sizes[id as usize]
    }

    fn find_tall(&mut self) {
        let count = u32::try_from(self.offsets.len()).expect("fewer than 2^32 buffers");
        self.tall = (0..count).filter(|&id| self.end_of(id) > self.ceiling).collect();
    }

    fn excess_over_ceiling(&self) -> u128 {
        self.tall.iter().map(|&id| u128::from(self.end_of(id) - self.ceiling)).sum()
    }

    /// A buffer that sticks out (now and then a random one), and the buffers to free with it.
    fn choose_neighbourhood(&mut self, run: &mut Run<'_>) -> Option<Vec<u32>> {
        let is_any = run.rng().random_range(0_u8..5) == 0;
        let seed = if is_any {
            u32::try_from(random_below(run.rng(), self.offsets.len())?).ok()?
        } else {
            self.tall[random_below(run.rng(), self.tall.len())?]
        };
        if !self.is_free[seed as usize] {
            return None;
        }
        let mut scratch = Vec::new();
        let near = self.model.neighbours.neighbours_of(seed, &mut scratch);
        self.work += 1 + near.len() as u64;
        let (start, end) = self.lives[seed as usize];
        let step = run.rng().random_range(start..end);
        let kind = run.rng().random_range(0_u8..3);
        let mut keyed: Vec<(u64, u32, u32)> = near
            .iter()
            .filter(|&&id| self.is_free[id as usize])
            .map(|&id| (self.distance_to_seed(kind, id, seed, step), run.rng().random(), id))
            .collect();
        keyed.sort_unstable();
        keyed.truncate(self.size - 1);
        Some(std::iter::once(seed).chain(keyed.into_iter().map(|(_, _, id)| id)).collect())
    }

    fn distance_to_seed(&self, kind: u8, id: u32, seed: u32, step: u32) -> u64 {
        let (start, end) = self.lives[id as usize];
        match kind {
            0 => u64::from(start.saturating_sub(step).max((step + 1).saturating_sub(end))),
            1 => 0,
            _ => {
                let (low, high) = (self.offsets[seed as usize], self.end_of(seed));
                self.offsets[id as usize].saturating_sub(high).max(low.saturating_sub(self.end_of(id)))
            }
        }
    }

    /// The room below the ceiling that the buffers that stay take from the freed ones.
    fn free_blocks(&mut self, freed: &[u32], pieces: &[Piece]) -> Vec<Part> {
        self.generation += 1;
        for &id in freed {
            self.seen[id as usize] = self.generation;
        }
        let mut stays: Vec<Part> = Vec::new();
        let mut scratch = Vec::new();
        for &id in freed {
            for &other in self.model.neighbours.neighbours_of(id, &mut scratch) {
                if std::mem::replace(&mut self.seen[other as usize], self.generation) != self.generation {
                    self.push_blocks(other, &mut stays);
                }
            }
        }
        window::merge_blocks(&stays, pieces, self.ceiling)
    }

    /// Returns what a buffer takes.
    fn push_blocks(&self, id: u32, blocks: &mut Vec<Part>) {
        let (offset, (start, end)) = (self.offsets[id as usize], self.lives[id as usize]);
        let whole = [Part { start, end, low: 0, high: self.model.sizes[id as usize] }];
        let parts = self.model.parts.get(id as usize).map_or(&whole[..], |parts| &parts[..]);
        blocks.extend(parts.iter().map(|p| Part { low: offset + p.low, high: offset + p.high, ..*p }));
    }

    fn freed_pieces(&self, freed: &[u32]) -> Vec<Piece> {
        let piece = |&id: &u32| {
            let ((start, end), at) = (self.lives[id as usize], id as usize);
            let size = self.model.sizes[at];
            Piece { start, end, size, align: self.model.aligns[at] }
        };
        freed.iter().map(piece).collect()
    }

    fn take_places(&mut self, run: &mut Run<'_>, freed: &[u32], places: &[u64]) -> Result<(), Halt> {
        for (&id, &offset) in freed.iter().zip(places) {
            self.offsets[id as usize] = offset;
        }
        self.find_tall();
        if self.tall.is_empty() {
            return self.reach_ceiling(run);
        }
        self.compare_with_lowest(run)?;
        let excess = self.excess_over_ceiling();
        if excess < self.least_excess {
            (self.least_excess, self.failures) = (excess, 0);
        }
        Ok(())
    }

    /// Nothing sticks out: offers the plan and lowers the ceiling.
    fn reach_ceiling(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = by_offset(&self.offsets);
        let grain = self.model.grain;
        let packed = first_fit(run.instance(), &order, &mut count_for_both(&mut self.work, run))?;
        let packed: Vec<u64> = packed.into_iter().map(|offset| offset / grain).collect();
        if height(&self.model, &packed) <= height(&self.model, &self.offsets) {
            self.offsets = packed;
        }
        self.compare_with_lowest(run)?;
        self.ambition = self.ambition.saturating_mul(2);
        self.set_ceiling(run);
        Ok(())
    }

    /// Keeps the offsets if they are the lowest of the course, and offers them if they are the lowest of all.
    fn compare_with_lowest(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        let height = height(&self.model, &self.offsets);
        if height < self.course_height {
            self.course_height = height;
            self.course_offsets.clone_from(&self.offsets);
        }
        if height < self.own {
            self.own = height;
            self.best_offsets.clone_from(&self.offsets);
        }
        if height >= self.best {
            return Ok(());
        }
        self.best = height;
        if run.improves_incumbent(Bytes::new(self.best * self.model.grain)) {
            run.offer(self.model.plan_of(self.offsets.iter().copied()))?;
        }
        Ok(())
    }

    /// Lowers the ceiling if another search has found a lower plan.
    fn aim_below_incumbent(&mut self, run: &Run<'_>) {
        let known = self.model.incumbent_height(run, self.best);
        if known < self.best {
            self.best = known;
            self.set_ceiling(run);
        }
    }

    /// Continues from another plan, given by offsets in granules.
    pub(crate) fn adopt_offsets(&mut self, run: &Run<'_>, offsets: &[u64]) {
        self.offsets.clear();
        self.offsets.extend_from_slice(offsets);
        self.best_offsets.clone_from(&self.offsets);
        self.own = height(&self.model, offsets);
        self.begin_course();
        self.best = self.model.incumbent_height(run, self.own);
        self.ambition = (self.best / AMBITION).max(1);
        self.set_ceiling(run);
    }

    /// Starts from a plan, with small neighbourhoods.
    pub(super) fn restart_from(&mut self, run: &Run<'_>, offsets: Vec<u64>) {
        self.offsets = offsets;
        self.begin_course();
        self.size = FIRST;
        self.ambition = (self.best / AMBITION).max(1);
        self.set_ceiling(run);
    }

    fn begin_course(&mut self) {
        self.course_offsets.clone_from(&self.offsets);
        self.course_height = height(&self.model, &self.offsets);
    }

    /// After a long time without progress: raises the ceiling; if it is at its highest, lowers it again by far.
    /// Continues from the lowest plan of the course or from the current one.
    fn relax_ceiling(&mut self, run: &mut Run<'_>) {
        self.ambition = if self.ambition > 1 { self.ambition / 2 } else { (self.best / AMBITION).max(1) };
        if run.rng().random() {
            self.offsets.clone_from(&self.course_offsets);
        }
        self.set_ceiling(run);
    }

    fn resize_neighbourhood(&mut self, answer: &Verdict) {
        match answer {
            Verdict::Feasible(_) => {}
            Verdict::Infeasible => {
                self.size = (self.size + self.size / 4 + 1).min(self.offsets.len().min(MOST));
            }
            Verdict::Unknown => self.size = (self.size - self.size / 10 - 1).max(FEWEST),
        }
    }
}

fn height(model: &Model, offsets: &[u64]) -> u64 {
    offsets.iter().zip(&model.sizes).map(|(offset, size)| offset + size).max().unwrap_or(0)
}

impl Search for LnsSearch {
    fn make_step(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        self.work += 1;
        run.tick(1 + self.offsets.len() as u64 / 64)?;
        self.aim_below_incumbent(run);
        if self.tall.is_empty() {
            return Ok(false); // The ceiling is the bound.
        }
        let Some(freed) = self.choose_neighbourhood(run) else {
            self.idle += 1;
            return Ok(self.idle < IDLE);
        };
        self.idle = 0;
        let pieces = self.freed_pieces(&freed);
        let blocks = self.free_blocks(&freed, &pieces);
        let stated = (blocks.len() + freed.len()) as u64 * freed.len() as u64 / 4;
        self.work += stated;
        run.tick(stated)?;
        let nodes = (NODES_PER_BUFFER << run.rng().random_range(0..DOUBLINGS)) * freed.len() as u64;
        let seed = run.rng().random();
        let work = &mut self.work;
        let answer = window::search_window((&pieces, &blocks), self.ceiling, (nodes, seed), &mut |units| {
            *work += WORK_PER_UNIT * units;
            run.tick(WORK_PER_UNIT * units)
        })?;
        self.resize_neighbourhood(&answer);
        self.failures += 1;
        if let Verdict::Feasible(places) = &answer {
            self.take_places(run, &freed, places)?;
        }
        if self.failures > STAGNATION_LIMIT {
            self.relax_ceiling(run);
        }
        Ok(true)
    }

    fn work_done(&self) -> u64 {
        self.work
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Budget, execute};

    use super::*;
    use crate::placement::baseline::Bump;
    use crate::placement::search::{HONOURS, start};
    use crate::placement::testing::{planned_offsets, scripted, test_descriptor, test_instance};

    #[test]
    fn a_course_keeps_the_start_that_it_was_given() {
        // A load of 4 and an optimum of 5, so that no proof ends the run.
        let rows = [(2, 0, 3), (1, 2, 6), (1, 3, 6), (1, 7, 8), (2, 4, 7), (2, 6, 8), (1, 2, 4), (2, 0, 2)];
        let instance = test_instance(&rows);
        // Starts from buffers on top of each other, though it knows a lower plan.
        let from_above = scripted(test_descriptor("from-above", HONOURS), |run| {
            let start = start::best_start(run)?.expect("a plan");
            let model = Model::new(run.instance(), &mut |_| Ok(()))?.expect("no hand-overs");
            let above = planned_offsets(&Bump, run.instance());
            let mut search = LnsSearch::new(run, Arc::new(model), &start);
            let lowest = search.best_offsets.clone();
            search.restart_from(run, above.clone());
            for _ in 0..16 {
                search.relax_ceiling(run);
            }
            assert_eq!(search.offsets, above);
            assert_eq!((search.own, &search.best_offsets), (height(&search.model, &lowest), &lowest));
            Ok(())
        });
        let outcome = execute(&from_above, &instance, Budget::default(), 0);
        assert_eq!(outcome.end, Ok(planlab_dsa::Stop::Finished));
    }
}
