//! Common parts of maps: a raster in the frame of a chart, its headline, lines over it.

use planlab_dsa::{Instance, VerifiedPlan};
use plotters::element::{BitMapElement, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor};

use super::MapOptions;
use super::pixels::ROOM;
use crate::figures::chart::{Chart, Entry, LETTERS, Room, chart, legend, letters, level, line};
use crate::figures::coord::Axis;
use crate::figures::layout::Layout;
use crate::figures::palette::{MUTED, RED, TEXT};
use crate::figures::raster::Raster;
use crate::figures::{Area, Drawing, Drawn, figure};
use crate::format::{bytes, count, percent, real};

/// The space between a map and its legend in pixels.
const BETWEEN: u32 = 14;

/// Lines over the map.
pub(super) const PEAK: RGBColor = RGBColor(0x16, 0x1b, 0x22);
const LOAD: RGBColor = RGBColor(0x55, 0x5f, 0x6b);

/// A map without its pixels.
pub(super) struct Sheet {
    title: String,
    facts: String,
    size: (u32, u32),
    x: Axis,
    y: Axis,
    peak: u32,
    load: u64,
    /// The plan's height, if there is a plan.
    height: Option<u64>,
    borders: Vec<u64>,
}

impl Sheet {
    pub(super) fn new(
        name: &str,
        instance: &Instance,
        plan: Option<&VerifiedPlan<'_>>,
        layout: &Layout,
        options: &MapOptions,
    ) -> Self {
        let top = real(options.top.unwrap_or(layout.height).max(1));
        let load = instance.load();
        Self {
            title: if options.title.is_empty() { name.to_owned() } else { options.title.clone() },
            facts: facts(instance, plan),
            size: options.size(),
            x: Axis::counts("step", f64::from(layout.horizon)),
            y: Axis::bytes("address", top).over(0.0..top),
            peak: load.step.get(),
            load: load.bytes.get(),
            height: plan.map(|_| layout.height),
            borders: layout.borders.clone(),
        }
    }

    pub(super) fn drawing(self, raster: Raster, entries: Vec<Entry>) -> Drawing {
        figure(self.title.clone(), self.size, move |root| {
            let left = self.size.0 - ROOM.right + BETWEEN;
            let area = legend(root, left, ROOM.top, &entries)?;
            let mut chart = chart(&area, Room { right: BETWEEN, ..ROOM }, &self.x, &self.y)?;
            let corner = chart.plotting_area().get_base_pixel();
            if let Some(map) = BitMapElement::with_ref(corner, raster.size(), raster.bytes()) {
                root.draw(&map)?;
            }
            self.headline(root)?;
            self.guides(root, &mut chart)
        })
    }

    fn headline(&self, root: &Area<'_>) -> Drawn {
        let left = ROOM.left.cast_signed();
        root.draw(&Text::new(self.title.as_str(), (left, 16), letters(15.0, TEXT)))?;
        root.draw(&Text::new(self.facts.as_str(), (left, 37), letters(LETTERS, MUTED)))
    }

    /// Lines over the map: the height, the load, the peak step, the borders of arenas.
    fn guides(&self, root: &Area<'_>, chart: &mut Chart<'_>) -> Drawn {
        let (peak, top) = (f64::from(self.peak) + 0.5, self.y.high());
        line(chart, vec![(peak, 0.0), (peak, top)], PEAK.stroke_width(1), true)?;
        let (at, above) = chart.backend_coord(&(peak, top));
        let is_right = at > (self.size.0 - ROOM.right).cast_signed() - 120;
        let (side, at) = if is_right { (HPos::Right, at - 5) } else { (HPos::Left, at + 5) };
        let style = letters(11.0, TEXT).pos(Pos::new(side, VPos::Center));
        root.draw(&Text::new(format!("peak: step {}", self.peak), (at, above - 9), style))?;
        for &border in &self.borders {
            level(chart, real(border), PEAK.stroke_width(2), false)?;
        }
        if let Some(height) = self.height {
            level(chart, real(height), RED.stroke_width(1), false)?;
        }
        // Drawn over the height line, which coincides with it if a plan is optimal.
        if self.borders.is_empty() && real(self.load) <= top {
            level(chart, real(self.load), LOAD.stroke_width(1), true)?;
        }
        Ok(())
    }
}

fn facts(instance: &Instance, plan: Option<&VerifiedPlan<'_>>) -> String {
    let load = instance.load().bytes;
    let buffers = count(instance.len() as u64);
    match plan {
        Some(plan) => format!(
            "height {} \u{b7} load {} \u{b7} fragmentation {} \u{b7} {buffers} buffers",
            bytes(plan.height().get()),
            bytes(load.get()),
            percent(planlab_dsa::fragmentation(plan.height(), load)),
        ),
        None => format!(
            "sum {} \u{b7} load {} \u{b7} {buffers} buffers",
            bytes(instance.total().get()),
            bytes(load.get())
        ),
    }
}
