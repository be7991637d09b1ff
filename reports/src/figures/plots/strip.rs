//! Strips of dots: one row per item, one dot per value, and the median.

use plotters::element::Text;
use plotters::style::Color;

use crate::figures::chart::{
    Chart, LETTERS, Marker, Room, draw_chart, draw_line, text_style, text_width, told,
};
use crate::figures::coord::Axis;
use crate::figures::palette::{MUTED, TEXT};
use crate::figures::{Area, Drawing, Drawn, Series, figure};
use crate::format::{count_real, format_percent};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Strip {
    pub(crate) series: Series,
    /// The name and number of each value.
    pub(crate) values: Vec<(String, f64)>,
    /// The text after the median.
    pub(crate) remark: String,
}

/// How to draw and write values.
pub(crate) struct Look<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: Axis,
    /// The title of the remarks.
    pub(crate) remark: &'a str,
    /// Formats a value for people.
    pub(crate) shown: fn(f64) -> String,
}

/// The height of a row in pixels.
const ROW: u32 = 24;
const WIDTH: u32 = 1060;
/// The width for medians and remarks in pixels.
const RIGHT: u32 = 230;

/// Draws one row per strip; `None` if there are no strips.
pub(crate) fn plot_strips(look: Look<'_>, all: &[Strip]) -> Option<Drawing> {
    all.first()?;
    let rows = all.to_vec();
    let Look { title, x, remark, shown } = look;
    let remark = remark.to_owned();
    let names: Vec<String> = rows.iter().map(|row| row.series.label.clone()).collect();
    let left = names.iter().map(|name| text_width(name, LETTERS)).fold(80, u32::max).min(WIDTH / 2) + 20;
    let room = Room { left, top: 24, right: RIGHT, ..Room::default() };
    let height = u32::try_from(rows.len()).unwrap_or(u32::MAX).min(1000) * ROW;
    let size = (WIDTH, room.top + height + room.bottom + room.below);
    Some(figure(title, size, move |root| {
        let mut chart = draw_chart(root, room, &x, &Axis::named_rows(names.clone()))?;
        let (right, top) = chart.backend_coord(&(x.high(), 0.0));
        for (text, x) in [("median", right + 20), (remark.as_str(), right + 100)] {
            root.draw(&Text::new(text, (x, top - 12), text_style(11.0, MUTED)))?;
        }
        for (row, number) in rows.iter().zip(0_u32..) {
            draw_row(root, &mut chart, row, f64::from(number) + 0.5, shown)?;
        }
        Ok(())
    }))
}

/// Draws one row per planner, its gaps and the number of workloads without an answer; `None` if there are no gaps.
pub(crate) fn plot_gaps(planners: &[Strip]) -> Option<Drawing> {
    let most = planners.iter().flat_map(|strip| &strip.values).map(|gap| gap.1).max_by(f64::total_cmp)?;
    let x = Axis::gaps("gap: height over proven bound, less 1", most);
    plot_strips(Look { title: "Gap by planner", x, remark: "no answer", shown: format_percent }, planners)
}

fn draw_row(root: &Area<'_>, chart: &mut Chart<'_>, row: &Strip, y: f64, shown: fn(f64) -> String) -> Drawn {
    let right = chart.x_range().end;
    let (right, middle) = chart.backend_coord(&(right, y));
    root.draw(&Text::new(row.remark.as_str(), (right + 100, middle), text_style(LETTERS, TEXT)))?;
    chart.draw_series(row.values.iter().enumerate().map(|(number, (name, value))| {
        // Dots at the same position would hide each other, so their index spreads them over the row.
        let spread = count_real(number * 7 % 13) / 12.0 - 0.5;
        let tip = format!("{}: {name}: {}", row.series.label, shown(*value));
        told(Marker::new((*value, y + spread * 0.6), row.series.shape(), 2, row.series.color()), tip)
    }))?;
    let values: Vec<f64> = row.values.iter().map(|value| value.1).collect();
    if let Some(median) = planlab_results::statistics::median(&values) {
        draw_line(chart, vec![(median, y - 0.38), (median, y + 0.38)], TEXT.stroke_width(2), false)?;
        root.draw(&Text::new(shown(median), (right + 20, middle), text_style(LETTERS, TEXT)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_dots_its_median_and_its_failures() {
        let series = Series { label: "p<1>".to_owned(), number: 0 };
        let values = vec![("a".to_owned(), 0.0), ("b".to_owned(), 0.1), ("c".to_owned(), 0.02)];
        let strip = Strip { series, values, remark: "4".to_owned() };
        let svg = plot_gaps(&[strip]).expect("drawn").to_inline_svg().expect("writes");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(
            svg.contains(">2.00 %<") && svg.contains(">4<") && svg.contains("p&lt;1&gt;: b: 10.00 %"),
            "{svg}"
        );
        assert!(plot_gaps(&[]).is_none());
    }
}
