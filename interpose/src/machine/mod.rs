//! The state machine of a thread: watches its calls, finds the round, and serves it from a plan.
//!
//! ```text
//!              a period is proved            planned             the round's first request
//!   seeking ------------------------> (in the background) ---> seeking ------------------> following
//!      ^                                                          ^                            |
//!      +------------ another size, a block in use ----------------+----------------------------+
//! ```
//!
//! It touches no memory of the program and makes no system call; its [`Ground`] does that. It never hands out live
//! memory, whatever the calls: [`Planned`](planlab_replay::Planned) refuses what the verified plan does not allow, and
//! the real allocator serves it.

mod familiar;
mod finding;
mod frozen;
mod ground;
mod pace;
mod pages;
mod shelf;
mod stretches;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use planlab_dsa::Bytes;

use familiar::Familiar;
pub use ground::Ground;
use pace::Pace;
pub use pages::Pages;
pub(crate) use pages::{LEAST_SPARSE, LargeBlock, PAGE};
use shelf::Shelf;
use stretches::Stretches;

use crate::course::Step;
use crate::history::History;
use crate::period::{Proof, Watch};
use crate::round::Round;
use crate::solve::Solved;
use crate::tally::{Count, Tally};
use crate::token::Token;

/// The machine's settings.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Smaller requests are not the machine's concern. At least 64 bytes; default: 4096.
    pub least_size: u64,
    /// The proof that a period needs.
    pub proof: Proof,
    /// Rounds with fewer transient bytes live at once are not planned. Default: 131,072, because from that size on
    /// glibc asks the kernel for each block.
    pub least_load: Bytes,
    /// The most plans that a thread keeps. Default: 16.
    pub most_plans: usize,
    /// Whether rounds go from one [`mark`](Machine::mark) to the next. Default: no, they are found.
    pub marks: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            least_size: 4096,
            proof: Proof::default(),
            least_load: Bytes::new(128 << 10),
            most_plans: 16,
            marks: false,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A plan serves the request at this address.
    Planned(u64),
    /// The real allocator must serve the request; then call [`Machine::placed`] with this number and the address.
    HandThrough(u64),
    /// The real allocator must serve the request.
    Foreign,
}

/// The most rounds without a plan that are remembered, so that they are not tried again.
const MOST_REFUSED: usize = 16;
/// How often blocks that outlive their round may change its plan.
const MOST_EXCLUSIONS: u32 = 8;

/// After this many rounds that could not begin, the plans leave the segment to the blocks in it.
const MOST_LATE: u32 = 3;

/// The most requests in a row between those of a plan, or between two rounds.
const MOST_BETWEEN: u32 = 4;
/// After this many planned rounds in a row, the real allocator gives back the memory of other rounds.
const STEADY: u64 = 8;
/// When requests outside of plans reach the bytes of this many rounds, the plans' memory goes back.
const REST: u64 = 8;

/// A round that is being planned.
struct Pending {
    round: Round,
    faults_milli: u64,
    /// The plan that it replaces.
    replaces: Option<Arc<Solved>>,
    exclusions: u32,
}

/// A proved period: where it ends, its number of calls, and its page faults in thousandths.
#[derive(Clone, Copy)]
struct Found {
    end: u64,
    period: u64,
    faults_milli: u64,
}

/// Watches the calls of a thread and serves those that are planned.
pub struct Machine {
    config: Config,
    history: History,
    watch: Watch,
    shelf: Shelf,
    tally: Arc<Tally>,
    /// Whether a planned round is in progress.
    follows: bool,
    /// Requests without a plan since the machine woke; requests until it wakes.
    fruitless: u32,
    asleep: u32,
    pace: Pace,
    familiar: Familiar,
    /// Requests in a row that are not the plan's.
    between: u32,
    /// The remaining requests of the round that departed from its plan.
    astray: usize,
    pending: Option<Pending>,
    found: Option<Found>,
    refused: Vec<Round>,
    /// Page faults when a period became likely.
    faults_when_likely: u64,
    /// How often in a row blocks were in use at the beginning of a round.
    late: u32,
    /// Whether the real allocator probably holds memory of unplanned rounds.
    is_warm: bool,
    /// The greatest height of a plan when memory last went back, in bytes.
    settled_height: u64,
    /// Rounds in a row that went as planned.
    steady: u64,
    /// Bytes that the real allocator served since the last planned round, and whether the segment's pages went back.
    astray_bytes: u64,
    is_resting: bool,
    /// Whether the segment's pages are claimed.
    is_claimed: bool,
    /// Whether the pages of the last round are to be looked at.
    is_inspection_due: bool,
    /// The call number of the last mark, and whether a marked round may begin.
    marked: u64,
    is_marked: bool,
    stretches: Stretches,
    /// Whether the next request may be the first of a round, judged by the live blocks.
    is_between: bool,
    /// How many more requests may be the first after a finished round: a few others may come in between.
    after_round: u32,
    /// How often the plan of each round was changed for blocks that outlive it.
    exclusions: Vec<(Arc<Solved>, u32)>,
}

impl Machine {
    /// A machine without history.
    #[must_use]
    pub fn new(config: Config, tally: Arc<Tally>) -> Self {
        Self {
            history: History::default(),
            watch: Watch::new(config.proof),
            shelf: Shelf::new(config.least_size, config.most_plans),
            tally,
            follows: false,
            fruitless: 0,
            asleep: 0,
            pace: Pace::default(),
            familiar: Familiar::default(),
            between: 0,
            astray: 0,
            pending: None,
            found: None,
            refused: Vec::new(),
            faults_when_likely: 0,
            late: 0,
            is_warm: false,
            settled_height: 0,
            steady: 0,
            astray_bytes: 0,
            is_resting: false,
            is_claimed: false,
            is_inspection_due: false,
            marked: 0,
            is_marked: false,
            stretches: Stretches::default(),
            is_between: false,
            after_round: 0,
            exclusions: Vec::new(),
            config,
        }
    }

    /// Handles a request for a block.
    pub fn request(&mut self, size: u64, align: u64, ground: &mut impl Ground) -> Answer {
        self.tally.requests.add(1);
        self.tally.bytes.add(size);
        if !self.watches(ground) {
            self.tally.unplanned.add(1);
            return Answer::Foreign;
        }
        let Some(token) = Token::request(size, align) else {
            self.tally.unplanned.add(1);
            return Answer::Foreign;
        };
        if self.pending.is_some() || self.found.is_some() {
            self.attend(ground);
        }
        if self.follows && self.shelf.holder().is_some_and(|course| course.is_over()) {
            self.complete();
        }
        if !self.follows && self.shelf.live() > 0 {
            self.drain(ground);
        }
        let is_next = self.follows && self.shelf.holder().is_some_and(|course| course.expects(token));
        if !is_next && self.familiar.is_odd(token) {
            self.tally.unplanned.add(1);
            self.pass_over(size, ground);
            return Answer::Foreign;
        }
        self.look_between(ground);
        let number = self.history.request(token);
        let address = self.serve(token, size, number, ground);
        self.look(ground);
        match address {
            Some(address) => {
                self.tally.planned.add(1);
                self.tally.planned_bytes.add(size);
                Answer::Planned(address)
            }
            None => {
                self.pass_over(size, ground);
                Answer::HandThrough(number)
            }
        }
    }

    /// Records the address at which the real allocator served the request with this number.
    pub fn placed(&mut self, number: u64, address: u64) {
        self.history.placed(number, address);
    }

    /// Records that a block of the real allocator is about to be freed.
    pub fn freed(&mut self, address: u64, ground: &mut impl Ground) {
        if !self.is_asleep() && self.history.freed(address) {
            self.look(ground);
        }
    }

    /// Records that the real allocator is about to resize a block. Returns the number of its request, for
    /// [`placed`](Self::placed), if known.
    pub fn moves(&mut self, address: u64, ground: &mut impl Ground) -> Option<u64> {
        if self.is_asleep() {
            return None;
        }
        let number = self.history.moves(address)?;
        self.look(ground);
        Some(number)
    }

    /// Frees a planned block; whether one was live there.
    pub fn free(&mut self, address: u64, ground: &mut impl Ground) -> bool {
        let Some(number) = self.shelf.free(address, ground) else {
            self.tally.wrong_frees.add(1);
            return false;
        };
        self.history.freed_number(number);
        self.look(ground);
        self.unclaim_pages(ground);
        true
    }

    /// Prepares for another thread to continue with these plans: the old thread's calls do not predict the new one's.
    pub fn rest(&mut self) {
        if self.follows && self.shelf.holder().is_some_and(|course| !course.is_over()) {
            self.depart();
        }
        self.history.clear();
        self.watch = Watch::new(self.config.proof);
        self.stretches.drop_begun();
        (self.follows, self.astray, self.found, self.marked) = (false, 0, None, self.history.len());
    }

    /// Gives back the plans' memory, unless a block lies in it, because no thread uses these plans for now.
    pub fn give_back(&mut self, ground: &mut impl Ground) {
        self.is_resting = true;
        self.shelf.give_back(ground);
    }

    /// Forgets the round being planned, because the process is a forked copy.
    pub fn forget_pending(&mut self) {
        self.pending = None;
    }

    /// Whether no block lies in any of the segments.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.shelf.is_idle()
    }

    /// The planned address of a request, or `None`, which is counted with its reason.
    fn serve(&mut self, token: Token, size: u64, number: u64, ground: &mut impl Ground) -> Option<u64> {
        if !self.follows {
            return self.begin(token, size, number, ground);
        }
        self.claim_pages(ground);
        let course = self.shelf.holder()?;
        let step = match course.step(token, size, number) {
            Step::InUse => self.step_after_draining(token, size, number, ground),
            step => step,
        };
        match step {
            Step::Here(address) => {
                self.between = 0;
                Some(address)
            }
            Step::Outliving => self.miss(|tally| &tally.outliving),
            Step::Other => self.other(token, size, number, ground),
            Step::InUse => {
                self.depart();
                self.miss(|tally| &tally.other_order)
            }
        }
    }

    /// Handles a request that is not the plan's next: the first of another round, one in between (a log line, say), or
    /// a departure from the plan.
    fn other(&mut self, token: Token, size: u64, number: u64, ground: &mut impl Ground) -> Option<u64> {
        if self.shelf.live() == 0 && self.candidate(token).is_some() {
            self.depart();
            return self.begin(token, size, number, ground);
        }
        self.between += 1;
        if self.between > MOST_BETWEEN {
            self.depart();
        }
        self.miss(|tally| &tally.other_size)
    }

    /// Claims the segment's pages, before a block is handed out there.
    #[inline]
    fn claim_pages(&mut self, ground: &mut impl Ground) {
        if !std::mem::replace(&mut self.is_claimed, true)
            && self.shelf.segment().is_some_and(|segment| ground.claim(segment))
        {
            self.shelf.begin_on_fresh_pages();
        }
    }

    /// Lets the segment's pages go if nothing is in use. The program may wait from here on for as long as it likes.
    #[inline]
    fn unclaim_pages(&mut self, ground: &mut impl Ground) {
        if self.is_claimed
            && self.shelf.live() == 0
            && let Some(segment) = self.shelf.segment()
        {
            self.is_claimed = false;
            ground.unclaim(segment);
        }
    }

    /// Records that the real allocator serves a request.
    fn pass_over(&mut self, size: u64, ground: &mut impl Ground) {
        self.unclaim_pages(ground);
        if !self.follows {
            self.stray(size, ground);
            self.tire();
        }
    }

    /// Records that the real allocator serves a request outside of planned rounds. After many rounds' worth of these,
    /// the plans' memory goes back.
    fn stray(&mut self, size: u64, ground: &mut impl Ground) {
        self.astray_bytes = self.astray_bytes.saturating_add(size);
        let Some(round) = self.shelf.holder().map(|course| course.bytes()) else { return };
        if self.astray_bytes > round {
            (self.is_warm, self.steady) = (true, 0);
        }
        if self.astray_bytes > REST.saturating_mul(round) && !self.is_resting && self.shelf.live() == 0 {
            self.is_resting = true;
            self.shelf.give_back(ground);
        }
    }

    fn miss(&self, reason: impl Fn(&Tally) -> &Count) -> Option<u64> {
        reason(&self.tally).add(1);
        None
    }

    #[cold]
    fn step_after_draining(
        &mut self,
        token: Token,
        size: u64,
        number: u64,
        ground: &mut impl Ground,
    ) -> Step {
        self.drain(ground);
        // If nothing was left in use, the pages are no longer claimed.
        self.claim_pages(ground);
        self.shelf.holder().map_or(Step::Other, |course| course.step(token, size, number))
    }

    /// Handles the frees of other threads.
    fn drain(&mut self, ground: &mut impl Ground) {
        while let Some(address) = ground.drain() {
            self.tally.foreign_frees.add(1);
            self.free(address, ground);
        }
    }

    /// Ends a round that went as planned.
    fn complete(&mut self) {
        self.follows = false;
        self.after_round = MOST_BETWEEN + 1;
        self.steady += 1;
        self.stretches.drop_begun();
        self.tally.rounds.add(1);
        if let Some(course) = self.shelf.holder() {
            course.tally.rounds.add(1);
            course.score = (course.score + 1).min(100);
            course.rounds_on_pages += 1;
            let (calls, rounds, height) = (course.calls(), course.rounds_on_pages, course.height());
            self.schedule_inspection(rounds, height);
            // Dropped, so that the history of a steady sequence does not grow.
            if self.watch.is_settled(calls) {
                self.history.rewind(calls);
            }
        }
    }

    /// Ends a round that left its plan.
    fn depart(&mut self) {
        self.follows = false;
        self.tally.departures.add(1);
        if let Some(course) = self.shelf.holder() {
            course.tally.departures.add(1);
            course.score = (course.score - 2).max(-100);
            self.astray = course.left();
        }
    }

    /// Begins a round with this request, if there is a plan for it and nothing is in use.
    fn begin(&mut self, token: Token, size: u64, number: u64, ground: &mut impl Ground) -> Option<u64> {
        if self.is_inspection_due && self.shelf.live() == 0 {
            self.inspect_pages(ground);
        }
        let Some(chosen) = self.candidate(token) else {
            let is_astray = self.astray > 0;
            self.astray = self.astray.saturating_sub(1);
            return self.miss(|tally| if is_astray { &tally.departed } else { &tally.unplanned });
        };
        if self.shelf.live() > 0 {
            self.be_late(ground);
            return self.miss(|tally| &tally.late);
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
            ground.settled();
        }
        (self.follows, self.astray, self.between, self.after_round) = (true, 0, 0, 0);
        (self.astray_bytes, self.is_resting) = (0, false);
        self.claim_pages(ground);
        match self.shelf.begin(chosen).step(token, size, number) {
            Step::Here(address) => Some(address),
            _ => self.miss(|tally| &tally.outliving),
        }
    }

    /// The plan whose round this request begins. The first request of a round may also occur in its middle. So without
    /// marks one of these must hold: the plan's last round has just ended, only blocks that outlive rounds are live,
    /// or the calls before are those that end a round.
    fn candidate(&mut self, token: Token) -> Option<usize> {
        if self.config.marks {
            let is_first = std::mem::take(&mut self.is_marked);
            return self.shelf.candidate(token, |_| is_first);
        }
        let (history, is_between) = (&self.history, self.is_between);
        let after_round = self.after_round > 0;
        self.after_round = self.after_round.saturating_sub(1);
        self.shelf.candidate(token, |course| {
            is_between || after_round && course.is_over() || course.goes_on_from(history)
        })
    }

    /// Handles blocks that are still in use when the next round begins. If their round ended as planned, the next plan
    /// leaves them to the real allocator. Otherwise they may still be freed; if they are not, the plans move on.
    fn be_late(&mut self, ground: &mut impl Ground) {
        self.late += 1;
        if let Some(course) = self.shelf.holder().filter(|course| course.is_over()) {
            let in_use = course.in_use();
            self.exclude(&in_use, ground);
        } else if self.late >= MOST_LATE {
            self.late = 0;
            self.shelf.leave(ground);
        }
    }
}
