//! Tight sections: at a capacity just above the load a section has few holes, and what must lie below a buffer in one
//! section does not match what must lie below it in another.
//!
//! Fix a capacity C. At a section s whose buffers sum to load(s), all plans within C leave exactly C - load(s) free:
//! its *slack*. Each buffer has a set of offsets that are still possible:
//!
//! 1. *Fill*: the bytes below a buffer at s are holes and some of the other buffers of s. So its offset is a subset sum
//!    of the others' sizes plus at most the slack, in every section of its life at once.
//! 2. *Pairs*: two buffers in conflict lie one above the other; an offset of the one must leave room for
//!    the lowest or the highest offset of the other.
//! 3. *Cover*: at s, at most the slack may be out of reach of every buffer. If nothing may stay free, an address that
//!    only one buffer can reach belongs to that buffer.
//! 4. *Probe*: an offset is removed if fixing the buffer there, with the fill of the room above and below it, leaves
//!    another buffer without an offset.
//!
//! If a buffer has no offset left, no plan fits C, and the bound is the next height after C.
//!
//! ```text
//!   section 1    section 2     capacity 18, slack 0 in both: below b lie 0, 3, 7 or 10, and 0, 4, 6 or 10;
//!   | b | 8      | b | 8       so b lies at 0 or at 10
//!   | 3 | 7      | 4 | 6
//! ```
//!
//! One, two or three sections of buffers that may lie anywhere never need more than the load. Put the buffers shared by
//! the first and the second section at the bottom, those shared by the second and the third at the top (those in all
//! three below everything), and the rest between. So without pins or alignments an argument needs at least four
//! sections; this one uses all sections together.
//!
//! # References
//!
//! 1. N. Christofides, C. Whitlock: *An Algorithm for Two-Dimensional Cutting Problems*. Operations
//!    Research 25 (1977) 30-44. doi:10.1287/opre.25.1.30
//! 2. R. Debruyne, C. Bessière: *Some Practicable Filtering Techniques for the Constraint Satisfaction
//!    Problem*. IJCAI 1997, 412-417. (probing: singleton consistency)
//!
//! # Complexity
//!
//! For s sections of m buffers and H granules: O(s m^2 H / 64) for the fill, and O(n H) probes of O((n d + s m log H) H
//! / 64) for d conflicts per buffer, until nothing changes; cut off at a fixed amount of work. At most 2^12 granules
//! and 400 buffers; of larger instances, windows with at most that many buffers are used.

use planlab_dsa::{Evidence, Halt, Instance};

use super::argument::{Argument, Found};
use super::bits::Bits;
use super::cores::cut_cores;
use super::view::live_sections;
use crate::demands::has_windows;
use crate::tick::Tick;

const MOST_GRANULES: u64 = 1 << 12;
const MOST_BUFFERS: usize = 400;
/// The most machine words in all fills together.
const MOST_FILL: u64 = 1 << 21;

/// Limits on the last rule and on windows; the first three rules always apply.
pub(super) struct Tight {
    /// The most machine words for probing.
    pub(super) probing: u64,
    /// The number of windows to try if the arena has too many buffers, the largest first.
    pub(super) windows: usize,
}

impl Argument for Tight {
    fn evidence(&self) -> Evidence {
        Evidence::Section
    }

    fn failure_message(&self) -> &'static str {
        "what can lie below each buffer, in all sections at once, leaves room"
    }

    fn prove_bound(&self, arena: &Instance, known: u64, tick: &mut Tick<'_>) -> Result<Option<Found>, Halt> {
        if arena.len() <= MOST_BUFFERS || self.windows == 0 {
            return self.refute_height(arena, known, tick);
        }
        let mut found: Option<Found> = None;
        let cores = cut_cores(arena, MOST_BUFFERS, tick)?;
        for core in cores.iter().rev().take(self.windows) {
            let known = found.as_ref().map_or(known, |found| found.value);
            if let Some(inner) = self.refute_height(&core.inner, known.saturating_sub(core.taken), tick)? {
                let value = (inner.value + core.taken).next_multiple_of(arena.offset_granularity());
                let how = format!("in steps {} to {}: {}", core.steps.start(), core.steps.end(), inner.how);
                found = Some(Found { value, how });
            }
        }
        Ok(found)
    }
}

impl Tight {
    /// A bound above `known` on the height of one instance.
    fn refute_height(
        &self,
        arena: &Instance,
        known: u64,
        tick: &mut Tick<'_>,
    ) -> Result<Option<Found>, Halt> {
        let grain = arena.offset_granularity();
        let Some(shape) = Shape::new(arena, grain) else { return Ok(None) };
        let heights = shape.possible_heights(known.div_ceil(grain));
        let (mut at, mut stride, mut probing) = (0, 1, self.probing);
        // Capacities in growing strides: a refuted capacity refutes the smaller ones, too.
        while let Some(&capacity) = heights.get(at + stride - 1) {
            if shape.refutes_capacity(capacity, &mut probing, tick)? {
                at += stride;
                stride *= 2;
            } else if stride == 1 {
                break;
            } else {
                stride = 1;
            }
        }
        let Some(&last) = at.checked_sub(1).and_then(|before| heights.get(before)) else { return Ok(None) };
        let value = (heights.get(at).copied().unwrap_or(last + 1) as u64).saturating_mul(grain);
        let refuted = last as u64 * grain;
        let how = format!(
            "what can lie below each buffer, in all sections at once, leaves no plan within {refuted}"
        );
        Ok((value > known).then_some(Found { value, how }))
    }
}

/// The parts of an instance that do not depend on the capacity, in granules.
struct Shape {
    sizes: Vec<usize>,
    aligns: Vec<usize>,
    pins: Vec<Option<usize>>,
    /// The rows of each section, ascending.
    sections: Vec<Vec<u32>>,
    loads: Vec<usize>,
    /// For each buffer, those in conflict with it.
    against: Vec<Vec<u32>>,
    at: Vec<Vec<u32>>,
}

fn as_small(bytes: u64, grain: u64) -> Option<usize> {
    Some(bytes / grain).filter(|&granules| granules < MOST_GRANULES).and_then(|g| usize::try_from(g).ok())
}

impl Shape {
    /// `None` if the instance is too large, or if a pause has a window in use.
    fn new(arena: &Instance, grain: u64) -> Option<Self> {
        let buffers = arena.buffers();
        if buffers.len() > MOST_BUFFERS || has_windows(arena) {
            return None;
        }
        let sizes: Option<Vec<usize>> = buffers.iter().map(|b| as_small(b.size.get(), grain)).collect();
        let aligns: Option<Vec<usize>> =
            buffers.iter().map(|b| as_small(b.align.get().next_multiple_of(grain), grain)).collect();
        let pin = |pin: u64| as_small(pin, grain);
        let pins: Option<Vec<Option<usize>>> =
            buffers.iter().map(|b| b.pin.map_or(Some(None), |p| pin(p.get()).map(Some))).collect();
        let sizes = sizes?;
        let sections = live_sections(arena, MOST_BUFFERS * MOST_BUFFERS)?;
        let loads = sections.iter().map(|section| section.iter().map(|&m| sizes[m as usize]).sum()).collect();
        let mut shape = Self {
            aligns: aligns?,
            pins: pins?,
            loads,
            against: vec![Vec::new(); sizes.len()],
            at: vec![Vec::new(); sizes.len()],
            sections,
            sizes,
        };
        shape.connect_sections(arena);
        Some(shape)
    }

    fn connect_sections(&mut self, arena: &Instance) {
        for (section, number) in self.sections.iter().zip(0..) {
            for &member in section {
                self.at[member as usize].push(number);
                let others = section.iter().filter(|&&other| other != member);
                self.against[member as usize].extend(others);
            }
        }
        for pair in arena.keep_apart_pairs() {
            self.against[pair.first.index()].push(pair.second.get());
            self.against[pair.second.index()].push(pair.first.get());
        }
        for list in &mut self.against {
            list.sort_unstable();
            list.dedup();
        }
    }

    /// The possible heights, from `known` on, of a lowest plan: sums of sizes if nothing is pinned or aligned.
    fn possible_heights(&self, known: u64) -> Vec<usize> {
        let most = usize::try_from(MOST_GRANULES).unwrap_or(usize::MAX);
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let is_free = self.aligns.iter().all(|&align| align == 1) && self.pins.iter().all(Option::is_none);
        if !is_free {
            return (known..most).collect();
        }
        let mut sums = Bits::empty_set(most);
        sums.insert(0);
        self.sizes.iter().for_each(|&size| sums.or_shifted(size));
        sums.clear_range(0, known);
        sums.iter().collect()
    }

    /// Whether the rules show that no plan fits a capacity.
    fn refutes_capacity(
        &self,
        capacity: usize,
        probing: &mut u64,
        tick: &mut Tick<'_>,
    ) -> Result<bool, Halt> {
        if self.loads.iter().chain(&self.sizes).any(|&load| load > capacity) {
            return Ok(true);
        }
        let mut offsets = self.free_offsets(capacity);
        let fills = self.fill_sections(capacity, &mut offsets, tick)?;
        let state = Rules { shape: self, capacity, fills };
        if !state.propagate_rules(&mut offsets, tick)? {
            return Ok(true);
        }
        Ok(!state.probe_offsets(&mut offsets, probing, tick)?)
    }

    /// Every offset that alignment and pin allow.
    fn free_offsets(&self, capacity: usize) -> Vec<Bits> {
        let one = |row: usize| {
            let len = (capacity + 1).saturating_sub(self.sizes[row]);
            match self.pins[row] {
                Some(pin) => {
                    let mut bits = Bits::empty_set(len);
                    bits.insert(pin);
                    bits
                }
                None => Bits::multiples_of(self.aligns[row], len),
            }
        };
        (0..self.sizes.len()).map(one).collect()
    }

    /// For the tightest sections and each of their members, the room that the others and up to the slack can take
    /// together; removes all other offsets.
    fn fill_sections(
        &self,
        capacity: usize,
        offsets: &mut [Bits],
        tick: &mut Tick<'_>,
    ) -> Result<Vec<Option<Vec<Bits>>>, Halt> {
        let mut order: Vec<usize> = (0..self.sections.len()).collect();
        order.sort_by_key(|&number| std::cmp::Reverse(self.loads[number]));
        let mut fills = vec![None; self.sections.len()];
        let (mut room, words) = (MOST_FILL, capacity as u64 / 64 + 1);
        for number in order {
            let members = &self.sections[number];
            let cost = members.len() as u64 * words;
            let Some(left) = room.checked_sub(cost) else { break };
            room = left;
            tick(cost * members.len() as u64 / 16 + 1)?;
            let fill = self.fill_section(number, capacity);
            for (&member, fill) in members.iter().zip(&fill) {
                offsets[member as usize].intersect(fill);
            }
            fills[number] = Some(fill);
        }
        Ok(fills)
    }

    fn fill_section(&self, number: usize, capacity: usize) -> Vec<Bits> {
        let members = &self.sections[number];
        let slack = capacity - self.loads[number];
        let without = |skipped: u32| {
            let mut sums = Bits::empty_set(capacity + 1);
            sums.insert(0);
            let others = members.iter().filter(|&&other| other != skipped);
            others.for_each(|&other| sums.or_shifted(self.sizes[other as usize]));
            sums.widen_by(slack);
            sums
        };
        members.iter().map(|&member| without(member)).collect()
    }
}

struct Rules<'s> {
    shape: &'s Shape,
    capacity: usize,
    /// For each section and member.
    fills: Vec<Option<Vec<Bits>>>,
}

impl Rules<'_> {
    /// Applies pairs and covers until nothing changes; false if a buffer has no offset left.
    fn propagate_rules(&self, offsets: &mut [Bits], tick: &mut Tick<'_>) -> Result<bool, Halt> {
        loop {
            let mut changed = false;
            for row in 0..offsets.len() {
                tick(self.shape.against[row].len() as u64 / 8 + 1)?;
                match self.apply_pairs(row, offsets) {
                    None => return Ok(false),
                    Some(less) => changed |= less,
                }
            }
            for number in 0..self.shape.sections.len() {
                tick(self.shape.sections[number].len() as u64 / 2 + 1)?;
                match self.apply_cover(number, offsets) {
                    None => return Ok(false),
                    Some(less) => changed |= less,
                }
            }
            if !changed {
                return Ok(true);
            }
        }
    }

    /// Removes offsets that leave no room for a buffer in conflict; `None` if no offset is left.
    fn apply_pairs(&self, row: usize, offsets: &mut [Bits]) -> Option<bool> {
        let size = self.shape.sizes[row];
        let mut mine = offsets[row].clone();
        for &other in &self.shape.against[row] {
            let theirs = &offsets[other as usize];
            let (low, high) = (theirs.first_member()?, theirs.last_member()?);
            // Neither fully below their highest place nor fully above their lowest.
            let from = (high + 1).saturating_sub(size);
            mine.clear_range(from, low + self.shape.sizes[other as usize]);
        }
        mine.first_member()?;
        let changed = mine != offsets[row];
        offsets[row] = mine;
        Some(changed)
    }

    /// Counts what no buffer of a section can reach, and assigns an address that only one buffer can reach to it;
    /// `None` if too much stays free.
    fn apply_cover(&self, number: usize, offsets: &mut [Bits]) -> Option<bool> {
        let members = &self.shape.sections[number];
        let slack = self.capacity - self.shape.loads[number];
        if slack >= self.capacity / 2 {
            return Some(false);
        }
        let reach = |row: u32, offsets: &[Bits]| {
            let row = row as usize;
            let mut reach = offsets[row].moved_up(0, self.capacity);
            reach.widen_by(self.shape.sizes[row] - 1);
            reach
        };
        let (mut once, mut twice) = (Bits::empty_set(self.capacity), Bits::empty_set(self.capacity));
        for &member in members {
            let mut reach = reach(member, offsets);
            let mut again = reach.clone();
            again.intersect(&once);
            twice.union(&again);
            reach.subtract(&again);
            once.union(&reach);
        }
        let free = self.capacity - once.count();
        if free > slack {
            return None;
        }
        once.subtract(&twice);
        if free < slack || once.first_member().is_none() {
            return Some(false);
        }
        let mut changed = false;
        for &member in members {
            let mut alone = reach(member, offsets);
            alone.intersect(&once);
            if let (Some(low), Some(high)) = (alone.first_member(), alone.last_member()) {
                changed |= self.must_hold(member as usize, low, high, offsets)?;
            }
        }
        Some(changed)
    }

    /// Requires the buffer to hold both addresses.
    fn must_hold(&self, row: usize, low: usize, high: usize, offsets: &mut [Bits]) -> Option<bool> {
        let before = offsets[row].count();
        offsets[row].clear_range(0, (high + 1).saturating_sub(self.shape.sizes[row]));
        offsets[row].clear_range(low + 1, self.capacity + 1);
        offsets[row].first_member()?;
        Some(offsets[row].count() < before)
    }

    /// Removes offsets that a probe refutes, until nothing changes or the work is spent; false if a buffer has no
    /// offset left.
    fn probe_offsets(&self, offsets: &mut [Bits], work: &mut u64, tick: &mut Tick<'_>) -> Result<bool, Halt> {
        let words = offsets.iter().map(Bits::word_count).sum::<u64>().max(1);
        let pass = words * (1 + self.shape.sections.len() as u64);
        let mut order: Vec<usize> = (0..offsets.len()).collect();
        loop {
            let mut changed = false;
            order.sort_by_key(|&row| (offsets[row].count(), row));
            for &row in &order {
                let places: Vec<usize> = offsets[row].iter().collect();
                for place in places {
                    let Some(left) = work.checked_sub(pass) else { return Ok(true) };
                    *work = left;
                    tick(words / 8 + 1)?;
                    if self.leads_on(row, place, offsets, tick)? {
                        continue;
                    }
                    changed = true;
                    offsets[row].clear_range(place, place + 1);
                }
                if offsets[row].first_member().is_none() || !self.propagate_rules(offsets, tick)? {
                    return Ok(false);
                }
            }
            if !changed {
                return Ok(true);
            }
        }
    }

    /// Whether the rules leave every buffer an offset once one is fixed.
    fn leads_on(
        &self,
        row: usize,
        place: usize,
        offsets: &[Bits],
        tick: &mut Tick<'_>,
    ) -> Result<bool, Halt> {
        let mut fixed = offsets.to_vec();
        fixed[row] = Bits::empty_set(place + 1);
        fixed[row].insert(place);
        for &number in &self.shape.at[row] {
            self.fill_around(row, place, number as usize, &mut fixed);
        }
        self.propagate_rules(&mut fixed, tick)
    }

    /// Between a fixed buffer and another of its section there are only others of the section, and holes.
    fn fill_around(&self, row: usize, place: usize, number: usize, offsets: &mut [Bits]) {
        let Some(fills) = &self.fills[number] else { return };
        let members = &self.shape.sections[number];
        let Some(index) = members.iter().position(|&member| member as usize == row) else { return };
        let fill = &fills[index];
        let end = place + self.shape.sizes[row];
        for &other in members.iter().filter(|&&other| other as usize != row) {
            let size = self.shape.sizes[other as usize];
            let mine = &mut offsets[other as usize];
            let mut allowed = fill.moved_up(end, self.capacity + 1);
            // Below it: from the other's end up to the place.
            let below = (0..(place + 1).saturating_sub(size)).filter(|&at| fill.contains(place - size - at));
            below.for_each(|at| allowed.insert(at));
            mine.intersect(&allowed);
        }
    }
}
