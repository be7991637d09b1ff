//! Speed over the batch: a curve for each scheduler, up to the batch where it ends.

use plotters::style::{Color, RGBColor};

use super::chart::{
    Chart, Entry, Key, Marker, Room, chart, height_with_legend, legend, line, room_beside, told,
    width_with_legend,
};
use super::coord::Axis;
use super::palette::{MUTED, Shape, TEXT};
use super::{Drawing, Drawn, Series, figure};

/// A speed at a batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) batch: f64,
    /// Images per second; `None` ends the line.
    pub(crate) speed: Option<f64>,
    /// Whether the offsets fit the capacity.
    pub(crate) fits: bool,
    /// What a pointer over it is told.
    pub(crate) tip: String,
}

/// A scheduler, its batches ascending.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) series: Series,
    pub(crate) points: Vec<Point>,
}

/// Draws the curves below the line of what no schedule exceeds, `(batch, speed)`; `None` where there is no speed.
pub(crate) fn plot(title: &str, curves: &[Curve], most: &[(f64, f64)]) -> Option<Drawing> {
    const LEFT: u32 = 796;
    let is_drawn = |curve: &&Curve| curve.points.iter().any(|point| point.speed.is_some());
    let shown: Vec<Curve> = curves.iter().filter(is_drawn).cloned().collect();
    shown.first()?;
    let most = most.to_vec();
    let points = || shown.iter().flat_map(|curve| &curve.points);
    let speeds = points().filter_map(|point| point.speed).chain(most.iter().map(|(_, speed)| *speed));
    let x = Axis::counts("batch", points().map(|point| point.batch).fold(1.0, f64::max) * 1.03);
    let y = Axis::counts("images per second", speeds.fold(1.0, f64::max) * 1.06);
    let entries = entries(&shown);
    let size = (width_with_legend(LEFT, (1060, 1240), &entries), height_with_legend(420, entries.len()));
    Some(figure(title, size, move |root| {
        let area = legend(root, LEFT, Room::default().top, &entries)?;
        let mut chart = chart(&area, room_beside(420, size.1), &x, &y)?;
        line(&mut chart, most.clone(), TEXT.stroke_width(1), true)?;
        shown.iter().try_for_each(|curve| draw_curve(&mut chart, curve))
    }))
}

fn entries(curves: &[Curve]) -> Vec<Entry> {
    let entry = |key, color: RGBColor, text: &str| Entry { key, color, text: text.to_owned() };
    let mut entries = vec![entry(Key::Line { dashed: true }, TEXT, "if all of it fitted")];
    entries.extend(curves.iter().map(|curve| {
        let Series { label, .. } = &curve.series;
        entry(Key::Dot(curve.series.shape()), curve.series.color(), label)
    }));
    if curves.iter().flat_map(|curve| &curve.points).any(|point| point.speed.is_some() && !point.fits) {
        entries.push(entry(Key::Ring(Shape::Circle), MUTED, "hollow: its offsets do not fit"));
    }
    entries
}

/// The line stops where there is no schedule, and goes on behind it.
fn draw_curve(chart: &mut Chart<'_>, curve: &Curve) -> Drawn {
    let (color, shape) = (curve.series.color(), curve.series.shape());
    for part in curve.points.split(|point| point.speed.is_none()) {
        let places = part.iter().filter_map(|point| Some((point.batch, point.speed?))).collect();
        line(chart, places, color.stroke_width(2), false)?;
    }
    chart.draw_series(curve.points.iter().filter_map(|point| {
        let at = (point.batch, point.speed?);
        let marker = if point.fits { Marker::new } else { Marker::ring };
        Some(told(marker(at, shape, 3, color), point.tip.as_str()))
    }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_there_is_no_schedule_and_a_misfit_is_hollow() {
        let point = |batch: f64, speed, fits| Point { batch, speed, fits, tip: format!("b{batch}") };
        let points = vec![
            point(64.0, Some(300.0), true),
            point(128.0, Some(200.0), true),
            point(256.0, None, false),
            point(512.0, Some(90.0), false),
            point(640.0, Some(80.0), true),
        ];
        let series = Series { label: "pooch/retain".to_owned(), number: 0 };
        let curve = Curve { series, points };
        let svg = plot("t", &[curve.clone()], &[(64.0, 316.0), (640.0, 316.0)]).expect("drawn");
        let svg = svg.to_inline_svg().expect("writes");
        // Four marks, of which one has two circles, one in the legend, and the hollow one there.
        assert_eq!(svg.matches("<circle").count(), 4 + 1 + 1 + 2, "{svg}");
        let path = svg.split("<path").find(|path| path.contains("stroke-width=\"2\"")).expect("a line");
        assert_eq!(path.matches('M').count(), 2, "two parts: {path}");
        assert!(svg.contains("if all of it fitted") && svg.contains("hollow: its offsets do not fit"));
        let fitting = Curve { points: curve.points[..2].to_vec(), ..curve.clone() };
        let svg = plot("t", &[fitting], &[]).expect("drawn").to_inline_svg().expect("writes");
        assert!(!svg.contains("hollow"));
        let none = Curve { points: curve.points[2..3].to_vec(), ..curve };
        assert!(plot("t", &[none], &[]).is_none());
    }
}
