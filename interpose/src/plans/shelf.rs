//! The plans of a thread over one segment, and segments that blocks still occupy.

use std::sync::Arc;

use super::course::Course;
use super::ground::{Ground, Segment};
use crate::calls::Token;
use crate::planning::Solved;
use crate::tally::PlanTally;

/// The most segments that are kept for blocks that nobody frees.
const MOST_RETIRED: usize = 4;

/// Plans that take turns on one segment. Only the holder has blocks in it.
#[derive(Default)]
pub(crate) struct Shelf {
    courses: Vec<Course>,
    rounds: u64,
    holder: Option<usize>,
    segment: Option<Segment>,
    /// Courses with segments of their own until their last blocks are freed.
    retired: Vec<Course>,
    /// The number of requests of the longest round.
    longest: usize,
    /// The least size of every request, in bytes.
    least: u64,
    /// The most plans that are kept.
    most: usize,
}

impl Shelf {
    pub(crate) fn new(least: u64, most: usize) -> Self {
        Self { least, most: most.max(1), ..Self::default() }
    }

    /// The course that uses the segment.
    pub(crate) fn segment_holder(&mut self) -> Option<&mut Course> {
        self.holder.map(|holder| &mut self.courses[holder])
    }

    pub(crate) fn segment(&self) -> Option<Segment> {
        self.segment
    }

    /// The number of blocks in use in the segment.
    pub(crate) fn live_blocks(&self) -> u64 {
        self.holder.map_or(0, |holder| self.courses[holder].live())
    }

    /// Whether nothing is in use in any segment.
    pub(crate) fn is_idle(&self) -> bool {
        self.live_blocks() == 0 && self.retired.is_empty()
    }

    /// The number of requests of the longest round.
    pub(crate) fn longest_round(&self) -> usize {
        self.longest
    }

    pub(crate) fn courses(&self) -> &[Course] {
        &self.courses
    }

    /// Begins a round of the chosen course on the segment, in which nothing is in use.
    pub(crate) fn begin_course(&mut self, chosen: usize) -> &mut Course {
        if let Some(before) = self.holder.filter(|&before| before != chosen) {
            self.courses[before].begin_round();
        }
        self.rounds += 1;
        self.holder = Some(chosen);
        let course = &mut self.courses[chosen];
        course.last_began = self.rounds;
        course.begin_round();
        course
    }

    /// The most promising course that begins with a request, among those that may begin: first those that succeed at
    /// least as often as they fail, then the longest.
    pub(crate) fn find_candidate(&self, first: Token, may_begin: impl Fn(&Course) -> bool) -> Option<usize> {
        let begins = |(_, course): &(usize, &Course)| course.first_request() == first && may_begin(course);
        let promise = |(_, course): &(usize, &Course)| (course.score >= 0, course.call_count());
        self.courses.iter().enumerate().filter(begins).max_by_key(promise).map(|(at, _)| at)
    }

    /// Leaves the segment to the blocks in it.
    pub(crate) fn leave_segment(&mut self, ground: &mut impl Ground) {
        self.move_on(0, ground);
    }

    /// Takes up a plan, in place of the one that it replaces. `false` if there is no memory.
    ///
    /// If blocks are in use and the segment is too small, or is used by the replaced plan, the blocks stay where they
    /// are and the plans move on to another segment.
    pub(crate) fn install_plan(
        &mut self,
        solved: Arc<Solved>,
        tally: Arc<PlanTally>,
        replaces: Option<&Arc<Solved>>,
        ground: &mut impl Ground,
    ) -> bool {
        let Some(need) = Course::needed_bytes(&solved) else { return false };
        let replaced = replaces.and_then(|old| self.position(old));
        let is_in_the_way = self.live_blocks() > 0 && (replaced.is_some() && replaced == self.holder);
        let is_small = self.segment.is_none_or(|segment| segment.len < need);
        if (is_small || is_in_the_way) && !self.move_on(need, ground) {
            return false;
        }
        // Moving on may have removed the replaced course.
        let replaced = replaces.and_then(|old| self.position(old));
        if let Some(at) = replaced.or_else(|| self.oldest_course()) {
            self.remove_course(at);
        }
        // Inner loops of its round would begin in the middle of it.
        while let Some(inner) = self.inner_course(&solved) {
            self.remove_course(inner);
        }
        let Some(segment) = self.segment else { return false };
        let Ok(mut course) = Course::new(solved, tally, segment, self.least) else { return false };
        course.last_began = self.rounds;
        self.courses.push(course);
        let requests = self.courses.iter().map(|course| course.solved().round().requests().len());
        self.longest = requests.max().unwrap_or(0);
        true
    }

    /// The least recently used course, if there are too many; never the one with blocks.
    fn oldest_course(&self) -> Option<usize> {
        let is_free = |&at: &usize| Some(at) != self.holder || self.courses[at].live() == 0;
        (self.courses.len() >= self.most)
            .then(|| (0..self.courses.len()).filter(is_free).min_by_key(|&at| self.courses[at].last_began))
            .flatten()
    }

    /// A course whose round is a part of another one, and that has no block in use.
    fn inner_course(&self, outer: &Solved) -> Option<usize> {
        let is_inner = |(at, course): &(usize, &Course)| {
            let is_held = Some(*at) == self.holder && course.live() > 0;
            !is_held && outer.round().holds_calls(course.solved().round().tokens())
        };
        self.courses.iter().enumerate().find(is_inner).map(|(at, _)| at)
    }

    /// Gives the segment's pages back, if nothing is live in it.
    pub(crate) fn give_back(&mut self, ground: &mut impl Ground) {
        if let Some(segment) = self.segment.filter(|_| self.live_blocks() == 0) {
            ground.discard_pages(segment);
            self.begin_on_fresh_pages();
        }
    }

    /// Records that the segment's pages were given back.
    pub(crate) fn begin_on_fresh_pages(&mut self) {
        self.courses.iter_mut().for_each(Course::begin_on_fresh_pages);
    }

    /// Forgets a plan, unless blocks of it are in use.
    pub(crate) fn drop_plan(&mut self, plan: &Arc<Solved>) {
        if let Some(at) = self.position(plan).filter(|&at| Some(at) != self.holder || self.live_blocks() == 0)
        {
            self.remove_course(at);
        }
    }

    fn position(&self, plan: &Arc<Solved>) -> Option<usize> {
        self.courses.iter().position(|course| Arc::ptr_eq(course.solved(), plan))
    }

    fn remove_course(&mut self, at: usize) -> Course {
        self.holder = match self.holder {
            Some(holder) if holder == at => None,
            Some(holder) if holder > at => Some(holder - 1),
            holder => holder,
        };
        self.courses.remove(at)
    }

    /// Moves all plans to a new segment of at least `need` bytes. A course with blocks in use keeps the old one.
    fn move_on(&mut self, need: u64, ground: &mut impl Ground) -> bool {
        let is_in_use = self.live_blocks() > 0;
        if is_in_use && self.retired.len() >= MOST_RETIRED {
            return false;
        }
        let all = self.courses.iter().filter_map(|course| Course::needed_bytes(course.solved()));
        let Some(segment) = ground.acquire(all.fold(need, u64::max)) else { return false };
        let moved: Vec<Course> =
            self.courses.iter().filter_map(|course| self.move_course(course, segment)).collect();
        if moved.len() < self.courses.len() {
            ground.release(segment);
            return false;
        }
        let old = std::mem::replace(&mut self.courses, moved);
        let holder = self.holder.take();
        match old.into_iter().enumerate().find(|(at, _)| Some(*at) == holder) {
            Some((_, course)) if is_in_use => self.retired.push(course),
            _ => self.segment.into_iter().for_each(|segment| ground.release(segment)),
        }
        self.segment = Some(segment);
        true
    }

    fn move_course(&self, course: &Course, segment: Segment) -> Option<Course> {
        let (solved, tally) = (Arc::clone(course.solved()), Arc::clone(&course.tally));
        let mut moved = Course::new(solved, tally, segment, self.least).ok()?;
        (moved.score, moved.last_began) = (course.score, course.last_began);
        Some(moved)
    }

    /// Frees a planned block; returns the number of its request.
    #[inline]
    pub(crate) fn free_block(&mut self, address: u64, ground: &mut impl Ground) -> Option<u64> {
        match self.segment_holder() {
            Some(course) if course.segment().contains_address(address) => course.free_block(address),
            _ => self.free_retired(address, ground),
        }
    }

    fn free_retired(&mut self, address: u64, ground: &mut impl Ground) -> Option<u64> {
        let at = self.retired.iter().position(|course| course.segment().contains_address(address))?;
        let number = self.retired[at].free_block(address)?;
        if self.retired[at].live() == 0 {
            ground.release(self.retired.remove(at).segment());
        }
        Some(number)
    }
}
