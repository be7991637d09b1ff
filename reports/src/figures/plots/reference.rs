//! Curves relative to a dashed reference line; a curve may have gaps, and marks may be hollow.

use plotters::style::{Color, RGBColor};

use crate::figures::chart::{Chart, Entry, Key, Marker, figure_beside, line, told};
use crate::figures::coord::Axis;
use crate::figures::palette::{MUTED, Shape, TEXT};
use crate::figures::{Drawing, Drawn, Series};

/// A point of a curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    /// `None` interrupts the line.
    pub(crate) y: Option<f64>,
    pub(crate) is_hollow: bool,
    /// The tooltip.
    pub(crate) tip: String,
}

/// A series, by ascending x.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) series: Series,
    pub(crate) points: Vec<Point>,
}

/// The dashed line, and the name of hollow marks.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) hollow: &'static str,
}

/// Draws the curves; `None` without values. The y axis is made for the minimum and maximum value.
pub(crate) fn plot(
    title: &str,
    x: Axis,
    y: impl FnOnce(f64, f64) -> Axis,
    reference: Reference,
    curves: &[Curve],
) -> Option<Drawing> {
    let is_drawn = |curve: &&Curve| curve.points.iter().any(|point| point.y.is_some());
    let shown: Vec<Curve> = curves.iter().filter(is_drawn).cloned().collect();
    shown.first()?;
    let values = || {
        let own = shown.iter().flat_map(|curve| &curve.points).filter_map(|point| point.y);
        own.chain(reference.points.iter().map(|(_, value)| *value))
    };
    let y = y(values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?);
    let entries = entries(&reference, &shown);
    Some(figure_beside(title, 420, (x, y), entries, move |chart| {
        line(chart, reference.points.clone(), TEXT.stroke_width(1), true)?;
        shown.iter().try_for_each(|curve| draw_curve(chart, curve))
    }))
}

fn entries(reference: &Reference, curves: &[Curve]) -> Vec<Entry> {
    let entry = |key, color: RGBColor, text: &str| Entry { key, color, text: text.to_owned() };
    let mut entries = vec![entry(Key::Line { dashed: true }, TEXT, reference.name)];
    entries.extend(curves.iter().map(|curve| {
        let series = &curve.series;
        entry(Key::Dot(series.shape()), series.color(), &series.label)
    }));
    if curves.iter().flat_map(|curve| &curve.points).any(|point| point.y.is_some() && point.is_hollow) {
        entries.push(entry(Key::Ring(Shape::Circle), MUTED, reference.hollow));
    }
    entries
}

/// The line is interrupted at points without a value.
fn draw_curve(chart: &mut Chart<'_>, curve: &Curve) -> Drawn {
    let (color, shape) = (curve.series.color(), curve.series.shape());
    for part in curve.points.split(|point| point.y.is_none()) {
        let places = part.iter().filter_map(|point| Some((point.x, point.y?))).collect();
        line(chart, places, color.stroke_width(2), false)?;
    }
    chart.draw_series(curve.points.iter().filter_map(|point| {
        let at = (point.x, point.y?);
        let marker = if point.is_hollow { Marker::ring } else { Marker::new };
        Some(told(marker(at, shape, 3, color), point.tip.as_str()))
    }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(curve: &Curve, points: Vec<(f64, f64)>) -> Option<String> {
        let reference = Reference { name: "if all of it fitted", points, hollow: "hollow: does not fit" };
        let y = |_, most| Axis::counts("images per second", most);
        let drawing = plot("t", Axis::counts("batch", 640.0), y, reference, std::slice::from_ref(curve))?;
        Some(drawing.to_inline_svg().expect("writes"))
    }

    #[test]
    fn a_line_ends_where_there_is_no_value_and_a_mark_may_be_hollow() {
        let point = |x: f64, y, is_hollow| Point { x, y, is_hollow, tip: format!("b{x}") };
        let points = vec![
            point(64.0, Some(300.0), false),
            point(128.0, Some(200.0), false),
            point(256.0, None, false),
            point(512.0, Some(90.0), true),
            point(640.0, Some(80.0), false),
        ];
        let series = Series { label: "pooch/retain".to_owned(), number: 0 };
        let curve = Curve { series, points };
        let svg = drawn(&curve, vec![(64.0, 316.0), (640.0, 316.0)]).expect("drawn");
        // Four marks, one of them with two circles; one circle in the legend, and the hollow one there.
        assert_eq!(svg.matches("<circle").count(), 4 + 1 + 1 + 2, "{svg}");
        let own =
            format!("stroke=\"{}\" stroke-width=\"2\"", crate::figures::palette::hex(curve.series.color()));
        let path = svg.split("<path").find(|path| path.contains(&own)).expect("a line");
        assert_eq!(path.split(" d=\"").nth(1).map(|d| d.matches('M').count()), Some(2), "two parts: {path}");
        assert!(svg.contains("if all of it fitted") && svg.contains("hollow: does not fit"));
        let solid = Curve { points: curve.points[..2].to_vec(), ..curve.clone() };
        assert!(!drawn(&solid, Vec::new()).expect("drawn").contains("hollow"));
        assert_eq!(drawn(&Curve { points: curve.points[2..3].to_vec(), ..curve }, Vec::new()), None);
    }
}
