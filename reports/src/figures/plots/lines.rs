//! Curves on common axes: values of several series, joined by lines or not.

use plotters::style::Color;

use crate::figures::chart::{Chart, Entry, Key, Marker, figure_beside, line, told};
use crate::figures::coord::Axis;
use crate::figures::{Drawing, Drawn, Series};

/// A point of a curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The tooltip.
    pub(crate) tip: String,
}

/// A series and its values, by ascending x.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) series: Series,
    pub(crate) points: Vec<Point>,
}

/// Whether the points of a curve are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    Lines,
    Dots,
}

/// The minimum and maximum of a value over all points; `None` without points.
pub(crate) fn range(curves: &[Curve], value: fn(&Point) -> f64) -> Option<(f64, f64)> {
    let values = || curves.iter().flat_map(|curve| &curve.points).map(value);
    Some((values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?))
}

/// Draws the curves; `None` without points.
pub(crate) fn plot(title: &str, axes: (Axis, Axis), join: Join, curves: &[Curve]) -> Option<Drawing> {
    let shown: Vec<Curve> = curves.iter().filter(|curve| !curve.points.is_empty()).cloned().collect();
    shown.first()?;
    let entries = shown.iter().map(entry).collect();
    Some(figure_beside(title, 420, axes, entries, move |chart| {
        shown.iter().try_for_each(|curve| draw_curve(chart, join, curve))
    }))
}

fn draw_curve(chart: &mut Chart<'_>, join: Join, curve: &Curve) -> Drawn {
    let series = &curve.series;
    if join == Join::Lines {
        let points = curve.points.iter().map(|point| (point.x, point.y)).collect();
        line(chart, points, series.color().stroke_width(2), false)?;
    }
    chart.draw_series(curve.points.iter().map(|point| {
        let tip = format!("{}: {}", series.label, point.tip);
        told(Marker::new((point.x, point.y), series.shape(), 3, series.color()), tip)
    }))?;
    Ok(())
}

fn entry(curve: &Curve) -> Entry {
    let series = &curve.series;
    Entry { key: Key::Dot(series.shape()), color: series.color(), text: series.label.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_a_line_their_dots_and_a_name() {
        let point = |x: f64, y: f64| Point { x, y, tip: format!("{x} threads") };
        let series = |label: &str, number| Series { label: label.to_owned(), number };
        let curves = [
            Curve { series: series("a<b", 0), points: vec![point(1.0, 10.0), point(2.0, 30.0)] },
            Curve { series: series("none", 1), points: Vec::new() },
        ];
        assert_eq!(range(&curves, |point| point.y), Some((10.0, 30.0)));
        let axes = || (Axis::counts("threads", 2.0), Axis::times("time for a request", 10.0, 30.0));
        let svg = plot("t", axes(), Join::Lines, &curves).expect("drawn").to_inline_svg().expect("writes");
        // The third circle belongs to the legend.
        assert_eq!(svg.matches("stroke-width=\"2\"").count(), 1);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a&lt;b: 2 threads") && !svg.contains(">none<"), "{svg}");
        assert!(svg.contains(">threads<") && svg.contains(">time for a request<"));
        let dots = plot("t", axes(), Join::Dots, &curves).expect("drawn").to_inline_svg().expect("writes");
        assert!(!dots.contains("stroke-width=\"2\""));
        assert!(plot("t", axes(), Join::Dots, &curves[1..]).is_none());
    }
}
