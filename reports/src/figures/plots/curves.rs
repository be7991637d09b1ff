//! Curves on common axes: marks of several series, joined by lines or not. A curve may have gaps, and marks may be hollow.

use plotters::style::Color;

use crate::figures::chart::{Chart, Entry, Key, Marker, draw_line, figure_beside, told};
use crate::figures::coord::Axis;
use crate::figures::palette::{MUTED, Shape, TEXT};
use crate::figures::{Drawing, Drawn, Series};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    /// `None` interrupts the line.
    pub(crate) y: Option<f64>,
    pub(crate) is_hollow: bool,
    pub(crate) tip: String,
}

impl Point {
    /// A filled mark whose tooltip begins with the series.
    pub(crate) fn new(series: &Series, x: f64, y: impl Into<Option<f64>>, tip: &str) -> Self {
        Self { x, y: y.into(), is_hollow: false, tip: format!("{}: {tip}", series.label) }
    }

    fn place(&self) -> Option<(f64, f64)> {
        Some((self.x, self.y?))
    }
}

/// Marks of one series, by ascending x.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    /// `None` for a dashed line without marks, to which the others are compared.
    series: Option<Series>,
    /// Its name in the legend.
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
    /// Behind the marks.
    pub(crate) lines: Vec<Vec<(f64, f64)>>,
    /// The width of the lines in pixels.
    pub(crate) stroke: u32,
}

impl Curve {
    /// Marks alone.
    pub(crate) fn dots(series: Series, points: Vec<Point>) -> Self {
        Self { name: series.label.clone(), series: Some(series), points, lines: Vec::new(), stroke: 1 }
    }

    /// Marks that are joined, except across points without a value.
    pub(crate) fn joined(series: Series, points: Vec<Point>) -> Self {
        let parts = points.split(|point| point.y.is_none());
        let lines = parts.map(|part| part.iter().filter_map(Point::place).collect()).collect();
        Self { lines, stroke: 2, ..Self::dots(series, points) }
    }

    /// A dashed line through these places.
    pub(crate) fn reference(name: &str, places: Vec<(f64, f64)>) -> Self {
        Self { series: None, name: name.to_owned(), points: Vec::new(), lines: vec![places], stroke: 1 }
    }

    fn has_marks(&self) -> bool {
        self.points.iter().any(|point| point.y.is_some())
    }

    fn entry(&self) -> Entry {
        let text = self.name.clone();
        match &self.series {
            Some(series) => Entry { text, ..Entry::from_series(series) },
            None => Entry { key: Key::Line { dashed: true }, color: TEXT, text },
        }
    }

    fn draw_curve(&self, chart: &mut Chart<'_>) -> Drawn {
        let color = self.series.as_ref().map_or(TEXT, Series::color);
        for places in &self.lines {
            draw_line(chart, places.clone(), color.stroke_width(self.stroke), self.series.is_none())?;
        }
        let Some(series) = &self.series else { return Ok(()) };
        chart.draw_series(self.points.iter().filter_map(|point| {
            let marker = if point.is_hollow { Marker::new_ring } else { Marker::new };
            Some(told(marker(point.place()?, series.shape(), 3, color), point.tip.as_str()))
        }))?;
        Ok(())
    }
}

/// A range from the least to the greatest value.
type Range = (f64, f64);

fn range(values: impl Iterator<Item = f64> + Clone) -> Option<Range> {
    Some((values.clone().min_by(f64::total_cmp)?, values.max_by(f64::total_cmp)?))
}

/// The ranges of x and y over all marks, and over the lines to which they are compared; `None` without a mark.
pub(crate) fn ranges(curves: &[Curve]) -> Option<(Range, Range)> {
    curves.iter().find(|curve| curve.has_marks())?;
    let marks = curves.iter().flat_map(|curve| &curve.points).filter_map(Point::place);
    let references = curves.iter().filter(|curve| curve.series.is_none());
    let all = marks.chain(references.flat_map(|curve| curve.lines.concat()));
    Some((range(all.clone().map(|(x, _)| x))?, range(all.map(|(_, y)| y))?))
}

/// Draws the curves in a chart of this height in pixels; `None` without a mark.
pub(crate) fn plot(title: &str, height: u32, axes: (Axis, Axis), curves: Vec<Curve>) -> Option<Drawing> {
    curves.iter().find(|curve| curve.has_marks())?;
    let is_shown = |curve: &Curve| curve.series.is_none() || curve.has_marks();
    let shown: Vec<Curve> = curves.into_iter().filter(is_shown).collect();
    let mut entries: Vec<Entry> = shown.iter().map(Curve::entry).collect();
    if shown.iter().flat_map(|curve| &curve.points).any(|point| point.y.is_some() && point.is_hollow) {
        entries.push(Entry::new(Key::Ring(Shape::Circle), MUTED, "hollow: its offsets do not fit"));
    }
    Some(figure_beside(title, height, axes, entries, move |chart| {
        shown.iter().try_for_each(|curve| curve.draw_curve(chart))
    }))
}

/// The height of most charts in pixels.
pub(crate) const HEIGHT: u32 = 420;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::palette::hex_text;

    fn series(label: &str, number: usize) -> Series {
        Series { label: label.to_owned(), number }
    }

    fn svg(curves: Vec<Curve>) -> Option<String> {
        let axes = (Axis::counts("threads", 640.0), Axis::times("time for a request", 10.0, 300.0));
        Some(plot("t", HEIGHT, axes, curves)?.to_inline_svg().expect("writes"))
    }

    #[test]
    fn curves_have_a_line_their_dots_and_a_name() {
        let (drawn, none) = (series("a<b", 0), Curve::dots(series("none", 1), Vec::new()));
        let point = |x: f64, y: f64| Point::new(&drawn, x, y, &format!("{x} threads"));
        let points = || vec![point(1.0, 10.0), point(2.0, 30.0)];
        let curves = |curve| vec![curve, none.clone()];
        let joined = Curve::joined(drawn.clone(), points());
        assert_eq!(ranges(&curves(joined.clone())), Some(((1.0, 2.0), (10.0, 30.0))));
        let lines = svg(curves(joined)).expect("drawn");
        // The third circle belongs to the legend.
        assert_eq!(lines.matches("stroke-width=\"2\"").count(), 1);
        assert_eq!(lines.matches("<circle").count(), 3);
        assert!(lines.contains("a&lt;b: 2 threads") && !lines.contains(">none<"), "{lines}");
        assert!(lines.contains(">threads<") && lines.contains(">time for a request<"));
        let dots = svg(curves(Curve::dots(drawn.clone(), points()))).expect("drawn");
        assert!(!dots.contains("stroke-width=\"2\""));
        assert!(svg(vec![none]).is_none());
    }

    #[test]
    fn a_line_ends_where_there_is_no_value_and_a_mark_may_be_hollow() {
        let pooch = series("pooch/retain", 0);
        let point = |x: f64, y: Option<f64>, is_hollow| Point { is_hollow, ..Point::new(&pooch, x, y, "") };
        let points = vec![
            point(64.0, Some(300.0), false),
            point(128.0, Some(200.0), false),
            point(256.0, None, false),
            point(512.0, Some(90.0), true),
            point(640.0, Some(80.0), false),
        ];
        let drawn = |points: &[Point], places| {
            let reference = Curve::reference("if all of it fitted", places);
            svg(vec![reference, Curve::joined(pooch.clone(), points.to_vec())])
        };
        let svg = drawn(&points, vec![(64.0, 316.0), (640.0, 316.0)]).expect("drawn");
        // Four marks, one of them with two circles; one circle in the legend, and the hollow one there.
        assert_eq!(svg.matches("<circle").count(), 4 + 1 + 1 + 2, "{svg}");
        let own = format!("stroke=\"{}\" stroke-width=\"2\"", hex_text(pooch.color()));
        let path = svg.split("<path").find(|path| path.contains(&own)).expect("a line");
        assert_eq!(path.split(" d=\"").nth(1).map(|d| d.matches('M').count()), Some(2), "two parts: {path}");
        assert!(svg.contains("if all of it fitted") && svg.contains("hollow: its offsets do not fit"));
        assert!(!drawn(&points[..2], Vec::new()).expect("drawn").contains("hollow"));
        assert_eq!(drawn(&points[2..3], Vec::new()), None);
    }
}
