//! The placement map: time across, address up, colour by category.
//!
//! A dashed line marks the first step of the highest load; the buffers that are in use then, and so keep
//! every plan at least that high, have a dark edge. Those that reach the plan's height have a red one.

use std::collections::BTreeMap;

use planlab_dsa::{BufferId, Instance, Labels, VerifiedPlan};

use super::MapOptions;
use super::rectangles::{Layout, Pixels};
use crate::drawing::axis::{Axis, Entry, Frame, Key, Scale, legend};
use crate::drawing::palette::{Ink, RED, Rgb, category, shade};
use crate::drawing::raster::Raster;
use crate::drawing::{Anchor, Drawing, Mark};
use crate::format::{bytes, count, percent, real};

/// Memory that no buffer uses.
const FREE: Rgb = [0xee, 0xf1, 0xf4];
/// Lines over the map.
const PEAK: Rgb = [0x16, 0x1b, 0x22];

/// Draws a plan, or, without one, the buffers one above the other as they would lie without any reuse.
#[must_use]
pub fn placement_map(
    instance: &Instance,
    labels: &Labels,
    plan: Option<&VerifiedPlan<'_>>,
    options: &MapOptions,
) -> Drawing {
    let layout = Layout::new(instance, plan);
    let frame = frame(&layout, options);
    let categories = Categories::new(instance, labels);
    let mut drawing = Drawing::new(title(plan.is_some(), options), options.width, options.height);
    let raster = paint(instance, &layout, &frame, &categories);
    headline(&mut drawing, instance, plan, options);
    frame.draw(&mut drawing);
    drawing.push(Mark::Raster { corner: (frame.left, frame.top), raster });
    guides(&mut drawing, instance, &layout, &frame, plan.is_some());
    let corner = (frame.right + 14.0, frame.top);
    legend(&mut drawing, corner, frame.bottom - frame.top, &categories.entries());
    drawing
}

fn title(planned: bool, options: &MapOptions) -> String {
    match (options.title.is_empty(), planned) {
        (false, _) => options.title.clone(),
        (true, true) => "Placement map".to_owned(),
        (true, false) => "Buffers without reuse".to_owned(),
    }
}

/// The frame of a map: whole pixels, so that the raster fits it exactly.
pub(super) fn frame(layout: &Layout, options: &MapOptions) -> Frame {
    let top = options.top.unwrap_or(layout.height).max(1);
    let (width, height) = (f64::from(options.width), f64::from(options.height));
    let mut y = Axis::bytes("address", real(top));
    y.scale = Scale::Linear { low: 0.0, high: real(top) };
    let mut x = Axis::counts("step", f64::from(layout.horizon.max(1)));
    x.scale = Scale::Linear { low: 0.0, high: f64::from(layout.horizon.max(1)) };
    Frame { left: 92.0, top: 70.0, right: width - 168.0, bottom: height - 50.0, x, y }
}

pub(super) fn pixels(layout: &Layout, frame: &Frame) -> Pixels {
    let Scale::Linear { high, .. } = frame.y.scale else { unreachable!("maps have linear axes") };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and positive")]
    let (columns, rows, top) =
        ((frame.right - frame.left) as usize, (frame.bottom - frame.top) as usize, high as u64);
    Pixels { columns, rows, horizon: layout.horizon, top }
}

fn paint(instance: &Instance, layout: &Layout, frame: &Frame, categories: &Categories) -> Raster {
    let pixels = pixels(layout, frame);
    let mut raster = Raster::new(pixels.columns, pixels.rows, [0xff, 0xff, 0xff]);
    let ceiling = pixels.rows - pixels.level(layout.height);
    raster.fill((0, ceiling), (pixels.columns, pixels.rows), FREE);
    for rectangle in &layout.rectangles {
        let (from, to) = pixels.corners(rectangle);
        raster.boxed(from, to, categories.color(rectangle.id));
    }
    let peak = instance.load().step.get();
    for rectangle in &layout.rectangles {
        let at_peak = rectangle.start <= peak && peak < rectangle.end;
        let at_top = rectangle.high == layout.height;
        let (from, to) = pixels.corners(rectangle);
        if (at_peak || at_top) && to.0 > from.0 + 3 && to.1 > from.1 + 3 {
            let dark = shade(categories.color(rectangle.id), -0.6);
            raster.edge(from, to, if at_top { RED } else { dark });
        }
    }
    raster
}

pub(super) fn headline(
    drawing: &mut Drawing,
    instance: &Instance,
    plan: Option<&VerifiedPlan<'_>>,
    options: &MapOptions,
) {
    let load = instance.load().bytes;
    let facts = match plan {
        Some(plan) => format!(
            "height {} \u{b7} load {} \u{b7} fragmentation {} \u{b7} {} buffers",
            bytes(plan.height().get()),
            bytes(load.get()),
            percent(planlab_dsa::fragmentation(plan.height(), load)),
            count(instance.len() as u64)
        ),
        None => format!(
            "sum {} \u{b7} load {} \u{b7} {} buffers",
            bytes(instance.total().get()),
            bytes(load.get()),
            count(instance.len() as u64)
        ),
    };
    let name = if options.title.is_empty() { drawing.title().to_owned() } else { options.title.clone() };
    drawing.text_of((92.0, 16.0), name, Anchor::Start, 15.0, Ink::Text);
    drawing.text_of((92.0, 37.0), facts, Anchor::Start, 12.0, Ink::Muted);
}

/// Lines over the map: the height, the load, the peak's step, the borders of arenas.
pub(super) fn guides(
    drawing: &mut Drawing,
    instance: &Instance,
    layout: &Layout,
    frame: &Frame,
    planned: bool,
) {
    let load = instance.load();
    let peak = frame.across(f64::from(load.step.get()) + 0.5);
    drawing.dashed([(peak, frame.top), (peak, frame.bottom)], Ink::Color(PEAK), 1.0);
    let text = format!("peak: step {}", load.step);
    let (anchor, at) =
        if peak < frame.right - 120.0 { (Anchor::Start, peak + 5.0) } else { (Anchor::End, peak - 5.0) };
    drawing.text_of((at, frame.top - 8.0), text, anchor, 11.0, Ink::Text);
    for &border in &layout.borders {
        let y = frame.up(real(border));
        drawing.line([(frame.left, y), (frame.right, y)], Ink::Color(PEAK), 2.0);
    }
    let level = frame.up(real(load.bytes.get()));
    if layout.borders.is_empty() && level >= frame.top {
        drawing.dashed([(frame.left, level), (frame.right, level)], Ink::Color([0x55, 0x5f, 0x6b]), 1.0);
    }
    if planned {
        let top = frame.up(real(layout.height));
        drawing.line([(frame.left, top), (frame.right, top)], Ink::Color(RED), 1.0);
    }
}

/// Categories and their colours.
struct Categories {
    /// Of each buffer: its category's number and a number for its shade.
    of: Vec<usize>,
    names: Vec<Option<String>>,
    bytes: Vec<u64>,
}

impl Categories {
    fn new(instance: &Instance, labels: &Labels) -> Self {
        let category = |id: BufferId| labels.buffers.get(id.index()).and_then(|label| label.category.clone());
        let mut bytes: BTreeMap<Option<String>, u64> = BTreeMap::new();
        for id in instance.ids() {
            *bytes.entry(category(id)).or_default() += instance.buffer(id).size.get();
        }
        let numbers: BTreeMap<_, _> = bytes.keys().cloned().zip(0_usize..).collect();
        let of = instance.ids().map(|id| numbers[&category(id)]).collect();
        let (names, bytes) = bytes.into_iter().unzip();
        Self { of, names, bytes }
    }

    /// The category's colour, a little lighter or darker, so that neighbours can be told apart.
    fn color(&self, id: BufferId) -> Rgb {
        let base = self.base(self.of[id.index()]);
        let shades = [0.0, 0.18, -0.12, 0.32, 0.08];
        shade(base, shades[id.index() % shades.len()])
    }

    fn base(&self, number: usize) -> Rgb {
        category(self.names[number].as_deref(), number)
    }

    /// The largest first.
    fn entries(&self) -> Vec<Entry> {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by_key(|&number| std::cmp::Reverse(self.bytes[number]));
        let mut entries: Vec<Entry> = order
            .into_iter()
            .map(|number| {
                let name = self.names[number].as_deref().unwrap_or("buffer");
                let text: String = name.chars().take(18).collect();
                Entry { key: Key::Box, color: self.base(number), text }
            })
            .collect();
        entries.push(Entry { key: Key::Box, color: FREE, text: "free".to_owned() });
        entries.push(Entry {
            key: Key::Line { dashed: true },
            color: PEAK,
            text: "peak step, load".to_owned(),
        });
        entries.push(Entry { key: Key::Line { dashed: false }, color: RED, text: "height".to_owned() });
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planlab_dsa::{Buffer, Bytes, Label, LiveRange, Offset, Plan};

    fn sample() -> (Instance, Labels) {
        let buffer =
            |size, start, end| Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"));
        let instance = Instance::from_buffers(vec![buffer(50, 0, 5), buffer(50, 5, 10)]).expect("valid");
        let mut labels = Labels::numbered(2);
        labels.buffers[1] = Label { category: Some("gradient".to_owned()), ..labels.buffers[1].clone() };
        (instance, labels)
    }

    fn raster(drawing: &Drawing) -> &Raster {
        let mut rasters = drawing.marks().iter().filter_map(|mark| match mark {
            Mark::Raster { raster, .. } => Some(raster),
            _ => None,
        });
        rasters.next_back().expect("a map has a raster")
    }

    fn pixel(raster: &Raster, x: f64, y: f64) -> Rgb {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside the raster")]
        let at = |share: f64, length: usize| (share * crate::format::count_real(length)) as usize;
        let start = 3 * (at(y, raster.height()) * raster.width() + at(x, raster.width()));
        [0, 1, 2].map(|part| raster.bytes()[start + part])
    }

    #[test]
    fn buffers_lie_where_the_plan_puts_them() {
        let (instance, labels) = sample();
        let plan = instance.verify(Plan::from_offsets([0, 50].map(Offset::new))).expect("valid");
        let drawing = placement_map(&instance, &labels, Some(&plan), &MapOptions::default());
        let raster = raster(&drawing);
        assert_eq!(pixel(raster, 0.25, 0.25), FREE);
        assert_eq!(pixel(raster, 0.75, 0.75), FREE);
        assert_eq!(pixel(raster, 0.25, 0.75), category(None, 0));
        assert_eq!(pixel(raster, 0.75, 0.25), shade(category(Some("gradient"), 1), 0.18));
    }

    #[test]
    fn a_higher_top_leaves_paper_above_the_plan() {
        let (instance, labels) = sample();
        let plan = instance.verify(Plan::from_offsets([0, 0].map(Offset::new))).expect("valid");
        let options = MapOptions::default().with_top(200).with_size(600, 400);
        let drawing = placement_map(&instance, &labels, Some(&plan), &options);
        assert_eq!(pixel(raster(&drawing), 0.5, 0.3), [0xff, 0xff, 0xff]);
        assert_eq!(drawing.size(), (600, 400));
    }

    #[test]
    fn the_peak_is_named_apart_from_the_headline() {
        let (instance, labels) = sample();
        let plan = instance.verify(Plan::from_offsets([0, 50].map(Offset::new))).expect("valid");
        let options = MapOptions::default().with_size(320, 200).with_title("a title");
        let drawing = placement_map(&instance, &labels, Some(&plan), &options);
        let spot = |start: &str| {
            let mut texts = drawing.marks().iter().filter_map(|mark| match mark {
                Mark::Text { at, text, size, .. } if text.starts_with(start) => Some((at.1, *size)),
                _ => None,
            });
            texts.next().expect("is written")
        };
        let (peak, facts) = (spot("peak: step"), spot("height "));
        assert!(peak.0 - facts.0 >= peak.1.midpoint(facts.1) + 4.0, "{peak:?} {facts:?}");
    }

    #[test]
    fn an_empty_instance_has_an_empty_map() {
        let empty = Instance::from_buffers(Vec::new()).expect("valid");
        let plan = empty.verify(Plan::default()).expect("valid");
        for plan in [None, Some(&plan)] {
            let drawing = placement_map(&empty, &Labels::default(), plan, &MapOptions::default());
            assert!(drawing.to_png().is_ok() && drawing.to_svg().is_ok());
        }
    }
}
