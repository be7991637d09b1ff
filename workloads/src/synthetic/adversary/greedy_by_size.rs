//! An adversary of every greedy that places the largest buffer first.
//!
//! A tower: sizes decrease very slightly from level to level, so the levels are placed one after another. Every life of
//! level `k` meets a life of each lower level at some step. First fit stacks the levels: `k` sizes high. Yet no more
//! than `k / 2 + 1` lives meet at any step: a life only *touches* the tip of the tower of level `k - 1`, and spans the
//! towers of levels `1 .. k - 2`. In the limit, the height is twice the optimum.
//!
//! ```text
//!   level 3              +-----------------+
//!   level 2       +------+-+   +--+        |       spans a tower of level 1
//!   level 1  +----+-+          +--+
//!            +------------------------------> step
//! ```
//!
//! At one more step, as many buffers of level 1 are live together as lives meet, so that the load is a whole number of
//! slots. The optimum then equals the load: lives that fit in `s` slots of one size at every step can be sorted into
//! `s` slots.
//!
//! # References
//!
//! 1. H. A. Kierstead, "A polynomial time approximation algorithm for dynamic storage allocation",
//!    Discrete Mathematics 88, 1991, doi:10.1016/0012-365X(91)90011-P: first fit and interval colouring.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{Gadget, gadget_scale, repeat_gadgets};
use crate::synthetic::family::{Family, Made};
use crate::synthetic::parameters::{N, ParameterError, SEED, Values};

/// The family `adversary/greedy-by-size`.
pub const FAMILY: Family = Family {
    name: "adversary/greedy-by-size",
    summary: "towers of slightly falling sizes: up to 2 times the optimum for the largest first",
    parameters: &[N, SEED],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    repeat_gadgets(values, FAMILY.name, |dice, room, at, first| {
        let levels = (2..=24).rev().find(|&levels| buffer_count(levels) <= room)?;
        Some(build_gadget(levels, gadget_scale(dice, first, 4096), at))
    })
}

/// The most lives of a tower that meet at one step.
const fn lives_meeting(levels: u32) -> usize {
    levels as usize / 2 + 1
}

/// A tower's lives, plus those that make the load a whole number of slots.
const fn buffer_count(levels: u32) -> usize {
    (1 << (levels - 1)) + lives_meeting(levels)
}

/// A life of a tower: start, end, level.
type Life = (u32, u32, u32);

fn build_gadget(levels: u32, base: u64, at: u32) -> Gadget {
    let mut lives: Vec<Life> = Vec::with_capacity(buffer_count(levels));
    let end = add_tower(levels, at, &mut lives);
    lives.extend(std::iter::repeat_n((end, end + 1, 1), lives_meeting(levels)));
    lives.sort_unstable();
    let size = |level: u32| base + u64::from(levels - level);
    let slots = assign_slots(&lives);
    let mut gadget = Gadget::new(lives_meeting(levels) as u64 * size(1), end + 1);
    for (&(start, end, level), slot) in lives.iter().zip(slots) {
        gadget.add_buffer(size(level), (start, end), slot * size(1));
    }
    gadget
}

/// Adds the tower of a level from a step on; the last step of its top life, the tip, meets no other life. Returns the
/// step after it.
fn add_tower(level: u32, at: u32, lives: &mut Vec<Life>) -> u32 {
    if level == 1 {
        lives.push((at, at + 2, 1));
        return at + 2;
    }
    let tip = add_tower(level - 1, at, lives);
    let inner = (1..level - 1).fold(tip, |at, lower| add_tower(lower, at, lives));
    lives.push((tip - 1, inner + 1, level));
    inner + 1
}

/// Gives each life the lowest free slot, in order of starts.
fn assign_slots(lives: &[Life]) -> Vec<u64> {
    let mut free = BTreeSet::new();
    let mut taken = BinaryHeap::new();
    let mut fresh = 0;
    let slot = |&(start, end, _): &Life| {
        while let Some(&Reverse((until, slot))) = taken.peek()
            && until <= start
        {
            free.insert(slot);
            taken.pop();
        }
        let slot = free.pop_first().unwrap_or_else(|| {
            fresh += 1;
            fresh - 1
        });
        taken.push(Reverse((end, slot)));
        slot
    };
    lives.iter().map(slot).collect()
}
