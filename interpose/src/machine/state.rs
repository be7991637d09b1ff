//! A machine's settings, and what it knows: the calls so far, the plans, the round in progress, the round that is being
//! planned.

use std::sync::Arc;

use planlab_dsa::Bytes;

use crate::calls::{Familiar, History, Pace, Proof, Round, Stretches, Watch};
use crate::planning::Solved;
use crate::plans::{Ground, Shelf};
use crate::tally::Tally;

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
    /// Whether rounds go from one [`mark_round`](Machine::mark_round) to the next. Default: no, they are found.
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

/// A round that is being planned.
pub(super) struct Pending {
    pub(super) round: Round,
    pub(super) faults_milli: u64,
    /// The plan that it replaces.
    pub(super) replaces: Option<Arc<Solved>>,
    pub(super) exclusions: u32,
}

/// A proved period: where it ends, its number of calls, and its page faults in thousandths.
#[derive(Clone, Copy)]
pub(super) struct FoundPeriod {
    pub(super) end: u64,
    pub(super) period: u64,
    pub(super) faults_milli: u64,
}

/// Watches the calls of a thread and serves those that are planned.
pub struct Machine {
    pub(super) config: Config,
    pub(super) history: History,
    pub(super) watch: Watch,
    pub(super) shelf: Shelf,
    pub(super) tally: Arc<Tally>,
    /// Whether a planned round is in progress.
    pub(super) follows: bool,
    /// Requests without a plan since the machine woke; requests until it wakes.
    pub(super) fruitless: u32,
    pub(super) asleep: u32,
    pub(super) pace: Pace,
    pub(super) familiar: Familiar,
    /// Requests in a row that are not the plan's.
    pub(super) between: u32,
    /// The remaining requests of the round that departed from its plan.
    pub(super) astray: usize,
    pub(super) pending: Option<Pending>,
    pub(super) found: Option<FoundPeriod>,
    pub(super) refused: Vec<Round>,
    /// Page faults when a period became likely.
    pub(super) faults_when_likely: u64,
    /// How often in a row blocks were in use at the beginning of a round.
    pub(super) late: u32,
    /// Whether the real allocator probably holds memory of unplanned rounds.
    pub(super) is_warm: bool,
    /// The greatest height of a plan when memory last went back, in bytes.
    pub(super) settled_height: u64,
    /// Rounds in a row that went as planned.
    pub(super) steady: u64,
    /// Bytes that the real allocator served since the last planned round, and whether the segment's pages went back.
    pub(super) astray_bytes: u64,
    pub(super) is_resting: bool,
    /// Whether the segment's pages are claimed.
    pub(super) is_claimed: bool,
    /// Whether the pages of the last round are to be looked at.
    pub(super) is_inspection_due: bool,
    /// The call number of the last mark, and whether a marked round may begin.
    pub(super) marked: u64,
    pub(super) is_marked: bool,
    pub(super) stretches: Stretches,
    /// Whether the next request may be the first of a round, judged by the live blocks.
    pub(super) is_between: bool,
    /// How many more requests may be the first after a finished round: a few others may come in between.
    pub(super) after_round: u32,
    /// How often the plan of each round was changed for blocks that outlive it.
    pub(super) exclusions: Vec<(Arc<Solved>, u32)>,
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

    /// Records the address at which the real allocator served the request with this number.
    pub fn record_placement(&mut self, number: u64, address: u64) {
        self.history.record_placement(number, address);
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
}
