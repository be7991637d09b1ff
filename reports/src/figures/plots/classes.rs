//! The decisions of schedulers on feature maps: one row per scheduler, one three-part bar per size.

use plotters::element::{Rectangle, Text};
use plotters::style::{Color, RGBColor};

use crate::figures::chart::{
    Chart, Entry, Key, LETTERS, Room, centered_style, draw_chart, draw_legend, text_width, told,
    width_with_legend,
};
use crate::figures::coord::Axis;
use crate::figures::palette::{BLUE, GREEN, MUTED, ORANGE};
use crate::figures::{Area, Drawing, Drawn, figure};
use crate::format::as_real;

/// Colour and name of the parts: kept, swapped, recomputed.
pub(crate) const PARTS: [(RGBColor, &str); 3] = [(BLUE, "keep"), (GREEN, "swap"), (ORANGE, "recompute")];

/// A scheduler at a size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// It was not run.
    Absent,
    /// The reason why there is no schedule.
    Nothing(String),
    /// Kept, swapped, recomputed.
    Counts([u64; 3]),
}

/// A row: a scheduler, and a cell for each size.
pub(crate) type Row = (String, Vec<Cell>);

const ROW: u32 = 24;
const WIDTH: u32 = 940;

/// Draws the bars by size, with the axis named `noun`; `None` if no scheduler has a schedule.
pub(crate) fn plot(title: &str, (noun, sizes): (&'static str, &[u64]), rows: &[Row]) -> Option<Drawing> {
    let is_drawn = |(_, cells): &&Row| {
        cells.iter().any(|cell| matches!(cell, Cell::Counts(counts) if *counts != [0; 3]))
    };
    rows.iter().find(is_drawn)?;
    let rows = rows.to_vec();
    let names: Vec<String> = rows.iter().map(|(name, _)| name.clone()).collect();
    let columns: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let left = names.iter().map(|name| text_width(name, LETTERS)).fold(80, u32::max).min(WIDTH / 3) + 20;
    let room = Room { left, ..Room::default() };
    let height = u32::try_from(rows.len()).unwrap_or(u32::MAX).min(200) * ROW;
    let entries = PARTS.map(|(color, name)| Entry::new(Key::Box, color, name));
    let width = width_with_legend(WIDTH, (1060, 1240), &entries);
    Some(figure(title, (width, room.top + height + room.bottom + room.below), move |root| {
        let area = draw_legend(root, WIDTH, room.top, &entries)?;
        let x = Axis::named_columns(noun, columns.clone());
        let mut chart = draw_chart(&area, room, &x, &Axis::named_rows(names.clone()))?;
        for ((name, cells), row) in rows.iter().zip(0_u32..) {
            for ((cell, size), column) in cells.iter().zip(&columns).zip(0_u32..) {
                let at = (f64::from(column), f64::from(row));
                draw_cell(&area, &mut chart, cell, (at, &format!("{name}, {noun} {size}")))?;
            }
        }
        Ok(())
    }))
}

fn draw_cell(
    area: &Area<'_>,
    chart: &mut Chart<'_>,
    cell: &Cell,
    ((left, top), name): ((f64, f64), &str),
) -> Drawn {
    const EDGE: f64 = 0.04;
    const WIDE: f64 = 0.92;
    match cell {
        Cell::Absent => {}
        Cell::Nothing(reason) => {
            let place = chart.backend_coord(&(left + 0.5, top + 0.5));
            area.draw(&Text::new(reason.as_str(), place, centered_style(10.0, MUTED)))?;
        }
        Cell::Counts(counts) => {
            let all: u64 = counts.iter().sum();
            let mut from = left + EDGE;
            for (&count, (color, part)) in counts.iter().zip(PARTS).filter(|(count, _)| **count > 0) {
                let to = from + WIDE * as_real(count) / as_real(all);
                let bar = Rectangle::new([(from, top + 0.18), (to, top + 0.82)], color.filled());
                chart.draw_series([told(bar, format!("{name}: {part} {count} of {all}"))])?;
                from = to;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_share_and_a_tip() {
        let rows = [
            ("pooch".to_owned(), vec![Cell::Counts([105, 0, 0]), Cell::Counts([66, 12, 27])]),
            ("in-core".to_owned(), vec![Cell::Absent, Cell::Nothing("does not fit".to_owned())]),
        ];
        let svg = plot("t", ("batch", &[64, 512]), &rows).expect("drawn").to_inline_svg().expect("writes");
        assert!(svg.contains("pooch, batch 512: recompute 27 of 105"), "{svg}");
        assert!(svg.contains(">does not fit<") && svg.contains(">512<"), "{svg}");
        assert_eq!(svg.matches("<title>").count(), 4);
        assert!(plot("t", ("batch", &[64, 512]), &rows[1..]).is_none());
    }
}
