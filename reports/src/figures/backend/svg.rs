//! An SVG backend that takes its colours from the surrounding page, which plotters' own SVG backend cannot do.
//!
//! The colours of [`palette::THEME`] become CSS classes, so that a figure follows the page's light or dark theme. An
//! element can have a tooltip; text has a size but no font. Strokes with the same style are joined into one path.

use std::fmt::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use planlab_dsa::printable_text;
use plotters::backend::BitMapBackend;
use plotters::style::RGBColor;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontTransform,
};

use super::EM;
use crate::figures::palette::{self, hex_text};
use crate::figures::raster::Raster;

pub(crate) type Failure = <BitMapBackend<'static> as DrawingBackend>::ErrorType;
pub(super) type Drawn = Result<(), DrawingErrorKind<Failure>>;

const FONT: &str = "DejaVu Sans, Verdana, sans-serif";
/// The default font size in pixels.
const LETTERS: f64 = 12.0;

/// A text that elements are appended to.
pub(crate) struct Svg<'a> {
    out: &'a mut String,
    pub(super) size: (u32, u32),
    /// The attributes of the path that is still open.
    stroke: Option<String>,
    /// The tooltip of the elements that follow.
    pub(super) tip: String,
}

/// The outermost element. Plotters counts pixels from their centre, SVG from their corner.
pub(crate) fn open_svg(title: &str, (width, height): (u32, u32), attributes: &str) -> String {
    format!(
        "<svg{attributes} viewBox=\"-0.5 -0.5 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{}\" font-family=\"{FONT}\" font-size=\"{LETTERS}\">",
        escape_xml(title)
    )
}

/// The light colours, for a standalone file.
pub(crate) fn light_style((width, height): (u32, u32)) -> String {
    let mut text = "<style>".to_owned();
    for (color, class) in palette::THEME {
        let color = hex_text(color);
        let _ = write!(text, ".{class}-fill{{fill:{color}}}.{class}-stroke{{stroke:{color}}}");
    }
    let _ = write!(
        text,
        "</style><rect x=\"-0.5\" y=\"-0.5\" width=\"{width}\" height=\"{height}\" class=\"ink-paper-fill\"/>"
    );
    text
}

impl<'a> Svg<'a> {
    pub(crate) const fn new(out: &'a mut String, size: (u32, u32)) -> Self {
        Self { out, size, stroke: None, tip: String::new() }
    }

    /// Ends the open path, so that the next stroke starts a new one.
    pub(super) fn end_path(&mut self) {
        if self.stroke.take().is_some() {
            self.out.push_str("\"/>");
        }
    }

    /// A filled element.
    pub(super) fn draw_element(&mut self, name: &str, attributes: &str, color: BackendColor) -> Drawn {
        self.end_path();
        let _ = write!(self.out, "<{name} {attributes}{}", paint_attribute("fill", color));
        if self.tip.is_empty() {
            self.out.push_str("/>");
        } else {
            let _ = write!(self.out, "><title>{}</title></{name}>", escape_xml(&self.tip));
        }
        Ok(())
    }

    /// In plotters both corners are part of a rectangle.
    pub(super) fn draw_rect(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        color: BackendColor,
    ) -> Drawn {
        let (x, y) = (f64::from(left) - 0.5, f64::from(top) - 0.5);
        let (width, height) = (right - left + 1, bottom - top + 1);
        let place = format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
        self.draw_element("rect", &place, color)
    }

    pub(super) fn draw_stroke(
        &mut self,
        points: impl IntoIterator<Item = BackendCoord>,
        color: BackendColor,
        width: u32,
    ) -> Drawn {
        let stroke = format!("{} stroke-width=\"{width}\"", paint_attribute("stroke", color));
        if self.stroke.as_ref() != Some(&stroke) {
            self.end_path();
            let _ = write!(self.out, "<path fill=\"none\"{stroke} d=\"");
            self.stroke = Some(stroke);
        }
        self.out.push_str(&path_data(points));
        Ok(())
    }

    pub(super) fn draw_text_at(
        &mut self,
        text: &str,
        style: &impl BackendTextStyle,
        (x, y): BackendCoord,
    ) -> Drawn {
        self.end_path();
        let size = style.size() / EM;
        let below = match style.anchor().v_pos {
            VPos::Top => 0.76,
            VPos::Center => 0.35,
            VPos::Bottom => -0.24,
        };
        let baseline = f64::from(y) + below * size;
        let _ = write!(self.out, "<text x=\"{x}\" y=\"{baseline:.1}\"");
        if (size - LETTERS).abs() > 0.05 {
            let _ = write!(self.out, " font-size=\"{size:.0}\"");
        }
        self.out.push_str(match style.anchor().h_pos {
            HPos::Left => "",
            HPos::Center => " text-anchor=\"middle\"",
            HPos::Right => " text-anchor=\"end\"",
        });
        let turn = match style.transform() {
            FontTransform::None => 0,
            FontTransform::Rotate90 => 90,
            FontTransform::Rotate180 => 180,
            FontTransform::Rotate270 => -90,
        };
        if turn != 0 {
            let _ = write!(self.out, " transform=\"rotate({turn} {x} {y})\"");
        }
        let _ = write!(self.out, "{}>{}</text>", paint_attribute("fill", style.color()), escape_xml(text));
        Ok(())
    }

    pub(super) fn draw_image(
        &mut self,
        (x, y): BackendCoord,
        (width, height): (u32, u32),
        pixels: &[u8],
    ) -> Drawn {
        self.end_path();
        let raster = Raster { width: width as usize, height: height as usize, rgb: pixels.to_vec() };
        let png = raster.to_png().map_err(|error| {
            DrawingErrorKind::DrawingError(Failure::IOError(std::io::Error::other(error)))
        })?;
        let (x, y) = (f64::from(x) - 0.5, f64::from(y) - 0.5);
        let _ = write!(
            self.out,
            "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" href=\"data:image/png;base64,{}\"/>",
            BASE64_STANDARD.encode(&png)
        );
        Ok(())
    }
}

pub(super) fn path_data(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut out = String::new();
    let mut last: Option<BackendCoord> = None;
    for (x, y) in points {
        let _ = match last {
            None => write!(out, "M{x} {y}"),
            Some(last) if last == (x, y) => Ok(()),
            Some(last) if last.1 == y => write!(out, "H{x}"),
            Some(last) if last.0 == x => write!(out, "V{y}"),
            Some(_) => write!(out, "L{x} {y}"),
        };
        last = Some((x, y));
    }
    out
}

/// A colour as a class if the page chooses it, otherwise as a value.
fn paint_attribute(attribute: &str, color: BackendColor) -> String {
    let (red, green, blue) = color.rgb;
    let rgb = RGBColor(red, green, blue);
    let theme = palette::THEME.into_iter().find(|(themed, _)| *themed == rgb);
    let mut text = match theme {
        Some((_, class)) => format!(" class=\"{class}-{attribute}\""),
        None => format!(" {attribute}=\"{}\"", hex_text(rgb)),
    };
    if color.alpha < 1.0 {
        let _ = write!(text, " {attribute}-opacity=\"{}\"", color.alpha);
    }
    text
}

/// Escapes text for an element or attribute; XML forbids control characters and noncharacters altogether.
fn escape_xml(text: &str) -> String {
    let mut safe = String::new();
    let _ = maud::Escaper::new(&mut safe).write_str(&printable_text(text));
    safe
}
