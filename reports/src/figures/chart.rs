//! Common elements of charts: a frame with axes, marks, legends, text.

use plotters::chart::{ChartBuilder, ChartContext, LabelAreaPosition, SeriesLabelPosition};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{BoldPoints, Ranged, ValueFormatter};
use plotters::element::{Drawable, PointCollection};
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, TextStyle};
use plotters_backend::{BackendCoord, DrawingBackend, DrawingErrorKind};

use super::backend::{Canvas, EM, FAMILY, has_font};
use super::coord::Axis;
use super::palette::{GRID, MUTED, PAPER, Shape, TEXT};
use super::{Area, Drawing, Drawn, Series, figure};

pub(crate) use super::backend::told;

/// A chart on either backend.
pub(crate) type Chart<'a> = ChartContext<'a, Canvas<'a>, Cartesian2d<Axis, Axis>>;

/// The font size in pixels.
pub(crate) const LETTERS: f64 = 12.0;

/// The margins around the data in pixels, including the labels of the axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) right: u32,
    pub(crate) bottom: u32,
    /// Below the labels.
    pub(crate) below: u32,
}

impl Default for Room {
    fn default() -> Self {
        Self { left: 92, top: 18, right: 16, bottom: 46, below: 3 }
    }
}

/// Draws the frame of a chart: axes, grid, ticks and names.
pub(crate) fn draw_chart<'a>(area: &Area<'a>, room: Room, x: &Axis, y: &Axis) -> Drawn<Chart<'a>> {
    const EDGE: u32 = 3;
    let mut chart = ChartBuilder::on(area)
        .margin_left(EDGE)
        .margin_top(room.top)
        .margin_right(room.right)
        .margin_bottom(room.below)
        .set_label_area_size(LabelAreaPosition::Left, room.left - EDGE)
        .set_label_area_size(LabelAreaPosition::Bottom, room.bottom)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let shown = readable_ticks(&chart, x, y);
    let x_label = |tick: &f64| if shown.contains(tick) { x.format_ext(tick) } else { String::new() };
    let (_, height) = chart.plotting_area().dim_in_pixel();
    let mut mesh = chart.configure_mesh();
    mesh.axis_style(MUTED)
        .bold_line_style(GRID)
        .set_all_tick_mark_size(4)
        .label_style(text_style(LETTERS, TEXT))
        .axis_desc_style(text_style(LETTERS, MUTED))
        .x_labels(TICKS)
        .y_labels((height as usize / 40).clamp(2, TICKS))
        .x_label_formatter(&x_label)
        .x_desc(x.title.as_str())
        .y_desc(y.title.as_str());
    if x.is_named() {
        mesh.disable_x_mesh();
    }
    mesh.draw()?;
    drop(mesh);
    Ok(chart)
}

/// The most ticks on an axis.
const TICKS: usize = 9;

/// The ticks below the frame whose labels do not overlap; plotters would write all of them.
fn readable_ticks(chart: &Chart<'_>, x: &Axis, y: &Axis) -> Vec<f64> {
    let mut free_from = i32::MIN;
    let mut shown = x.key_points(BoldPoints(TICKS));
    shown.retain(|tick| {
        let (at, _) = chart.backend_coord(&(*tick, y.low()));
        let half = text_width(&x.format_ext(tick), LETTERS).cast_signed() / 2;
        let is_free = at - half >= free_from;
        if is_free {
            free_from = at + half + 8;
        }
        is_free
    });
    shown
}

/// Text of the given height in pixels, to the right of its position and vertically centred.
pub(crate) fn text_style(size: f64, color: RGBColor) -> TextStyle<'static> {
    let (font, color) = ((FAMILY, size * EM).into_font(), color.to_backend_color());
    TextStyle { font, color, pos: Pos::new(HPos::Left, VPos::Center) }
}

/// The same text, centred on its position.
pub(crate) fn centered_style(size: f64, color: RGBColor) -> TextStyle<'static> {
    text_style(size, color).pos(Pos::new(HPos::Center, VPos::Center))
}

pub(crate) fn text_width(text: &str, size: f64) -> u32 {
    if !has_font() {
        return 0;
    }
    (FAMILY, size * EM).into_font().box_size(text).map_or(0, |(width, _)| width)
}

pub(crate) fn draw_line(
    chart: &mut Chart<'_>,
    points: Vec<(f64, f64)>,
    style: ShapeStyle,
    dashed: bool,
) -> Drawn {
    if dashed {
        chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?;
    } else {
        chart.draw_series(LineSeries::new(points, style))?;
    }
    Ok(())
}

/// Draws a horizontal line across the frame.
pub(crate) fn draw_level(chart: &mut Chart<'_>, at: f64, style: ShapeStyle, dashed: bool) -> Drawn {
    let range = chart.x_range();
    draw_line(chart, vec![(range.start, at), (range.end, at)], style, dashed)
}

/// The symbol beside a legend entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    Dot(Shape),
    /// A hollow dot.
    Ring(Shape),
    Line {
        dashed: bool,
    },
    Box,
}

/// A mark of a few pixels.
pub(crate) struct Marker<C> {
    at: C,
    key: Key,
    radius: u32,
    color: RGBColor,
}

impl<C> Marker<C> {
    pub(crate) const fn new(at: C, shape: Shape, radius: u32, color: RGBColor) -> Self {
        Self { at, key: Key::Dot(shape), radius, color }
    }

    pub(crate) const fn new_ring(at: C, shape: Shape, radius: u32, color: RGBColor) -> Self {
        Self { at, key: Key::Ring(shape), radius, color }
    }
}

impl<'a, C> PointCollection<'a, C> for &'a Marker<C> {
    type Point = &'a C;
    type IntoIter = std::iter::Once<&'a C>;

    fn point_iter(self) -> Self::IntoIter {
        std::iter::once(&self.at)
    }
}

impl<C, B: DrawingBackend> Drawable<B> for Marker<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut points: I,
        backend: &mut B,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        let Some((x, y)) = points.next() else { return Ok(()) };
        let color = self.color;
        match self.key {
            Key::Dot(shape) => draw_shape(backend, (x, y), shape, (self.radius, color)),
            Key::Ring(shape) => {
                draw_shape(backend, (x, y), shape, (self.radius + 2, color))?;
                draw_shape(backend, (x, y), shape, (self.radius, PAPER))
            }
            Key::Line { dashed: false } => {
                backend.draw_path([(x - 8, y), (x + 8, y)], &color.stroke_width(2))
            }
            Key::Line { dashed: true } => {
                backend.draw_path([(x - 8, y), (x - 2, y)], &color.stroke_width(2))?;
                backend.draw_path([(x + 2, y), (x + 8, y)], &color.stroke_width(2))
            }
            Key::Box => backend.draw_rect((x - 6, y - 6), (x + 5, y + 5), &color, true),
        }
    }
}

fn draw_shape<B: DrawingBackend>(
    backend: &mut B,
    (x, y): BackendCoord,
    shape: Shape,
    (radius, color): (u32, RGBColor),
) -> Result<(), DrawingErrorKind<B::ErrorType>> {
    if shape == Shape::Circle {
        return backend.draw_circle((x, y), radius, &color, true);
    }
    let radius = f64::from(radius) + 0.5;
    let corner = |&(dx, dy): &(f64, f64)| (x + nearest_pixel(dx * radius), y + nearest_pixel(dy * radius));
    backend.fill_polygon(shape.corners().iter().map(corner), &color)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "pictures are a few thousand pixels wide; `as` saturates"
)]
pub(crate) fn nearest_pixel(place: f64) -> i32 {
    place.round() as i32
}

/// An entry of a legend.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) color: RGBColor,
    pub(crate) text: String,
}

impl Entry {
    pub(crate) fn new(key: Key, color: RGBColor, text: impl Into<String>) -> Self {
        Self { key, color, text: text.into() }
    }

    pub(crate) fn from_series(series: &Series) -> Self {
        Self { key: Key::Dot(series.shape()), color: series.color(), text: series.label.clone() }
    }

    /// Draws the symbol with its centre at this pixel.
    pub(crate) fn draw_at(&self, area: &Area<'_>, at: BackendCoord) -> Drawn {
        area.draw(&Marker { at, key: self.key, radius: 4, color: self.color })
    }
}

/// The height of a legend line in pixels.
pub(crate) const LINE: u32 = 18;
const INDENT: u32 = 22;

/// The width of a legend to the right of `left`, such that the picture is between `least` and `most` pixels wide;
/// longer lines are wrapped.
pub(crate) fn width_with_legend(left: u32, (least, most): (u32, u32), entries: &[Entry]) -> u32 {
    if entries.is_empty() {
        return least;
    }
    let widest = entries.iter().map(|entry| text_width(&entry.text, LETTERS)).max().unwrap_or(0);
    (left + INDENT + widest + 6).clamp(least, most)
}

/// A picture of a chart of this height with its legend on the right, which may make the picture taller.
pub(crate) fn figure_beside(
    title: &str,
    height: u32,
    (x, y): (Axis, Axis),
    entries: Vec<Entry>,
    draw: impl Fn(&mut Chart<'_>) -> Drawn + Send + Sync + 'static,
) -> Drawing {
    const LEFT: u32 = 796;
    let lines = LINE.saturating_mul(u32::try_from(entries.len()).unwrap_or(u32::MAX));
    let size =
        (width_with_legend(LEFT, (1060, 1240), &entries), lines.saturating_add(40).clamp(height, 1200));
    let room = Room::default();
    let room = Room { below: room.below + size.1 - height, ..room };
    figure(title, size, move |root| {
        let area = draw_legend(root, LEFT, room.top, &entries)?;
        draw(&mut draw_chart(&area, room, &x, &y)?)
    })
}

/// Cuts off the legend at `left`, draws it, and returns the remaining area. The legend is a separate chart, because
/// plotters writes the labels of series over the data.
pub(crate) fn draw_legend<'a>(area: &Area<'a>, left: u32, top: u32, entries: &[Entry]) -> Drawn<Area<'a>> {
    if entries.is_empty() {
        return Ok(area.clone());
    }
    let (rest, side) = area.split_horizontally(left);
    let side = side.margin(top, 0, 0, 0);
    let (width, height) = side.dim_in_pixel();
    let mut labels = ChartBuilder::on(&side).build_cartesian_2d(0..1, 0..1)?;
    for (entry, text) in fitting_lines(entries, width.saturating_sub(INDENT), height) {
        let series = labels.draw_series(std::iter::empty::<Marker<(i32, i32)>>())?;
        series.label(text);
        if let Some(Entry { key, color, .. }) = entry.cloned() {
            series.legend(move |(x, y)| Marker { at: (x + 8, y), key, radius: 4, color });
        }
    }
    labels
        .configure_series_labels()
        .position(SeriesLabelPosition::Coordinate(0, 0))
        .margin(0)
        .legend_area_size(INDENT)
        .label_font(text_style(LETTERS, TEXT).pos(Pos::new(HPos::Left, VPos::Top)))
        .draw()?;
    Ok(rest)
}

/// The lines of a legend, with long texts wrapped; the last line counts entries that do not fit into `height`.
fn fitting_lines(entries: &[Entry], width: u32, height: u32) -> Vec<(Option<&Entry>, String)> {
    let lines = (height / LINE).max(1) as usize;
    let mut all = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let texts = wrap_text(&entry.text, width);
        let is_last = number + 1 == entries.len();
        if all.len() + texts.len() + usize::from(!is_last) > lines {
            all.push((None, format!("and {} more", entries.len() - number)));
            break;
        }
        let keys = std::iter::once(Some(entry)).chain(std::iter::repeat(None));
        all.extend(keys.zip(texts));
    }
    all
}

/// A text in lines of at most `width` pixels, broken after a space, a comma or a dash if possible.
fn wrap_text(text: &str, width: u32) -> Vec<String> {
    let fits = |line: &str, piece: &str| text_width(format!("{line}{piece}").trim_end(), LETTERS) <= width;
    let mut lines = vec![String::new()];
    for piece in text.split_inclusive([' ', ',', '-']) {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && !fits(&lines[last], piece) {
            lines.push(String::new());
        }
        for letter in piece.chars() {
            let last = lines.len() - 1;
            if !lines[last].is_empty() && !fits(&lines[last], letter.encode_utf8(&mut [0; 4])) {
                lines.push(String::new());
            }
            let last = lines.len() - 1;
            lines[last].push(letter);
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_stays_inside_its_picture() {
        assert_eq!(wrap_text("first-fit by size", 80), ["first-fit by", "size"]);
        assert_eq!(wrap_text("abcdefgh", 30).concat(), "abcdefgh");
        assert!(wrap_text("abcdefgh", 30).iter().all(|line| text_width(line, LETTERS) <= 30));
        assert_eq!(wrap_text("", 30), [""]);
        let entry = |text: &str| Entry { key: Key::Box, color: RGBColor(0, 0, 0), text: text.to_owned() };
        let entries = ["short", "a name of many words that has to be broken", "last"].map(entry);
        let texts = |height| -> Vec<String> {
            fitting_lines(&entries, 90, height).into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(2 * LINE), ["short", "and 2 more"]);
        let all = texts(20 * LINE);
        assert!(all.len() > 4 && all[all.len() - 1] == "last", "{all:?}");
        assert!(width_with_legend(90, (300, 1000), &entries) > 350);
        assert_eq!(width_with_legend(90, (100, 300), &entries), 300);
    }
}
