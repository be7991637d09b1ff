//! What figures are drawn on: plotters' bitmap, or SVG in the colours of the page.
//!
//! One type for both, so that a figure is one closure and is compiled once.

mod svg;

use plotters::backend::BitMapBackend;
use plotters::element::{Drawable, DynElement, IntoDynElement, PointCollection};
use plotters::style::FontStyle;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};

pub(crate) use svg::Svg;
pub(super) use svg::{light_style, open};

pub(crate) type Failure = <BitMapBackend<'static> as DrawingBackend>::ErrorType;
type Drawn<T> = Result<T, DrawingErrorKind<Failure>>;

/// The family that all letters are of.
pub(super) const FAMILY: &str = "sans-serif";
/// Plotters' size of a font is from the lowest to the highest letter; this is its share of an em in our font.
pub(super) const EM: f64 = 1.164;

static FONT: &[u8] = include_bytes!("../../../fonts/DejaVuSans.ttf");

/// Makes the font known; without it no letter can be drawn or measured.
pub(super) fn has_font() -> bool {
    use std::sync::OnceLock;
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| plotters::style::register_font(FAMILY, FontStyle::Normal, FONT).is_ok())
}

fn failed(error: Box<dyn std::error::Error + Send + Sync>) -> DrawingErrorKind<Failure> {
    DrawingErrorKind::DrawingError(Failure::IOError(std::io::Error::other(error)))
}

/// A backend of plotters that is one of two.
pub(crate) enum Canvas<'a> {
    Bitmap(BitMapBackend<'a>),
    Svg(Svg<'a>),
}

impl<'a> Canvas<'a> {
    /// Three bytes for each pixel.
    pub(super) fn bitmap(pixels: &'a mut [u8], size: (u32, u32)) -> Self {
        Self::Bitmap(BitMapBackend::with_buffer(pixels, size))
    }

    /// Elements, without the outermost.
    pub(super) const fn svg(out: &'a mut String, size: (u32, u32)) -> Self {
        Self::Svg(Svg::new(out, size))
    }
}

macro_rules! on {
    ($canvas:expr, $backend:ident => $drawn:expr) => {
        match $canvas {
            Canvas::Bitmap($backend) => $drawn,
            Canvas::Svg($backend) => $drawn,
        }
    };
}

impl DrawingBackend for Canvas<'_> {
    type ErrorType = Failure;

    fn get_size(&self) -> (u32, u32) {
        on!(self, backend => backend.get_size())
    }

    fn ensure_prepared(&mut self) -> Drawn<()> {
        on!(self, backend => backend.ensure_prepared())
    }

    fn present(&mut self) -> Drawn<()> {
        on!(self, backend => backend.present())
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn<()> {
        on!(self, backend => backend.draw_pixel(point, color))
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn<()> {
        on!(self, backend => backend.draw_line(from, to, style))
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn<()> {
        on!(self, backend => backend.draw_rect(upper_left, bottom_right, style, fill))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn<()> {
        on!(self, backend => backend.draw_path(path, style))
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn<()> {
        on!(self, backend => backend.draw_circle(center, radius, style, fill))
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn<()> {
        on!(self, backend => backend.fill_polygon(corners, style))
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn<()> {
        match self {
            Canvas::Bitmap(backend) => backend.draw_text(text, style, lowered(at, &style.transform())),
            Canvas::Svg(backend) => backend.draw_text(text, style, at),
        }
    }

    fn blit_bitmap(&mut self, at: BackendCoord, size: (u32, u32), pixels: &[u8]) -> Drawn<()> {
        on!(self, backend => backend.blit_bitmap(at, size, pixels))
    }
}

/// Plotters draws the letters of a bitmap a little above their spot.
fn lowered((x, y): BackendCoord, transform: &FontTransform) -> BackendCoord {
    let (right, down) = transform.transform(0, 2);
    (x + right, y + down)
}

/// An element of a chart that says something to a pointer over it, where there can be one.
pub(crate) struct Told<'c> {
    element: DynElement<'static, Canvas<'c>, (f64, f64)>,
    tip: String,
}

/// Gives an element its tooltip.
pub(crate) fn told<'c>(
    element: impl IntoDynElement<'static, Canvas<'c>, (f64, f64)>,
    tip: impl Into<String>,
) -> Told<'c> {
    Told { element: element.into_dyn(), tip: tip.into() }
}

impl<'a> PointCollection<'a, (f64, f64)> for &'a Told<'_> {
    type Point = &'a (f64, f64);
    type IntoIter = &'a Vec<(f64, f64)>;

    fn point_iter(self) -> Self::IntoIter {
        self.element.point_iter()
    }
}

impl<'c> Drawable<Canvas<'c>> for Told<'c> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        points: I,
        canvas: &mut Canvas<'c>,
        parent: (u32, u32),
    ) -> Drawn<()> {
        if let Canvas::Svg(svg) = canvas {
            svg.tell(&self.tip);
        }
        let drawn = self.element.draw(points, canvas, parent);
        if let Canvas::Svg(svg) = canvas {
            svg.tell("");
        }
        drawn
    }
}
