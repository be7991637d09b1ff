//! Adversaries: for each greedy, instances on which it does badly, with a known optimum.
//!
//! All consist of gadgets that follow each other in time. A gadget sets a trap for one order of placement: the first
//! buffers look harmless, and the last ones then find every lower address taken at some step of their lives. The
//! optimum equals the load, and the construction includes a plan that reaches it.
//!
//! The smallest trap is a path of four lives; the greedy places the outer two (A, D) first:
//!
//! ```text
//!   address   greedy                  optimum
//!      3s |       +--C--+
//!      2s |   +--B--+             |--A--+ +--C--+
//!       s |--A--+     +--D--      |   +--B--+ +--D--
//!       0 +------------------     +------------------> step
//! ```

pub mod first_fit_start;
pub mod greedy_by_breadth;
pub mod greedy_by_size;
pub mod paths;

use planlab_dsa::{Buffer, Bytes};

use crate::synthetic::dice::Dice;
use crate::synthetic::family::{Made, life};
use crate::synthetic::parameters::{ParameterError, Values};

/// Every size is a multiple of this, in bytes.
const GRANULE: u64 = 512;

/// A few buffers with an optimal plan.
struct Gadget {
    /// Buffers and offsets, in granules.
    placed: Vec<(Buffer, u64)>,
    /// Height in granules.
    height: u64,
    /// The step after its last.
    end: u32,
}

impl Gadget {
    fn new(height: u64, end: u32) -> Self {
        Self { placed: Vec::new(), height, end }
    }

    /// Adds a buffer of `size` granules that is live in `[start, end)` and lies at `offset` granules.
    fn add_buffer(&mut self, size: u64, (start, end): (u32, u32), offset: u64) {
        let buffer = Buffer::new(Bytes::new(size * GRANULE), life(start, end));
        self.placed.push((buffer, offset * GRANULE));
    }
}

/// Repeats gadgets while there is room for more buffers, then adds single buffers of one granule up to `n`; the rows
/// are shuffled. `gadget` receives the remaining room, the step to start at, and whether it is the first: no later
/// gadget may be higher.
fn repeat_gadgets(
    values: &Values,
    name: &str,
    mut gadget: impl FnMut(&mut Dice, usize, u32, bool) -> Option<Gadget>,
) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), name);
    let n = values.count("n");
    let mut placed: Vec<(Buffer, u64)> = Vec::with_capacity(n);
    let (mut at, mut optimum) = (0, GRANULE);
    while let Some(next) = gadget(&mut dice, n - placed.len(), at, placed.is_empty()) {
        assert!(placed.len() + next.placed.len() <= n, "a gadget keeps to its room");
        at = next.end;
        optimum = optimum.max(next.height * GRANULE);
        placed.extend(next.placed);
    }
    while placed.len() < n {
        placed.push((Buffer::new(Bytes::new(GRANULE), life(at, at + 1)), 0));
        at += 1;
    }
    dice.shuffle(&mut placed);
    Made::from_placed(placed, optimum)
}

/// The scale of a gadget: the first has the largest, later ones between half of it and all of it.
fn gadget_scale(dice: &mut Dice, first: bool, most: u64) -> u64 {
    if first { most } else { dice.between(most / 2, most) }
}

/// The path A - B - C - D of the module's picture.
struct Path {
    lives: [(u32, u32); 4],
    /// Sizes in units.
    sizes: [u64; 4],
}

impl Path {
    /// The gadget at a step, with units of `unit` granules. The optimum puts B and D at the bottom, A and C on top of
    /// B, which must be at least as large as D.
    fn build_gadget(&self, unit: u64, at: u32) -> Gadget {
        let [a, b, c, d] = self.sizes;
        assert!(b >= d, "C lies on B, and D below C");
        let height = (b + a.max(c)) * unit;
        let end = at + self.lives[3].1;
        let offsets = [b, 0, b, 0];
        let mut gadget = Gadget::new(height, end);
        for ((size, (start, end)), offset) in self.sizes.into_iter().zip(self.lives).zip(offsets) {
            gadget.add_buffer(size * unit, (at + start, at + end), offset * unit);
        }
        gadget
    }

    fn make_instance(&self, values: &Values, name: &str) -> Result<Made, ParameterError> {
        repeat_gadgets(values, name, |dice, room, at, first| {
            (room >= 4).then(|| self.build_gadget(gadget_scale(dice, first, 512), at))
        })
    }
}
