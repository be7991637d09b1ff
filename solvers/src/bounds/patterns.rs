//! Subset sums: the possible heights of a plan in which nothing can be lowered.
//!
//! Of the lowest plans take one with the least sum of offsets. None of its buffers can be lowered. So each buffer that
//! is not pinned lies at 0 or, rounded up to its alignment, on top of another that it conflicts with. The same holds
//! for that one, and so on down to 0 or to a pin. Hence the plan's height is 0 or a pin's end, plus the sizes of some
//! distinct buffers. They all belong to one *component* (buffers connected by conflicts). The least such sum that is
//! not below the known bound is a bound.
//!
//! If nothing is pinned or aligned, the load is such a sum itself: the sum of the buffers that are live at the peak.
//! Then the argument gives no bound alone, but it rounds up what others have raised above the load.
//!
//! ```text
//!          |  c  |            height = size(a) + size(b) + size(c),
//!       +--+--+--+            though a and c are never in use together
//!       |  b  |
//!    +--+--+--+
//!    |  a  |
//! ```
//!
//! # References
//!
//! 1. N. Christofides, C. Whitlock: *An Algorithm for Two-Dimensional Cutting Problems*. Operations
//!    Research 25 (1977) 30-44. doi:10.1287/opre.25.1.30 (normal patterns)
//! 2. J.-F. Côté, M. Iori: *The Meet-in-the-Middle Principle for Cutting and Packing Problems*. INFORMS
//!    Journal on Computing 30 (2018) 646-661. doi:10.1287/ijoc.2018.0806
//!
//! # Complexity
//!
//! O(n H / 64) for a height of H granules. It ends as soon as the known bound itself can be reached; on traces with
//! many small buffers, a handful of them is enough. It is not tried above 4 million granules.
//!
//! # Deviations from the paper
//!
//! Offsets are bounded from 0 only: the midpoint of \[2\] needs both. There is no bound if a pause has a window in use,
//! or if alignments differ.

use planlab_dsa::{Buffer, Evidence, Halt, Instance};

use super::argument::{Argument, Found};
use super::bits::Bits;
use super::view::section_crests;
use crate::demands::has_windows;
use crate::tick::Tick;

const MOST_GRANULES: u64 = 1 << 22;
/// The most machine words to process.
const MOST_WORK: u64 = 1 << 27;

/// The bound by subset sums.
pub(super) struct Patterns;

impl Argument for Patterns {
    fn evidence(&self) -> Evidence {
        Evidence::NormalPattern
    }

    fn failure_message(&self) -> &'static str {
        "sums of sizes reach what was known"
    }

    fn prove_bound(&self, arena: &Instance, known: u64, tick: &mut Tick<'_>) -> Result<Option<Found>, Halt> {
        let Some(align) = common_alignment(arena) else { return Ok(None) };
        let is_free = align == 1 && arena.buffers().iter().all(|buffer| buffer.pin.is_none());
        if is_free && known <= arena.load().bytes.get() {
            return Ok(None);
        }
        let grain = arena.offset_granularity();
        let mut work = MOST_WORK;
        let mut components = Vec::new();
        let mut bound = known.div_ceil(grain);
        for component in split_components(arena) {
            let stack = Stack::new(&component, grain, align);
            let Some(least) = stack.least_top(stack.load, &mut work, tick)? else { return Ok(None) };
            bound = bound.max(least);
            components.push(stack);
        }
        let mut least = u64::MAX;
        for stack in components {
            let Some(top) = stack.least_top(bound, &mut work, tick)? else { return Ok(None) };
            least = least.min(top);
            if least == bound {
                break;
            }
        }
        let value = if least == u64::MAX { 0 } else { least.saturating_mul(grain) };
        let how = format!("least sum of sizes (in multiples of {grain}) that is not below what was known");
        Ok((value > known).then_some(Found { value, how }))
    }
}

/// The alignment of all buffers in granules, if they share one; `None` if they differ, or if a pause has a window in
/// use.
fn common_alignment(arena: &Instance) -> Option<u64> {
    let grain = arena.offset_granularity();
    let free = arena.buffers().iter().filter(|buffer| buffer.pin.is_none());
    let mut aligns: Vec<u64> = free.map(|buffer| buffer.align.get().div_ceil(grain)).collect();
    aligns.sort_unstable();
    aligns.dedup();
    match aligns[..] {
        _ if has_windows(arena) => None,
        [] => Some(1),
        [align] => Some(align),
        _ => None,
    }
}

/// The buffers by component; a single component if some pairs are kept apart.
fn split_components(arena: &Instance) -> Vec<Vec<&Buffer>> {
    let mut buffers: Vec<&Buffer> = arena.buffers().iter().collect();
    if !arena.keep_apart_pairs().is_empty() {
        return vec![buffers];
    }
    buffers.sort_by_key(|buffer| buffer.live.start());
    let (mut all, mut end): (Vec<Vec<&Buffer>>, _) = (Vec::new(), 0);
    for buffer in buffers {
        match all.last_mut() {
            Some(last) if buffer.live.start().get() < end => last.push(buffer),
            _ => all.push(vec![buffer]),
        }
        end = end.max(buffer.live.end().get());
    }
    all
}

/// The buffers of a component, in granules.
struct Stack {
    sizes: Vec<u64>,
    pinned_ends: Vec<u64>,
    align: u64,
    load: u64,
    /// Whether the load is a sum of sizes: of the buffers live at the peak.
    load_is_sum: bool,
}

impl Stack {
    fn new(component: &[&Buffer], grain: u64, align: u64) -> Self {
        let free = component.iter().filter(|buffer| buffer.pin.is_none());
        let mut sizes: Vec<u64> = free.map(|buffer| buffer.size.get() / grain).collect();
        // Small ones first: with them, any reachable sum is reached early.
        sizes.sort_unstable();
        let end = |buffer: &&&Buffer| Some((buffer.pin?.get() + buffer.size.get()) / grain);
        let pinned_ends: Vec<u64> = component.iter().filter_map(|buffer| end(&buffer)).collect();
        let load =
            section_crests(component.iter().copied()).into_iter().map(|(_, load)| load).max().unwrap_or(0)
                / grain;
        let load_is_sum = pinned_ends.is_empty() && align == 1;
        let load = load.max(pinned_ends.iter().copied().max().unwrap_or(0));
        Self { sizes, pinned_ends, align, load, load_is_sum }
    }

    fn round_number(&self, number: u64) -> u64 {
        number.next_multiple_of(self.align)
    }

    /// The least reachable height at or above `from`: `u64::MAX` if there is no such height, `None` if that would take
    /// too long.
    fn least_top(&self, from: u64, work: &mut u64, tick: &mut Tick<'_>) -> Result<Option<u64>, Halt> {
        let pinned = self.pinned_ends.iter().copied().filter(|&end| end >= from).min().unwrap_or(u64::MAX);
        let Some(&largest) = self.sizes.last() else { return Ok(Some(pinned)) };
        if pinned == from || (self.load_is_sum && from == self.load) {
            return Ok(Some(from));
        }
        // A stack of everything exceeds `from` by at most one buffer, or does not reach it.
        let granules = from.saturating_add(self.round_number(largest));
        if granules >= MOST_GRANULES {
            return Ok(None);
        }
        let len = as_index(granules + 1);
        // Sums of rounded sizes, and sums in which one size, the topmost, is not rounded.
        let (mut sums, mut tops) = (Bits::empty_set(len), Bits::empty_set(len));
        sums.insert(0);
        self.pinned_ends.iter().for_each(|&end| sums.insert(as_index(self.round_number(end))));
        for &size in &self.sizes {
            let Some(left) = work.checked_sub(2 * sums.word_count()) else { return Ok(None) };
            *work = left;
            tick(sums.word_count() / 8 + 1)?;
            if from >= size && sums.contains(as_index(from - size)) {
                return Ok(Some(from));
            }
            tops.or_shifted(as_index(self.round_number(size)));
            tops.union(&sums.moved_up(as_index(size), len));
            sums.or_shifted(as_index(self.round_number(size)));
        }
        let top = tops.next_member(as_index(from)).map_or(u64::MAX, |top| top as u64);
        Ok(Some(top.min(pinned)))
    }
}

fn as_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Offset;

    use super::*;
    use crate::placement::testing::{aligned, test_buffer};

    fn above(buffers: &[Buffer], known: u64) -> Option<u64> {
        let instance = Instance::from_buffers(buffers.to_vec()).expect("valid");
        let found = Patterns.prove_bound(&instance, known, &mut |_| Ok(())).expect("no limit");
        found.map(|found| found.value)
    }

    #[test]
    fn sums_that_can_be_reached() {
        let three = [test_buffer(4, 0, 2), test_buffer(6, 1, 3), test_buffer(9, 2, 4)];
        // 4, 6, 9, 10, 13, 15, 19; the load is 15.
        for (known, expected) in [(15, None), (16, Some(19)), (19, None)] {
            assert_eq!(above(&three, known), expected, "{known}");
        }
        let apart = [test_buffer(4, 0, 2), test_buffer(6, 2, 4)];
        // Nothing can be higher than a stack of everything: then there is no bound.
        assert_eq!(above(&apart, 7), None);
    }

    #[test]
    fn pins_begin_new_sums() {
        let pinned = [test_buffer(5, 0, 2).with_pin(Offset::new(20)), test_buffer(10, 0, 2)];
        // 10, 25, 35
        assert_eq!(above(&pinned, 15), Some(25));
        assert_eq!(above(&pinned, 26), Some(35));
    }

    #[test]
    fn sizes_below_the_top_are_rounded_to_the_alignment() {
        let two = [aligned(3, 0, 2, 8), aligned(5, 1, 3, 8)];
        // 3, 5, 8 + 3, 8 + 5
        assert_eq!(above(&two, 8), Some(11));
        assert_eq!(above(&two, 12), Some(13));
    }
}
