//! Serves a thread's calls: from the plan whose round is in progress, or by the real allocator.

use super::progress::MOST_BETWEEN;
use super::state::Machine;
use crate::calls::{Token, Watch};
use crate::plans::{Ground, Step};
use crate::tally::{Count, Tally};

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestAnswer {
    /// A plan serves the request at this address.
    Planned(u64),
    /// The real allocator must serve the request; then call [`Machine::record_placement`] with this number and the address.
    HandThrough(u64),
    /// The real allocator must serve the request.
    Foreign,
}

/// After this many rounds that could not begin, the plans leave the segment to the blocks in it.
const MOST_LATE: u32 = 3;

/// After this many planned rounds in a row, the real allocator gives back the memory of other rounds.
const STEADY: u64 = 8;
/// When requests outside of plans reach the bytes of this many rounds, the plans' memory goes back.
const REST: u64 = 8;

impl Machine {
    /// Handles a request for a block.
    pub fn handle_request(&mut self, size: u64, align: u64, ground: &mut impl Ground) -> RequestAnswer {
        self.tally.requests.add(1);
        self.tally.bytes.add(size);
        let watched = self.watches_request(ground).then(|| Token::from_request(size, align));
        let Some(token) = watched.flatten() else {
            self.tally.unplanned.add(1);
            return RequestAnswer::Foreign;
        };
        if self.pending.is_some() || self.found.is_some() {
            self.attend_planning(ground);
        }
        if self.follows && self.shelf.segment_holder().is_some_and(|course| course.is_over()) {
            self.complete_round();
        }
        if !self.follows && self.shelf.live_blocks() > 0 {
            self.handle_foreign_frees(ground);
        }
        let is_next = self.follows && self.shelf.segment_holder().is_some_and(|course| course.is_next(token));
        if !is_next && self.familiar.is_odd(token) {
            self.tally.unplanned.add(1);
            self.pass_over(size, ground);
            return RequestAnswer::Foreign;
        }
        self.look_between(ground);
        let number = self.history.record_request(token);
        let address = self.serve_planned(token, number, ground);
        self.look_at_call(ground);
        match address {
            Some(address) => {
                self.tally.planned.add(1);
                self.tally.planned_bytes.add(size);
                RequestAnswer::Planned(address)
            }
            None => {
                self.pass_over(size, ground);
                RequestAnswer::HandThrough(number)
            }
        }
    }

    /// Records that a block of the real allocator is about to be freed.
    pub fn record_free(&mut self, address: u64, ground: &mut impl Ground) {
        if !self.is_asleep() && self.history.record_free(address) {
            self.look_at_call(ground);
        }
    }

    /// Records that the real allocator is about to resize a block. Returns the number of its request, for
    /// [`record_placement`](Self::record_placement), if known.
    pub fn record_resize(&mut self, address: u64, ground: &mut impl Ground) -> Option<u64> {
        if self.is_asleep() {
            return None;
        }
        let number = self.history.record_resize(address)?;
        self.look_at_call(ground);
        Some(number)
    }

    /// Frees a planned block; whether one was live there.
    pub fn free_planned(&mut self, address: u64, ground: &mut impl Ground) -> bool {
        let Some(number) = self.shelf.free_block(address, ground) else {
            self.tally.wrong_frees.add(1);
            return false;
        };
        self.history.freed_number(number);
        self.look_at_call(ground);
        self.unclaim_pages(ground);
        true
    }

    /// Prepares for another thread to continue with these plans: the old thread's calls do not predict the new one's.
    pub fn prepare_for_next_thread(&mut self) {
        if self.follows && self.shelf.segment_holder().is_some_and(|course| !course.is_over()) {
            self.leave_round();
        }
        self.history.clear();
        self.watch = Watch::new(self.config.proof);
        self.stretches.drop_begun();
        (self.follows, self.astray, self.found, self.marked) = (false, 0, None, self.history.len());
    }

    /// The planned address of a request, or `None`, which is counted with its reason.
    fn serve_planned(&mut self, token: Token, number: u64, ground: &mut impl Ground) -> Option<u64> {
        if !self.follows {
            return self.begin_round(token, number, ground);
        }
        self.claim_pages(ground);
        let course = self.shelf.segment_holder()?;
        let step = match course.handle_request(token, number) {
            Step::InUse => self.step_after_draining(token, number, ground),
            step => step,
        };
        match step {
            Step::Here(address) => {
                self.between = 0;
                Some(address)
            }
            Step::Outliving => self.count_miss(|tally| &tally.outliving),
            Step::Other => self.handle_unexpected(token, number, ground),
            Step::InUse => {
                self.leave_round();
                self.count_miss(|tally| &tally.other_order)
            }
        }
    }

    /// Handles a request that is not the plan's next: the first of another round, one in between (a log line, say), or
    /// a departure from the plan.
    fn handle_unexpected(&mut self, token: Token, number: u64, ground: &mut impl Ground) -> Option<u64> {
        if self.shelf.live_blocks() == 0 && self.find_candidate(token).is_some() {
            self.leave_round();
            return self.begin_round(token, number, ground);
        }
        self.between += 1;
        if self.between > MOST_BETWEEN {
            self.leave_round();
        }
        self.count_miss(|tally| &tally.other_size)
    }

    /// Records that the real allocator serves a request.
    fn pass_over(&mut self, size: u64, ground: &mut impl Ground) {
        self.unclaim_pages(ground);
        if !self.follows {
            self.record_stray(size, ground);
            self.count_unplanned();
        }
    }

    /// Records that the real allocator serves a request outside of planned rounds. After many rounds' worth of these,
    /// the plans' memory goes back.
    fn record_stray(&mut self, size: u64, ground: &mut impl Ground) {
        self.astray_bytes = self.astray_bytes.saturating_add(size);
        let Some(round) = self.shelf.segment_holder().map(|course| course.requested_bytes()) else { return };
        if self.astray_bytes > round {
            (self.is_warm, self.steady) = (true, 0);
        }
        if self.astray_bytes > REST.saturating_mul(round) && !self.is_resting && self.shelf.live_blocks() == 0
        {
            self.is_resting = true;
            self.shelf.give_back(ground);
        }
    }

    fn count_miss(&self, reason: impl Fn(&Tally) -> &Count) -> Option<u64> {
        reason(&self.tally).add(1);
        None
    }

    #[cold]
    fn step_after_draining(&mut self, token: Token, number: u64, ground: &mut impl Ground) -> Step {
        self.handle_foreign_frees(ground);
        // If nothing was left in use, the pages are no longer claimed.
        self.claim_pages(ground);
        self.shelf.segment_holder().map_or(Step::Other, |course| course.handle_request(token, number))
    }

    /// Handles the frees of other threads.
    fn handle_foreign_frees(&mut self, ground: &mut impl Ground) {
        while let Some(address) = ground.next_foreign_free() {
            self.tally.foreign_frees.add(1);
            self.free_planned(address, ground);
        }
    }

    /// Begins a round with this request, if there is a plan for it and nothing is in use.
    fn begin_round(&mut self, token: Token, number: u64, ground: &mut impl Ground) -> Option<u64> {
        if self.is_inspection_due && self.shelf.live_blocks() == 0 {
            self.inspect_pages(ground);
        }
        let Some(chosen) = self.find_candidate(token) else {
            let is_astray = self.astray > 0;
            self.astray = self.astray.saturating_sub(1);
            return self.count_miss(|tally| if is_astray { &tally.departed } else { &tally.unplanned });
        };
        if self.shelf.live_blocks() > 0 {
            self.be_late(ground);
            return self.count_miss(|tally| &tally.late);
        }
        self.late = 0;
        // At once if a plan needs far more than those before. Otherwise once the rounds are steady, because if they
        // are not, the real allocator must request the memory again.
        let course = &self.shelf.courses()[chosen];
        let height = course.solved().height.get();
        let is_first = course.is_new() && height / 2 > self.settled_height;
        if self.is_warm && (is_first || self.steady >= STEADY) {
            self.is_warm = false;
            self.settled_height = self.settled_height.max(height);
            ground.settle_rounds();
        }
        (self.follows, self.astray, self.between, self.after_round) = (true, 0, 0, 0);
        (self.astray_bytes, self.is_resting) = (0, false);
        self.claim_pages(ground);
        match self.shelf.begin_course(chosen).handle_request(token, number) {
            Step::Here(address) => Some(address),
            _ => self.count_miss(|tally| &tally.outliving),
        }
    }

    /// The plan whose round this request begins. The first request of a round may also occur in its middle. So without
    /// marks one of these must hold: the plan's last round has just ended, only blocks that outlive rounds are live,
    /// or the calls before are those that end a round.
    fn find_candidate(&mut self, token: Token) -> Option<usize> {
        if self.config.marks {
            let is_first = std::mem::take(&mut self.is_marked);
            return self.shelf.find_candidate(token, |_| is_first);
        }
        let (history, is_between) = (&self.history, self.is_between);
        let after_round = self.after_round > 0;
        self.after_round = self.after_round.saturating_sub(1);
        self.shelf.find_candidate(token, |course| {
            is_between || after_round && course.is_over() || course.goes_on_from(history)
        })
    }

    /// Handles blocks that are still in use when the next round begins. If their round ended as planned, the next plan
    /// leaves them to the real allocator. Otherwise they may still be freed; if they are not, the plans move on.
    fn be_late(&mut self, ground: &mut impl Ground) {
        self.late += 1;
        if let Some(course) = self.shelf.segment_holder().filter(|course| course.is_over()) {
            let in_use = course.in_use();
            self.exclude_requests(&in_use, ground);
        } else if self.late >= MOST_LATE {
            self.late = 0;
            self.shelf.leave_segment(ground);
        }
    }
}
