//! Marks as SVG.

use std::fmt::Write as _;

use super::palette::{Ink, hex};
use super::raster::base64;
use super::{Anchor, Drawing, Mark, Shape, Spot};
use crate::ReportError;

/// Where the colours of letters and axes come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// The file itself.
    Own,
    /// The page around it.
    Page,
}

const FONT: &str = "DejaVu Sans, Verdana, sans-serif";

pub(super) fn write(drawing: &Drawing, style: Style) -> Result<String, ReportError> {
    let (width, height) = drawing.size();
    let mut text = String::new();
    let name = escape(drawing.title());
    // A page knows the format; a file of its own has to name it.
    let namespace = if style == Style::Own { " xmlns=\"http://www.w3.org/2000/svg\"" } else { "" };
    let _ = write!(
        text,
        "<svg{namespace} viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{name}\" font-family=\"{FONT}\">"
    );
    if style == Style::Own {
        let _ = write!(text, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>");
    }
    for mark in &drawing.marks {
        put(&mut text, mark, style)?;
    }
    text.push_str("</svg>");
    Ok(text)
}

fn put(out: &mut String, mark: &Mark, style: Style) -> Result<(), ReportError> {
    match mark {
        Mark::Line { points, ink, width, dashed } => {
            let dash = if *dashed { " stroke-dasharray=\"6 4\"" } else { "" };
            let (points, stroke) = (path(points), stroke(*ink, style));
            let _ = write!(
                out,
                "<polyline points=\"{points}\" fill=\"none\"{stroke} stroke-width=\"{width}\"{dash}/>"
            );
        }
        Mark::Area { points, ink, opacity } => {
            let (points, fill) = (path(points), fill(*ink, style));
            let _ = write!(out, "<polygon points=\"{points}\"{fill} fill-opacity=\"{opacity}\"/>");
        }
        Mark::Rect { corner: (x, y), size: (w, h), ink, opacity, tip } => {
            let (fill, opacity) = (fill(*ink, style), faint(*opacity));
            let _ = write!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{fill}{opacity}",
                short(*x),
                short(*y),
                short(*w),
                short(*h)
            );
            close(out, "rect", tip);
        }
        Mark::Dot { at, ink, shape, radius, tip } => dot(out, *at, *shape, *radius, &fill(*ink, style), tip),
        Mark::Text { at: (x, y), text, anchor, size, ink, turned } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let (x, y, fill, text) = (short(*x), short(*y), fill(*ink, style), escape(text));
            let turn = if *turned { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            let _ = write!(
                out,
                "<text x=\"{x}\" y=\"{y}\" dy=\"0.35em\" font-size=\"{size}\"{anchor}{fill}{turn}>{text}</text>"
            );
        }
        Mark::Raster { corner: (x, y), raster } => {
            let data = base64(&raster.to_png()?);
            let _ = write!(
                out,
                "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" href=\"data:image/png;base64,{data}\"/>",
                short(*x),
                short(*y),
                raster.width(),
                raster.height()
            );
        }
    }
    Ok(())
}

fn dot(out: &mut String, (x, y): Spot, shape: Shape, radius: f64, fill: &str, tip: &str) {
    let r = radius;
    let corners: &[Spot] = match shape {
        Shape::Circle => {
            let _ = write!(out, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{fill}", short(x), short(y), short(r));
            return close(out, "circle", tip);
        }
        Shape::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        Shape::Triangle => &[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
        Shape::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
        Shape::Cross => &CROSS,
    };
    let points: Vec<Spot> = corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r)).collect();
    let _ = write!(out, "<polygon points=\"{}\"{fill}", path(&points));
    close(out, "polygon", tip);
}

/// A cross as an outline, so that it is filled like the other shapes.
pub(super) const CROSS: [Spot; 12] = [
    (-1.2, -0.7),
    (-0.7, -1.2),
    (0.0, -0.5),
    (0.7, -1.2),
    (1.2, -0.7),
    (0.5, 0.0),
    (1.2, 0.7),
    (0.7, 1.2),
    (0.0, 0.5),
    (-0.7, 1.2),
    (-1.2, 0.7),
    (-0.5, 0.0),
];

fn close(out: &mut String, element: &str, tip: &str) {
    if tip.is_empty() {
        out.push_str("/>");
    } else {
        let _ = write!(out, "><title>{}</title></{element}>", escape(tip));
    }
}

fn path(points: &[Spot]) -> String {
    let mut text = String::new();
    for (x, y) in points {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{},{}", short(*x), short(*y));
    }
    text
}

/// One decimal at most: a tenth of a pixel is enough.
fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

fn fill(ink: Ink, style: Style) -> String {
    paint("fill", ink, style)
}

fn stroke(ink: Ink, style: Style) -> String {
    paint("stroke", ink, style)
}

fn paint(attribute: &str, ink: Ink, style: Style) -> String {
    match ink.class() {
        Some(class) if style == Style::Page => format!(" class=\"{class}-{attribute}\""),
        _ => format!(" {attribute}=\"{}\"", hex(ink.light())),
    }
}

fn faint(opacity: f64) -> String {
    if opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() }
}

/// Text that cannot leave its element or attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Control characters are not allowed in XML at all.
            letter if letter.is_control() && letter != '\n' && letter != '\t' => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}
