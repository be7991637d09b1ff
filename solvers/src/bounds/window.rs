//! Windows: a capacity that some steps alone cannot keep.
//!
//! Leaving buffers out, and cutting live ranges, makes a problem easier, never harder: what does not fit in
//! a few neighbouring sections fits nowhere. A window around a peak is searched for a plan within the
//! capacity; if there is none, the height is at least the next multiple of the granularity, and the next
//! capacity is tried. Windows grow as long as the work allows; one that has a plan is left, one that is not
//! decided comes again with ten times the nodes. The search is that of the planner `exact`.
//!
//! In a window most buffers are usually live from its first step to its last. One of those is in conflict
//! with all others, so in any plan of the window everything below it can move up by its size and it can go
//! to the bottom. So it is taken out, and the capacity is less by its size; what stays is often small.
//!
//! ```text
//!      |  window   |
//!    --+-----------+--           +-----------+
//!      | all of it |     ==>     | +--+ +--+ |   capacity - size
//!    --+-+--+-+--+-+--           +-+--+-+--+-+
//! ```
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

use std::collections::BTreeSet;

use planlab_dsa::{Buffer, Evidence, Halt, Instance, LiveRange};

use super::view::{clip, crests};
use super::{Argument, Found, Tick};
use crate::placement::exact::kernel::{Problem, Verdict};

/// Windows grow around so many peaks.
const PEAKS: usize = 4;
/// Sections in the smallest window.
const SMALLEST: usize = 4;
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

    fn failure(&self) -> &'static str {
        "no window of steps was shown to be too full"
    }

    fn prove(&self, arena: &Instance, known: u64, tick: &mut Tick<'_>) -> Result<Option<Found>, Halt> {
        let mut ladder = Ladder { grain: arena.granularity(), known, found: None };
        let mut open = self.windows(arena, tick)?;
        let mut nodes = FIRST_NODES;
        while nodes <= self.nodes && !open.is_empty() {
            let mut left = Vec::new();
            for window in open {
                if !ladder.climb(&window, nodes, tick)? {
                    left.push(window);
                }
            }
            open = left;
            nodes *= 10;
        }
        Ok(ladder.found.map(|how| Found { value: ladder.known, how }))
    }
}

impl Windows {
    /// Windows around the highest peaks, the small ones first.
    fn windows(&self, arena: &Instance, tick: &mut Tick<'_>) -> Result<Vec<Window>, Halt> {
        let crests = crests(arena);
        let mut peaks = peaks(&crests);
        let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
        let mut width = SMALLEST;
        while !peaks.is_empty() {
            let mut growing = Vec::new();
            for peak in peaks {
                tick(arena.len() as u64 / 16 + 1)?;
                let first = peak.saturating_sub(width / 2);
                let end = (first + width).min(crests.len());
                let Ok(steps) = LiveRange::new(crests[first].0, crests[end - 1].0 + 1) else { continue };
                if (first, end) != (0, crests.len()) {
                    growing.push(peak);
                }
                if seen.insert((first, end)) {
                    match Window::new(arena, steps, self.buffers) {
                        Kept::Some(window) => all.push(window),
                        Kept::None => {}
                        Kept::TooMany => growing.retain(|&other| other != peak),
                    }
                }
            }
            peaks = growing;
            width += width.div_ceil(2);
        }
        Ok(all)
    }
}

/// The sections with the most bytes, none beside another.
fn peaks(crests: &[(u32, u64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..crests.len()).collect();
    order.sort_by_key(|&number| (std::cmp::Reverse(crests[number].1), number));
    let mut peaks: Vec<usize> = Vec::new();
    for number in order {
        if peaks.iter().all(|peak| peak.abs_diff(number) > SMALLEST) {
            peaks.push(number);
        }
        if peaks.len() == PEAKS {
            break;
        }
    }
    peaks
}

/// What is left of a window.
enum Kept {
    Some(Window),
    /// Every buffer was taken out, or the search cannot see the rest.
    None,
    TooMany,
}

/// A window without the buffers that are live in all of it.
struct Window {
    problem: Problem,
    buffers: usize,
    steps: LiveRange,
    /// Bytes of the buffers taken out.
    taken: u64,
}

impl Window {
    fn new(arena: &Instance, steps: LiveRange, most: usize) -> Kept {
        // One that is paused all the time is in nobody's way, not even that of the others taken out.
        let inside =
            |buffer| clip(buffer, steps).map(without_windows).filter(|b| b.pieces().next().is_some());
        let mut kept: Vec<Buffer> = arena.buffers().iter().filter_map(inside).collect();
        let common = kept.iter().fold(1, |most, buffer| most.max(buffer.align.get()));
        let is_free =
            kept.iter().all(|buffer| buffer.pin.is_none() && common.is_multiple_of(buffer.align.get()));
        let mut taken = 0;
        if is_free {
            kept.retain(|buffer| {
                let through = buffer.live == steps && buffer.pauses.is_empty();
                let goes = through && buffer.size.get().is_multiple_of(common);
                taken += if goes { buffer.size.get() } else { 0 };
                !goes
            });
        }
        if kept.len() > most {
            return Kept::TooMany;
        }
        let buffers = kept.len();
        let inner = Instance::from_buffers(kept).ok().filter(|inner| !inner.is_empty());
        match inner.and_then(|inner| Problem::new(&inner, &[])) {
            Some(problem) => Kept::Some(Self { problem, buffers, steps, taken }),
            None => Kept::None,
        }
    }
}

/// The buffer with nothing in use in its pauses.
fn without_windows(mut buffer: Buffer) -> Buffer {
    buffer.pauses.iter_mut().for_each(|pause| pause.window = None);
    buffer
}

/// The bound as it rises.
struct Ladder {
    grain: u64,
    known: u64,
    found: Option<String>,
}

impl Ladder {
    /// Raises the bound as far as a window can; whether the window is done with.
    fn climb(&mut self, window: &Window, nodes: u64, tick: &mut Tick<'_>) -> Result<bool, Halt> {
        let mut stride = 1;
        loop {
            let capacity = (self.known.div_ceil(self.grain) + stride - 1).saturating_mul(self.grain);
            let answer = match capacity.checked_sub(window.taken) {
                Some(inside) => window.problem.decide(inside, nodes, tick)?,
                None => Verdict::Infeasible,
            };
            match answer {
                Verdict::Infeasible => {
                    self.known = capacity + self.grain;
                    self.found = Some(format!(
                        "no plan of steps {} to {} ({} buffers once {} bytes that stay are set aside) fits {capacity}",
                        window.steps.start(),
                        window.steps.end(),
                        window.buffers,
                        window.taken,
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
