//! An adversary of greedy by breadth, which visits the steps by the bytes in use, most first.
//!
//! Each outer life of a path has a step of its own, filled with crumbs to just above the load of the other steps. Those
//! steps come first. There the outer lives are the largest, and both go to the bottom.
//!
//! # References
//!
//! 1. Y. Pisarchyk, J. Lee, "Efficient memory management for deep neural net inference", 2020,
//!    arXiv:2001.03288: the heuristic.

use super::{Gadget, gadget_scale, repeat_gadgets};
use crate::synthetic::family::{Family, Made};
use crate::synthetic::parameters::{N, ParameterError, SEED, Values};

/// The family `adversary/greedy-by-breadth`.
pub const FAMILY: Family = Family {
    name: "adversary/greedy-by-breadth",
    summary: "paths whose outer lives have the broadest steps: up to 24/17 of the optimum",
    parameters: &[N, SEED],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    // More crumbs bring the ratio nearer to 3/2.
    let crumbs = if values.number("n") < 50 { 2 } else { 8 };
    let buffers = 4 + 2 * (crumbs + 1);
    repeat_gadgets(values, FAMILY.name, |dice, room, at, first| {
        (room >= buffers).then(|| build_gadget(crumbs as u64, gadget_scale(dice, first, 128), at))
    })
}

/// Lives of `crumbs` crumbs each, with one more crumb beside each outer life.
fn build_gadget(crumbs: u64, crumb: u64, at: u32) -> Gadget {
    let size = crumbs * crumb;
    let lives = |start: u32, end: u32| (at + start, at + end);
    let mut gadget = Gadget::new(2 * size + crumb, at + 9);
    for (life, offset) in [(lives(0, 3), size), (lives(2, 5), 0), (lives(4, 7), size), (lives(6, 9), 0)] {
        gadget.add_buffer(size, life, offset);
    }
    for index in 0..=crumbs {
        // Below A, and the last one above it; D has all of them above.
        let beside_a = if index == crumbs { 2 * size } else { index * crumb };
        gadget.add_buffer(crumb, lives(0, 1), beside_a);
        gadget.add_buffer(crumb, lives(8, 9), size + index * crumb);
    }
    gadget
}
