//! The load curve: the bytes in use at each step.

use planlab_dsa::{Bytes, Instance};

use plotters::element::Text;
use plotters::series::AreaSeries;
use plotters::style::Color;

use super::chart::{Entry, Key, LETTERS, Room, centered, chart, legend, level};
use super::coord::Axis;
use super::palette::{BLUE, GRAY, RED, TEXT};
use super::{Drawing, figure};
use crate::format::{bytes, count_real, real};

/// Draws the bytes in use over the steps, the load, and a plan's height if given.
#[must_use]
pub fn load_curve_plot(instance: &Instance, height: Option<Bytes>) -> Drawing {
    const LEFT: u32 = 756;
    let load = instance.load();
    let x = Axis::counts("step", f64::from(instance.horizon().get()));
    let y = Axis::bytes("in use", real(load.bytes.max(height.unwrap_or_default()).get()));
    let room = Room { top: 24, ..Room::default() };
    let curve = outline(instance, LEFT - room.left - room.right);
    let entry = |key, color, text| Entry { key, color, text };
    let mut entries = vec![
        entry(Key::Box, BLUE, "in use".to_owned()),
        entry(Key::Line { dashed: true }, GRAY, format!("load {}", bytes(load.bytes.get()))),
    ];
    if let Some(height) = height {
        entries.push(entry(Key::Line { dashed: false }, RED, format!("height {}", bytes(height.get()))));
    }
    figure("Load curve", (900, 320), move |root| {
        let area = legend(root, LEFT, room.top, &entries)?;
        let mut chart = chart(&area, room, &x, &y)?;
        chart.draw_series(AreaSeries::new(curve.clone(), 0.0, BLUE.mix(0.3)).border_style(BLUE))?;
        level(&mut chart, real(load.bytes.get()), GRAY.stroke_width(2), true)?;
        if let Some(height) = height {
            level(&mut chart, real(height.get()), RED.stroke_width(2), false)?;
        }
        let (peak, top) = chart.backend_coord(&(f64::from(load.step.get()), y.high()));
        root.draw(&Text::new("\u{25be}", (peak, top - 8), centered(LETTERS, TEXT)))?;
        Ok(())
    })
}

/// The curve as corners; if several lie in one column of pixels, their minimum and maximum.
fn outline(instance: &Instance, columns: u32) -> Vec<(f64, f64)> {
    let curve = instance.load_curve();
    let points = curve.points();
    let width = f64::from(instance.horizon().get().max(1)) / f64::from(columns);
    let mut corners: Vec<(f64, f64)> = Vec::new();
    if count_real(points.len()) < 2.0 * f64::from(columns) {
        for (step, load) in points {
            let (x, y) = (f64::from(step.get()), real(load.get()));
            corners.extend([(x, corners.last().map_or(0.0, |last| last.1)), (x, y)]);
        }
        return corners;
    }
    let column = |step: u32| (f64::from(step) / width).floor();
    for group in points.chunk_by(|a, b| column(a.0.get()) == column(b.0.get())) {
        let loads = group.iter().map(|(_, load)| real(load.get()));
        let (least, most) = loads.fold((f64::MAX, 0.0_f64), |(l, m), load| (l.min(load), m.max(load)));
        let x = column(group[0].0.get()) * width;
        corners.extend([(x, most), (x, least)]);
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use planlab_dsa::{Buffer, LiveRange};

    fn instance(count: u32) -> Instance {
        let buffer = |step: u32| {
            let live = LiveRange::new(step, step + 2).expect("not empty");
            Buffer::new(Bytes::new(u64::from(step % 7 + 1)), live)
        };
        Instance::from_buffers((0..count).map(buffer).collect()).expect("valid")
    }

    #[test]
    fn the_peak_of_the_curve_is_the_load_however_many_steps_there_are() {
        for count in [10, 10_000] {
            let instance = instance(count);
            let corners = outline(&instance, 648);
            let most = corners.iter().map(|corner| corner.1).fold(0.0, f64::max);
            assert_eq!(most, real(instance.load().bytes.get()));
            assert!(corners.len() < 3000);
            assert_eq!(corners.iter().map(|corner| corner.1).next_back(), Some(0.0));
            let svg = load_curve_plot(&instance, Some(Bytes::new(20))).to_svg().expect("writes");
            assert!(svg.contains(">height 20 B<") && svg.contains(">20 B<"), "{svg}");
        }
    }

    #[test]
    fn nothing_to_draw_is_no_error() {
        let empty = Instance::from_buffers(Vec::new()).expect("valid");
        assert!(load_curve_plot(&empty, None).to_svg().is_ok());
    }
}
