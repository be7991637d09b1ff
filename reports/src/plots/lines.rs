//! Curves over one axis: values of several series, joined by lines or not.

use super::Series;
use crate::drawing::axis::{Axis, Entry, Frame, Key, legend, make_room};
use crate::drawing::palette::Ink;
use crate::drawing::{Drawing, Mark, Spot};

/// A value of a curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// What a pointer over it is told.
    pub(crate) tip: String,
}

/// A series and its values, by ascending x.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) series: Series,
    pub(crate) points: Vec<Point>,
}

/// Whether the values of a curve follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    Lines,
    Dots,
}

/// The least and the greatest of a value over all points; `None` where there are none.
pub(crate) fn range(curves: &[Curve], value: fn(&Point) -> f64) -> Option<(f64, f64)> {
    let values = || curves.iter().flat_map(|curve| &curve.points).map(value);
    Some((values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?))
}

/// Draws the curves; `None` where there is no point.
pub(crate) fn plot(title: &str, (x, y): (Axis, Axis), join: Join, curves: &[Curve]) -> Option<Drawing> {
    let shown: Vec<&Curve> = curves.iter().filter(|curve| !curve.points.is_empty()).collect();
    shown.first()?;
    let height = u32::try_from(17 * shown.len() + 40).unwrap_or(u32::MAX).clamp(420, 1200);
    let mut drawing = Drawing::new(title, 1060, height);
    let frame = Frame { left: 92.0, top: 16.0, right: 780.0, bottom: 362.0, x, y };
    frame.draw(&mut drawing);
    for curve in &shown {
        draw_curve(&mut drawing, &frame, join, curve);
    }
    let entries: Vec<Entry> = shown.iter().map(|curve| entry(curve)).collect();
    make_room(&mut drawing, frame.right + 16.0, 1240, &entries);
    legend(&mut drawing, (frame.right + 16.0, frame.top), f64::from(height - 24), &entries);
    Some(drawing)
}

fn draw_curve(drawing: &mut Drawing, frame: &Frame, join: Join, curve: &Curve) {
    let (ink, shape) = (Ink::Color(curve.series.color()), curve.series.shape());
    let spots: Vec<Spot> = curve.points.iter().map(|point| frame.spot(point.x, point.y)).collect();
    if join == Join::Lines && spots.len() > 1 {
        drawing.line(spots.clone(), ink, 1.5);
    }
    for (point, at) in curve.points.iter().zip(spots) {
        let tip = format!("{}: {}", curve.series.label, point.tip);
        drawing.push(Mark::Dot { at, ink, shape, radius: 3.5, tip });
    }
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
        // The frame's own lines, and the curve's; the second circle series is the legend's.
        assert_eq!(svg.matches("stroke-width=\"1.5\"").count(), 1);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a&lt;b: 2 threads") && !svg.contains(">none<"), "{svg}");
        assert!(svg.contains(">threads<") && svg.contains(">time for a request<"));
        let dots = plot("t", axes(), Join::Dots, &curves).expect("drawn").to_inline_svg().expect("writes");
        assert!(!dots.contains("stroke-width=\"1.5\""));
        assert!(plot("t", axes(), Join::Dots, &curves[1..]).is_none());
    }
}
