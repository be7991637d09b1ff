//! A joint search over what happens to every map after each of its uses: kept, dropped or moved to the host.
//!
//! Other schedulers give each map that a backward pass reads one class for the whole iteration. Here every access of
//! every map, transient or not, in the forward or the backward pass, has its own [fate](super::fates). So a value may be
//! recomputed through any number of levels, a recomputation may leave what others will read, and a copy on the host may
//! be read more than once. Copies in start as early as the memory permits.
//!
//! The search is an annealing with oscillation. It starts from the best of the schedules of quick schedulers, of those for
//! chains, and of a search of all schedules if the net is small: the order of their passes, and the fates of their maps.
//! Cheap schedulers come first, and each gets at most a tenth of the time or the work that is left.
//!
//! A change gives one access another fate, or a map from an access on, or two maps. A state may need more memory than
//! there is; the excess costs seconds, at a price that rises while states do not fit and falls while they do. A state that
//! fits and is faster than all before is placed; if its offsets end above the capacity, the search goes on in less memory.
//! Rounds begin with the best schedule so far; each is twice as long as the one before, and cooler, but the sixth is as hot
//! as the first.
//!
//! A change may also move a pass, backward passes among forward passes of other branches included. Sums of gradients run
//! as soon as their operands are there.
//!
//! Each change has random numbers of its own, and most are rejected. So several threads try the next changes ahead, with
//! the result of one thread: the same seed and limit of work give the same schedule.
//!
//! # References
//!
//! 1. S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by simulated annealing. Science 220(4598), 1983.
//!    doi:10.1126/science.220.4598.671.
//! 2. F. Glover: Heuristics for integer programming using surrogate constraints. Decision Sciences 8(1), 1977.
//!    doi:10.1111/j.1540-5915.1977.tb01074.x. Oscillation about the boundary of what is feasible.
//! 3. P. Jain et al.: Checkmate: Breaking the memory wall with optimal tensor rematerialization. MLSys 2020,
//!    arXiv:1910.02653. Stages.
//!
//! # Complexity
//!
//! For each change a program and its simulation: O(n) for n events, recomputations included, and the stays of maps that
//! come back. 20 g changes in the first of 5 or more rounds for g gaps, twice as many in each that follows; offsets for one state
//! in 200, and for those that are much faster. Anytime.

mod changes;
mod search;
mod speculation;

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor};

use search::{KEY, Search};

/// The changes that all rounds together make at least, if the net has choices.
const FEW_CHANGES: usize = 200_000;
/// Nets with few choices have no more rounds.
const MOST_ROUNDS: u32 = 12;

/// The joint search; key `joint`.
#[derive(Clone, Copy, Debug)]
pub struct Joint {
    rounds: u32,
}

impl Default for Joint {
    fn default() -> Self {
        Self { rounds: 5 }
    }
}

impl Joint {
    /// The least number of annealings, each twice as long as the one before; small nets have more. Default: 5. With 0 no
    /// net is annealed.
    #[must_use]
    pub const fn with_rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }
}

impl Scheduler for Joint {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "searches what to keep, swap and recompute after each use of each map; offsets fit"
                .into(),
            randomized: true,
            reference: "Kirkpatrick et al. 1983; Glover 1977",
            complexity: "a simulation for each change; anytime",
        }
    }

    fn uses_threads(&self) -> bool {
        true
    }

    fn searches_all_schedules(&self) -> bool {
        true
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let mut search = Search::new(run);
        let starts = search.offer_starts().and_then(|()| search.search_small());
        let end = starts.and_then(|()| {
            let mut changes = 0;
            for round in 0..if self.rounds > 0 { MOST_ROUNDS } else { 0 } {
                if round >= self.rounds && changes > FEW_CHANGES {
                    break;
                }
                changes += search.anneal_fates(round)?;
            }
            Ok(())
        });
        match end {
            Err(ScheduleHalt::Stop(_)) => search.place_waiting().and(end),
            end => end,
        }
    }
}
