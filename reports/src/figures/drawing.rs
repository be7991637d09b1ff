//! A figure: a closure over a drawing area of plotters ([`figure`]). It runs on plotters' bitmap backend for a PNG, and on
//! our own backend for SVG.

use std::sync::Arc;

use plotters::backend::BitMapBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};

use super::backend::{self, Canvas, Failure, Svg};
use super::palette;
use super::raster::Raster;
use crate::ReportError;

pub(crate) type Area<'a> = DrawingArea<Canvas<'a>, Shift>;
pub(crate) type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<Failure>>;
type Paint = dyn Fn(&Area<'_>) -> Drawn + Send + Sync;

/// A figure, as a function that draws it.
#[derive(Clone)]
pub struct Drawing {
    title: String,
    size: (u32, u32),
    paint: Arc<Paint>,
}

/// A figure of the given size in pixels. The closure draws it with plotters, in the same way for every kind of file:
///
/// ```ignore
/// figure("Heights", (900, 320), move |root| {
///     let area = legend(root, 756, 18, &entries)?;
///     let mut chart = chart(&area, Room::default(), &Axis::counts("step", 100.0), &Axis::bytes("height", 4096.0))?;
///     chart.draw_series(LineSeries::new(points.clone(), palette::BLUE.stroke_width(2)))?;
///     chart.draw_series(points.iter().map(|at| told(Marker::new(*at, Shape::Circle, 3, palette::BLUE), "a tip")))?;
///     Ok(())
/// })
/// ```
pub(crate) fn figure(
    title: impl Into<String>,
    size: (u32, u32),
    paint: impl Fn(&Area<'_>) -> Drawn + Send + Sync + 'static,
) -> Drawing {
    Drawing { title: title.into(), size, paint: Arc::new(paint) }
}

impl Drawing {
    /// What the picture shows.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Width and height in pixels.
    #[must_use]
    pub const fn size(&self) -> (u32, u32) {
        self.size
    }

    /// The picture as a standalone file, in light colours.
    ///
    /// # Errors
    ///
    /// [`ReportError::Draw`] if drawing fails.
    pub fn to_svg(&self) -> Result<String, ReportError> {
        let namespace = " xmlns=\"http://www.w3.org/2000/svg\"";
        self.draw_svg(namespace, &backend::light_style(self.size))
    }

    /// The picture as part of a page, in the colours of the page.
    ///
    /// # Errors
    ///
    /// Like [`Self::to_svg`].
    pub fn to_inline_svg(&self) -> Result<String, ReportError> {
        // A page already implies the format; a standalone file has to name it.
        self.draw_svg("", "")
    }

    fn draw_svg(&self, attributes: &str, style: &str) -> Result<String, ReportError> {
        let mut text = backend::open_svg(&self.title, self.size, attributes) + style;
        self.draw_on(Canvas::Svg(Svg::new(&mut text, self.size)))?;
        text.push_str("</svg>");
        Ok(text)
    }

    /// The picture as the bytes of a PNG file, in light colours.
    ///
    /// # Errors
    ///
    /// [`ReportError::Draw`] if drawing fails.
    pub fn to_png(&self) -> Result<Vec<u8>, ReportError> {
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        let mut raster = Raster::new(width, height, palette::PAPER);
        self.draw_on(Canvas::Bitmap(BitMapBackend::with_buffer(&mut raster.rgb, self.size)))?;
        raster.to_png()
    }

    fn draw_on(&self, canvas: Canvas<'_>) -> Result<(), ReportError> {
        let failed = |reason: String| ReportError::Draw { what: self.title.clone(), reason };
        if !backend::has_font() {
            return Err(failed("the embedded font cannot be read".to_owned()));
        }
        let root = canvas.into_drawing_area();
        (self.paint)(&root).and_then(|()| root.present()).map_err(|error| failed(error.to_string()))
    }
}

impl std::fmt::Debug for Drawing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Drawing").field("title", &self.title).field("size", &self.size).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::chart::{Marker, Room, draw_chart, draw_line, told};
    use crate::figures::coord::Axis;
    use crate::figures::palette::Shape;
    use plotters::element::Circle;
    use plotters::style::{Color, RGBColor};

    fn sample() -> Drawing {
        figure("a<b", (300, 200), |root| {
            let mut chart =
                draw_chart(root, Room::default(), &Axis::counts("step", 8.0), &Axis::shares("share", 1.0))?;
            for dashed in [false, true] {
                draw_line(&mut chart, vec![(0.0, 0.0), (8.0, 1.0)], palette::BLUE.stroke_width(2), dashed)?;
            }
            chart.draw_series([told(Circle::new((4.0, 0.5), 6, palette::RED.filled()), "half < \"all\"")])?;
            chart.draw_series([Marker::new((8.0, 1.0), Shape::Diamond, 3, palette::GREEN)])?;
            Ok(())
        })
    }

    #[test]
    fn a_page_chooses_the_colours_of_axes_and_a_file_brings_its_own() {
        let (page, file) = (sample().to_inline_svg().expect("draws"), sample().to_svg().expect("draws"));
        for class in ["ink-text-fill", "ink-muted-stroke", "ink-grid-stroke"] {
            assert!(page.contains(&format!("class=\"{class}\"")), "{class}: {page}");
            assert!(file.contains(&format!(".{class}{{")), "{class}: {file}");
        }
        for light in [palette::TEXT, palette::MUTED, palette::GRID, palette::PAPER] {
            assert!(!page.contains(&palette::hex_text(light)), "{page}");
        }
        assert!(page.contains("aria-label=\"a&lt;b\"") && !page.contains("xmlns"), "{page}");
        assert!(page.contains("<title>half &lt; &quot;all&quot;</title></circle>"), "{page}");
        assert!(!file.contains("font-face") && file.contains(">step<"), "letters are letters: {file}");
    }

    #[test]
    fn strokes_of_one_look_are_one_path() {
        let page = sample().to_inline_svg().expect("draws");
        let blue = format!("stroke=\"{}\"", palette::hex_text(palette::BLUE));
        assert_eq!(page.matches(&blue).count(), 1, "{page}");
    }

    #[test]
    fn a_bitmap_shows_the_same() {
        let bytes = sample().to_png().expect("draws");
        let mut reader = png::Decoder::new(&bytes[..]).read_info().expect("is a PNG");
        let mut pixels = vec![0; reader.output_buffer_size()];
        reader.next_frame(&mut pixels).expect("has a picture");
        let has = |color: RGBColor| pixels.chunks(3).any(|pixel| pixel == [color.0, color.1, color.2]);
        let (all, other) = ([palette::RED, palette::GREEN, palette::BLUE, palette::MUTED], palette::ORANGE);
        assert!(all.into_iter().all(has) && !has(other));
        assert_eq!(bytes, sample().to_png().expect("draws"), "the same bytes again");
    }
}
