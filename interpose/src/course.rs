//! A round that has a plan, in memory: which request comes next, and where it lies.

use std::sync::Arc;

use planlab_dsa::{Address, Backing, Bytes, OnlineAllocator, Refused, Stream};
use planlab_replay::{Planned, PlannedError};

use crate::history::History;
use crate::solve::Solved;
use crate::tally::PlanTally;
use crate::token::Token;

/// Calls before a round that tell its begin.
const CONTEXT: usize = 4;

/// A piece of memory for plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address; a multiple of 512, not 0.
    pub base: u64,
    /// Bytes.
    pub len: u64,
}

impl Segment {
    /// Whether an address lies in it.
    #[must_use]
    pub const fn contains(self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.len
    }
}

/// Gives a segment that is there to whoever asks for no more than it has.
struct Given(Segment);

impl Backing for Given {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        if size.get() <= self.0.len { Ok(Address::new(self.0.base)) } else { Err(Refused) }
    }

    fn release(&mut self, _: Address) {}
}

/// What a course says to a request that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It lies here.
    Here(u64),
    /// It is as expected, and not the plan's to serve.
    Outliving,
    /// The round has another request here.
    Other,
    /// A block that should be free is in use.
    InUse,
}

/// A planned round on a segment.
pub(crate) struct Course {
    solved: Arc<Solved>,
    pub(crate) tally: Arc<PlanTally>,
    planned: Planned,
    segment: Segment,
    /// For each request, whether the plan serves it, and the number that its latest has in the history.
    served: Vec<Option<u64>>,
    /// The latest request at each piece of the segment, by its first address.
    at: Vec<u32>,
    /// Of the requests of a round.
    bytes: u64,
    /// Pieces have 2^shift bytes: no two live blocks begin in one.
    shift: u32,
    next: usize,
    /// Blocks in use.
    live: u64,
    /// Rounds that ended well less those that did not, between -100 and 100.
    pub(crate) score: i32,
}

impl Course {
    /// Bytes of the segment that a plan needs: its height, and what rounding the first address up may take.
    pub(crate) fn need(solved: &Solved) -> Option<u64> {
        solved.height.get().checked_add(solved.alignment())
    }

    /// A plan on a segment. `least`: bytes that every request has at least.
    pub(crate) fn new(
        solved: Arc<Solved>,
        tally: Arc<PlanTally>,
        segment: Segment,
        least: u64,
    ) -> Result<Self, PlannedError> {
        let count = solved.round().requests().len();
        let mut served = vec![None; count];
        solved.numbers().iter().for_each(|&number| served[number] = Some(u64::MAX));
        let shift = least.max(1).ilog2();
        let pieces = usize::try_from(segment.len >> shift).unwrap_or(usize::MAX).saturating_add(1);
        let verified = solved.verified().expect("it was verified when it was made");
        let planned = Planned::new(&verified, Box::new(Given(segment)))?;
        drop(verified);
        let bytes = solved.round().requests().iter().map(|request| request.size).fold(0, u64::saturating_add);
        let at = vec![u32::MAX; pieces];
        Ok(Self { bytes, solved, tally, planned, segment, served, at, shift, next: 0, live: 0, score: 0 })
    }

    pub(crate) fn solved(&self) -> &Arc<Solved> {
        &self.solved
    }

    pub(crate) const fn segment(&self) -> Segment {
        self.segment
    }

    /// Blocks in use.
    pub(crate) const fn live(&self) -> u64 {
        self.live
    }

    /// The request that the round begins with.
    pub(crate) fn first(&self) -> Token {
        self.solved.round().tokens()[0]
    }

    /// Whether all requests of the round have come.
    pub(crate) fn is_over(&self) -> bool {
        self.next == self.served.len()
    }

    /// Whether no round went to its end so far.
    pub(crate) fn is_new(&self) -> bool {
        self.tally.rounds.get() == 0
    }

    /// Bytes of the requests of a round.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Requests of the round that have not come.
    pub(crate) fn left(&self) -> usize {
        self.served.len() - self.next
    }

    /// Calls of the round.
    pub(crate) fn calls(&self) -> u64 {
        self.solved.round().tokens().len() as u64
    }

    /// Whether the calls before the latest are those that the round ends with.
    pub(crate) fn goes_on_from(&self, history: &History) -> bool {
        let before = history.len().saturating_sub(1);
        let last = self.solved.round().tokens().iter().rev().cycle().take(CONTEXT);
        (1..)
            .zip(last)
            .all(|(back, &token)| before.checked_sub(back).and_then(|at| history.get(at)) == Some(token))
    }

    /// Whether the round goes on with such a request.
    #[inline]
    pub(crate) fn expects(&self, token: Token) -> bool {
        self.solved.round().requests().get(self.next).is_some_and(|request| request.token == token)
    }

    /// A round begins. Nothing may be in use.
    pub(crate) fn begin(&mut self) {
        self.planned.end_propagation();
        self.next = 0;
    }

    /// A request comes that has this number in the history.
    #[inline]
    pub(crate) fn step(&mut self, token: Token, size: u64, number: u64) -> Step {
        let Some(request) = self.solved.round().requests().get(self.next) else { return Step::Other };
        if request.token != token {
            return Step::Other;
        }
        if self.served[self.next].is_none() {
            self.next += 1;
            return Step::Outliving;
        }
        match self.planned.alloc(Bytes::new(size), Stream::default()) {
            Ok(address) => Step::Here(self.serve(address.get(), number)),
            Err(_) => Step::InUse,
        }
    }

    #[inline]
    fn serve(&mut self, address: u64, number: u64) -> u64 {
        self.served[self.next] = Some(number);
        let piece = self.piece(address);
        // A round has fewer than 2^32 calls.
        self.at[piece] = u32::try_from(self.next).unwrap_or(u32::MAX);
        self.next += 1;
        self.live += 1;
        address
    }

    fn piece(&self, address: u64) -> usize {
        usize::try_from((address - self.segment.base) >> self.shift).unwrap_or(usize::MAX)
    }

    /// Frees the block at an address of the segment; the number of its request, or `None` where none is live there.
    #[inline]
    pub(crate) fn free(&mut self, address: u64) -> Option<u64> {
        let request = *self.at.get(self.piece(address))?;
        self.planned.free(Address::new(address)).ok()?;
        self.live -= 1;
        // Freed: a number that no request has.
        let served = self.served.get_mut(usize::try_from(request).ok()?)?;
        served.replace(u64::MAX)
    }

    /// Requests whose blocks are in use, by their numbers in the round.
    pub(crate) fn in_use(&self) -> Vec<usize> {
        (0..self.served.len())
            .filter(|&number| self.served[number].is_some_and(|at| at != u64::MAX))
            .collect()
    }
}
