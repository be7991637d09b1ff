//! A planned round on a segment: which request comes next, and where it lies.

use std::sync::Arc;

use planlab_dsa::{Address, Backing, Bytes, OnlineAllocator, Refused, Stream, VerifiedPlan};
use planlab_replay::{Planned, PlannedError};

use super::ground::Segment;
use super::pages::{LEAST_SPARSE, LargeBlock, Pages};
use crate::calls::{History, Token};
use crate::planning::Solved;
use crate::tally::PlanTally;

/// The number of calls before a round that identify its begin.
const CONTEXT: usize = 4;

/// A backing with one existing segment, for a request that fits in it.
struct Given(Segment);

impl Backing for Given {
    fn acquire(&mut self, size: Bytes) -> Result<Address, Refused> {
        if size.get() <= self.0.len { Ok(Address::new(self.0.base)) } else { Err(Refused) }
    }

    fn release(&mut self, _: Address) {}
}

/// A course's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The request is planned and lies at this address.
    Here(u64),
    /// The request is as expected, but the plan does not serve it.
    Outliving,
    /// The round has a different request here.
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
    /// For each request, `None` if the plan does not serve it; else the number of its latest occurrence.
    served: Vec<Option<u64>>,
    /// The latest request at each piece of the segment, by index, plus 1; 0: none. Most of it is never written to, and
    /// costs no memory.
    at: Vec<u32>,
    /// The total size of a round's requests.
    bytes: u64,
    /// Pieces have 2^shift bytes: no two live blocks begin in one piece.
    shift: u32,
    next: usize,
    /// Blocks in use.
    live: u64,
    large: Vec<LargeBlock>,
    /// Rounds that ended as planned since the pages of the segment were fresh.
    pub(crate) rounds_on_pages: u64,
    /// Rounds that ended as planned, minus twice those that did not; between -100 and 100.
    pub(crate) score: i32,
    /// When a round of it last began, counted in rounds of all courses.
    pub(super) last_began: u64,
}

impl Course {
    /// Bytes of the segment that a plan needs: its height, and the padding to round the first address up.
    pub(crate) fn needed_bytes(solved: &Solved) -> Option<u64> {
        solved.height.get().checked_add(solved.alignment())
    }

    /// Puts a plan on a segment. `least`: the least size of every request, in bytes.
    pub(crate) fn new(
        solved: Arc<Solved>,
        tally: Arc<PlanTally>,
        segment: Segment,
        least: u64,
    ) -> Result<Self, PlannedError> {
        let count = solved.round().requests().len();
        let mut served = vec![None; count];
        solved.request_numbers().iter().for_each(|&number| served[number] = Some(u64::MAX));
        let shift = least.max(1).ilog2();
        let pieces = usize::try_from(segment.len >> shift).unwrap_or(usize::MAX).saturating_add(1);
        let verified = solved.verify_again().expect("it was verified when it was made");
        let planned = Planned::new(&verified, Box::new(Given(segment)))?;
        let large = large_blocks(&solved, &verified, segment);
        drop(verified);
        let bytes = solved.round().requests().iter().map(|request| request.size).fold(0, u64::saturating_add);
        let at = vec![0; pieces];
        Ok(Self {
            bytes,
            solved,
            tally,
            planned,
            segment,
            served,
            at,
            shift,
            next: 0,
            live: 0,
            large,
            rounds_on_pages: 0,
            score: 0,
            last_began: 0,
        })
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

    /// The first request of the round.
    pub(crate) fn first_request(&self) -> Token {
        self.solved.round().tokens()[0]
    }

    /// Whether all requests of the round have been made.
    pub(crate) fn is_over(&self) -> bool {
        self.next == self.served.len()
    }

    /// Whether no round has ended as planned so far.
    pub(crate) fn is_new(&self) -> bool {
        self.tally.rounds.get() == 0
    }

    /// The total size of a round's requests, in bytes.
    pub(crate) const fn requested_bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes from the begin of the segment that the plan may use.
    pub(crate) fn height(&self) -> u64 {
        Self::needed_bytes(&self.solved).unwrap_or(self.segment.len)
    }

    /// The requests whose large blocks hold more memory than in the first round, but use little of it.
    pub(crate) fn spreading_requests(&mut self, pages: &Pages) -> Vec<usize> {
        let blocks = self.large.iter_mut();
        blocks.filter_map(|block| block.is_spreading(pages).then_some(block.request)).collect()
    }

    /// Records that the pages of the segment were given back.
    pub(crate) fn begin_on_fresh_pages(&mut self) {
        self.rounds_on_pages = 0;
        self.large.iter_mut().for_each(|block| block.held_first = None);
    }

    /// The number of requests of the round that are still to come.
    pub(crate) fn requests_left(&self) -> usize {
        self.served.len() - self.next
    }

    /// The number of calls of the round.
    pub(crate) fn call_count(&self) -> u64 {
        self.solved.round().tokens().len() as u64
    }

    /// Whether the calls before the latest are those that end the round.
    pub(crate) fn goes_on_from(&self, history: &History) -> bool {
        let before = history.len().saturating_sub(1);
        let last = self.solved.round().tokens().iter().rev().cycle().take(CONTEXT);
        (1..)
            .zip(last)
            .all(|(back, &token)| before.checked_sub(back).and_then(|at| history.get(at)) == Some(token))
    }

    /// Whether this request is the round's next.
    #[inline]
    pub(crate) fn is_next(&self, token: Token) -> bool {
        self.solved.round().requests().get(self.next).is_some_and(|request| request.token == token)
    }

    /// Begins a round. Nothing may be in use.
    pub(crate) fn begin_round(&mut self) {
        self.planned.end_propagation();
        self.next = 0;
    }

    /// Handles a request that has this number in the history.
    #[inline]
    pub(crate) fn handle_request(&mut self, token: Token, number: u64) -> Step {
        let Some(request) = self.solved.round().requests().get(self.next) else { return Step::Other };
        if request.token != token {
            return Step::Other;
        }
        if self.served[self.next].is_none() {
            self.next += 1;
            return Step::Outliving;
        }
        match self.planned.alloc(Bytes::new(request.size), Stream::default()) {
            Ok(address) => Step::Here(self.serve_request(address.get(), number)),
            Err(_) => Step::InUse,
        }
    }

    #[inline]
    fn serve_request(&mut self, address: u64, number: u64) -> u64 {
        self.served[self.next] = Some(number);
        let piece = self.piece_index(address);
        // A round has fewer than 2^32 calls.
        self.next += 1;
        self.at[piece] = u32::try_from(self.next).unwrap_or(0);
        self.live += 1;
        address
    }

    fn piece_index(&self, address: u64) -> usize {
        usize::try_from((address - self.segment.base) >> self.shift).unwrap_or(usize::MAX)
    }

    /// Frees the block at an address of the segment; returns the number of its request, or `None` if no block is live
    /// there.
    #[inline]
    pub(crate) fn free_block(&mut self, address: u64) -> Option<u64> {
        let request = self.at.get(self.piece_index(address))?.checked_sub(1)?;
        self.planned.free(Address::new(address)).ok()?;
        self.live -= 1;
        // Freed: marked by a number that no request has.
        let served = self.served.get_mut(usize::try_from(request).ok()?)?;
        served.replace(u64::MAX)
    }

    /// Requests whose blocks are in use, by their indices in the round.
    pub(crate) fn in_use(&self) -> Vec<usize> {
        (0..self.served.len())
            .filter(|&number| self.served[number].is_some_and(|at| at != u64::MAX))
            .collect()
    }
}

/// The large blocks of a plan on a segment.
fn large_blocks(solved: &Solved, verified: &VerifiedPlan<'_>, segment: Segment) -> Vec<LargeBlock> {
    let begin = segment.base.next_multiple_of(solved.alignment()) - segment.base;
    let sizes = verified.instance().buffers().iter().map(|buffer| buffer.size.get());
    let places = verified.offsets().iter().map(|offset| begin + offset.get()).zip(sizes);
    let blocks = solved.request_numbers().iter().zip(places);
    blocks
        .filter(|(_, (_, size))| *size >= LEAST_SPARSE)
        .map(|(&request, (from, size))| LargeBlock { request, from, to: from + size, held_first: None })
        .collect()
}
