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
    fn with_buffer(mut self, size: u64, (start, end): (u32, u32), offset: u64) -> Self {
        self.add_buffer(size, (start, end), offset);
        self
    }

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
        let parts = self.sizes.into_iter().zip(self.lives).zip(offsets);
        parts.fold(Gadget::new(height, end), |gadget, ((size, (start, end)), offset)| {
            gadget.with_buffer(size * unit, (at + start, at + end), offset * unit)
        })
    }

    fn make_instance(&self, values: &Values, name: &str) -> Result<Made, ParameterError> {
        repeat_gadgets(values, name, |dice, room, at, first| {
            (room >= 4).then(|| self.build_gadget(gadget_scale(dice, first, 512), at))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use planlab_dsa::{BufferId, Instance, Plan, testing};

    use super::*;
    use crate::synthetic::construct_instance;

    /// The height of a first fit in this order.
    fn first_fit(instance: &Instance, order: &[BufferId]) -> u64 {
        let plan = testing::first_fit(instance, order, &[]);
        instance.verify(plan).expect("it is a plan").height().get()
    }

    fn ordered<K: Ord>(instance: &Instance, key: impl Fn(&Buffer) -> K) -> Vec<BufferId> {
        let mut order: Vec<BufferId> = instance.ids().collect();
        order.sort_by_key(|&id| (key(instance.buffer(id)), id));
        order
    }

    /// Visits the steps by the bytes in use, most first, and at each step takes the largest remaining buffer first.
    fn by_breadth(instance: &Instance) -> Vec<BufferId> {
        let curve = instance.load_curve();
        let mut steps: Vec<u32> = (0..instance.horizon().get()).collect();
        steps.sort_by_key(|&step| (Reverse(curve.load_at(planlab_dsa::Step::new(step))), step));
        let sizes = ordered(instance, |b| Reverse(b.size));
        let mut order = Vec::new();
        for step in steps {
            let live = |id: &&BufferId| instance.buffer(**id).live.contains(planlab_dsa::Step::new(step));
            let fresh: Vec<BufferId> =
                sizes.iter().filter(live).filter(|id| !order.contains(*id)).copied().collect();
            order.extend(fresh);
        }
        order
    }

    /// The paper's best fit: the lowest line, leftmost, takes the longest-lived buffer that fits. If none fits, the
    /// line is lifted to its lower neighbour. Heights are stored step by step.
    fn skyline(instance: &Instance) -> u64 {
        let mut tops = vec![0_u64; instance.horizon().get() as usize];
        let mut left: Vec<usize> = (0..instance.len()).collect();
        while !left.is_empty() {
            let low = *tops.iter().min().expect("steps");
            let start = tops.iter().position(|&top| top == low).expect("the minimum");
            let end = start + tops[start..].iter().take_while(|&&top| top == low).count();
            let within = |id: &&usize| {
                let live = instance.buffers()[**id].live;
                start <= live.start().get() as usize && live.end().get() as usize <= end
            };
            let longest = left
                .iter()
                .filter(within)
                .max_by_key(|&&id| (instance.buffers()[id].live.width(), Reverse(id)));
            match longest.copied() {
                Some(id) => {
                    let buffer = &instance.buffers()[id];
                    let (from, to) = (buffer.live.start().get() as usize, buffer.live.end().get() as usize);
                    tops[from..to].iter_mut().for_each(|top| *top += buffer.size.get());
                    left.retain(|&other| other != id);
                }
                None => {
                    let before = start.checked_sub(1).map_or(u64::MAX, |step| tops[step]);
                    let after = tops.get(end).copied().unwrap_or(u64::MAX);
                    tops[start..end].fill(before.min(after));
                }
            }
        }
        tops.into_iter().filter(|&top| top != u64::MAX).max().unwrap_or(0)
    }

    fn ratio(family: &str, n: &str, height: impl Fn(&Instance) -> u64) -> f64 {
        let made = construct_instance(family, &[("n", n), ("seed", "3")]).expect("valid");
        let optimum = made.optimum.expect("known").get();
        let plan = Plan::from_offsets(made.witness.clone().expect("known"));
        assert_eq!(made.instance.verify(plan).expect("valid").height().get(), optimum, "{family}");
        assert_eq!(made.instance.load().bytes.get(), optimum, "{family}");
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let ratio = height(&made.instance) as f64 / optimum as f64;
        ratio
    }

    #[test]
    fn every_trap_springs() {
        let area = |b: &Buffer| Reverse(b.size.get() * u64::from(b.live.width()));
        let width = |b: &Buffer| Reverse(b.live.width());
        let size = |b: &Buffer| Reverse(b.size);
        for (n, least) in [("10", [1.2, 1.2, 1.2, 1.3, 1.1, 1.4]), ("400", [1.8, 1.5, 1.2, 1.3, 1.4, 1.4])] {
            let start =
                ratio("adversary/first-fit-start", n, |i| first_fit(i, &ordered(i, |b| b.live.start())));
            let by_size = ratio("adversary/greedy-by-size", n, |i| first_fit(i, &ordered(i, size)));
            let by_area = ratio("adversary/first-fit-area", n, |i| first_fit(i, &ordered(i, area)));
            let by_width = ratio("adversary/first-fit-width", n, |i| first_fit(i, &ordered(i, width)));
            let breadth = ratio("adversary/greedy-by-breadth", n, |i| first_fit(i, &by_breadth(i)));
            let best_fit = ratio("adversary/best-fit", n, skyline);
            let found = [start, by_size, by_area, by_width, breadth, best_fit];
            assert!(found.iter().zip(least).all(|(&found, least)| found >= least), "n {n}: {found:?}");
        }
    }

    #[test]
    fn other_orders_escape() {
        let size = |b: &Buffer| Reverse(b.size);
        let area = |b: &Buffer| Reverse(b.size.get() * u64::from(b.live.width()));
        assert_eq!(ratio("adversary/first-fit-area", "400", |i| first_fit(i, &ordered(i, size))), 1.0);
        assert_eq!(ratio("adversary/first-fit-width", "400", |i| first_fit(i, &ordered(i, area))), 1.0);
    }
}
