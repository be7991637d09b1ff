//! Depth-first search for a plan of at most a given height.
//!
//! Every item has a lowest offset, `low`, that it may still take, and `rest`, the lowest offset above everything placed
//! below it (a multiple of its alignment, clear of pinned items). In a plan whose offsets have the least sum no item
//! can be moved down into free room. Take an item with nothing unplaced that fits below its `low`. Either it lies
//! there, or something unplaced lies in its way there, and below it: then `low` rises to the lowest end that any of its
//! unplaced neighbours can have. These are the two branches, *place* and *skip*. The state consists of the offsets
//! `low` and `rest` of the unplaced items, and nothing else.
//!
//! The pruning rules, all sound: none changes what the search proves.
//!
//! - *sections*: in each section, the items that may not start below an offset must fit above it, for every offset at
//!   once (all `low` in descending order, one addition for each item and section);
//! - *forced*: an item whose skip would overfill a section is placed first, without a second branch;
//! - *settled*: placing an item that pushes nothing up costs nothing, so there is no second branch;
//! - *floating*: a skipped item rises with the neighbours that it has to lie above;
//! - *twins*: identical items lie in the order of their ids;
//! - *parts*: if no unplaced item crosses from one section to the next, the two sides are searched one after the other,
//!   and ranked again (*ranks*);
//! - *memo*: states that failed before are not searched again;
//! - *peel*: items that have a place whatever the others do are left out (see the module `peel`).
//!
//! Without *sections* the search answers none of MiniMalloc's instances A to K within 6 s; without *forced*, *parts* or
//! *ranks* it takes two to four times as long. The others pay if there is more to refute (*memo*), more identical items
//! (*twins*), or many items far from the peak (*peel*). A proof does without *memo* and *twins*: a known state has no
//! steps to show, and no rule of the checker covers the order of twins.

use planlab_dsa::Halt;

use super::firsts::Firsts;
use super::item::{NEVER, Span, to_u32};
use super::memo::{Memo, State};
use super::preference::Preference;
use super::problem::{Problem, RANK_BITS};
use crate::certificate::Step;
use crate::tick::Tick;

/// The most times that items rise on each other before a node goes on with what it has: two of them can push each other up by
/// a few bytes each time, far below a capacity of terabytes.
const MOST_ROUNDS: u32 = 1 << 16;
const RANK_MASK: u64 = (1 << RANK_BITS) - 1;

/// Why a search ended early.
pub(super) enum Cut {
    Nodes,
    /// The run is over.
    Halt(Halt),
}

impl From<Halt> for Cut {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

/// The state of an item before a change.
#[derive(Clone, Copy)]
struct Before {
    item: u32,
    low: u64,
    rest: u64,
}

/// Part of a search node: the items from `from` on in the stack of lists, and these sections.
#[derive(Clone, Copy)]
struct Part {
    from: usize,
    hull: Span,
}

pub(super) struct Search<'p> {
    problem: &'p Problem,
    capacity: u64,
    preference: Preference,
    low: Vec<u64>,
    rest: Vec<u64>,
    rank_of: Vec<u32>,
    item_at: Vec<u32>,
    /// Unplaced items as keys (offset, rank), ascending; the lists of all nodes on the path, in one stack.
    lists: Vec<u64>,
    trail: Vec<Before>,
    /// Unplaced units in each section, without pinned items.
    unplaced: Vec<u64>,
    /// Unplaced items that link each section to the next.
    links: Vec<u32>,
    offsets: Vec<u64>,
    pub(super) memo: Memo,
    pub(super) nodes: u64,
    node_limit: u64,
    /// The steps of a proof, if one is requested.
    pub(super) proof: Option<Vec<Step>>,
    fill: Vec<u64>,
    firsts: Firsts,
}

impl<'p> Search<'p> {
    pub(super) fn new(problem: &'p Problem, preference: Preference) -> Self {
        let (items, sections) = (problem.items.len(), problem.sections);
        Self {
            problem,
            capacity: 0,
            preference,
            low: vec![0; items],
            rest: vec![0; items],
            rank_of: vec![0; items],
            item_at: (0..to_u32(items)).collect(),
            lists: Vec::new(),
            trail: Vec::new(),
            unplaced: vec![0; sections],
            links: vec![0; sections],
            offsets: vec![0; items],
            memo: Memo::new(),
            nodes: 0,
            node_limit: 0,
            proof: None,
            fill: vec![0; sections],
            firsts: Firsts::new(sections),
        }
    }

    pub(super) fn prefer(&mut self, preference: Preference) {
        self.preference = preference;
    }

    /// Whether there is a plan of at most `capacity` units; [`Self::plan`] then returns it.
    pub(super) fn run(&mut self, capacity: u64, nodes: u64, tick: &mut Tick<'_>) -> Result<bool, Cut> {
        // More than the units can add up to, and small enough that the sign of a difference stays visible.
        self.capacity = capacity.min(NEVER);
        (self.nodes, self.node_limit) = (0, nodes);
        if self.problem.contradictory {
            return Ok(false);
        }
        self.start();
        let all = Part { from: 0, hull: Span { start: 0, end: to_u32(self.problem.sections) } };
        if !self.fits(all) {
            self.note(Step::Over);
            return Ok(false);
        }
        let cuts: Vec<u32> = (1..all.hull.end).filter(|&at| self.links[at as usize - 1] == 0).collect();
        let found = self.search_parts(all, &cuts, tick);
        self.lists.clear();
        found
    }

    /// Offsets, in bytes, of all buffers of the instance.
    pub(super) fn plan(&self) -> Vec<u64> {
        self.problem.in_bytes(&self.offsets)
    }

    fn note(&mut self, step: Step) {
        if let Some(proof) = &mut self.proof {
            proof.push(step);
        }
    }

    fn start(&mut self) {
        self.unplaced.fill(0);
        self.links.fill(0);
        self.trail.clear();
        for (at, item) in self.problem.items.iter().enumerate() {
            self.rest[at] = item.lift_offset(0);
            self.low[at] = self.rest[at];
            if let Some(pin) = item.pin {
                (self.low[at], self.rest[at]) = (pin, pin);
                continue;
            }
            self.put_back(at);
        }
        for at in 0..self.problem.items.len() {
            self.push_twins(at);
        }
        let mut order: Vec<u32> = (0..to_u32(self.low.len())).collect();
        self.preference.sort_items(self.problem, &self.unplaced, &mut order);
        for (rank, &item) in order.iter().enumerate() {
            self.rank_of[item as usize] = to_u32(rank);
        }
        self.item_at = order;
        self.lists.clear();
        self.lists.extend((0..self.low.len()).map(|at| key(self.low[at], self.rank_of[at])));
        self.lists.sort_unstable();
    }

    #[inline]
    fn item(&self, key: u64) -> usize {
        self.item_at[usize::try_from(key & RANK_MASK).unwrap_or(0)] as usize
    }

    #[inline]
    fn is_pinned(&self, item: usize) -> bool {
        self.problem.has_pins && self.problem.items[item].pin.is_some()
    }

    /// Whether every section has room for its remaining items above their lowest offsets.
    fn fits(&mut self, part: Part) -> bool {
        let (from, to) = (part.hull.start as usize, part.hull.end as usize);
        self.fill[from..to].fill(0);
        // The highest bit is set once a number went below zero.
        let mut over = 0_u64;
        for at in (part.from..self.lists.len()).rev() {
            let (low, item) = (self.lists[at] >> RANK_BITS, self.item(self.lists[at]));
            let item = &self.problem.items[item];
            let Some(above) = self.capacity.checked_sub(low).filter(|&above| item.size <= above) else {
                return false;
            };
            for span in item.spans() {
                let span = (span.start as usize).max(from)..(span.end as usize).min(to);
                for fill in self.fill.get_mut(span).unwrap_or_default() {
                    *fill += item.size;
                    over |= above.wrapping_sub(*fill);
                }
            }
            if over >> 63 == 1 {
                return false;
            }
        }
        true
    }

    /// The lowest end that an unplaced neighbour can have: the lowest support for `item`.
    fn lowest_support(&self, part: Part, item: usize) -> u64 {
        let mut best = NEVER;
        for &other in &self.lists[part.from..] {
            let low = other >> RANK_BITS;
            if low >= best {
                break;
            }
            let at = self.item(other);
            if at != item && !self.is_pinned(at) && self.problem.items_conflict(item, at) {
                best = best.min(low + self.problem.sizes[at]);
            }
        }
        best
    }

    fn remember(&mut self, item: usize) {
        self.trail.push(Before { item: to_u32(item), low: self.low[item], rest: self.rest[item] });
    }

    fn undo(&mut self, to: usize) {
        while self.trail.len() > to {
            if let Some(Before { item, low, rest }) = self.trail.pop() {
                (self.low[item as usize], self.rest[item as usize]) = (low, rest);
            }
        }
    }

    /// Raises `low` to lie above `support`.
    fn raise(&mut self, item: usize, support: u64) {
        self.remember(item);
        let it = &self.problem.items[item];
        self.low[item] = it.lift_offset(it.round_up(support));
        self.push_twins(item);
    }

    /// Keeps the twins of `item` above it.
    fn push_twins(&mut self, item: usize) {
        let mut at = item;
        while let (true, Some(next)) = (self.proof.is_none(), self.problem.items[at].twin) {
            let next = next as usize;
            let it = &self.problem.items[next];
            let low = it.round_up(self.low[at] + it.size);
            if low <= self.low[next] {
                break;
            }
            self.remember(next);
            self.low[next] = it.lift_offset(low);
            at = next;
        }
    }

    /// Rewrites the offsets in a part's list and sorts it.
    fn refresh(&mut self, part: Part) {
        for at in part.from..self.lists.len() {
            let item = self.item(self.lists[at]);
            self.lists[at] = key(self.low[item], self.rank_of[item]);
        }
        self.lists[part.from..].sort_unstable();
    }

    /// Lets skipped items rise with what they have to lie above. False if something no longer fits.
    fn float(&mut self, part: Part, tick: &mut Tick<'_>) -> Result<bool, Cut> {
        for round in 1..=MOST_ROUNDS {
            tick((self.lists.len() - part.from) as u64 / 16 + u64::from(round.is_multiple_of(64)))?;
            let mut rose = false;
            for at in part.from..self.lists.len() {
                let item = self.item(self.lists[at]);
                let low = self.lists[at] >> RANK_BITS;
                // A raise earlier in this sweep may leave keys that are too low, never too high.
                if low <= self.rest[item] || self.is_pinned(item) || self.low[item] != low {
                    continue;
                }
                let support = self.lowest_support(part, item);
                if support <= low {
                    continue;
                }
                self.note(Step::Raise(self.problem.items[item].buffer));
                if support >= NEVER {
                    self.note(Step::Over);
                    return Ok(false);
                }
                self.raise(item, support);
                rose = true;
                // The checker of a proof does not know keys that are too low.
                if self.proof.is_some() {
                    break;
                }
            }
            if !rose {
                return Ok(true);
            }
            self.refresh(part);
            if !self.fits(part) {
                self.note(Step::Over);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An item that must be placed now, or a section overflows.
    fn forced(&mut self, part: Part) -> Option<usize> {
        self.find_firsts(part);
        for section in part.hull.sections() {
            let (second, units) = (self.firsts.second[section], self.unplaced[section]);
            if units == 0
                || self.firsts.low[section] >= NEVER
                || second.saturating_add(units) <= self.capacity
            {
                continue;
            }
            let item = self.firsts.item[section] as usize;
            if self.low[item] > self.rest[item] {
                continue;
            }
            let support = self.lowest_support(part, item);
            let raised = if support >= NEVER { NEVER } else { self.problem.items[item].round_up(support) };
            if support > self.low[item] && second.min(raised).saturating_add(units) > self.capacity {
                return Some(item);
            }
        }
        None
    }

    fn find_firsts(&mut self, part: Part) {
        self.firsts.clear(part.hull);
        for at in part.from..self.lists.len() {
            let (low, item) = (self.lists[at] >> RANK_BITS, self.item(self.lists[at]));
            if self.is_pinned(item) {
                continue;
            }
            for span in self.problem.items[item].spans() {
                self.firsts.take_item(*span, to_u32(item), low);
            }
        }
    }

    fn search_parts(&mut self, part: Part, cuts: &[u32], tick: &mut Tick<'_>) -> Result<bool, Cut> {
        if cuts.is_empty() {
            return self.search(part, tick);
        }
        let (from, to) = (part.from, self.lists.len());
        let mut start = part.hull.start;
        for &end in cuts.iter().chain([&part.hull.end]) {
            let hull = Span { start, end };
            start = end;
            let before = self.proof.as_ref().map_or(0, Vec::len);
            let sub = Part { from: self.lists.len(), hull };
            for at in from..to {
                if self.problem.items[self.item(self.lists[at])].link.overlaps(hull) {
                    self.lists.push(self.lists[at]);
                }
            }
            let found = self.search_ranked(sub, tick);
            self.lists.truncate(to);
            if !found? {
                return Ok(false);
            }
            if let Some(proof) = &mut self.proof {
                proof.truncate(before);
            }
        }
        Ok(true)
    }

    /// Searches a part that split off, with its items ranked among themselves.
    fn search_ranked(&mut self, part: Part, tick: &mut Tick<'_>) -> Result<bool, Cut> {
        if self.lists.len() < part.from + 3 {
            return self.search(part, tick);
        }
        let items: Vec<u32> = self.lists[part.from..].iter().map(|&key| to_u32(self.item(key))).collect();
        let before: Vec<u32> = items.iter().map(|&item| self.rank_of[item as usize]).collect();
        let mut ranks = before.clone();
        ranks.sort_unstable();
        let mut sorted = items.clone();
        self.preference.sort_items(self.problem, &self.unplaced, &mut sorted);
        self.rank(&sorted, &ranks);
        for (at, &item) in (part.from..).zip(&items) {
            self.lists[at] = key(self.low[item as usize], self.rank_of[item as usize]);
        }
        self.lists[part.from..].sort_unstable();
        let found = self.search(part, tick);
        self.rank(&items, &before);
        found
    }

    fn rank(&mut self, items: &[u32], ranks: &[u32]) {
        for (&item, &rank) in items.iter().zip(ranks) {
            self.rank_of[item as usize] = rank;
            self.item_at[rank as usize] = item;
        }
    }

    fn state(&self, part: Part) -> State {
        let mut state = State::default();
        for &key in &self.lists[part.from..] {
            let item = self.item(key);
            if !self.is_pinned(item) {
                state.add_item(item, self.low[item], self.low[item] == self.rest[item]);
            }
        }
        state
    }

    fn search(&mut self, part: Part, tick: &mut Tick<'_>) -> Result<bool, Cut> {
        self.nodes += 1;
        if self.nodes > self.node_limit {
            return Err(Cut::Nodes);
        }
        tick(1 + (self.lists.len() - part.from) as u64 / 16)?;
        let state = self.proof.is_none().then(|| self.state(part));
        if state.is_some_and(|state| self.memo.knows_failure(state, self.capacity)) {
            return Ok(false);
        }
        let (nodes, trail) = (self.nodes, self.trail.len());
        let found = self.branch(part, tick);
        self.undo(trail);
        if let (Ok(false), Some(state), true) = (&found, state, self.nodes > nodes) {
            self.memo.keep_failure(state, self.capacity);
        }
        found
    }

    fn branch(&mut self, part: Part, tick: &mut Tick<'_>) -> Result<bool, Cut> {
        loop {
            if !self.float(part, tick)? {
                return Ok(false);
            }
            let Some(lowest) = self.lowest_movable(part) else { return Ok(true) };
            let item = self.forced(part).unwrap_or(lowest);
            let (found, pushes) = self.place(part, item, tick)?;
            if found {
                return Ok(true);
            }
            if !pushes {
                return Ok(false);
            }
            let buffer = self.problem.items[item].buffer;
            self.note(Step::Skip(buffer));
            let support = self.lowest_support(part, item);
            if support >= NEVER {
                self.note(Step::Over);
                return Ok(false);
            }
            self.raise(item, support);
            self.refresh(part);
            if !self.fits(part) {
                self.note(Step::Over);
                return Ok(false);
            }
        }
    }

    fn lowest_movable(&self, part: Part) -> Option<usize> {
        self.lists[part.from..].iter().map(|&key| self.item(key)).find(|&item| !self.is_pinned(item))
    }

    /// The branch in which `item` lies at its lowest offset. Also returns whether that pushes another item up.
    fn place(&mut self, part: Part, item: usize, tick: &mut Tick<'_>) -> Result<(bool, bool), Cut> {
        let trail = self.trail.len();
        let end = self.lists.len();
        let child = Part { from: end, hull: part.hull };
        let pushes = self.push_up(part, item);
        let buffer = self.problem.items[item].buffer;
        self.note(if pushes { Step::Place(buffer) } else { Step::Settle(buffer) });
        self.offsets[item] = self.low[item];
        let fits = !pushes || self.fits(child);
        let found = if fits {
            let cuts = self.take_out(item);
            let found = self.search_parts(child, &cuts, tick);
            self.put_back(item);
            found
        } else {
            self.note(Step::Over);
            Ok(false)
        };
        self.lists.truncate(end);
        self.undo(trail);
        Ok((found?, pushes))
    }

    /// Puts a copy of the list on the stack, without `item` and with its neighbours pushed above it.
    fn push_up(&mut self, part: Part, item: usize) -> bool {
        let end = self.lists.len();
        let top = self.low[item] + self.problem.items[item].size;
        let mut pushes = false;
        for at in part.from..end {
            let key = self.lists[at];
            let other = self.item(key);
            if other == item {
                continue;
            }
            self.lists.push(key);
            if self.is_pinned(other) || self.rest[other] >= top || !self.problem.items_conflict(item, other) {
                continue;
            }
            let it = &self.problem.items[other];
            let rest = it.lift_offset(it.round_up(top));
            self.remember(other);
            self.rest[other] = rest;
            if rest > self.low[other] {
                self.low[other] = rest;
                pushes = true;
                self.push_twins(other);
            }
        }
        if pushes {
            self.refresh(Part { from: end, hull: part.hull });
        }
        pushes
    }

    /// Removes an item from the sections' counts; returns the sections before which the part now splits.
    fn take_out(&mut self, item: usize) -> Vec<u32> {
        let it = &self.problem.items[item];
        for span in it.spans() {
            self.unplaced[span.sections()].iter_mut().for_each(|units| *units -= it.size);
        }
        let mut cuts = Vec::new();
        for section in it.link.start..it.link.end - 1 {
            let links = &mut self.links[section as usize];
            *links -= 1;
            if *links == 0 {
                cuts.push(section + 1);
            }
        }
        cuts
    }

    fn put_back(&mut self, item: usize) {
        let it = &self.problem.items[item];
        for span in it.spans() {
            self.unplaced[span.sections()].iter_mut().for_each(|units| *units += it.size);
        }
        self.links[it.link.start as usize..it.link.end as usize - 1].iter_mut().for_each(|links| *links += 1);
    }
}

fn key(low: u64, rank: u32) -> u64 {
    low << RANK_BITS | u64::from(rank)
}
