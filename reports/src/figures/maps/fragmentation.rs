//! The fragmentation heat map: the free bytes below the plan's height, by step and band of addresses.

use planlab_dsa::{Instance, VerifiedPlan};
use plotters::style::RGBColor;

use super::MapOptions;
use super::pixels::Pixels;
use super::sheet::draw_arenas;
use crate::figures::Drawing;
use crate::figures::chart::{Entry, Key};
use crate::figures::layout::Layout;
use crate::figures::palette::{PAPER, heat_color};
use crate::figures::raster::Raster;
use crate::format::{as_real, count_real, format_percent};

/// Draws where a plan leaves memory free: the darker, the larger the free share of a band. Free memory with nothing
/// above it has its own colour, because only holes cost memory.
pub(crate) fn fragmentation_map(
    instance: &Instance,
    plan: &VerifiedPlan<'_>,
    options: &MapOptions,
) -> Drawing {
    let shares = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| {
        let text = format!("{} free", format_percent(share).replace(".00", ""));
        Entry::new(Key::Box, heat_color(share), text)
    });
    let mut entries = shares.to_vec();
    entries.push(Entry::new(Key::Box, ROOM, "nothing above"));
    let name = "Free memory below the height";
    draw_arenas(name, instance, Some(plan), options, entries, |layout, _, pixels| {
        paint_fragmentation(layout, pixels)
    })
}

fn paint_fragmentation(layout: &Layout, area: Pixels) -> Raster {
    let ceiling = area.rows - area.level_of(layout.height);
    let bands = (area.rows - ceiling).clamp(1, BANDS);
    let free = free_shares(layout, bands, area.columns);
    let mut raster = Raster::new(area.columns, area.rows, PAPER);
    let height = area.rows - ceiling;
    for column in 0..area.columns {
        let share = |band: usize| free[band * area.columns + column];
        let used = (0..bands).rposition(|band| share(band) < WHOLLY);
        for row in 0..height {
            let band = (height - 1 - row) * bands / height;
            let is_hole = used.is_some_and(|used| band <= used);
            raster.set_pixel(column, ceiling + row, if is_hole { heat_color(share(band)) } else { ROOM });
        }
    }
    raster
}

/// Free memory with nothing above it at its step: unused headroom, not a hole.
const ROOM: RGBColor = RGBColor(0xcb, 0xda, 0xe8);
/// A band with at least this free share counts as free; sums of shares have rounding errors.
const WHOLLY: f64 = 1.0 - 1e-9;

/// The number of address bands; fewer if the picture has fewer rows.
const BANDS: usize = 128;

/// The free share of each band (from the bottom) and column: `bands * columns` numbers from 0 to 1.
fn free_shares(layout: &Layout, bands: usize, columns: usize) -> Vec<f64> {
    let width = columns + 1;
    // Differences along a row make a long buffer as cheap as a short one.
    let mut change = vec![0.0; bands * (width + 1)];
    let across = count_real(columns) / f64::from(layout.horizon.max(1));
    let up = count_real(bands) / as_real(layout.height.max(1));
    for rectangle in &layout.rectangles {
        let (from, to) = (f64::from(rectangle.start) * across, f64::from(rectangle.end) * across);
        let (low, high) = (as_real(rectangle.low) * up, as_real(rectangle.high) * up);
        for band in floor_index(low)..floor_index(high.ceil()).min(bands) {
            let share = high.min(count_real(band + 1)) - low.max(count_real(band));
            let row = &mut change[band * (width + 1)..(band + 1) * (width + 1)];
            step_up(row, from, share);
            step_up(row, to, -share);
        }
    }
    let mut free = Vec::with_capacity(bands * columns);
    for row in change.chunks_exact(width + 1) {
        let mut used = 0.0;
        free.extend(row[..columns].iter().map(|change| {
            used += change;
            (1.0 - used).clamp(0.0, 1.0)
        }));
    }
    free
}

/// Adds `share` to the running sum from position `at` on; a column that contains `at` counts in part.
fn step_up(row: &mut [f64], at: f64, share: f64) {
    let column = floor_index(at);
    let rest = at - count_real(column);
    row[column] += share * (1.0 - rest);
    row[column + 1] += share * rest;
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; `as` saturates")]
fn floor_index(number: f64) -> usize {
    number.floor() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::samples::layout;

    fn close(left: &[f64], right: &[f64]) -> bool {
        left.len() == right.len() && left.iter().zip(right).all(|(a, b)| (a - b).abs() < 1e-9)
    }

    #[test]
    fn a_checkerboard_by_hand() {
        let layout = layout(&[(5, 0, 2), (5, 2, 4)], &[0, 5]);
        let free = free_shares(&layout, 2, 4);
        assert!(close(&free, &[0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]), "{free:?}");
    }

    #[test]
    fn bands_and_columns_that_cut_through_a_buffer_count_in_part() {
        let layout = layout(&[(4, 0, 3), (1, 3, 4)], &[0, 3]);
        // One band of 4 bytes, two columns of two steps: 0 of 8 free, then 3 of 8.
        assert!(close(&free_shares(&layout, 1, 2), &[0.0, 0.375]));
        // Three bands of 4/3 bytes each; in the second column each buffer uses half of the upper band.
        let free = free_shares(&layout, 3, 2);
        assert!(close(&free, &[0.0, 0.5, 0.0, 0.5, 0.0, 0.125]), "{free:?}");
    }

    #[test]
    fn holes_are_told_from_room_to_grow() {
        let layout = layout(&[(10, 0, 2), (10, 0, 4), (10, 4, 8)], &[0, 10, 0]);
        let size = MapOptions::default().arena_size(1);
        let area = Pixels::new(size, layout.horizon, layout.height);
        let raster = paint_fragmentation(&layout, area);
        let at = |column: usize, row: usize| raster.color(column * area.columns / 8, row * area.rows / 4);
        assert_eq!(
            [at(1, 1), at(3, 1), at(3, 3), at(5, 1), at(5, 3)],
            [heat_color(0.0), heat_color(0.0), heat_color(1.0), ROOM, heat_color(0.0)]
        );
    }

    #[test]
    fn free_bytes_add_up_to_the_fragmentation() {
        let layout = layout(&[(30, 0, 7), (11, 2, 9), (8, 1, 3)], &[0, 30, 41]);
        let (bands, columns) = (7, 5);
        let free: f64 = free_shares(&layout, bands, columns).iter().sum();
        let used = as_real(30 * 7 + 11 * 7 + 8 * 2) / as_real(49 * 9);
        assert!((free / count_real(bands * columns) - (1.0 - used)).abs() < 1e-9);
    }
}
