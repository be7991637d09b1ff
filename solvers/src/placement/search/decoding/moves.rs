//! Changes of the order that touch what stands highest.
//!
//! A buffer that sticks out above the ceiling stands on a pile: one buffer carries it, another carries that one, and so
//! on down to the ground. A change begins at a buffer of the pile, rarely one deep down, and takes one of its
//! neighbours in time. The two change places in the order, or one moves right before or right behind the other.
//!
//! ```text
//!            +---+
//!            | t |            t sticks out; a carries t, b carries a
//!  - - - - - +   + - - - ceiling
//!       +--------+
//!       |    a   |            changed: the order of t, a or b and a neighbour of it,
//!    +--+--+--+--+            mostly one that was placed earlier
//!    |  b  |  | c |
//!    +-----+  +---+
//! ```

use rand::{Rng, RngExt};

use super::decoder::{Change, Decoder};

/// The chance that the walk down the pile goes one deeper.
const DEEPER: f64 = 0.5;
/// The chance that only neighbours that come earlier are considered.
const EARLIER: f64 = 0.8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    near: Vec<u32>,
}

impl Moves {
    /// A change, or `None` if the draw found nothing to change.
    pub(crate) fn draw_change(&mut self, decoder: &Decoder, rng: &mut impl Rng) -> Option<Change> {
        let tall = decoder.tall_buffers();
        let mut id = *tall.get(random_below(rng, tall.len())?)?;
        while rng.random_bool(DEEPER) {
            decoder.collect_neighbours(id, &mut self.near);
            self.near.retain(|&other| decoder.carries_buffer(other, id));
            let Some(at) = random_below(rng, self.near.len()) else { break };
            id = self.near[at];
        }
        self.draw_partner(decoder, id, rng).map(|other| combine_pair(decoder, id, other, rng))
    }

    fn draw_partner(&mut self, decoder: &Decoder, id: u32, rng: &mut impl Rng) -> Option<u32> {
        if decoder.position(id) < decoder.first_movable() {
            return None;
        }
        let last = if rng.random_bool(EARLIER) { decoder.position(id) } else { u32::MAX };
        decoder.collect_neighbours(id, &mut self.near);
        self.near.retain(|&other| (decoder.first_movable()..last).contains(&decoder.position(other)));
        Some(self.near[random_below(rng, self.near.len())?])
    }
}

fn combine_pair(decoder: &Decoder, id: u32, other: u32, rng: &mut impl Rng) -> Change {
    match rng.random_range(0_u8..4) {
        0 => Change::Shift(id, decoder.position(other)),
        1 => Change::Shift(other, decoder.position(id)),
        _ => Change::Swap(id, other),
    }
}

/// A random number below `count`, or `None` for 0.
pub(crate) fn random_below(rng: &mut impl Rng, count: usize) -> Option<usize> {
    (count > 0).then(|| rng.random_range(0..count))
}
