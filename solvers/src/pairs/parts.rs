//! Splits an instance into parts.
//!
//! *Peeling*: let C be a lower bound on the height. A buffer of size w with k neighbours of sizes w_1, ..., w_k has a
//! place below C whatever the others do if `w_1 + ... + w_k + (k + 1) (w - 1) < C`: the neighbours leave at most k + 1
//! gaps, which cannot all be smaller than w. Such a buffer is set aside, its neighbours lose one, and so on; afterwards
//! all find their places in the opposite order. (With an alignment, the multiples of it that the neighbours block are
//! counted instead.)
//!
//! *Parts* are the sets joined by overlapping live ranges and kept-apart pairs; parts do not affect each other.
//!
//! # References
//!
//! 1. Peeling is the rule by which graph colouring sets vertices of low degree aside: G. J. Chaitin, *Register
//!    allocation & spilling via graph coloring*, 1982, doi:10.1145/800230.806984; here intervals of many sizes replace
//!    the colours.
//!
//! # Complexity
//!
//! O(n + m log n) for m pairs of neighbours, after O(n^2) to find them.

use std::collections::BTreeMap;

use planlab_dsa::{Buffer, BufferId, Halt, Instance, PlanError, Run};

/// The most pairs of neighbours that are listed; no solver could handle more.
const MOST_PAIRS: usize = 10_000_000;

pub(super) struct Parts {
    /// Connected buffers, ascending; ordered by their first buffer.
    pub(super) parts: Vec<Vec<BufferId>>,
    /// Buffers that are placed last, in the order of placement.
    pub(super) peeled: Vec<BufferId>,
}

impl Parts {
    /// The parts of an instance with a lower bound `floor`, with or without peeling.
    pub(super) fn new(run: &mut Run<'_>, floor: u64, peel: bool) -> Result<Self, Halt> {
        let neighbours = find_neighbours(run)?;
        let mut peeling = Peeling::new(run.instance(), floor, neighbours);
        if peel {
            peeling.peel_buffers();
        }
        Ok(Self { parts: peeling.remaining_parts(), peeled: peeling.peeled.into_iter().rev().collect() })
    }
}

fn find_neighbours(run: &mut Run<'_>) -> Result<Vec<Vec<usize>>, Halt> {
    let instance = run.instance();
    let mut order: Vec<BufferId> = instance.ids().collect();
    order.sort_unstable_by_key(|&id| (instance.buffer(id).live.start(), id));
    let mut neighbours = vec![Vec::new(); instance.len()];
    let mut pairs = 0;
    for (at, &id) in order.iter().enumerate() {
        let end = instance.buffer(id).live.end();
        let later = order[at + 1..].iter().take_while(|&&other| instance.buffer(other).live.start() < end);
        let before = pairs;
        for other in later {
            neighbours[id.index()].push(other.index());
            neighbours[other.index()].push(id.index());
            pairs += 1;
        }
        run.tick((pairs - before) as u64 + 1)?;
        if pairs > MOST_PAIRS {
            return Err(PlanError::Failed(format!("more than {MOST_PAIRS} pairs of buffers meet")).into());
        }
    }
    for pair in instance.keep_apart_pairs() {
        let (a, b) = (pair.first.index(), pair.second.index());
        if !instance.buffers()[a].live.overlaps(instance.buffers()[b].live) {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
    }
    Ok(neighbours)
}

struct Peeling<'i> {
    instance: &'i Instance,
    neighbours: Vec<Vec<usize>>,
    /// For each buffer: the multiples of its alignment at which it ends at or below the floor.
    free: Vec<u128>,
    /// For each buffer: the most of these that its remaining neighbours can block.
    blocked: Vec<u128>,
    is_peeled: Vec<bool>,
    peeled: Vec<BufferId>,
}

impl<'i> Peeling<'i> {
    fn new(instance: &'i Instance, floor: u64, neighbours: Vec<Vec<usize>>) -> Self {
        let buffers = instance.buffers();
        let free = buffers.iter().map(|buffer| free_offsets(buffer, floor)).collect();
        let all = buffers.iter().zip(&neighbours).map(|(buffer, others)| {
            others.iter().map(|&other| blocked_offsets(buffer, &buffers[other])).sum()
        });
        let blocked = all.collect();
        let is_peeled = vec![false; instance.len()];
        Self { instance, neighbours, free, blocked, is_peeled, peeled: Vec::new() }
    }

    fn peel_buffers(&mut self) {
        let mut waiting: Vec<usize> = (0..self.instance.len()).rev().collect();
        while let Some(at) = waiting.pop() {
            if self.is_peeled[at] || self.blocked[at] >= self.free[at] {
                continue;
            }
            self.is_peeled[at] = true;
            self.peeled.push(BufferId::from_index(at));
            let buffers = self.instance.buffers();
            for &other in &self.neighbours[at] {
                self.blocked[other] -= blocked_offsets(&buffers[other], &buffers[at]);
                waiting.push(other);
            }
        }
    }

    /// The remaining buffers by connected component.
    fn remaining_parts(&self) -> Vec<Vec<BufferId>> {
        let remaining = |at: &usize| !self.is_peeled[*at];
        let count = self.instance.len();
        let pairs = (0..count).filter(remaining).flat_map(|at| {
            self.neighbours[at].iter().copied().filter(remaining).map(move |other| (at, other))
        });
        let mut parts: BTreeMap<usize, Vec<BufferId>> = BTreeMap::new();
        for (at, component) in connected_components(count, pairs).into_iter().enumerate() {
            if !self.is_peeled[at] {
                parts.entry(component).or_default().push(BufferId::from_index(at));
            }
        }
        parts.into_values().collect()
    }
}

/// The component of each number below `count`: the lowest number that pairs connect it to.
pub(super) fn connected_components(count: usize, pairs: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    fn find_root(parents: &mut [usize], mut at: usize) -> usize {
        while parents[at] != at {
            parents[at] = parents[parents[at]];
            at = parents[at];
        }
        at
    }
    let mut parents: Vec<usize> = (0..count).collect();
    for (one, other) in pairs {
        let (a, b) = (find_root(&mut parents, one), find_root(&mut parents, other));
        parents[a.max(b)] = a.min(b);
    }
    (0..count).map(|at| find_root(&mut parents, at)).collect()
}

/// The number of offsets of a buffer (multiples of its alignment) at which it ends at or below the floor; 0 for a
/// pinned buffer.
fn free_offsets(buffer: &Buffer, floor: u64) -> u128 {
    match floor.checked_sub(buffer.size.get()) {
        Some(room) if buffer.pin.is_none() => u128::from(room / buffer.align.get()) + 1,
        _ => 0,
    }
}

/// The most offsets of a buffer (multiples of its alignment) at which it meets another.
fn blocked_offsets(buffer: &Buffer, other: &Buffer) -> u128 {
    let bytes = u128::from(buffer.size.get()) + u128::from(other.size.get()) - 1;
    bytes.div_ceil(u128::from(buffer.align.get()))
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, brute_force_without_hand_over, corpus, deep_config, instances};
    use planlab_dsa::{Bytes, Honours, Scope};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::testing::{in_a_run, test_descriptor, test_instance as buffers};

    /// The floor and the parts of an instance.
    fn parts(instance: &Instance, peel: bool) -> (u64, Parts) {
        let honours =
            Honours { pins: true, pauses: true, alignment: true, apart: true, ..Honours::default() };
        in_a_run(test_descriptor("parts", honours), instance, 0, |run| {
            let floor = run.bound().best_claim(Scope::NoHandOver).value.get();
            Ok((floor, Parts::new(run, floor, peel)?))
        })
    }

    fn ids(parts: &[Vec<BufferId>]) -> Vec<Vec<u32>> {
        parts.iter().map(|part| part.iter().map(|id| id.get()).collect()).collect()
    }

    #[test]
    fn parts_are_what_live_ranges_join() {
        let (_, parts) = parts(&buffers(&[(4, 0, 2), (4, 5, 7), (4, 1, 3), (4, 6, 8)]), false);
        assert_eq!(ids(&parts.parts), [[0, 2], [1, 3]]);
        assert!(parts.peeled.is_empty());
    }

    #[test]
    fn a_small_buffer_beside_little_is_peeled_and_the_part_falls_apart() {
        // The load is 20; buffer 1 has two gaps beside one of size 8, and 8 + 2 * 3 < 20.
        let (floor, parts) = parts(&buffers(&[(8, 0, 2), (4, 1, 4), (12, 4, 6), (8, 4, 6)]), true);
        assert_eq!(floor, 20);
        assert_eq!(parts.peeled, [1, 0].map(BufferId::new));
        assert_eq!(ids(&parts.parts), [[2, 3]]);
    }

    #[test]
    fn most_of_the_corpus_is_not_peeled_away() {
        for case in corpus().iter().filter(|case| case.name.starts_with("above-load")) {
            assert!(!parts(&case.instance, true).1.parts.is_empty(), "{}", case.name);
        }
    }

    /// The instance of the remaining buffers.
    fn rest(instance: &Instance, parts: &Parts) -> Instance {
        let kept: Vec<BufferId> = parts.parts.iter().flatten().copied().collect();
        Instance::from_buffers(kept.iter().map(|&id| instance.buffer(id).clone()).collect()).expect("valid")
    }

    proptest! {
        #![proptest_config(deep_config(400))]

        #[test]
        fn the_optimum_is_that_of_the_rest_or_the_floor(
            instance in instances(
                Shape::every_feature()
                    .with_arenas(false)
                    .with_in_place(false)
                    .with_apart(false)
                    .with_max_buffers(6)
                    .with_max_steps(8),
            ),
        ) {
            let optimum = brute_force_without_hand_over(&instance);
            let (floor, parts) = parts(&instance, true);
            let of_rest = brute_force_without_hand_over(&rest(&instance, &parts));
            prop_assert_eq!(of_rest.map(|height| height.max(Bytes::new(floor))), optimum);
        }
    }
}
