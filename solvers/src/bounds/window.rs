//! Windows: a capacity that some steps alone cannot keep.
//!
//! Leaving buffers out, and cutting live ranges, makes a problem easier, never harder: what does not fit in
//! a few neighbouring sections fits nowhere. A window around a peak is searched for a plan within the
//! capacity; if there is none, the height is at least the next multiple of the granularity, and the next
//! capacity is tried. Windows grow as long as the work allows; one that has a plan is left, one that is not
//! decided comes again with ten times the nodes.
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
//!    Learning*. ASPLOS 2023. doi:10.1145/3623278.3624752 (sections; the search order of `cells.rs`)
//!
//! # Complexity
//!
//! Exponential in the buffers of a window; cut off at a fixed number of nodes.

use planlab_dsa::{Buffer, Evidence, Halt, Instance, LiveRange};

use super::cells::{Answer, Cells};
use super::view::{Section, clip, sections};
use super::{Argument, Found, Tick};

/// The most members of all sections together.
const MOST_MEMBERS: usize = 1 << 22;
/// Windows grow around so many peaks.
const PEAKS: usize = 4;
/// Sections in the smallest window.
const SMALLEST: usize = 4;
/// The most buffers that are searched in one window.
const MOST_BUFFERS: usize = 400;
/// Nodes in the first round, for each window.
const FIRST_NODES: u64 = 1_000;

/// The bound by search in windows.
pub(super) struct Windows {
    /// Nodes for each window in the last round.
    pub(super) nodes: u64,
}

impl Argument for Windows {
    fn evidence(&self) -> Evidence {
        Evidence::Search
    }

    fn prove(&self, arena: &Instance, known: u64, tick: &mut Tick<'_>) -> Result<Option<Found>, Halt> {
        let Some(sections) = sections(arena, MOST_MEMBERS) else { return Ok(None) };
        let mut ladder = Ladder { grain: arena.granularity(), known, found: None };
        let mut open: Vec<Window> = Vec::new();
        for (first, last) in spans(arena, &sections) {
            tick(arena.len() as u64 / 16 + 1)?;
            let steps = LiveRange::new(sections[first].step, sections[last].step + 1);
            open.extend(steps.ok().and_then(|steps| Window::new(arena, steps)));
        }
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

/// First and last section of each window, the small ones first.
fn spans(arena: &Instance, sections: &[Section]) -> Vec<(usize, usize)> {
    let size = |&row: &u32| arena.buffers()[row as usize].size.get();
    let loads: Vec<u64> = sections.iter().map(|section| section.members.iter().map(size).sum()).collect();
    let mut order: Vec<usize> = (0..sections.len()).collect();
    order.sort_by_key(|&number| (std::cmp::Reverse(loads[number]), number));
    let mut peaks: Vec<usize> = Vec::new();
    for number in order {
        if peaks.len() < PEAKS && peaks.iter().all(|peak| peak.abs_diff(number) > SMALLEST) {
            peaks.push(number);
        }
    }
    let mut spans = Vec::new();
    let mut width = SMALLEST;
    while width < 2 * sections.len().max(SMALLEST) {
        for peak in &peaks {
            let first = peak.saturating_sub(width / 2);
            spans.push((first, (first + width).min(sections.len()) - 1));
        }
        width += width.div_ceil(2);
    }
    spans.push((0, sections.len().saturating_sub(1)));
    spans.retain(|&(first, last)| last < sections.len() && last + 1 >= first + SMALLEST.min(sections.len()));
    let mut seen = std::collections::BTreeSet::new();
    spans.retain(|&span| seen.insert(span));
    spans
}

/// A window without the buffers that are live in all of it.
struct Window {
    cells: Cells,
    steps: LiveRange,
    /// Bytes of the buffers taken out.
    taken: u64,
}

impl Window {
    /// `None` where nothing is left to search, or too much.
    fn new(arena: &Instance, steps: LiveRange) -> Option<Self> {
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
        let is_small = (1..=MOST_BUFFERS).contains(&kept.len());
        let inner = is_small.then(|| Instance::from_buffers(kept).ok()).flatten()?;
        Some(Self { cells: Cells::new(&inner), steps, taken })
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
                Some(inside) => window.cells.decide(inside, nodes, tick)?,
                None => Answer::None,
            };
            match answer {
                Answer::None => {
                    self.known = capacity + self.grain;
                    self.found = Some(format!(
                        "no plan of steps {} to {} ({} buffers once {} bytes that stay are set aside) fits {capacity}",
                        window.steps.start(),
                        window.steps.end(),
                        window.cells.len(),
                        window.taken,
                    ));
                    stride *= 2;
                }
                Answer::Some if stride == 1 => return Ok(true),
                Answer::Unknown if stride == 1 => return Ok(false),
                _ => stride = 1,
            }
        }
    }
}
