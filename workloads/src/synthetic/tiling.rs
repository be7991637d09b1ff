//! A rectangle of time and address cut into pinwheels and strips, with a little slack: the optimum is its height.
//!
//! A pinwheel is four pieces around a fifth. No straight cut divides it, so a planner that builds a plan from shelves or
//! stacks cannot reproduce it. Slack makes some pieces smaller than their place, so that a planner cannot rely on every step
//! being full either. The pieces that are live at one step keep their size: the load there is the height of the rectangle,
//! which therefore stays the optimum. Models no net; it measures searches for tight packings.
//!
//! ```text
//!  address
//!    ^ +-----+-----------+
//!    | |     |     c     |
//!    | |  d  +-----+-----+
//!    | |     |  e  |     |   height: the optimum
//!    | +-----+-----+  b  |
//!    | |     a     |     |
//!    +-+-----------+-----+--> step
//! ```
//!
//! # References
//!
//! 1. E. Hopper, B. C. H. Turton, "Problem generators for rectangular packing problems", Studia
//!    Informatica Universalis 2(1), 2002 (guillotineable and non-guillotineable instances).

use super::dice::Dice;
use super::family::{Family, Made};
use super::guillotine::Piece;
use super::parameters::{N, Parameter, ParameterError, SEED, Values};

/// The family `tiling`.
pub const FAMILY: Family = Family {
    name: "tiling",
    summary: "a rectangle cut into pinwheels and strips: the optimum is its height",
    parameters: &[
        N,
        SEED,
        Parameter::from_number(
            "height",
            "2097152",
            (4096, 1 << 40),
            "height of the rectangle, in granules of 512 bytes",
        ),
        Parameter::from_number(
            "pinwheels",
            "50",
            (0, 100),
            "chance in percent that a piece becomes a pinwheel",
        ),
        Parameter::from_number(
            "slack",
            "0",
            (0, 50),
            "part of the rectangle that stays empty, in percent, about",
        ),
    ],
    make,
};

fn make(values: &Values) -> Result<Made, ParameterError> {
    let mut dice = Dice::new(values.number("seed"), FAMILY.name);
    let whole = Piece::new(values.number("n"), values.number("height"));
    let mut done = whole.cut_up(|piece| {
        let pinwheel = piece.cut_pinwheel(&mut dice, values.number("pinwheels"));
        pinwheel.unwrap_or_else(|| piece.cut_by_area(&mut dice))
    });
    loosen_pieces(&mut done, whole, values.number("slack"), &mut dice);
    whole.solve_pieces(done, &mut dice)
}

/// Takes up to twice the slack off the height of every piece that is not live at one step.
fn loosen_pieces(pieces: &mut [Piece], whole: Piece, slack: u64, dice: &mut Dice) {
    let full = dice.below(whole.end);
    for piece in pieces.iter_mut().filter(|piece| !(piece.start..piece.end).contains(&full)) {
        let most = u128::from(piece.high - piece.low) * u128::from(2 * slack) / 100;
        piece.high -= dice.between(0, u64::try_from(most).expect("a part of a height"));
        piece.high = piece.high.max(piece.low + 1);
    }
}

impl Piece {
    /// Four pieces around a fifth; `None` if it is too small, holds too few buffers, or chance decides otherwise.
    fn cut_pinwheel(self, dice: &mut Dice, chance: u64) -> Option<Vec<Self>> {
        if self.count < 5 || self.width() < 3 || self.height() < 3 || !dice.roll_percent(chance) {
            return None;
        }
        let thirds = |dice: &mut Dice, from: u64, length: u64| {
            let first = dice.between((length / 6).max(1), (length / 2).max(1).min(length - 2));
            let second = dice.between(first + 1, (length - (length / 6).max(1)).max(first + 1));
            (from + first, from + second)
        };
        let (left, right) = thirds(dice, self.start, self.width());
        let (lower, upper) = thirds(dice, self.low, self.height());
        let part = |start, end, low, high| Self { start, end, low, high, count: 1 };
        let mut parts = vec![
            part(self.start, right, self.low, lower),
            part(right, self.end, self.low, upper),
            part(left, self.end, upper, self.high),
            part(self.start, left, lower, self.high),
            part(left, right, lower, upper),
        ];
        self.share_buffers(&mut parts);
        Some(parts)
    }

    /// Two pieces on either side of a straight line.
    fn cut_by_area(self, dice: &mut Dice) -> Vec<Self> {
        let mut parts = self.halve_piece(dice, 50).to_vec();
        self.share_buffers(&mut parts);
        parts
    }

    /// Gives each part a share of the buffers by its area: one at least, and no more than it has cells.
    fn share_buffers(self, parts: &mut [Self]) {
        let area = u128::from(self.width()) * u128::from(self.height());
        let mut left = self.count;
        for part in &mut *parts {
            let part_area = u128::from(part.width()) * u128::from(part.height());
            let by_area = u128::from(self.count) * part_area / area;
            part.count = u64::try_from(by_area).expect("at most all").clamp(1, part.most_buffers());
            left = left.saturating_sub(part.count);
        }
        let total: u64 = parts.iter().map(|part| part.count).sum();
        for _ in self.count..total {
            let most = parts.iter_mut().max_by_key(|part| part.count).expect("parts");
            most.count -= 1;
        }
        for _ in total..self.count {
            let room = parts.iter_mut().filter(|part| part.count < part.most_buffers());
            room.max_by_key(|part| part.most_buffers() - part.count)
                .expect("all cells hold all buffers")
                .count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Instance, LiveRange};

    use crate::synthetic::construct_instance;

    /// Bytes times steps of all buffers.
    fn area(instance: &Instance) -> u128 {
        let steps = |live: LiveRange| u128::from(live.end().get() - live.start().get());
        instance.buffers().iter().map(|buffer| u128::from(buffer.size.get()) * steps(buffer.live)).sum()
    }

    #[test]
    fn the_load_is_the_height_and_the_slack_is_about_what_was_asked_for() {
        for (n, slack) in [(10, 0), (100, 0), (100, 5), (1000, 2), (10_000, 5)] {
            let [count, percent] = [n, slack].map(|number: u64| number.to_string());
            let made = construct_instance("tiling", &[("n", &count), ("slack", &percent)]).expect("valid");
            assert_eq!(made.instance.len() as u64, n);
            assert_eq!(Some(made.instance.load().bytes), made.optimum);
            let whole = u128::from(made.optimum.expect("known").get()) * u128::from(4 * n);
            let empty = (whole - area(&made.instance)) * 1000 / whole;
            let least = u128::from(slack) * 5;
            assert!((least..=u128::from(slack) * 11).contains(&empty), "{n} buffers: {empty} per mille");
        }
    }
}
