//! Windows: proves that some steps alone exceed a capacity.
//!
//! Leaving buffers out, and cutting live ranges, makes a problem easier, never harder: what does not fit in a few
//! neighbouring sections fits nowhere. A search looks for a plan of the window around a peak within the capacity. If
//! there is no such plan, the height is at least the next multiple of the granularity, and the next capacity is tried.
//! Windows grow as long as the work allows. A window with a plan is dropped; an undecided one is tried again with ten
//! times the nodes. The search is that of the planner `exact`.
//!
//! # References
//!
//! 1. M. Maas, U. Beaugnon, A. Chauhan, B. Ilbeyi: *TelaMalloc: Efficient On-Chip Memory Allocation for
//!    Production Machine Learning Accelerators*. ASPLOS 2022. doi:10.1145/3567955.3567961
//! 2. M. D. Moffitt: *MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
//!    Learning*. ASPLOS 2023. doi:10.1145/3623278.3624752 (sections)
//!
//! # Complexity
//!
//! Exponential in the buffers of a window; cut off at a fixed number of nodes.

use planlab_dsa::{Evidence, Halt, Instance};

use super::argument::{Argument, Found};
use super::cores::{Core, cut_cores};
use crate::feasibility::{Problem, Verdict};
use crate::tick::Tick;

/// Nodes in the first round, for each window.
const FIRST_NODES: u64 = 1_000;

/// The bound by search in windows.
pub(super) struct Windows {
    /// Nodes for each window in the last round.
    pub(super) nodes: u64,
    /// The most buffers that are searched in one window.
    pub(super) buffers: usize,
}

impl Argument for Windows {
    fn evidence(&self) -> Evidence {
        Evidence::Search
    }

    fn failure_message(&self) -> &'static str {
        "no window of steps was shown to be too full"
    }

    fn prove_bound(&self, arena: &Instance, known: u64, tick: &mut Tick<'_>) -> Result<Option<Found>, Halt> {
        let mut ladder = Ladder { grain: arena.offset_granularity(), known, found: None };
        let mut open: Vec<Window> = Vec::new();
        for core in cut_cores(arena, self.buffers, tick)? {
            open.extend(Problem::new(&core.inner).map(|problem| Window { core, problem }));
        }
        let mut nodes = FIRST_NODES;
        while nodes <= self.nodes && !open.is_empty() {
            let mut left = Vec::new();
            for window in open {
                if !ladder.climb_window(&window, nodes, tick)? {
                    left.push(window);
                }
            }
            open = left;
            nodes *= 10;
        }
        Ok(ladder.found.map(|how| Found { value: ladder.known, how }))
    }
}

/// A core, ready to be searched.
struct Window {
    core: Core,
    problem: Problem,
}

/// The bound while it rises.
struct Ladder {
    grain: u64,
    known: u64,
    found: Option<String>,
}

impl Ladder {
    /// Raises the bound as far as a window can; returns whether the window is settled.
    fn climb_window(&mut self, window: &Window, nodes: u64, tick: &mut Tick<'_>) -> Result<bool, Halt> {
        let mut stride = 1;
        loop {
            let capacity = (self.known.div_ceil(self.grain) + stride - 1).saturating_mul(self.grain);
            let answer = match capacity.checked_sub(window.core.taken) {
                Some(inside) => window.problem.decide_capacity(inside, nodes, tick)?,
                None => Verdict::Infeasible,
            };
            match answer {
                Verdict::Infeasible => {
                    self.known = capacity + self.grain;
                    self.found = Some(format!(
                        "no plan of steps {} to {} ({} buffers once {} bytes that stay are set aside) fits {capacity}",
                        window.core.steps.start(),
                        window.core.steps.end(),
                        window.core.inner.len(),
                        window.core.taken,
                    ));
                    stride *= 2;
                }
                Verdict::Feasible(_) if stride == 1 => return Ok(true),
                Verdict::Unknown if stride == 1 => return Ok(false),
                _ => stride = 1,
            }
        }
    }
}
