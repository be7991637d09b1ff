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
use super::family::{Family, Made, life};
use super::parameters::{N, Parameter, ParameterError, SEED, Values};

/// The family `guillotine`.
pub const FAMILY: Family = Family {
    name: "guillotine",
    summary: "a rectangle cut into pieces: the optimum is its height",
    parameters: &[
        N,
        SEED,
        Parameter::from_number(
            "height",
            "2097152",
            (64, 1 << 40),
            "height of the rectangle, in granules of 512 bytes",
        ),
        Parameter::from_number("aspect", "50", (0, 100), "chance in percent that a cut is across the steps"),
    ],
    make,
};

const GRANULE: u64 = 512;

/// A piece of the rectangle that becomes `count` buffers.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) count: u64,
}

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let whole = Piece::new(values.number("n"), values.number("height"));
    let done = whole.cut_up(|piece| piece.cut_piece(&mut dice, values.number("aspect")).to_vec());
    whole.solve_pieces(done, &mut dice)
}

impl Piece {
    /// The rectangle that becomes `count` buffers, four steps for each.
    pub(super) const fn new(count: u64, height: u64) -> Self {
        Self { start: 0, end: 4 * count, low: 0, high: height, count }
    }

    pub(super) const fn width(self) -> u64 {
        self.end - self.start
    }

    pub(super) const fn height(self) -> u64 {
        self.high - self.low
    }

    /// The most buffers that it can become.
    pub(super) const fn most_buffers(self) -> u64 {
        self.width().saturating_mul(self.height())
    }

    /// Cuts it into smaller and smaller pieces, down to those of one buffer.
    pub(super) fn cut_up(self, mut cut: impl FnMut(Self) -> Vec<Self>) -> Vec<Self> {
        let (mut pieces, mut done) = (vec![self], Vec::new());
        while let Some(piece) = pieces.pop() {
            if piece.count == 1 {
                done.push(piece);
            } else {
                pieces.extend(cut(piece));
            }
        }
        done
    }

    /// The pieces that fill it as buffers, shuffled.
    pub(super) fn solve_pieces(self, mut pieces: Vec<Self>, dice: &mut Dice) -> Result<Made, ParameterError> {
        dice.shuffle(&mut pieces);
        let step = |step: u64| u32::try_from(step).expect("four steps for each buffer fit");
        let placed = pieces.into_iter().map(|piece| {
            let size = Bytes::new(piece.height() * GRANULE);
            (Buffer::new(size, life(step(piece.start), step(piece.end))), piece.low * GRANULE)
        });
        Made::from_placed(placed.collect(), self.height() * GRANULE)
    }

    /// Two pieces on either side of a straight line; both still have all buffers.
    pub(super) fn halve_piece(self, dice: &mut Dice, aspect: u64) -> [Self; 2] {
        let (width, height) = (self.width(), self.height());
        let across_steps = if width == 1 || height == 1 { width > 1 } else { dice.roll_percent(aspect) };
        let length = if across_steps { width } else { height };
        // Between a quarter and three quarters, if possible.
        let at = dice.between((length / 4).max(1), (length - length / 4).min(length - 1).max(1));
        let (mut first, mut second) = (self, self);
        if across_steps {
            (first.end, second.start) = (self.start + at, self.start + at);
        } else {
            (first.high, second.low) = (self.low + at, self.low + at);
        }
        [first, second]
    }

    /// Cuts it in two, each large enough for its share: no piece gets more buffers than it has cells.
    fn cut_piece(self, dice: &mut Dice, aspect: u64) -> [Self; 2] {
        let [mut first, mut second] = self.halve_piece(dice, aspect);
        let share = dice.between(self.count / 4, self.count - self.count / 4);
        let lower = share.clamp(1, self.count - 1).min(first.most_buffers());
        first.count = lower.max(self.count.saturating_sub(second.most_buffers()));
        second.count = self.count - first.count;
        [first, second]
    }
}
