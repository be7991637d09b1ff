//! The minimal height of a small instance, found by trying every offset.
//!
//! Some optimal plan has only multiples of [`Instance::offset_granularity`] as offsets. The search tries each set of
//! compatible hand-overs, and each height from the load upwards. Every buffer starts with a list of all possible
//! offsets. A depth-first search gives the buffer with the shortest list each of its offsets in turn and removes
//! conflicting offsets from the other lists.
//!
//! # Complexity
//!
//! Exponential: (height / granularity)^n in the worst case.

use std::cell::Cell;

use crate::{ArenaId, Buffer, BufferId, Bytes, InPlace, Instance};

/// The largest number of buffers.
const MOST_BUFFERS: usize = 8;
/// The largest number of offsets for one buffer.
const MOST_OFFSETS: u64 = 1 << 16;

/// The height of the lowest plan, hand-overs included; `None` if no plan fits the arenas' capacities (or if pins
/// conflict that only a hand-over could excuse).
///
/// # Panics
///
/// For more than 8 buffers, or if the heights to try have more than 65,536 multiples of the granularity.
#[must_use]
pub fn brute_force(instance: &Instance) -> Option<Bytes> {
    over_arenas(instance, &usable_permission_sets(instance.in_place()), &Cell::new(u64::MAX))
}

/// The height of the lowest plan without hand-overs. Panics like [`brute_force`].
#[must_use]
pub fn brute_force_without_hand_over(instance: &Instance) -> Option<Bytes> {
    over_arenas(instance, &[Vec::new()], &Cell::new(u64::MAX))
}

/// Both [`brute_force`] and [`brute_force_without_hand_over`], or `None` if that takes more than `most` attempted
/// places. Partly conflicting buffers with pauses can take minutes. Panics like [`brute_force`].
#[must_use]
pub fn brute_force_within(instance: &Instance, most: u64) -> Option<[Option<Bytes>; 2]> {
    let left = Cell::new(most);
    let both = [usable_permission_sets(instance.in_place()), vec![Vec::new()]]
        .map(|matchings| over_arenas(instance, &matchings, &left));
    (left.get() > 0).then_some(both)
}

/// The result is invalid if `left`, the number of places that may still be tried, is used up.
fn over_arenas(instance: &Instance, matchings: &[Vec<InPlace>], left: &Cell<u64>) -> Option<Bytes> {
    assert!(instance.len() <= MOST_BUFFERS, "{} buffers are too many for brute force", instance.len());
    let arenas = (0_u16..).map(ArenaId::new).zip(instance.arenas());
    let mut sum = 0;
    for (id, arena) in arenas {
        let capacity = arena.capacity.map_or(u64::MAX, Bytes::get);
        sum += in_arena(instance, id, matchings, capacity, left)?;
    }
    Some(Bytes::new(sum))
}

/// Every set of permissions that can be used together: each buffer is at most once an input and at most once an output,
/// and no place returns to where it was.
fn usable_permission_sets(permissions: &[InPlace]) -> Vec<Vec<InPlace>> {
    let mut all = vec![Vec::new()];
    for &new in permissions {
        let fits = |set: &&Vec<InPlace>| {
            set.iter().all(|old| old.input != new.input && old.output != new.output)
                && !leads_to(set, new.output, new.input)
        };
        let with: Vec<_> = all.iter().filter(fits).map(|set| [set.as_slice(), &[new]].concat()).collect();
        all.extend(with);
    }
    all
}

fn leads_to(set: &[InPlace], from: BufferId, to: BufferId) -> bool {
    let next = set.iter().find(|pair| pair.input == from);
    next.is_some_and(|pair| pair.output == to || leads_to(set, pair.output, to))
}

/// The least height of one arena within its capacity.
fn in_arena(
    instance: &Instance,
    arena: ArenaId,
    matchings: &[Vec<InPlace>],
    capacity: u64,
    left: &Cell<u64>,
) -> Option<u64> {
    let ids: Vec<BufferId> = instance.ids().filter(|&id| instance.buffer(id).arena == arena).collect();
    if ids.is_empty() {
        return Some(0);
    }
    let grain = instance.offset_granularity();
    let most = highest_need(instance, &ids).min(capacity);
    let mut best = None;
    for pairs in matchings {
        let search = BruteForceSearch::new(instance, &ids, pairs, grain, left);
        let below = best.map_or(most, |best| best - grain);
        let mut height = search.load();
        while height <= below && !search.fits_height(height) {
            height += grain;
        }
        if height <= below {
            best = Some(height);
        }
    }
    best
}

/// A height that always suffices: all buffers stacked above the highest pin.
fn highest_need(instance: &Instance, ids: &[BufferId]) -> u64 {
    let buffers = || ids.iter().map(|&id| instance.buffer(id));
    let pins = buffers().filter_map(|b| Some(b.pin?.get() + b.size.get())).max().unwrap_or(0);
    pins + buffers().map(|b| b.size.get() + b.align.get() - 1).sum::<u64>()
}

/// The allowed differences of two offsets, in granules: those in `always` and not in `never`.
#[derive(Clone, Default)]
struct Rule {
    never: Vec<(i64, i64)>,
    always: Option<(i64, i64)>,
}

struct BruteForceSearch<'a> {
    buffers: Vec<&'a Buffer>,
    /// Entry `[i][j]`: the allowed differences between the offsets of j and i.
    rules: Vec<Vec<Rule>>,
    late: Vec<bool>,
    grain: u64,
    /// The number of places that may still be tried.
    left: &'a Cell<u64>,
}

impl<'a> BruteForceSearch<'a> {
    fn new(
        instance: &'a Instance,
        ids: &[BufferId],
        pairs: &[InPlace],
        grain: u64,
        left: &'a Cell<u64>,
    ) -> Self {
        let buffers: Vec<&Buffer> = ids.iter().map(|&id| instance.buffer(id)).collect();
        let late: Vec<bool> = ids.iter().map(|&id| pairs.iter().any(|pair| pair.output == id)).collect();
        let mut search = Self { buffers, rules: Vec::new(), late, grain, left };
        for (i, &first) in ids.iter().enumerate() {
            let mut row = Vec::new();
            for (j, &second) in ids.iter().enumerate() {
                let mut rule = Rule { never: search.forbidden_differences(i, j), always: None };
                let is = |a: BufferId, b: BufferId| (a, b) == (first, second);
                if instance.keep_apart_pairs().iter().any(|p| is(p.first, p.second) || is(p.second, p.first))
                {
                    rule.never.push((1 - search.size(j), search.size(i) - 1));
                }
                if pairs.iter().any(|p| is(p.input, p.output)) {
                    rule.always = Some((0, search.size(i) - search.size(j)));
                } else if pairs.iter().any(|p| is(p.output, p.input)) {
                    rule.always = Some((search.size(i) - search.size(j), 0));
                }
                row.push(rule);
            }
            search.rules.push(row);
        }
        search
    }

    fn count_granules(&self, bytes: u64) -> i64 {
        i64::try_from(bytes / self.grain).expect("heights are small")
    }

    fn size(&self, i: usize) -> i64 {
        self.count_granules(self.buffers[i].size.get())
    }

    /// The bytes in use at a step, in granules relative to the buffer's offset.
    fn granules_at(&self, i: usize, step: u32) -> Option<(i64, i64)> {
        let buffer = self.buffers[i];
        let first = buffer.live.start().get() + u32::from(self.late[i]);
        let mut pieces =
            buffer.active_pieces().filter(|p| p.steps.contains(crate::Step::new(step)) && first <= step);
        let window = pieces.next()?.window;
        Some((self.count_granules(window.start.get()), self.count_granules(window.end.get())))
    }

    /// The steps at which anything may change.
    fn changing_steps(&self) -> Vec<u32> {
        let pieces = self.buffers.iter().flat_map(|buffer| buffer.active_pieces());
        let mut steps: Vec<u32> =
            pieces.flat_map(|p| [p.steps.start().get(), p.steps.start().get() + 1]).collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// The differences at which two buffers share an address while both are in use.
    fn forbidden_differences(&self, i: usize, j: usize) -> Vec<(i64, i64)> {
        let both = |step| Some((self.granules_at(i, step)?, self.granules_at(j, step)?));
        let shared = self.changing_steps().into_iter().filter_map(both);
        let mut never: Vec<(i64, i64)> = shared.map(|(a, b)| (a.0 - b.1 + 1, a.1 - b.0 - 1)).collect();
        never.sort_unstable();
        never.dedup();
        never
    }

    /// The most bytes in use at one step, but at least the largest buffer and the highest pinned end.
    fn load(&self) -> u64 {
        let at = |step| {
            (0..self.buffers.len()).filter_map(|i| self.granules_at(i, step)).map(|(a, b)| b - a).sum()
        };
        let most: i64 = self.changing_steps().into_iter().map(at).max().unwrap_or(0);
        let ends = self.buffers.iter().map(|b| b.size.get() + b.pin.map_or(0, |pin| pin.get()));
        ends.max().unwrap_or(0).max(u64::try_from(most).expect("not negative") * self.grain)
    }

    fn fits_height(&self, height: u64) -> bool {
        assert!(height / self.grain <= MOST_OFFSETS, "a height of {height} is too much for brute force");
        let lists = self.buffers.iter().map(|buffer| {
            (0..=height / self.grain)
                .map(|granule| self.allows_offset(buffer, granule * self.grain, height))
                .collect()
        });
        self.place_rest(&lists.collect::<Vec<_>>(), &vec![false; self.buffers.len()])
    }

    fn allows_offset(&self, buffer: &Buffer, offset: u64, height: u64) -> bool {
        buffer.align.divides(offset)
            && offset + buffer.size.get() <= height
            && buffer.pin.is_none_or(|pin| pin.get() == offset)
    }

    /// Whether the buffers outside `placed` can be placed, each at an offset of its list.
    fn place_rest(&self, lists: &[Vec<bool>], placed: &[bool]) -> bool {
        let count = |i: usize| lists[i].iter().filter(|&&open| open).count();
        let open = (0..placed.len()).filter(|&i| !placed[i]);
        let Some((choices, i)) = open.map(|i| (count(i), i)).min() else { return true };
        if choices == 0 {
            return false;
        }
        let mut placed = placed.to_vec();
        placed[i] = true;
        (0..lists[i].len()).filter(|&offset| lists[i][offset]).any(|offset| {
            self.left.set(self.left.get().saturating_sub(1));
            if self.left.get() == 0 {
                return false;
            }
            let mut lists = lists.to_vec();
            for j in (0..placed.len()).filter(|&j| !placed[j]) {
                strike_offsets(&mut lists[j], offset, &self.rules[i][j]);
            }
            self.place_rest(&lists, &placed)
        })
    }
}

/// Removes from a list the offsets that break a rule with a buffer at `offset`.
fn strike_offsets(list: &mut [bool], offset: usize, rule: &Rule) {
    let len = i64::try_from(list.len()).expect("lists are short");
    let at = |difference: i64| {
        let index = i64::try_from(offset).expect("lists are short") + difference;
        usize::try_from(index.clamp(0, len)).expect("not negative")
    };
    for &(from, to) in &rule.never {
        if from <= to {
            list[at(from)..at(to + 1)].fill(false);
        }
    }
    if let Some((from, to)) = rule.always {
        list[..at(from)].fill(false);
        list[at(to + 1)..].fill(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_buffer as buffer;
    use crate::{Alignment, Arena, KeepApart, Offset};

    fn height(instance: &Instance) -> Option<u64> {
        brute_force(instance).map(Bytes::get)
    }

    #[test]
    fn heights_that_one_can_see() {
        let align = Alignment::new(4).expect("positive");
        let rows = [
            (vec![], 0),
            (vec![buffer(5, 0, 1)], 5),
            (vec![buffer(5, 0, 2), buffer(7, 2, 4)], 7),
            (vec![buffer(4, 0, 2), buffer(4, 1, 3), buffer(4, 2, 4)], 8),
            (vec![buffer(3, 0, 1).with_align(align), buffer(2, 0, 1).with_align(align)], 6),
            (vec![buffer(3, 0, 2).with_pin(Offset::new(5)), buffer(6, 1, 2)], 14),
        ];
        for (buffers, expected) in rows {
            let instance = Instance::from_buffers(buffers).expect("valid");
            assert_eq!(height(&instance), Some(expected), "{instance:?}");
        }
    }

    #[test]
    fn hand_overs_are_chained_but_each_place_is_taken_once() {
        let pair = |input, output| InPlace { input: BufferId::new(input), output: BufferId::new(output) };
        let chain = Instance::builder()
            .buffers([buffer(8, 0, 2), buffer(8, 1, 3), buffer(8, 2, 4)])
            .in_place([pair(0, 1), pair(1, 2)])
            .build()
            .expect("valid");
        assert_eq!(height(&chain), Some(8));
        let fork = Instance::builder()
            .buffers([buffer(8, 0, 2), buffer(8, 1, 3), buffer(8, 1, 3)])
            .in_place([pair(0, 1), pair(0, 2)])
            .build()
            .expect("valid");
        assert_eq!(height(&fork), Some(16));
        assert_eq!(brute_force_without_hand_over(&fork), Some(Bytes::new(24)));
    }

    #[test]
    fn what_takes_too_many_places_has_no_answer() {
        let three = [buffer(4, 0, 2), buffer(4, 1, 3), buffer(4, 2, 4)];
        let instance = Instance::from_buffers(three.to_vec()).expect("valid");
        let eight = Some(Bytes::new(8));
        assert_eq!(brute_force_within(&instance, 100), Some([eight; 2]));
        assert_eq!(brute_force_within(&instance, 3), None);
    }

    #[test]
    fn capacities_and_pairs_are_kept() {
        let arena = |capacity| Arena { name: String::new(), capacity };
        let build = |capacity| {
            Instance::builder()
                .buffers([buffer(4, 0, 1), buffer(6, 1, 2), buffer(1, 0, 2).in_arena(ArenaId::new(1))])
                .arenas([arena(Some(Bytes::new(capacity))), arena(None)])
                .apart([KeepApart { first: BufferId::new(0), second: BufferId::new(1) }])
                .build()
                .expect("valid")
        };
        assert_eq!(height(&build(10)), Some(11));
        assert_eq!(height(&build(9)), None);
    }
}
