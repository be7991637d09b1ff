//! From steps and addresses to the pixels of a map.

use crate::figures::chart::Room;
use crate::figures::layout::Rectangle;
use crate::format::{as_real, count_real};

/// The margins around a map; the legend is in the right one.
const WIDE: Room = Room { left: 92, top: 70, right: 168, bottom: 46, below: 3 };
/// The margins in a picture that is too narrow for that; the legend is below.
const NARROW: Room = Room { left: 58, top: 64, right: 14, bottom: 42, below: 5 + ROWS * ROW };
/// The least width in pixels at which the legend is to the right.
const LEAST: u32 = 600;
/// Lines of a legend below a map, and their height in pixels.
pub(super) const ROWS: u32 = 3;
pub(super) const ROW: u32 = 16;

/// The margins in a picture of this width in pixels.
pub(super) const fn picture_room(width: u32) -> Room {
    if is_narrow(width) { NARROW } else { WIDE }
}

/// Whether the legend of a picture of this width is below the map.
pub(super) const fn is_narrow(width: u32) -> bool {
    width < LEAST
}

/// Maps steps and addresses to pixels of a raster, row 0 at the top.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pixels {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) horizon: u32,
    pub(super) top: u64,
}

impl Pixels {
    /// The raster of a map of this size in pixels: the area inside the frame, up to an address.
    pub(super) fn new((width, height): (u32, u32), horizon: u32, top: u64) -> Self {
        let room = picture_room(width);
        Self {
            columns: (width - room.left - room.right) as usize,
            rows: (height - room.top - room.bottom - room.below) as usize,
            horizon,
            top: top.max(1),
        }
    }

    pub(super) fn column_of(&self, step: u32) -> usize {
        cell_index(f64::from(step) / f64::from(self.horizon.max(1)), self.columns)
    }

    /// The row above which an address begins, counted from the bottom.
    pub(super) fn level_of(&self, address: u64) -> usize {
        cell_index(as_real(address) / as_real(self.top.max(1)), self.rows)
    }

    /// The corners of a rectangle; at least one pixel.
    pub(super) fn corners_of(&self, rectangle: &Rectangle) -> ((usize, usize), (usize, usize)) {
        let left = self.column_of(rectangle.start).min(self.columns - 1);
        let right = self.column_of(rectangle.end).max(left + 1);
        let low = self.level_of(rectangle.low).min(self.rows - 1);
        let high = self.level_of(rectangle.high).max(low + 1).min(self.rows);
        ((left, self.rows - high), (right, self.rows - low))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the raster")]
fn cell_index(share: f64, cells: usize) -> usize {
    (share * count_real(cells)).round().clamp(0.0, count_real(cells)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use planlab_dsa::BufferId;

    #[test]
    fn what_is_small_has_a_pixel_all_the_same() {
        let pixels = Pixels { columns: 10, rows: 5, horizon: 1000, top: 1000 };
        let thin = |start, low| {
            let id = BufferId::new(0);
            pixels.corners_of(&Rectangle { start, end: start + 1, low, high: low + 1, id })
        };
        assert_eq!(thin(0, 0), ((0, 4), (1, 5)));
        assert_eq!(thin(999, 999), ((9, 0), (10, 1)));
        assert_eq!((pixels.column_of(500), pixels.level_of(500)), (5, 3));
    }
}
