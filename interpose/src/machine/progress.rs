//! The planned round in progress: it claims its segment's pages, and goes as planned or departs.

use super::state::Machine;
use crate::plans::Ground;

/// The most requests in a row between those of a plan, or between two rounds.
pub(super) const MOST_BETWEEN: u32 = 4;
/// Pages of plans that need less are not looked at, in bytes.
const LEAST_INSPECTED: u64 = 1 << 20;

impl Machine {
    /// Claims the segment's pages, before a block is handed out there.
    #[inline]
    pub(super) fn claim_pages(&mut self, ground: &mut impl Ground) {
        if !std::mem::replace(&mut self.is_claimed, true)
            && self.shelf.segment().is_some_and(|segment| ground.claim_segment(segment))
        {
            self.shelf.begin_on_fresh_pages();
        }
    }

    /// Lets the segment's pages go if nothing is in use. The program may wait from here on for as long as it likes.
    #[inline]
    pub(super) fn unclaim_pages(&mut self, ground: &mut impl Ground) {
        if self.is_claimed
            && self.shelf.live_blocks() == 0
            && let Some(segment) = self.shelf.segment()
        {
            self.is_claimed = false;
            ground.unclaim_segment(segment);
        }
    }

    /// Ends a round that went as planned.
    pub(super) fn complete_round(&mut self) {
        self.follows = false;
        self.after_round = MOST_BETWEEN + 1;
        self.steady += 1;
        self.stretches.drop_begun();
        self.tally.rounds.add(1);
        if let Some(course) = self.shelf.segment_holder() {
            course.tally.rounds.add(1);
            course.score = (course.score + 1).min(100);
            course.rounds_on_pages += 1;
            let (calls, rounds, height) = (course.call_count(), course.rounds_on_pages, course.height());
            // Looked at after 1, 2, 4, 8, ... rounds.
            self.is_inspection_due = rounds.is_power_of_two() && height >= LEAST_INSPECTED;
            // Dropped, so that the history of a steady sequence does not grow.
            if self.watch.is_settled(calls) {
                self.history.drop_latest(calls);
            }
        }
    }

    /// Ends a round that left its plan.
    pub(super) fn leave_round(&mut self) {
        self.follows = false;
        self.tally.departures.add(1);
        if let Some(course) = self.shelf.segment_holder() {
            course.tally.departures.add(1);
            course.score = (course.score - 2).max(-100);
            self.astray = course.requests_left();
        }
    }
}
