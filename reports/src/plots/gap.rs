//! The gap of each planner, a dot for each workload.

use super::Series;
use crate::drawing::axis::{Axis, Frame, Scale, text_width};
use crate::drawing::palette::Ink;
use crate::drawing::{Anchor, Drawing, Mark};
use crate::format::{count_real, percent};

/// A planner and the gaps that it left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gaps {
    pub(crate) series: Series,
    /// Workload and gap.
    pub(crate) gaps: Vec<(String, f64)>,
    /// Workloads without an answer.
    pub(crate) failures: usize,
}

const ROW: f64 = 24.0;

/// Draws a row for each planner; `None` where there is no gap at all.
pub(crate) fn plot(all: &[Gaps]) -> Option<Drawing> {
    let most = all
        .iter()
        .flat_map(|row| &row.gaps)
        .map(|gap| gap.1)
        .fold(None, |most: Option<f64>, gap| Some(most.map_or(gap, |most| most.max(gap))))?;
    let rows = count_real(all.len());
    let left = all.iter().map(|row| text_width(&row.series.label, 12.0)).fold(80.0, f64::max) + 20.0;
    let bottom = 24.0 + rows * ROW;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred pixels")]
    let mut drawing = Drawing::new("Gap by planner", 1060, (bottom + 54.0) as u32);
    let x = Axis::gaps("gap: height over proven bound, less 1", most);
    let y = Axis { scale: Scale::Linear { low: 0.0, high: rows }, ticks: Vec::new(), title: String::new() };
    let frame = Frame { left, top: 24.0, right: 830.0, bottom, x, y };
    frame.draw(&mut drawing);
    drawing.text_of((frame.right + 20.0, 12.0), "median", Anchor::Start, 11.0, Ink::Muted);
    drawing.text_of((frame.right + 100.0, 12.0), "no answer", Anchor::Start, 11.0, Ink::Muted);
    for (row, y) in all.iter().zip((0_u32..).map(|n| 24.0 + (f64::from(n) + 0.5) * ROW)) {
        draw_row(&mut drawing, &frame, row, y);
    }
    Some(drawing)
}

fn draw_row(drawing: &mut Drawing, frame: &Frame, row: &Gaps, y: f64) {
    drawing.text((frame.left - 10.0, y), row.series.label.clone(), Anchor::End);
    let values: Vec<f64> = row.gaps.iter().map(|gap| gap.1).collect();
    if let Some(median) = planlab_results::statistics::median(&values) {
        let (x, half) = (frame.across(median), ROW * 0.38);
        drawing.line([(x, y - half), (x, y + half)], Ink::Text, 2.0);
        drawing.text((frame.right + 20.0, y), percent(median), Anchor::Start);
    }
    if row.failures > 0 {
        drawing.text((frame.right + 100.0, y), row.failures.to_string(), Anchor::Start);
    }
    let ink = Ink::Color(row.series.color());
    for (number, (workload, gap)) in row.gaps.iter().enumerate() {
        // Dots at one place would hide each other: spread them over the row by their number.
        let spread = count_real(number * 7 % 13) / 12.0 - 0.5;
        let at = (frame.across(*gap), y + spread * ROW * 0.6);
        let tip = format!("{}: {workload}: {}", row.series.label, percent(*gap));
        drawing.push(Mark::Dot { at, ink, shape: row.series.shape(), radius: 2.5, tip });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_dots_its_median_and_its_failures() {
        let series = Series { label: "p<1>".to_owned(), number: 0 };
        let gaps = vec![("a".to_owned(), 0.0), ("b".to_owned(), 0.1), ("c".to_owned(), 0.02)];
        let svg =
            plot(&[Gaps { series, gaps, failures: 4 }]).expect("drawn").to_inline_svg().expect("writes");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(
            svg.contains(">2.00 %<") && svg.contains(">4<") && svg.contains("p&lt;1&gt;: b: 10.00 %"),
            "{svg}"
        );
        assert!(plot(&[]).is_none());
    }
}
