//! An adversary of first fit by start, which is how an online allocator works.
//!
//! The buffers double in size from round to round. Every second buffer of a round stays to the end; the others are
//! freed after the round. Each hole lies between two buffers that stay, and is half as large as the next buffers. So
//! every round starts above all earlier ones, although half of the last one is free: up to twice the load. An offline
//! plan puts the buffers that stay at the bottom.
//!
//! ```text
//!  address   round 0     round 1     round 2
//!    |                              [===   4
//!    |                  [====       2        2 stays, 2 went
//!    |       [=======   1           1
//!    |       [=======   hole        hole
//!    |       [=======   1           1        1 stays
//! ```
//!
//! # References
//!
//! 1. J. M. Robson, "Worst case fragmentation of first fit and best fit storage allocation strategies", Computer
//!    Journal 20(3), 1977, doi:10.1093/comjnl/20.3.242: the stronger construction that contains this one.

use super::{Gadget, gadget_scale, repeat_gadgets};
use crate::synthetic::family::{Family, Made};
use crate::synthetic::parameters::{N, ParameterError, SEED, Values};

/// The family `adversary/first-fit-start`.
pub const FAMILY: Family = Family {
    name: "adversary/first-fit-start",
    summary: "rounds of doubling sizes between holes of the last: up to 2 times the optimum",
    parameters: &[N, SEED],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    repeat_gadgets(values, FAMILY.name, |dice, room, at, first| {
        let mut cells = 4;
        if buffer_count(cells) > room {
            return None;
        }
        while buffer_count(4 * cells) <= room {
            cells *= 4;
        }
        // Heights must not grow: later gadgets have at most as many cells, and smaller ones.
        Some(build_gadget(u64::try_from(cells).expect("a count"), gadget_scale(dice, first, 16), at))
    })
}

/// The buffers of all rounds: 1, 4, 16, ... up to the number of cells.
fn buffer_count(cells: usize) -> usize {
    (4 * cells - 1) / 3
}

/// Rounds over `cells` cells, a power of four, each of `unit` granules.
fn build_gadget(cells: u64, unit: u64, at: u32) -> Gadget {
    let rounds: Vec<(u64, u64)> = (0..).map(|j| (cells >> (2 * j), 1 << j)).take_while(|r| r.0 > 0).collect();
    let total: u64 = rounds.iter().map(|&(count, _)| count).sum();
    let end = at + u32::try_from(total).expect("no more than n") + 1;
    let mut gadget = Gadget::new(cells * unit, end);
    let (mut step, mut bottom) = (at, 0);
    for (count, size) in rounds {
        let over = step + u32::try_from(count).expect("no more than n");
        let staying = count.div_ceil(2);
        let top = bottom + staying * size;
        for index in 0..count {
            let half = index / 2 * size;
            let (until, offset) = if index % 2 == 0 { (end, bottom + half) } else { (over, top + half) };
            gadget.add_buffer(size * unit, (step, until), offset * unit);
            step += 1;
        }
        bottom = top;
    }
    gadget
}
