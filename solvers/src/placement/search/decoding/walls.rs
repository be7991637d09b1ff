//! The offsets that the neighbours of a buffer block, and the lowest that they leave.

use super::model::Part;

/// Ranges of offsets that are blocked for a buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Walls {
    /// Whether both ends fit in 32 bits; then one number holds both.
    narrow: bool,
    packed: Vec<u64>,
    wide: Vec<(u64, u64)>,
}

impl Walls {
    pub(super) fn new(narrow: bool) -> Self {
        Self { narrow, ..Self::default() }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.packed.clear();
        self.wide.clear();
    }

    /// Blocks the offsets `[first, over)`.
    #[inline]
    pub(super) fn add_wall(&mut self, first: u64, over: u64) {
        if self.narrow {
            self.packed.push(first << 32 | over);
        } else {
            self.wide.push((first, over));
        }
    }

    pub(super) fn add_parts(&mut self, own: &[Part], others: &[Part], offset: u64) {
        for there in others {
            for here in own.iter().filter(|here| here.start < there.end && there.start < here.end) {
                let first = (offset + there.low + 1).saturating_sub(here.high);
                let over = (offset + there.high).saturating_sub(here.low);
                if first < over {
                    self.add_wall(first, over);
                }
            }
        }
    }

    pub(super) fn lowest_free(&mut self, round_up: impl Fn(u64) -> u64) -> u64 {
        if self.narrow {
            self.packed.sort_unstable();
            let unpacked = self.packed.iter().map(|wall| (wall >> 32, wall & u64::from(u32::MAX)));
            return first_gap(unpacked, round_up);
        }
        self.wide.sort_unstable();
        first_gap(self.wide.iter().copied(), round_up)
    }
}

/// The lowest offset outside every range; `walls` is sorted.
fn first_gap(walls: impl Iterator<Item = (u64, u64)>, round_up: impl Fn(u64) -> u64) -> u64 {
    let mut offset = 0;
    for (first, over) in walls {
        if first > offset {
            break;
        }
        if over > offset {
            offset = round_up(over);
        }
    }
    offset
}
