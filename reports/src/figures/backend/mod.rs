//! The drawing backends of figures: plotters' bitmap, or SVG in the colours of the page.

mod canvas;
mod font;
mod svg;

pub(crate) use canvas::{Canvas, told};
pub(crate) use font::{EM, FAMILY, has_font};
pub(crate) use svg::{Failure, Svg, light_style, open_svg};
