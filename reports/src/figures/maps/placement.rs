//! The placement map: time across, addresses up, colour by category, size or lifetime.
//!
//! A dashed line marks the first step of the peak load. The buffers in use at that step, which force every plan to be
//! at least that high, have a dark edge. Those that reach the plan's height have a red one.

use planlab_dsa::{Instance, Labels, VerifiedPlan};

use super::MapOptions;
use super::classes::Classes;
use super::pixels::Pixels;
use super::sheet::{CAPACITY, PEAK, draw_arenas};
use crate::figures::Drawing;
use crate::figures::chart::{Entry, Key};
use crate::figures::layout::Layout;
use crate::figures::palette::{FREE, PAPER, RED};
use crate::figures::raster::Raster;

/// Draws a plan; without one, stacks the buffers as they would lie without any reuse.
#[must_use]
pub fn placement_map(
    instance: &Instance,
    labels: &Labels,
    plan: Option<&VerifiedPlan<'_>>,
    options: &MapOptions,
) -> Drawing {
    let classes = Classes::new(instance, labels);
    let name = if plan.is_some() { "Placement map" } else { "Buffers without reuse" };
    let mut entries = legend_entries(&classes);
    if instance.arenas().iter().any(|arena| arena.capacity.is_some()) {
        entries.push(Entry::new(Key::Line { dashed: true }, CAPACITY, "capacity"));
    }
    draw_arenas(name, instance, plan, options, entries, |layout, arena, pixels| {
        paint_placement(layout, arena.load.step.get(), pixels, &classes)
    })
}

fn paint_placement(layout: &Layout, peak: u32, pixels: Pixels, classes: &Classes) -> Raster {
    let mut raster = Raster::new(pixels.columns, pixels.rows, PAPER);
    let ceiling = pixels.rows - pixels.level_of(layout.height);
    raster.fill_box((0, ceiling), (pixels.columns, pixels.rows), FREE);
    for rectangle in &layout.rectangles {
        let (from, to) = pixels.corners_of(rectangle);
        raster.fill_with_edge(from, to, classes.class_color(rectangle.id));
    }
    for rectangle in &layout.rectangles {
        let at_peak = rectangle.start <= peak && peak < rectangle.end;
        let at_top = rectangle.high == layout.height;
        let (from, to) = pixels.corners_of(rectangle);
        if (at_peak || at_top) && to.0 > from.0 + 3 && to.1 > from.1 + 3 {
            raster.draw_edge(from, to, if at_top { RED } else { PEAK });
        }
    }
    raster
}

fn legend_entries(classes: &Classes) -> Vec<Entry> {
    let others = [
        Entry::new(Key::Box, FREE, "free"),
        Entry::new(Key::Line { dashed: true }, PEAK, "peak step, load"),
        Entry::new(Key::Line { dashed: false }, RED, "height"),
    ];
    classes.class_names().map(|(name, color)| Entry::new(Key::Box, color, name)).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::palette::{category_color, on_light, shade_color};
    use crate::figures::samples::{self, place_of, plan};
    use crate::figures::{load_curve_plot, size_distribution_plot};
    use planlab_dsa::Plan;
    use plotters::style::RGBColor;

    fn sample() -> (Instance, Labels) {
        let instance = samples::instance(&[(50, 0, 5), (50, 5, 10)]);
        let mut labels = Labels::from_numbers(2);
        labels.buffers[1].category = Some("gradient".to_owned());
        (instance, labels)
    }

    fn raster(instance: &Instance, labels: &Labels, plan: &VerifiedPlan<'_>, options: &MapOptions) -> Raster {
        let layout = Layout::new(instance, Some(plan));
        let pixels = Pixels::new(options.arena_size(1), layout.horizon, options.top.unwrap_or(layout.height));
        paint_placement(&layout, instance.load().step.get(), pixels, &Classes::new(instance, labels))
    }

    fn pixel(raster: &Raster, x: f64, y: f64) -> RGBColor {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside the raster")]
        let at = |share: f64, length: usize| (share * crate::format::count_real(length)) as usize;
        let (width, height) = raster.size();
        raster.color(at(x, width as usize), at(y, height as usize))
    }

    #[test]
    fn buffers_lie_where_the_plan_puts_them() {
        let (instance, labels) = sample();
        let plan = plan(&instance, &[0, 50]);
        let raster = raster(&instance, &labels, &plan, &MapOptions::default());
        assert_eq!(pixel(&raster, 0.25, 0.25), FREE);
        assert_eq!(pixel(&raster, 0.75, 0.75), FREE);
        assert_eq!(pixel(&raster, 0.25, 0.75), on_light(category_color(None, 0)));
        let gradient = on_light(category_color(Some("gradient"), 1));
        assert_eq!(pixel(&raster, 0.75, 0.25), shade_color(gradient, -0.1));
    }

    #[test]
    fn a_higher_top_leaves_paper_above_the_plan() {
        let (instance, labels) = sample();
        let plan = plan(&instance, &[0, 0]);
        let options = MapOptions { top: Some(200), ..MapOptions::default().with_size(600, 400) };
        assert_eq!(pixel(&raster(&instance, &labels, &plan, &options), 0.5, 0.3), PAPER);
        let drawing = placement_map(&instance, &labels, Some(&plan), &options);
        assert_eq!(drawing.size(), (600, 400));
    }

    #[test]
    fn the_peak_is_named_apart_from_the_headline() {
        let (instance, labels) = sample();
        let plan = plan(&instance, &[0, 50]);
        let options = MapOptions::default().with_size(320, 200).with_title("a title");
        let drawing = placement_map(&instance, &labels, Some(&plan), &options);
        let svg = drawing.to_svg().expect("writes");
        let (peak, facts) = (place_of(&svg, "peak: step").1, place_of(&svg, "height ").1);
        assert!(peak - facts >= 16.0, "{peak:?} {facts:?}");
    }

    #[test]
    fn the_legend_of_a_narrow_map_is_below_it() {
        let (instance, mut labels) = sample();
        labels.buffers[0].category = Some("weight".to_owned());
        let plan = plan(&instance, &[0, 50]);
        let options = MapOptions::default().with_size(440, 360);
        let svg = placement_map(&instance, &labels, Some(&plan), &options).to_svg().expect("writes");
        let [step, weight, free] = ["step<", "weight<", "free<"].map(|name| place_of(&svg, name));
        assert!(weight.1 > step.1 + 10.0 && weight.1 < 360.0, "{weight:?} {step:?}");
        assert!(weight.1 == free.1 && free.0 > weight.0 + 30.0, "{weight:?} {free:?}");
    }

    #[test]
    fn nothing_to_draw_is_no_error() {
        let (empty, labels, options) = (samples::instance(&[]), Labels::default(), MapOptions::default());
        let plan = empty.verify(Plan::default()).expect("valid");
        let maps = [None, Some(&plan)].map(|plan| placement_map(&empty, &labels, plan, &options));
        let plots = [load_curve_plot(&empty, None), size_distribution_plot(&empty)];
        for drawing in maps.into_iter().chain(plots) {
            assert!(drawing.to_png().is_ok() && drawing.to_svg().is_ok(), "{}", drawing.title());
        }
    }
}
