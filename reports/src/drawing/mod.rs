//! Pictures as lists of marks, written as SVG or painted as PNG.
//!
//! A plot is a function that makes a [`Drawing`]; it knows nothing of files. Marks name inks (foreground,
//! grid, a colour), so that an SVG in a page follows the page's light or dark colours.

pub(crate) mod axis;
pub(crate) mod palette;
mod png;
pub(crate) mod raster;
mod svg;

use palette::Ink;
use raster::Raster;

use crate::ReportError;

/// A point in pixels, from the upper left corner.
pub(crate) type Spot = (f64, f64);

/// Which part of a text stands at its spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The shape of a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

/// One thing in a picture.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    Line { points: Vec<Spot>, ink: Ink, width: f64, dashed: bool },
    Area { points: Vec<Spot>, ink: Ink, opacity: f64 },
    Rect { corner: Spot, size: Spot, ink: Ink, opacity: f64, tip: String },
    Dot { at: Spot, ink: Ink, shape: Shape, radius: f64, tip: String },
    Text { at: Spot, text: String, anchor: Anchor, size: f64, ink: Ink, turned: bool },
    Raster { corner: Spot, raster: Raster },
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Drawing {
    title: String,
    width: u32,
    height: u32,
    marks: Vec<Mark>,
}

impl Drawing {
    pub(crate) fn new(title: impl Into<String>, width: u32, height: u32) -> Self {
        Self { title: title.into(), width, height, marks: Vec::new() }
    }

    /// What the picture shows.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Width and height in pixels.
    #[must_use]
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The picture as a file of its own, in light colours.
    ///
    /// # Errors
    ///
    /// [`ReportError::Draw`] where a raster in it cannot be packed.
    pub fn to_svg(&self) -> Result<String, ReportError> {
        svg::write(self, svg::Style::Own)
    }

    /// The picture as part of a page, which gives the colours.
    ///
    /// # Errors
    ///
    /// As [`Self::to_svg`].
    pub fn to_inline_svg(&self) -> Result<String, ReportError> {
        svg::write(self, svg::Style::Page)
    }

    /// The picture as the bytes of a PNG file, in light colours.
    ///
    /// # Errors
    ///
    /// [`ReportError::Draw`] where the painter fails.
    pub fn to_png(&self) -> Result<Vec<u8>, ReportError> {
        png::paint(self)
    }

    /// Makes the picture wider, never narrower.
    pub(crate) fn widen(&mut self, width: u32) {
        self.width = self.width.max(width);
    }

    #[cfg(test)]
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    pub(crate) fn push(&mut self, mark: Mark) {
        self.marks.push(mark);
    }

    pub(crate) fn line(&mut self, points: impl Into<Vec<Spot>>, ink: Ink, width: f64) {
        self.marks.push(Mark::Line { points: points.into(), ink, width, dashed: false });
    }

    pub(crate) fn dashed(&mut self, points: impl Into<Vec<Spot>>, ink: Ink, width: f64) {
        self.marks.push(Mark::Line { points: points.into(), ink, width, dashed: true });
    }

    pub(crate) fn rect(&mut self, corner: Spot, size: Spot, ink: Ink, tip: impl Into<String>) {
        self.marks.push(Mark::Rect { corner, size, ink, opacity: 1.0, tip: tip.into() });
    }

    pub(crate) fn text(&mut self, at: Spot, text: impl Into<String>, anchor: Anchor) {
        self.text_of(at, text, anchor, 12.0, Ink::Text);
    }

    pub(crate) fn text_of(&mut self, at: Spot, text: impl Into<String>, anchor: Anchor, size: f64, ink: Ink) {
        self.marks.push(Mark::Text { at, text: text.into(), anchor, size, ink, turned: false });
    }

    fn failed(&self, reason: &impl ToString) -> ReportError {
        ReportError::Draw { what: self.title.clone(), reason: reason.to_string() }
    }
}
