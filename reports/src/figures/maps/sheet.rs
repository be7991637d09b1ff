//! Common parts of maps: a raster in the frame of a chart, its headline, lines over it.

use planlab_dsa::{Instance, VerifiedPlan};
use plotters::element::{BitMapElement, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor};

use super::MapOptions;
use super::pixels::{ROW, ROWS, is_narrow, room};
use crate::figures::chart::{Chart, Entry, LETTERS, Room, chart, legend, letters, level, line, text_width};
use crate::figures::coord::Axis;
use crate::figures::layout::Layout;
use crate::figures::palette::{MUTED, RED, TEXT};
use crate::figures::raster::Raster;
use crate::figures::{Area, Drawing, Drawn, figure};
use crate::format::{bytes, count, percent, real};

/// The space between a map and its legend in pixels.
const BETWEEN: u32 = 14;
/// In a narrow picture: the space left of text, the width of a legend's symbol, and that of "and 12 more".
const EDGE: i32 = 6;
const KEY: i32 = 22;
const REST: i32 = 84;

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
            let room = room(self.size.0);
            let mut chart = if is_narrow(self.size.0) {
                self.legend_below(root, &entries)?;
                chart(root, room, &self.x, &self.y)?
            } else {
                let area = legend(root, self.size.0 - room.right + BETWEEN, room.top, &entries)?;
                chart(&area, Room { right: BETWEEN, ..room }, &self.x, &self.y)?
            };
            let corner = chart.plotting_area().get_base_pixel();
            if let Some(map) = BitMapElement::with_ref(corner, raster.size(), raster.bytes()) {
                root.draw(&map)?;
            }
            self.headline(root)?;
            self.guides(root, &mut chart)
        })
    }

    fn headline(&self, root: &Area<'_>) -> Drawn {
        let left = if is_narrow(self.size.0) { EDGE } else { room(self.size.0).left.cast_signed() };
        root.draw(&Text::new(self.title.as_str(), (left, 16), letters(15.0, TEXT)))?;
        root.draw(&Text::new(self.facts.as_str(), (left, 37), letters(LETTERS, MUTED)))
    }

    /// The legend in lines across the picture, below the map.
    fn legend_below(&self, root: &Area<'_>, entries: &[Entry]) -> Drawn {
        let (right, top) = (self.size.0.cast_signed(), (self.size.1 - ROWS * ROW).cast_signed());
        let (mut x, mut row) = (EDGE, 0);
        let write = |text: &str, x: i32, row: u32| {
            let middle = top + (row * ROW + ROW / 2).cast_signed() - 2;
            root.draw(&Text::new(text, (x, middle), letters(LETTERS, TEXT)))?;
            Ok(middle)
        };
        for (number, entry) in entries.iter().enumerate() {
            let wide = KEY + text_width(&entry.text, LETTERS).cast_signed();
            let is_last = number + 1 == entries.len();
            // The last line keeps room for the number of entries that do not fit.
            let rest = if row + 1 == ROWS && !is_last { REST } else { 0 };
            if x > EDGE && x + wide + rest > right {
                if row + 1 == ROWS {
                    write(&format!("and {} more", entries.len() - number), x, row)?;
                    break;
                }
                (x, row) = (EDGE, row + 1);
            }
            let middle = write(&entry.text, x + KEY, row)?;
            entry.draw_at(root, (x + KEY / 2 - 2, middle))?;
            x += wide + BETWEEN.cast_signed();
        }
        Ok(())
    }

    /// Lines over the map: the height, the load, the peak step, the borders of arenas.
    fn guides(&self, root: &Area<'_>, chart: &mut Chart<'_>) -> Drawn {
        let (peak, top) = (f64::from(self.peak) + 0.5, self.y.high());
        line(chart, vec![(peak, 0.0), (peak, top)], PEAK.stroke_width(1), true)?;
        let (at, above) = chart.backend_coord(&(peak, top));
        let is_right = at > (self.size.0 - room(self.size.0).right).cast_signed() - 120;
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
