//! A row for each of several, a dot for each of its values, and their median.

use super::Series;
use crate::drawing::axis::{Axis, Frame, Scale, text_width};
use crate::drawing::palette::Ink;
use crate::drawing::{Anchor, Drawing, Mark};
use crate::format::count_real;

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strip {
    pub(crate) series: Series,
    /// What a value is of, and the value.
    pub(crate) values: Vec<(String, f64)>,
    /// What stands behind the median.
    pub(crate) remark: String,
}

/// How values are drawn and written.
pub(crate) struct Look<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: Axis,
    /// The title of the remarks.
    pub(crate) remark: &'a str,
    /// How people read a value.
    pub(crate) shown: fn(f64) -> String,
}

const ROW: f64 = 24.0;

/// Draws a row for each; `None` where there are none.
pub(crate) fn plot(look: Look<'_>, all: &[Strip]) -> Option<Drawing> {
    all.first()?;
    let rows = count_real(all.len());
    let left = all.iter().map(|row| text_width(&row.series.label, 12.0)).fold(80.0, f64::max) + 20.0;
    let bottom = 24.0 + rows * ROW;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred pixels")]
    let mut drawing = Drawing::new(look.title, 1060, (bottom + 54.0) as u32);
    let y = Axis { scale: Scale::Linear { low: 0.0, high: rows }, ticks: Vec::new(), title: String::new() };
    let frame = Frame { left, top: 24.0, right: 830.0, bottom, x: look.x, y };
    frame.draw(&mut drawing);
    drawing.text_of((frame.right + 20.0, 12.0), "median", Anchor::Start, 11.0, Ink::Muted);
    drawing.text_of((frame.right + 100.0, 12.0), look.remark, Anchor::Start, 11.0, Ink::Muted);
    for (row, y) in all.iter().zip((0_u32..).map(|n| 24.0 + (f64::from(n) + 0.5) * ROW)) {
        draw_row(&mut drawing, &frame, row, y, look.shown);
    }
    Some(drawing)
}

fn draw_row(drawing: &mut Drawing, frame: &Frame, row: &Strip, y: f64, shown: fn(f64) -> String) {
    drawing.text((frame.left - 10.0, y), row.series.label.clone(), Anchor::End);
    let values: Vec<f64> = row.values.iter().map(|value| value.1).collect();
    if let Some(median) = planlab_results::statistics::median(&values) {
        let (x, half) = (frame.across(median), ROW * 0.38);
        drawing.line([(x, y - half), (x, y + half)], Ink::Text, 2.0);
        drawing.text((frame.right + 20.0, y), shown(median), Anchor::Start);
    }
    if !row.remark.is_empty() {
        drawing.text((frame.right + 100.0, y), row.remark.clone(), Anchor::Start);
    }
    let ink = Ink::Color(row.series.color());
    for (number, (name, value)) in row.values.iter().enumerate() {
        // Dots at one place would hide each other: spread them over the row by their number.
        let spread = count_real(number * 7 % 13) / 12.0 - 0.5;
        let at = (frame.across(*value), y + spread * ROW * 0.6);
        let tip = format!("{}: {name}: {}", row.series.label, shown(*value));
        drawing.push(Mark::Dot { at, ink, shape: row.series.shape(), radius: 2.5, tip });
    }
}
