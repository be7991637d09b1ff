//! The drawing backends of figures, plotters' bitmap or SVG in the colours of the page, and the embedded font.

mod canvas;
mod svg;

use std::sync::OnceLock;

use plotters::style::FontStyle;

pub(crate) use canvas::{Canvas, told};
pub(crate) use svg::{Failure, Svg, light_style, open_svg};

pub(crate) const FAMILY: &str = "sans-serif";
/// Plotters measures a font from its lowest to its highest point; this is that size as a share of an em in our font.
pub(crate) const EM: f64 = 1.164;

static FONT: &[u8] = include_bytes!("../../../fonts/DejaVuSans.ttf");

/// Registers the font; without it no text can be drawn or measured. Returns whether it is available.
pub(crate) fn has_font() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| plotters::style::register_font(FAMILY, FontStyle::Normal, FONT).is_ok())
}
