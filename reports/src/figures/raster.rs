//! A raster of pixels, for maps: a chart could not hold a hundred thousand rectangles.

use plotters::style::RGBColor;

use super::palette::shade_color;
use crate::ReportError;

/// A picture of pixels, row by row from the upper left corner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raster {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) rgb: Vec<u8>,
}

impl Raster {
    pub(crate) fn new(width: usize, height: usize, paper: RGBColor) -> Self {
        Self { width, height, rgb: [paper.0, paper.1, paper.2].repeat(width * height) }
    }

    /// Width and height in plotters' type.
    pub(super) fn size(&self) -> (u32, u32) {
        let length = |pixels: usize| u32::try_from(pixels).unwrap_or(u32::MAX);
        (length(self.width), length(self.height))
    }

    pub(crate) fn set_pixel(&mut self, x: usize, y: usize, color: RGBColor) {
        if x < self.width && y < self.height {
            let at = 3 * (y * self.width + x);
            self.rgb[at..at + 3].copy_from_slice(&[color.0, color.1, color.2]);
        }
    }

    /// Fills the pixels from `from` up to, not including, `to`; parts outside the picture are cut off.
    pub(crate) fn fill_box(&mut self, from: (usize, usize), to: (usize, usize), color: RGBColor) {
        let (left, right) = (from.0.min(self.width), to.0.min(self.width));
        for y in from.1..to.1.min(self.height) {
            let row = 3 * (y * self.width + left)..3 * (y * self.width + right.max(left));
            for pixel in self.rgb[row].chunks_exact_mut(3) {
                pixel.copy_from_slice(&[color.0, color.1, color.2]);
            }
        }
    }

    /// Fills like [`Self::fill_box`], with a pale line at the left and below if there is room, so that neighbours stay apart.
    pub(crate) fn fill_with_edge(&mut self, from: (usize, usize), to: (usize, usize), color: RGBColor) {
        self.fill_box(from, to, color);
        if to.0 > from.0 + 3 && to.1 > from.1 + 3 {
            let below = to.1.saturating_sub(1);
            self.fill_box((from.0, below), to, shade_color(color, 0.5));
            self.fill_box(from, (from.0 + 1, to.1), shade_color(color, 0.5));
        }
    }

    /// Draws the outermost pixels of a box.
    pub(crate) fn draw_edge(&mut self, from: (usize, usize), to: (usize, usize), color: RGBColor) {
        let (right, below) = (to.0.saturating_sub(1), to.1.saturating_sub(1));
        self.fill_box(from, (to.0, from.1 + 1), color);
        self.fill_box((from.0, below), to, color);
        self.fill_box(from, (from.0 + 1, to.1), color);
        self.fill_box((right, from.1), to, color);
    }

    #[cfg(test)]
    pub(crate) fn color(&self, x: usize, y: usize) -> RGBColor {
        let at = 3 * (y * self.width + x);
        RGBColor(self.rgb[at], self.rgb[at + 1], self.rgb[at + 2])
    }

    pub(crate) fn to_png(&self) -> Result<Vec<u8>, ReportError> {
        let failed = |reason: String| ReportError::Draw { what: "a map".to_owned(), reason };
        let (width, height) = self.size();
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        // Flat colours compress best without a filter.
        encoder.set_filter(png::FilterType::NoFilter);
        encoder.set_compression(png::Compression::Default);
        let mut writer = encoder.write_header().map_err(|error| failed(error.to_string()))?;
        writer.write_image_data(&self.rgb).map_err(|error| failed(error.to_string()))?;
        writer.finish().map_err(|error| failed(error.to_string()))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_cut_off_at_the_border() {
        let (paper, ink) = (RGBColor(0, 0, 0), RGBColor(9, 9, 9));
        let mut raster = Raster::new(4, 3, paper);
        raster.fill_box((2, 1), (9, 9), ink);
        let filled = raster.rgb.chunks(3).filter(|pixel| *pixel == [9, 9, 9]).count();
        assert_eq!(filled, 4);
        raster.fill_box((5, 0), (2, 3), ink);
        assert_eq!(raster.rgb.chunks(3).filter(|pixel| *pixel == [9, 9, 9]).count(), 4);
    }

    #[test]
    fn a_png_holds_the_pixels() {
        let mut raster = Raster::new(3, 2, RGBColor(1, 2, 3));
        raster.set_pixel(2, 1, RGBColor(7, 8, 9));
        let bytes = raster.to_png().expect("packs");
        let mut reader = png::Decoder::new(&bytes[..]).read_info().expect("is a PNG");
        let mut pixels = vec![0; reader.output_buffer_size()];
        reader.next_frame(&mut pixels).expect("has a picture");
        assert_eq!(pixels, raster.rgb);
    }
}
