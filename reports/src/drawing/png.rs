//! Marks as pixels, through plotters.

use plotters::backend::BitMapBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{BitMapElement, Circle, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, FontTransform, IntoFont, RGBColor, TextStyle};

use super::palette::{Ink, Rgb};
use super::raster::Raster;
use super::svg::CROSS;
use super::{Anchor, Drawing, Mark, Shape, Spot};
use crate::ReportError;

const FAMILY: &str = "sans-serif";
static FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

/// Makes the font known; without it no letter can be drawn.
fn register() -> bool {
    use std::sync::OnceLock;
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| {
        [FontStyle::Normal, FontStyle::Bold, FontStyle::Italic, FontStyle::Oblique]
            .into_iter()
            .all(|style| plotters::style::register_font(FAMILY, style, FONT).is_ok())
    })
}

pub(super) fn paint(drawing: &Drawing) -> Result<Vec<u8>, ReportError> {
    if !register() {
        return Err(drawing.failed(&"the embedded font cannot be read"));
    }
    let (width, height) = drawing.size();
    let (columns, rows) = (width as usize, height as usize);
    let mut pixels = vec![255; 3 * columns * rows];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        for mark in &drawing.marks {
            put(&root, mark).map_err(|reason| drawing.failed(&reason))?;
        }
        root.present().map_err(|error| drawing.failed(&error))?;
    }
    Raster::from_rgb(columns, rows, pixels).to_png()
}

type Canvas<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

fn put(canvas: &Canvas<'_>, mark: &Mark) -> Result<(), String> {
    let drawn = match mark {
        Mark::Line { points, ink, width, dashed } => return line(canvas, points, *ink, *width, *dashed),
        Mark::Area { points, ink, opacity } => {
            canvas.draw(&Polygon::new(whole_all(points), rgb(*ink).mix(*opacity)))
        }
        Mark::Rect { corner, size, ink, opacity, .. } => {
            let (x, y) = whole(*corner);
            let (right, below) = whole((corner.0 + size.0, corner.1 + size.1));
            // Both corners belong to a rectangle of plotters.
            let corners = [(x, y), ((right - 1).max(x), (below - 1).max(y))];
            canvas.draw(&Rectangle::new(corners, rgb(*ink).mix(*opacity).filled()))
        }
        Mark::Dot { at, ink, shape, radius, .. } => return dot(canvas, *at, *ink, *shape, *radius),
        Mark::Text { at, text, anchor, size, ink, turned } => {
            canvas.draw(&Text::new(text.clone(), whole(*at), style(*anchor, *size, *ink, *turned)))
        }
        Mark::Raster { corner, raster } => {
            let size = (wide(raster.width())?, wide(raster.height())?);
            match BitMapElement::with_ref(whole(*corner), size, raster.bytes()) {
                Some(element) => canvas.draw(&element),
                None => return Err("a raster of another size than it says".to_owned()),
            }
        }
    };
    drawn.map_err(|error| error.to_string())
}

fn wide(length: usize) -> Result<u32, String> {
    u32::try_from(length).map_err(|error| error.to_string())
}

fn style(anchor: Anchor, size: f64, ink: Ink, turned: bool) -> TextStyle<'static> {
    let across = match anchor {
        Anchor::Start => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::End => HPos::Right,
    };
    let font = (FAMILY, size).into_font();
    let font = if turned { font.transform(FontTransform::Rotate270) } else { font };
    let mut style = TextStyle::from(font);
    style.color = rgb(ink).to_backend_color();
    style.pos = Pos::new(across, VPos::Center);
    style
}

fn line(canvas: &Canvas<'_>, points: &[Spot], ink: Ink, width: f64, dashed: bool) -> Result<(), String> {
    let style = rgb(ink).stroke_width(whole((width.max(1.0), 0.0)).0.unsigned_abs());
    let strokes = if dashed { dashes(points) } else { vec![points.to_vec()] };
    for stroke in strokes {
        canvas.draw(&PathElement::new(whole_all(&stroke), style)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Cuts a line into strokes of 6 pixels with 4 between them.
fn dashes(points: &[Spot]) -> Vec<Vec<Spot>> {
    let mut strokes = Vec::new();
    for pair in points.windows(2) {
        let ((x, y), (dx, dy)) = (pair[0], (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1));
        let length = dx.hypot(dy);
        let mut at = 0.0;
        while at < length {
            let end = (at + 6.0).min(length);
            strokes.push(vec![
                (x + dx * at / length, y + dy * at / length),
                (x + dx * end / length, y + dy * end / length),
            ]);
            at += 10.0;
        }
    }
    strokes
}

fn dot(canvas: &Canvas<'_>, at: Spot, ink: Ink, shape: Shape, radius: f64) -> Result<(), String> {
    let corners: &[Spot] = match shape {
        Shape::Circle => {
            let circle = Circle::new(whole(at), whole((radius, 0.0)).0, rgb(ink).filled());
            return canvas.draw(&circle).map_err(|error| error.to_string());
        }
        Shape::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        Shape::Triangle => &[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
        Shape::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
        Shape::Cross => &CROSS,
    };
    let points: Vec<Spot> = corners.iter().map(|(x, y)| (at.0 + x * radius, at.1 + y * radius)).collect();
    canvas.draw(&Polygon::new(whole_all(&points), rgb(ink))).map_err(|error| error.to_string())
}

fn whole_all(points: &[Spot]) -> Vec<(i32, i32)> {
    points.iter().map(|&point| whole(point)).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "pictures are a few thousand pixels wide; `as` saturates"
)]
fn whole((x, y): Spot) -> (i32, i32) {
    (x.round() as i32, y.round() as i32)
}

fn rgb(ink: Ink) -> RGBColor {
    let [red, green, blue]: Rgb = ink.light();
    RGBColor(red, green, blue)
}
