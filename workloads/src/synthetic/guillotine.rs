//! A rectangle of time and address, cut repeatedly: the optimum is its height.
//!
//! Every cut goes straight through a piece, across the steps or across the addresses, so the pieces fill the rectangle
//! without waste. The load is its height at every step, and putting the pieces back is an optimal plan. The pieces are
//! then shuffled. It does not model a net; it measures the distance of a heuristic from an optimum that is known at any
//! size.
//!
//! ```text
//!  address
//!    ^ +----+---------+
//!    | | b  |    d    |
//!    | |    +-----+---+   height: the optimum
//!    | +----+  c  | e |
//!    | | a  |     |   |
//!    +-+----+-----+---+--> step
//! ```
//!
//! # References
//!
//! 1. E. Hopper, B. C. H. Turton, "Problem generators for rectangular packing problems", Studia
//!    Informatica Universalis 2(1), 2002.

use planlab_dsa::{Buffer, Bytes};

use super::dice::Dice;
use super::parameters::{N, Parameter, SEED};
use super::{Family, Made, ParameterError, Values, life};

/// The family `guillotine`.
pub const FAMILY: Family = Family {
    name: "guillotine",
    summary: "a rectangle cut into pieces: the optimum is its height",
    parameters: &[
        N,
        SEED,
        Parameter::number(
            "height",
            "2097152",
            (64, 1 << 40),
            "height of the rectangle, in granules of 512 bytes",
        ),
        Parameter::number("aspect", "50", (0, 100), "chance in percent that a cut is across the steps"),
    ],
    make,
};

const GRANULE: u64 = 512;

/// A piece that will be cut into `count` buffers.
#[derive(Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    low: u64,
    high: u64,
    count: u64,
}

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let (n, height) = (values.number("n"), values.number("height"));
    let whole = Piece { start: 0, end: 4 * n, low: 0, high: height, count: n };
    let (mut pieces, mut done) = (vec![whole], Vec::new());
    while let Some(piece) = pieces.pop() {
        if piece.count == 1 {
            done.push(piece);
        } else {
            pieces.extend(piece.cut(&mut dice, values.number("aspect")));
        }
    }
    dice.shuffle(&mut done);
    let step = |step: u64| u32::try_from(step).expect("four steps for each buffer fit");
    let placed = done.into_iter().map(|piece| {
        let size = Bytes::new((piece.high - piece.low) * GRANULE);
        (Buffer::new(size, life(step(piece.start), step(piece.end))), piece.low * GRANULE)
    });
    Made::solved(placed.collect(), height * GRANULE)
}

impl Piece {
    /// Cuts it in two, each large enough for its share: no piece gets more buffers than it has cells.
    fn cut(self, dice: &mut Dice, aspect: u64) -> [Self; 2] {
        let (width, height) = (self.end - self.start, self.high - self.low);
        let across_steps = if width == 1 || height == 1 { width > 1 } else { dice.percent(aspect) };
        let (length, cells) = if across_steps { (width, height) } else { (height, width) };
        // Between a quarter and three quarters, if possible.
        let at = dice.between((length / 4).max(1), (length - length / 4).min(length - 1).max(1));
        let (below, above) = (at * cells, (length - at) * cells);
        let share = dice.between(self.count / 4, self.count - self.count / 4);
        let lower = share.clamp(1, self.count - 1).min(below).max(self.count.saturating_sub(above));
        let (mut first, mut second) = (self, self);
        (first.count, second.count) = (lower, self.count - lower);
        if across_steps {
            (first.end, second.start) = (self.start + at, self.start + at);
        } else {
            (first.high, second.low) = (self.low + at, self.low + at);
        }
        [first, second]
    }
}
