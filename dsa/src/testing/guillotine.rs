//! Instances cut out of a rectangle, so that their optimum is known.
//!
//! ```text
//!   height +-------+----------+
//!          |   a   |    c     |     every step is full up to the height:
//!          +---+---+--+-------+     the load is the height, and so is the optimum
//!          | b |  d   |   e   |
//!        0 +---+------+-------+> steps
//! ```

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::samples::test_buffer;
use crate::{Bytes, Instance, Offset, Plan};

/// A rectangle to cut.
#[derive(Clone, Copy)]
struct Sheet {
    start: u32,
    end: u32,
    low: u64,
    high: u64,
}

impl Sheet {
    fn width(&self) -> u64 {
        u64::from(self.end - self.start)
    }

    fn area(&self) -> u64 {
        self.width() * (self.high - self.low)
    }
}

/// Cuts `height` bytes over 4 steps per buffer (at least 8) into this many buffers, in shuffled order. Also returns the
/// plan of the cuts; its height equals the load.
///
/// # Panics
///
/// If `buffers` or `height` is 0, or if there are too many buffers for 2^32 steps or for the height.
#[must_use]
pub fn guillotine_instance(buffers: u32, height: Bytes, seed: u64) -> (Instance, Plan) {
    assert!(buffers > 0, "a rectangle that is not cut is one buffer");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let end = buffers.checked_mul(4).expect("at most 2^30 buffers").max(8);
    let sheet = Sheet { start: 0, end, low: 0, high: height.get() };
    assert!(sheet.area() >= u64::from(buffers), "a height of {height} is too little for {buffers} buffers");
    let mut pieces = Vec::new();
    let mut open = vec![(sheet, u64::from(buffers))];
    while let Some((sheet, count)) = open.pop() {
        if count == 1 {
            pieces.push(sheet);
        } else {
            open.extend(cut_sheet(sheet, count, &mut rng));
        }
    }
    pieces.shuffle(&mut rng);
    let offsets: Vec<Offset> = pieces.iter().map(|piece| Offset::new(piece.low)).collect();
    let buffer = |piece: &Sheet| test_buffer(piece.high - piece.low, piece.start, piece.end);
    let instance = Instance::from_buffers(pieces.iter().map(buffer).collect());
    (instance.expect("plain buffers that fit one arena"), Plan::from_offsets(offsets))
}

/// Cuts a sheet in two near the middle, and splits the count so that each part is large enough for its share.
fn cut_sheet(sheet: Sheet, count: u64, rng: &mut ChaCha8Rng) -> [(Sheet, u64); 2] {
    let tall = sheet.high - sheet.low;
    let in_time = match (sheet.width() > 1, tall > 1) {
        (true, true) => rng.random::<bool>(),
        (can, _) => can,
    };
    let length = if in_time { sheet.width() } else { tall };
    let at = if length < 4 { 1 } else { rng.random_range(length / 4..=length - length / 4) };
    let (mut first, mut second) = (sheet, sheet);
    if in_time {
        let step = sheet.start + u32::try_from(at).expect("a width has 32 bits");
        (first.end, second.start) = (step, step);
    } else {
        let address = sheet.low + at;
        (first.high, second.low) = (address, address);
    }
    let least = count.saturating_sub(second.area()).max(1);
    let most = (count - 1).min(first.area());
    let share = rng.random_range(least..=most).midpoint((count / 2).clamp(least, most));
    [(first, share), (second, count - share)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_plan_is_valid_and_meets_the_load() {
        for (buffers, height, seed) in [(1, 1, 0), (2, 1, 0), (7, 3, 1), (40, 5, 2), (500, 1 << 20, 3)] {
            let (instance, plan) = guillotine_instance(buffers, Bytes::new(height), seed);
            assert_eq!(instance.len(), buffers as usize);
            assert_eq!(instance.load().bytes, Bytes::new(height));
            let height = instance.verify(plan).map(|plan| plan.height());
            assert_eq!(height, Ok(instance.load().bytes), "{buffers} buffers, seed {seed}");
        }
    }
}
