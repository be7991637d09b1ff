//! Maps of one plan: where every buffer lies, and where memory is free.

mod classes;
mod fragmentation;
mod pixels;
mod placement;
mod sheet;

pub(crate) use classes::map_colours;
pub(crate) use fragmentation::fragmentation_map;
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

    /// Width and height of the map of one arena of several, large enough for a map.
    fn arena_size(&self, arenas: u32) -> (u32, u32) {
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
