//! What the machine needs from the process around it, and the segments that it gets.

use std::sync::Arc;

use super::pages::Pages;
use crate::calls::Round;
use crate::planning::{Solved, Unsolved};
use crate::tally::PlanTally;

/// A piece of memory for plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address; a multiple of 512, not 0.
    pub base: u64,
    /// Bytes.
    pub len: u64,
}

impl Segment {
    /// Whether an address lies in the segment.
    #[must_use]
    pub const fn contains_address(self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.len
    }
}

/// Memory, planning and other threads' frees. The library uses those of the process; tests simulate them.
pub trait Ground {
    /// Memory for plans, at least `bytes` bytes, that nothing else uses; `None` if there is no such memory.
    fn acquire(&mut self, bytes: u64) -> Option<Segment>;

    /// Takes a segment back. Nothing in it is live.
    fn release(&mut self, segment: Segment);

    /// Gives back the pages of a segment, but not its addresses. Nothing in it is live; its contents may be lost.
    fn discard_pages(&mut self, segment: Segment);

    /// Called before a block is handed out in a segment in which nothing is live. Returns whether its pages were given back
    /// since it was unclaimed.
    fn claim_segment(&mut self, segment: Segment) -> bool {
        let _ = segment;
        false
    }

    /// Called when nothing in a segment is live any more. Until it is claimed, its contents may be lost at any time.
    fn unclaim_segment(&mut self, segment: Segment) {
        let _ = segment;
    }

    /// Which of the first pages of a segment, up to `bytes` bytes, hold memory; `None` if unknown. Nothing in the segment
    /// is live; its contents may be lost.
    fn resident_pages(&mut self, segment: Segment, bytes: u64) -> Option<Pages> {
        let _ = (segment, bytes);
        None
    }

    /// Starts planning a round; the one before has ended. Returns whether that was possible.
    fn submit_round(&mut self, round: Round) -> bool;

    /// The result of the submitted round, once it has ended. Called at every request, so it must be quick.
    fn collect_result(&mut self) -> Option<Result<Solved, Unsolved>>;

    /// The address of a planned block that another thread has freed; returns each address once.
    fn next_foreign_free(&mut self) -> Option<u64>;

    /// The page faults of this thread so far. Default: 0, they are not counted.
    fn page_faults(&mut self) -> u64 {
        0
    }

    /// A clock in nanoseconds, from any origin. Called now and then.
    fn clock_nanoseconds(&mut self) -> u64;

    /// Receives the tally of a plan that is in use from now on.
    fn receive_tally(&mut self, tally: &Arc<PlanTally>);

    /// Rounds go as planned from here on: the memory in which others were served is not needed any more.
    fn settle_rounds(&mut self);
}
