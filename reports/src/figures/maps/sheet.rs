//! Common parts of maps: a raster in the frame of a chart, its headline, lines over it.

use planlab_dsa::{Bytes, Instance, VerifiedPlan};
use plotters::element::{BitMapElement, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor};
use plotters_backend::BackendCoord;

use super::MapOptions;
use super::pixels::{Pixels, ROW, ROWS, is_narrow, picture_room};
use crate::figures::chart::{
    Chart, Entry, LETTERS, Room, draw_chart, draw_legend, draw_level, draw_line, text_style, text_width,
};
use crate::figures::coord::Axis;
use crate::figures::layout::Layout;
use crate::figures::palette::{MUTED, RED, TEXT};
use crate::figures::raster::Raster;
use crate::figures::{Area, ArenaFacts, Drawing, Drawn, figure};
use crate::format::{as_real, format_bytes, format_count, format_percent};

/// The space between a map and its legend in pixels.
const BETWEEN: u32 = 14;
/// The space beside text in a narrow picture, and the width of a legend's symbol, in pixels.
const EDGE: i32 = 6;
const KEY: i32 = 22;

/// Lines over the map.
pub(super) const PEAK: RGBColor = RGBColor(0x16, 0x1b, 0x22);
const LOAD: RGBColor = RGBColor(0x55, 0x5f, 0x6b);
pub(super) const CAPACITY: RGBColor = RGBColor(0x6a, 0x3d, 0x9a);

/// Draws a map for each arena, one below the other on the same steps.
pub(super) fn draw_arenas(
    name: &str,
    instance: &Instance,
    plan: Option<&VerifiedPlan<'_>>,
    options: &MapOptions,
    entries: Vec<Entry>,
    paint: impl Fn(&Layout, &ArenaFacts, Pixels) -> Raster,
) -> Drawing {
    let arenas = ArenaFacts::list_arenas(instance);
    let count = u32::try_from(arenas.len()).expect("an arena's number has 16 bits");
    let size = options.arena_size(count);
    let title = if options.title.is_empty() { name } else { &options.title };
    let top = options.top.filter(|_| count == 1);
    let sheet = |(arena, layout): (ArenaFacts, Layout)| {
        let top = top.unwrap_or_else(|| arena.axis_top(layout.height));
        let raster = paint(&layout, &arena, Pixels::new(size, layout.horizon, top));
        (Sheet::new(title, size, top, (arena, &layout), plan.is_some()), raster)
    };
    let sheets: Vec<(Sheet, Raster)> =
        arenas.into_iter().zip(Layout::of_arenas(instance, plan)).map(sheet).collect();
    figure(title, (size.0, size.1.saturating_mul(count)), move |root| {
        let areas = (0..count).map(|number| root.clone().shrink((0, number * size.1), size));
        areas.zip(&sheets).try_for_each(|(area, (sheet, raster))| sheet.draw_sheet(&area, raster, &entries))
    })
}

/// A map without its pixels.
struct Sheet {
    title: String,
    /// The most important first.
    facts: Vec<String>,
    size: (u32, u32),
    x: Axis,
    y: Axis,
    arena: ArenaFacts,
    /// The plan's height, if there is a plan.
    height: Option<u64>,
}

impl Sheet {
    /// A sheet of `size` pixels whose addresses end at `top`.
    fn new(
        title: &str,
        size: (u32, u32),
        top: u64,
        (arena, layout): (ArenaFacts, &Layout),
        is_planned: bool,
    ) -> Self {
        let top = as_real(top.max(1));
        Self {
            title: arena.name.as_ref().map_or_else(|| title.to_owned(), |name| format!("{title}, {name}")),
            facts: fact_lines(&arena, layout, is_planned),
            size,
            x: Axis::counts("step", f64::from(layout.horizon)),
            y: Axis::bytes("address", top).over_range(0.0..top),
            arena,
            height: is_planned.then_some(layout.height),
        }
    }

    fn draw_sheet(&self, root: &Area<'_>, raster: &Raster, entries: &[Entry]) -> Drawn {
        let room = picture_room(self.size.0);
        let mut chart = if is_narrow(self.size.0) {
            self.legend_below(root, entries)?;
            draw_chart(root, room, &self.x, &self.y)?
        } else {
            let area = draw_legend(root, self.size.0 - room.right + BETWEEN, room.top, entries)?;
            draw_chart(&area, Room { right: BETWEEN, ..room }, &self.x, &self.y)?
        };
        let corner = inside_area(root, chart.plotting_area().get_base_pixel());
        if let Some(map) = BitMapElement::with_ref(corner, raster.size(), &raster.rgb) {
            root.draw(&map)?;
        }
        self.draw_headline(root)?;
        self.draw_guides(root, &mut chart)
    }

    fn draw_headline(&self, root: &Area<'_>) -> Drawn {
        let left = if is_narrow(self.size.0) { EDGE } else { picture_room(self.size.0).left.cast_signed() };
        root.draw(&Text::new(self.title.as_str(), (left, 16), text_style(15.0, TEXT)))?;
        let facts = in_one_line(&self.facts, self.right_edge() - left);
        root.draw(&Text::new(facts, (left, 37), text_style(LETTERS, MUTED)))
    }

    fn right_edge(&self) -> i32 {
        self.size.0.cast_signed() - EDGE
    }

    /// The legend in lines across the picture, below the map.
    fn legend_below(&self, root: &Area<'_>, entries: &[Entry]) -> Drawn {
        let top = (self.size.1 - ROWS * ROW).cast_signed();
        let write = |text: &str, x: i32, row: u32| {
            let middle = top + (row * ROW + ROW / 2).cast_signed() - 2;
            root.draw(&Text::new(text, (x, middle), text_style(LETTERS, TEXT)))?;
            Ok(middle)
        };
        let (places, (x, row)) = entry_places(entries, self.right_edge());
        for (entry, &(x, row)) in entries.iter().zip(&places) {
            let middle = write(&entry.text, x + KEY, row)?;
            entry.draw_at(root, (x + KEY / 2 - 2, middle))?;
        }
        if places.len() < entries.len() {
            write(&and_more(entries.len() - places.len()), x, row)?;
        }
        Ok(())
    }

    /// Lines over the map: the height, the load, the capacity, the peak step.
    fn draw_guides(&self, root: &Area<'_>, chart: &mut Chart<'_>) -> Drawn {
        let step = self.arena.load.step.get();
        let (peak, top) = (f64::from(step) + 0.5, self.y.high());
        draw_line(chart, vec![(peak, 0.0), (peak, top)], PEAK.stroke_width(1), true)?;
        let (at, above) = inside_area(root, chart.backend_coord(&(peak, top)));
        let is_right = at > (self.size.0 - picture_room(self.size.0).right).cast_signed() - 120;
        let (side, at) = if is_right { (HPos::Right, at - 5) } else { (HPos::Left, at + 5) };
        let style = text_style(11.0, TEXT).pos(Pos::new(side, VPos::Center));
        root.draw(&Text::new(format!("peak: step {step}"), (at, above - 9), style))?;
        if let Some(height) = self.height {
            draw_level(chart, as_real(height), RED.stroke_width(1), false)?;
        }
        // Drawn over the height line, which coincides with the load if a plan is optimal.
        let load = (Some(self.arena.load.bytes.get()), LOAD, 1);
        for (bytes, color, width) in [load, (self.arena.capacity, CAPACITY, 2)] {
            if let Some(at) = bytes.map(as_real).filter(|at| *at <= top) {
                draw_level(chart, at, color.stroke_width(width), true)?;
            }
        }
        Ok(())
    }
}

/// A pixel of the whole picture as one of an area.
fn inside_area(area: &Area<'_>, (x, y): BackendCoord) -> BackendCoord {
    let (left, top) = area.get_base_pixel();
    (x - left, y - top)
}

/// The left edges and lines of the entries that fit into a legend below a map, and the place behind the last of them. If
/// others are left, there is room for their number.
fn entry_places(entries: &[Entry], right: i32) -> (Vec<(i32, u32)>, (i32, u32)) {
    let (mut x, mut row) = (EDGE, 0);
    let mut places = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        if x > EDGE && row + 1 < ROWS && entry_end(x, entry) > right {
            (x, row) = (EDGE, row + 1);
        }
        let next = entry_end(x, entry) + BETWEEN.cast_signed();
        let others = and_more(entries.len() - number - 1);
        if row + 1 == ROWS
            && next + letters_width(&others) > right
            && !fits_between(&entries[number..], x, right)
        {
            break;
        }
        places.push((x, row));
        x = next;
    }
    (places, (x, row))
}

/// Whether all entries fit between `x` and `right`.
fn fits_between(entries: &[Entry], mut x: i32, right: i32) -> bool {
    entries.iter().all(|entry| {
        let end = entry_end(x, entry);
        x = end + BETWEEN.cast_signed();
        end <= right
    })
}

fn entry_end(x: i32, entry: &Entry) -> i32 {
    x + KEY + letters_width(&entry.text)
}

fn letters_width(text: &str) -> i32 {
    text_width(text, LETTERS).cast_signed()
}

fn and_more(others: usize) -> String {
    format!("and {others} more")
}

/// The facts in one line of at most `width` pixels, without the last ones if they do not fit.
fn in_one_line(facts: &[String], width: i32) -> String {
    let line = |most: usize| facts[..most].join(" \u{b7} ");
    let most = (1..=facts.len()).rev().find(|&most| letters_width(&line(most)) <= width);
    line(most.unwrap_or(0))
}

fn fact_lines(arena: &ArenaFacts, layout: &Layout, is_planned: bool) -> Vec<String> {
    let load = arena.load.bytes;
    let first = if is_planned { "height" } else { "sum" };
    let mut facts = vec![
        format!("{first} {}", format_bytes(layout.height)),
        format!("load {}", format_bytes(load.get())),
    ];
    facts.extend(arena.capacity.map(|capacity| format!("capacity {}", format_bytes(capacity))));
    if is_planned {
        let share = planlab_dsa::fragmentation(Bytes::new(layout.height), load);
        facts.push(format!("fragmentation {}", format_percent(share)));
    }
    facts.push(format!("{} buffers", format_count(arena.buffers as u64)));
    facts
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Labels;

    use super::*;
    use crate::figures::maps::placement_map;
    use crate::figures::samples;

    /// The picture of buffers of this size that are live together, each of a category of its own.
    fn picture(categories: &[String], size: u64, pixels: (u32, u32)) -> String {
        let instance = samples::instance(&vec![(size, 0, 9); categories.len()]);
        let mut labels = Labels::from_numbers(categories.len());
        for (label, category) in labels.buffers.iter_mut().zip(categories) {
            label.category = Some(category.clone());
        }
        let offsets: Vec<u64> = (0..categories.len() as u64).map(|number| number * size).collect();
        let plan = samples::plan(&instance, &offsets);
        let options = MapOptions::default().with_size(pixels.0, pixels.1);
        placement_map(&instance, &labels, Some(&plan), &options).to_svg().expect("writes")
    }

    /// The texts of a picture in letters of 12 pixels that begin at their place, and where they end in pixels.
    fn texts(svg: &str) -> Vec<(&str, i32)> {
        fn text(element: &str) -> Option<(&str, i32)> {
            let (attributes, rest) = element.split_once('>')?;
            let text = rest.split("</text>").next()?;
            let x: i32 = attributes.strip_prefix("x=\"")?.split('"').next()?.parse().ok()?;
            let is_one = !attributes.contains("text-anchor") && !attributes.contains("font-size");
            is_one.then(|| (text, x + letters_width(text)))
        }
        svg.split("<text ").skip(1).filter_map(text).collect()
    }

    #[test]
    fn a_legend_below_a_map_ends_inside_the_picture() {
        let more = |categories: &[String]| {
            let svg = picture(categories, 64, (320, 300));
            let texts = texts(&svg);
            assert!(texts.iter().all(|&(_, end)| end <= 320), "{texts:?}");
            let is_entry = |text: &str| {
                categories.iter().any(|category| category == text)
                    || ["free", "peak step, load", "height"].contains(&text)
            };
            let shown = texts.iter().filter(|(text, _)| is_entry(text)).count();
            let number = |text: &str| text.strip_prefix("and ")?.strip_suffix(" more")?.parse().ok();
            let more: usize = texts.iter().find_map(|(text, _)| number(text)).unwrap_or(0);
            assert_eq!(shown + more, categories.len() + 3, "{texts:?}");
            more
        };
        let named = |letter: &str, length: usize, many: usize| -> Vec<String> {
            (0..many).map(|number| format!("{}{number:02}", letter.repeat(length))).collect()
        };
        assert_eq!(more(&named("i", 1, 3)), 0);
        // The longest name that a legend shows has 18 letters.
        for length in 1..=16 {
            for letter in ["i", "m", "W"] {
                more(&named(letter, length, 5));
                assert!(more(&named(letter, length, 30)) > 0, "{letter} {length}");
            }
        }
    }

    #[test]
    fn facts_that_do_not_fit_are_left_out_from_the_right() {
        let categories = vec!["weight".to_owned(); 1042];
        for (width, last) in [(320, "load 1.02 GiB"), (1200, "1\u{202f}042 buffers")] {
            let svg = picture(&categories, 1 << 20, (width, 200));
            let is_one = |(text, _): &(&str, i32)| text.starts_with("height 1.02 GiB \u{b7} load");
            let (facts, end) = texts(&svg).into_iter().find(is_one).expect("is written");
            assert!(facts.ends_with(last) && end <= width.cast_signed(), "{facts} ends at {end}");
        }
    }
}
