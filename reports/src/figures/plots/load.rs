//! The load curve: the bytes in use at each step, arena by arena.

use planlab_dsa::{ArenaId, Bytes, Instance, LoadCurve};
use plotters::element::Text;
use plotters::series::AreaSeries;
use plotters::style::{Color, RGBColor};

use crate::figures::chart::{
    Entry, Key, LETTERS, Room, centered_style, draw_chart, draw_legend, draw_level, text_style,
};
use crate::figures::coord::Axis;
use crate::figures::palette::{BLUE, GRAY, PURPLE, RED, TEXT};
use crate::figures::{Area, ArenaFacts, Drawing, Drawn, figure};
use crate::format::{as_real, count_real, format_bytes};

/// Pixels left of the legend.
const LEFT: u32 = 756;
/// Width and height of the picture of one arena in pixels.
const SIZE: (u32, u32) = (900, 320);

/// Draws the bytes in use over the steps, the load, the capacity, and a plan's height if given; several arenas one below
/// the other. The height is that of an instance with one arena: several have no common one.
#[must_use]
pub fn load_curve_plot(instance: &Instance, height: Option<Bytes>) -> Drawing {
    let arenas = ArenaFacts::list_arenas(instance);
    let height = height.filter(|_| arenas.len() == 1);
    let curve =
        |(arena, number): (ArenaFacts, u16)| Curve::new(arena, instance, ArenaId::new(number), height);
    let curves: Vec<Curve> = arenas.into_iter().zip(0..).map(curve).collect();
    let count = u32::try_from(curves.len()).expect("an arena's number has 16 bits");
    figure("Load curve", (SIZE.0, SIZE.1.saturating_mul(count)), move |root| {
        let areas = (0..count).map(|number| root.clone().shrink((0, number * SIZE.1), SIZE));
        areas.zip(&curves).try_for_each(|(area, curve)| curve.draw_curve(&area))
    })
}

/// The curve of one arena.
struct Curve {
    arena: ArenaFacts,
    corners: Vec<(f64, f64)>,
    height: Option<Bytes>,
    x: Axis,
    y: Axis,
}

impl Curve {
    fn new(arena: ArenaFacts, instance: &Instance, id: ArenaId, height: Option<Bytes>) -> Self {
        let room = chart_room();
        let horizon = instance.horizon().get();
        let top = arena.axis_top(arena.load.bytes.max(height.unwrap_or_default()).get());
        Self {
            corners: curve_outline(&instance.arena_load_curve(id), horizon, LEFT - room.left - room.right),
            height,
            x: Axis::counts("step", f64::from(horizon)),
            y: Axis::bytes("in use", as_real(top)),
            arena,
        }
    }

    /// Lines across the chart: bytes, colour, whether dashed, name.
    fn chart_levels(&self) -> Vec<(u64, RGBColor, bool, &'static str)> {
        let mut levels = vec![(self.arena.load.bytes.get(), GRAY, true, "load")];
        levels.extend(self.arena.capacity.map(|capacity| (capacity, PURPLE, true, "capacity")));
        levels.extend(self.height.map(|height| (height.get(), RED, false, "height")));
        levels
    }

    fn draw_curve(&self, root: &Area<'_>) -> Drawn {
        let mut entries = vec![Entry::new(Key::Box, BLUE, "in use")];
        entries.extend(self.chart_levels().into_iter().map(|(at, color, dashed, name)| {
            Entry::new(Key::Line { dashed }, color, format!("{name} {}", format_bytes(at)))
        }));
        let area = draw_legend(root, LEFT, chart_room().top, &entries)?;
        let mut chart = draw_chart(&area, chart_room(), &self.x, &self.y)?;
        chart.draw_series(AreaSeries::new(self.corners.clone(), 0.0, BLUE.mix(0.3)).border_style(BLUE))?;
        for (at, color, dashed, _) in self.chart_levels() {
            if as_real(at) <= self.y.high() {
                draw_level(&mut chart, as_real(at), color.stroke_width(2), dashed)?;
            }
        }
        let (left, above) = root.get_base_pixel();
        let (peak, top) = chart.backend_coord(&(f64::from(self.arena.load.step.get()), self.y.high()));
        root.draw(&Text::new("\u{25be}", (peak - left, top - above - 8), centered_style(LETTERS, TEXT)))?;
        if let Some(name) = &self.arena.name {
            let at = (chart_room().left.cast_signed(), 12);
            root.draw(&Text::new(name.as_str(), at, text_style(LETTERS, TEXT)))?;
        }
        Ok(())
    }
}

fn chart_room() -> Room {
    Room { top: 24, ..Room::default() }
}

/// The curve as corners; if several lie in one column of pixels, their minimum and maximum.
fn curve_outline(curve: &LoadCurve, horizon: u32, columns: u32) -> Vec<(f64, f64)> {
    let points = curve.points();
    let width = f64::from(horizon.max(1)) / f64::from(columns);
    let mut corners: Vec<(f64, f64)> = Vec::new();
    if count_real(points.len()) < 2.0 * f64::from(columns) {
        for (step, load) in points {
            let (x, y) = (f64::from(step.get()), as_real(load.get()));
            corners.extend([(x, corners.last().map_or(0.0, |last| last.1)), (x, y)]);
        }
        return corners;
    }
    let column = |step: u32| (f64::from(step) / width).floor();
    for group in points.chunk_by(|a, b| column(a.0.get()) == column(b.0.get())) {
        let loads = group.iter().map(|(_, load)| as_real(load.get()));
        let (least, most) = loads.fold((f64::MAX, 0.0_f64), |(l, m), load| (l.min(load), m.max(load)));
        let x = column(group[0].0.get()) * width;
        corners.extend([(x, most), (x, least)]);
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::samples;

    fn instance(count: u32) -> Instance {
        let lives = (0..count).map(|step| (u64::from(step % 7 + 1), step, step + 2));
        samples::instance(&lives.collect::<Vec<_>>())
    }

    #[test]
    fn the_peak_of_the_curve_is_the_load_however_many_steps_there_are() {
        for count in [10, 10_000] {
            let instance = instance(count);
            let corners = curve_outline(&instance.load_curve(), instance.horizon().get(), 648);
            let most = corners.iter().map(|corner| corner.1).fold(0.0, f64::max);
            assert_eq!(most, as_real(instance.load().bytes.get()));
            assert!(corners.len() < 3000);
            assert_eq!(corners.iter().map(|corner| corner.1).next_back(), Some(0.0));
            let svg = load_curve_plot(&instance, Some(Bytes::new(20))).to_svg().expect("writes");
            assert!(svg.contains(">height 20 B<") && svg.contains(">20 B<"), "{svg}");
        }
    }
}
