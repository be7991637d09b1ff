//! The load curve: the bytes in use at each step.

use planlab_dsa::{Bytes, Instance};

use crate::drawing::axis::{Axis, Entry, Frame, Key, Scale, legend};
use crate::drawing::palette::{BLUE, GRAY, Ink, RED};
use crate::drawing::{Anchor, Drawing, Mark, Spot};
use crate::format::{bytes, count_real, real};

/// Draws the bytes in use over the steps, the load, and, where one is given, a plan's height.
#[must_use]
pub fn load_curve_plot(instance: &Instance, height: Option<Bytes>) -> Drawing {
    let mut drawing = Drawing::new("Load curve", 900, 320);
    let load = instance.load();
    let horizon = f64::from(instance.horizon().get().max(1));
    let most = load.bytes.max(height.unwrap_or_default());
    let mut x = Axis::counts("step", horizon);
    x.scale = Scale::Linear { low: 0.0, high: horizon };
    let y = Axis::bytes("in use", real(most.get()));
    let frame = Frame { left: 92.0, top: 22.0, right: 740.0, bottom: 266.0, x, y };
    frame.draw(&mut drawing);
    let curve = outline(instance, &frame);
    if !curve.is_empty() {
        drawing.push(Mark::Area { points: closed(&curve, &frame), ink: Ink::Color(BLUE), opacity: 0.3 });
        drawing.line(curve, Ink::Color(BLUE), 1.5);
    }
    let level = frame.up(real(load.bytes.get()));
    drawing.dashed([(frame.left, level), (frame.right, level)], Ink::Color(GRAY), 1.5);
    let mut entries = vec![
        Entry { key: Key::Box, color: BLUE, text: "in use".to_owned() },
        Entry {
            key: Key::Line { dashed: true },
            color: GRAY,
            text: format!("load {}", bytes(load.bytes.get())),
        },
    ];
    if let Some(height) = height {
        let y = frame.up(real(height.get()));
        drawing.line([(frame.left, y), (frame.right, y)], Ink::Color(RED), 1.5);
        let text = format!("height {}", bytes(height.get()));
        entries.push(Entry { key: Key::Line { dashed: false }, color: RED, text });
    }
    legend(&mut drawing, (frame.right + 16.0, frame.top), 120.0, &entries);
    let at = frame.across(f64::from(load.step.get()));
    drawing.text_of((at, frame.top - 10.0), "\u{25be}", Anchor::Middle, 12.0, Ink::Text);
    drawing
}

/// The curve as corners; where several lie in one column of pixels, their least and their most.
fn outline(instance: &Instance, frame: &Frame) -> Vec<Spot> {
    let curve = instance.load_curve();
    let points = curve.points();
    let columns = frame.right - frame.left;
    let column = |step: u32| (frame.across(f64::from(step)) - frame.left).floor();
    if count_real(points.len()) < 2.0 * columns {
        let mut corners: Vec<Spot> = Vec::with_capacity(2 * points.len());
        for (step, load) in points {
            let (x, y) = frame.spot(f64::from(step.get()), real(load.get()));
            let before = corners.last().map_or(frame.bottom, |last| last.1);
            corners.extend([(x, before), (x, y)]);
        }
        return corners;
    }
    let mut corners = Vec::new();
    for group in points.chunk_by(|a, b| column(a.0.get()) == column(b.0.get())) {
        let x = frame.left + column(group[0].0.get());
        let loads = group.iter().map(|(_, load)| real(load.get()));
        let (least, most) = loads.fold((f64::MAX, 0.0_f64), |(l, m), load| (l.min(load), m.max(load)));
        corners.extend([(x, frame.up(most)), (x, frame.up(least))]);
    }
    corners
}

fn closed(curve: &[Spot], frame: &Frame) -> Vec<Spot> {
    let mut points = curve.to_vec();
    if let (Some(first), Some(last)) = (curve.first(), curve.last()) {
        points.extend([(last.0, frame.bottom), (first.0, frame.bottom)]);
    }
    points
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
    fn the_peak_of_the_curve_is_drawn_at_the_load_however_many_steps_there_are() {
        for count in [10, 10_000] {
            let instance = instance(count);
            let drawing = load_curve_plot(&instance, Some(Bytes::new(20)));
            let lines: Vec<_> = drawing
                .marks()
                .iter()
                .filter_map(|mark| match mark {
                    &Mark::Line { ref points, ink: Ink::Color(color), .. } => Some((points, color)),
                    _ => None,
                })
                .collect();
            let find = |wanted| &lines.iter().find(|(_, color)| *color == wanted).expect("is drawn").0;
            let top = find(BLUE).iter().map(|point| point.1).fold(f64::MAX, f64::min);
            assert!((top - find(GRAY)[0].1).abs() < 1e-9);
            assert!(find(RED)[0].1 < top, "the height lies above the load");
            assert!(find(BLUE).len() < 3000);
        }
    }

    #[test]
    fn nothing_to_draw_is_no_error() {
        let empty = Instance::from_buffers(Vec::new()).expect("valid");
        assert!(load_curve_plot(&empty, None).to_svg().is_ok());
    }
}
