//! What the machine asks of the process around it.

use std::sync::Arc;

use crate::course::Segment;
use crate::round::Round;
use crate::solve::{Solved, Unsolved};
use crate::tally::PlanTally;

/// Memory, planning and news of other threads. The library gives what the process has; tests simulate it.
pub trait Ground {
    /// Memory for plans, of at least so many bytes, that nothing else uses; `None` where there is none.
    fn acquire(&mut self, bytes: u64) -> Option<Segment>;

    /// Takes a segment back. Nothing in it is live.
    fn release(&mut self, segment: Segment);

    /// Gives the pages of a segment back, not its addresses. Nothing in it is live, and what it holds is of no use.
    fn rest(&mut self, segment: Segment);

    /// Starts planning a round; the one before has ended. Whether that was possible.
    fn submit(&mut self, round: Round) -> bool;

    /// What came of the round that was submitted, once it has ended. Asked at every request, so it has to be quick.
    fn collect(&mut self) -> Option<Result<Solved, Unsolved>>;

    /// The address of a planned block that another thread has freed; each is told once.
    fn drain(&mut self) -> Option<u64>;

    /// Page faults of this thread so far.
    fn faults(&mut self) -> u64;

    /// A clock, in nanoseconds from any point on. Asked now and then.
    fn nanoseconds(&mut self) -> u64;

    /// A plan is in use from now on.
    fn adopted(&mut self, tally: &Arc<PlanTally>);

    /// Rounds go as planned from here on: the memory in which others were served before is of no use.
    fn settled(&mut self);
}
