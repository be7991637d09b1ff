//! The state machine of a thread: watches its calls, finds the round, and serves it from a plan.
//!
//! ```text
//!              a period is proved            planned             the round's first request
//!   seeking ------------------------> (in the background) ---> seeking ------------------> following
//!      ^                                                          ^                            |
//!      +------------ another size, a block in use ----------------+----------------------------+
//! ```
//!
//! It touches no memory of the program and makes no system call: that is for its [`Ground`]. Whatever comes, it never hands
//! out memory that is live: [`Planned`](planlab_replay::Planned) refuses what the verified plan does not allow, and the
//! real allocator serves it.

mod familiar;
mod finding;
mod ground;
mod pace;
mod shelf;
mod stretches;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use planlab_dsa::Bytes;

use familiar::Familiar;
pub use ground::Ground;
use pace::Pace;
use shelf::Shelf;
use stretches::Stretches;

use crate::course::Step;
use crate::history::History;
use crate::period::{Proof, Watch};
use crate::round::Round;
use crate::solve::Solved;
use crate::tally::{Count, Tally};
use crate::token::Token;

/// What the machine is told once.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Requests of fewer bytes are not its business. At least 64; default: 4096.
    pub least_size: u64,
    /// What proves a period.
    pub proof: Proof,
    /// Rounds with fewer transient bytes live at once are not planned. Default: 131,072, from where on glibc asks the
    /// kernel for each block.
    pub least_load: Bytes,
    /// Plans that a thread keeps at most. Default: 16.
    pub most_plans: usize,
    /// Whether rounds go from one [`mark`](Machine::mark) to the next. Default: they are found.
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
    /// A plan serves it: here.
    Planned(u64),
    /// The real allocator is to serve it, and [`Machine::placed`] to be told where, with this number.
    HandThrough(u64),
    /// The real allocator is to serve it.
    Foreign,
}

/// Rounds for which no plan was made, and that are not tried again.
const MOST_REFUSED: usize = 16;
/// How often blocks that outlive their round may change its plan.
const MOST_EXCLUSIONS: u32 = 8;

/// After so many rounds that could not begin the plans leave a segment to the blocks in it.
const MOST_LATE: u32 = 3;

/// So many requests in a row may come between those of a plan, or between two rounds.
const MOST_BETWEEN: u32 = 4;
/// After so many rounds in a row the real allocator's memory of others goes back.
const STEADY: u64 = 8;
/// After so many rounds' bytes outside of plans the plans' memory goes back.
const REST: u64 = 8;

/// What is being planned.
struct Pending {
    round: Round,
    faults_milli: u64,
    /// The plan that is to go.
    replaces: Option<Arc<Solved>>,
    exclusions: u32,
}

/// A period that was proved: where it ends, its calls, page faults in a thousand of them.
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
    /// Whether a round is on its way.
    follows: bool,
    /// Requests since the machine woke, without a plan; requests until it wakes.
    fruitless: u32,
    asleep: u32,
    pace: Pace,
    familiar: Familiar,
    /// Requests in a row that are not the plan's.
    between: u32,
    /// Requests left of the round that departed from its plan.
    astray: usize,
    pending: Option<Pending>,
    found: Option<Found>,
    refused: Vec<Round>,
    /// Page faults when a period became likely.
    faults_when_likely: u64,
    /// How often in a row blocks were in use where a round began.
    late: u32,
    /// Whether the real allocator holds memory of rounds that were not planned, as far as is known.
    is_warm: bool,
    /// The most that a plan needed when memory last went back, in bytes.
    settled_height: u64,
    /// Rounds in a row that went as planned.
    steady: u64,
    /// Bytes that the real allocator served since a round was last planned, and whether the segment's pages are there.
    astray_bytes: u64,
    is_resting: bool,
    /// Where the last mark was, and whether a round may begin.
    marked: u64,
    is_marked: bool,
    stretches: Stretches,
    /// Whether the request that comes may be the first of a round, by what is live.
    is_between: bool,
    /// How many requests more may be the first after a round that went to its end: a few others may come in between.
    after_round: u32,
    /// How often the plan of each round was changed for blocks that outlive it.
    exclusions: Vec<(Arc<Solved>, u32)>,
}

impl Machine {
    /// One that has seen nothing.
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
            marked: 0,
            is_marked: false,
            stretches: Stretches::default(),
            is_between: false,
            after_round: 0,
            exclusions: Vec::new(),
            config,
        }
    }

    /// A request for a block.
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

    /// The real allocator served the request with this number, here.
    pub fn placed(&mut self, number: u64, address: u64) {
        self.history.placed(number, address);
    }

    /// A block of the real allocator is about to be freed.
    pub fn freed(&mut self, address: u64, ground: &mut impl Ground) {
        if !self.is_asleep() && self.history.freed(address) {
            self.look(ground);
        }
    }

    /// A block of the real allocator is about to be resized by it. The number of its request, for
    /// [`placed`](Self::placed), if it is known.
    pub fn moves(&mut self, address: u64, ground: &mut impl Ground) -> Option<u64> {
        if self.is_asleep() {
            return None;
        }
        let number = self.history.moves(address)?;
        self.look(ground);
        Some(number)
    }

    /// Frees a planned block. Whether one was live there.
    pub fn free(&mut self, address: u64, ground: &mut impl Ground) -> bool {
        let Some(number) = self.shelf.free(address, ground) else {
            self.tally.wrong_frees.add(1);
            return false;
        };
        self.history.freed_number(number);
        self.look(ground);
        true
    }

    /// Another thread goes on with these plans: what the old one did says nothing of what comes.
    pub fn rest(&mut self) {
        if self.follows && self.shelf.holder().is_some_and(|course| !course.is_over()) {
            self.depart();
        }
        self.history.clear();
        self.watch.restart();
        self.stretches.drop_begun();
        (self.follows, self.astray, self.found, self.marked) = (false, 0, None, self.history.len());
    }

    /// No thread goes on with these plans for now: their memory goes back, unless a block lies in it.
    pub fn give_back(&mut self, ground: &mut impl Ground) {
        self.is_resting = true;
        self.shelf.rest(ground);
    }

    /// What was being planned is lost: the process is a copy of another.
    pub fn forget_pending(&mut self) {
        self.pending = None;
    }

    /// Whether no block lies in any of its segments.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.shelf.is_idle()
    }

    /// Where the plan has its place for a request, or `None`, which is counted with its reason.
    fn serve(&mut self, token: Token, size: u64, number: u64, ground: &mut impl Ground) -> Option<u64> {
        if !self.follows {
            return self.begin(token, size, number, ground);
        }
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

    /// Another request comes than the plan's next: the first of another round, one in between (a line that is logged), or the
    /// round has left its plan.
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

    /// The real allocator serves a request.
    fn pass_over(&mut self, size: u64, ground: &mut impl Ground) {
        if !self.follows {
            self.stray(size, ground);
            self.tire();
        }
    }

    /// The real allocator serves a request outside of planned rounds. Where it has served many rounds the plans' memory
    /// goes back.
    fn stray(&mut self, size: u64, ground: &mut impl Ground) {
        self.astray_bytes = self.astray_bytes.saturating_add(size);
        let Some(round) = self.shelf.holder().map(|course| course.bytes()) else { return };
        if self.astray_bytes > round {
            (self.is_warm, self.steady) = (true, 0);
        }
        if self.astray_bytes > REST.saturating_mul(round) && !self.is_resting && self.shelf.live() == 0 {
            self.is_resting = true;
            self.shelf.rest(ground);
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
        self.shelf.holder().map_or(Step::Other, |course| course.step(token, size, number))
    }

    /// Takes in what other threads freed.
    fn drain(&mut self, ground: &mut impl Ground) {
        while let Some(address) = ground.drain() {
            self.tally.foreign_frees.add(1);
            self.free(address, ground);
        }
    }

    /// A round ended as planned.
    fn complete(&mut self) {
        self.follows = false;
        self.after_round = MOST_BETWEEN + 1;
        self.steady += 1;
        self.stretches.drop_begun();
        self.tally.rounds.add(1);
        if let Some(course) = self.shelf.holder() {
            course.tally.rounds.add(1);
            course.score = (course.score + 1).min(100);
            // So what is kept of a steady sequence does not grow.
            let calls = course.calls();
            if self.watch.is_settled(calls) {
                self.history.rewind(calls);
            }
        }
    }

    /// The round left its plan.
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
        // At once where a plan needs far more than those before; else once the rounds are steady, as the real allocator
        // has to ask for it again if not.
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
        match self.shelf.begin(chosen).step(token, size, number) {
            Step::Here(address) => Some(address),
            _ => self.miss(|tally| &tally.outliving),
        }
    }

    /// The plan whose round this request begins. What a round begins with may come in the middle of it too: where nobody
    /// marks the begin, its last round has to have ended just now, or nothing may be live but what lives on between rounds, or
    /// the calls before have to be those that a round ends with.
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

    /// Blocks of the last round are in use where the next begins. If that went to its end as planned, they are left to the
    /// real allocator from the next plan on; else they may be freed yet, and if not the plans move on.
    fn be_late(&mut self, ground: &mut impl Ground) {
        self.late += 1;
        if self.shelf.holder().is_some_and(|course| course.is_over()) {
            self.exclude(ground);
        } else if self.late >= MOST_LATE {
            self.late = 0;
            self.shelf.leave(ground);
        }
    }
}
