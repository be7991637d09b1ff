//! A backend that is plotters' bitmap or our SVG, so that a figure is one closure and is compiled once.

use plotters::backend::BitMapBackend;
use plotters::element::{Drawable, DynElement, IntoDynElement, PointCollection};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, FontTransform,
};

use super::svg::{Drawn, Failure, Svg, path_data};

/// A plotters backend that is one of two.
pub(crate) enum Canvas<'a> {
    Bitmap(BitMapBackend<'a>),
    Svg(Svg<'a>),
}

impl DrawingBackend for Canvas<'_> {
    type ErrorType = Failure;

    fn get_size(&self) -> (u32, u32) {
        match self {
            Self::Bitmap(bitmap) => bitmap.get_size(),
            Self::Svg(svg) => svg.size,
        }
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        match self {
            Self::Bitmap(bitmap) => bitmap.present(),
            Self::Svg(svg) => {
                svg.end_path();
                Ok(())
            }
        }
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> Drawn {
        match self {
            Self::Bitmap(bitmap) => bitmap.draw_pixel(at, color),
            Self::Svg(svg) => svg.draw_rect(at, at, color),
        }
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        match self {
            _ if style.color().alpha == 0.0 => Ok(()),
            Self::Bitmap(bitmap) => bitmap.draw_rect(from, to, style, fill),
            Self::Svg(svg) if fill => svg.draw_rect(from, to, style.color()),
            Self::Svg(_) => self.draw_path([from, (to.0, from.1), to, (from.0, to.1), from], style),
        }
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        match self {
            _ if style.color().alpha == 0.0 => Ok(()),
            Self::Bitmap(bitmap) => bitmap.draw_path(path, style),
            Self::Svg(svg) => svg.draw_stroke(path, style.color(), style.stroke_width()),
        }
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        match self {
            Self::Bitmap(bitmap) => bitmap.draw_circle((x, y), radius, style, fill),
            Self::Svg(svg) => {
                // Fill an outline too: it is the middle of an error bar, which is never larger than a mark.
                let place = format!("cx=\"{x}\" cy=\"{y}\" r=\"{radius}.5\"");
                svg.draw_element("circle", &place, style.color())
            }
        }
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        match self {
            Self::Bitmap(bitmap) => bitmap.fill_polygon(corners, style),
            Self::Svg(svg) => {
                let outline = format!("d=\"{}Z\"", path_data(corners));
                svg.draw_element("path", &outline, style.color())
            }
        }
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        match self {
            _ if text.is_empty() => Ok(()),
            Self::Bitmap(bitmap) => bitmap.draw_text(text, style, lowered(at, &style.transform())),
            Self::Svg(svg) => svg.draw_text_at(text, style, at),
        }
    }

    fn blit_bitmap(&mut self, at: BackendCoord, size: (u32, u32), pixels: &[u8]) -> Drawn {
        match self {
            Self::Bitmap(bitmap) => bitmap.blit_bitmap(at, size, pixels),
            Self::Svg(svg) => svg.draw_image(at, size, pixels),
        }
    }
}

/// Plotters draws the text of a bitmap slightly too high.
fn lowered((x, y): BackendCoord, transform: &FontTransform) -> BackendCoord {
    let (right, down) = transform.transform(0, 2);
    (x + right, y + down)
}

/// An element of a chart with a tooltip, if the backend supports one.
pub(crate) struct WithTooltip<'c> {
    element: DynElement<'static, Canvas<'c>, (f64, f64)>,
    tip: String,
}

/// Gives an element its tooltip.
pub(crate) fn told<'c>(
    element: impl IntoDynElement<'static, Canvas<'c>, (f64, f64)>,
    tip: impl Into<String>,
) -> WithTooltip<'c> {
    WithTooltip { element: element.into_dyn(), tip: tip.into() }
}

impl<'a> PointCollection<'a, (f64, f64)> for &'a WithTooltip<'_> {
    type Point = &'a (f64, f64);
    type IntoIter = &'a Vec<(f64, f64)>;

    fn point_iter(self) -> Self::IntoIter {
        self.element.point_iter()
    }
}

impl<'c> Drawable<Canvas<'c>> for WithTooltip<'c> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        points: I,
        canvas: &mut Canvas<'c>,
        parent: (u32, u32),
    ) -> Drawn {
        if let Canvas::Svg(svg) = canvas {
            svg.tip.clone_from(&self.tip);
        }
        let drawn = self.element.draw(points, canvas, parent);
        if let Canvas::Svg(svg) = canvas {
            svg.tip.clear();
        }
        drawn
    }
}
