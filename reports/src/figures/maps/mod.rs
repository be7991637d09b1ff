//! Maps of one plan: where every buffer lies, and where memory is free.

mod classes;
mod fragmentation;
mod pixels;
mod placement;
mod sheet;

use planlab_dsa::{Instance, VerifiedPlan};

use super::chart::Entry;
use super::layout::Layout;
use super::raster::Raster;
use super::{ArenaFacts, Drawing, figure};
use pixels::Pixels;
use sheet::Sheet;

pub(crate) use classes::map_colours;
pub use fragmentation::fragmentation_map;
pub use placement::placement_map;

/// The options of a map.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MapOptions {
    /// Width of the picture in pixels.
    pub width: u32,
    /// Height of the picture in pixels; several arenas share it.
    pub height: u32,
    /// The address at the top of the picture in bytes; `None` for the plan's height, or the capacity if it is not far
    /// above. To compare two plans on one axis, give both the larger height. Several arenas have axes of their own.
    pub top: Option<u64>,
    /// The title above the picture.
    pub title: String,
}

impl Default for MapOptions {
    fn default() -> Self {
        Self { width: 1200, height: 640, top: None, title: String::new() }
    }
}

impl MapOptions {
    /// Sets the title. Default: no title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets the address at the top of the picture. Default: the plan's height.
    #[must_use]
    pub fn with_top(mut self, bytes: u64) -> Self {
        self.top = Some(bytes);
        self
    }

    /// Width and height of the map of one arena of several, large enough for a map.
    fn size(&self, arenas: u32) -> (u32, u32) {
        let least = if arenas > 1 { 240 } else { 200 };
        (self.width.max(320), (self.height / arenas.max(1)).max(least))
    }

    /// Sets the size in pixels, at least 320 x 200, and 240 high for each arena of several. Default: 1200 x 640.
    #[must_use]
    pub fn with_size(mut self, width: u32, height: u32) -> Self {
        (self.width, self.height) = (width, height);
        self
    }
}

/// Draws a map for each arena, one below the other on the same steps.
fn draw_arenas(
    name: &str,
    instance: &Instance,
    plan: Option<&VerifiedPlan<'_>>,
    options: &MapOptions,
    entries: Vec<Entry>,
    paint: impl Fn(&Layout, &ArenaFacts, Pixels) -> Raster,
) -> Drawing {
    let arenas = ArenaFacts::list(instance);
    let count = u32::try_from(arenas.len()).expect("an arena's number has 16 bits");
    let size = options.size(count);
    let title = if options.title.is_empty() { name } else { &options.title };
    let top = options.top.filter(|_| count == 1);
    let sheet = |(arena, layout): (ArenaFacts, Layout)| {
        let top = top.unwrap_or_else(|| arena.axis_top(layout.height));
        let raster = paint(&layout, &arena, Pixels::new(size, layout.horizon, top));
        (Sheet::new(title, size, top, (arena, &layout), plan.is_some()), raster)
    };
    let sheets: Vec<(Sheet, Raster)> =
        arenas.into_iter().zip(Layout::of_arenas(instance, plan)).map(sheet).collect();
    figure(title, (size.0, size.1.saturating_mul(count)), move |root| {
        let areas = (0..count).map(|number| root.clone().shrink((0, number * size.1), size));
        areas.zip(&sheets).try_for_each(|(area, (sheet, raster))| sheet.draw(&area, raster, &entries))
    })
}
