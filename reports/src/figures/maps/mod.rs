//! Maps of one plan: where every buffer lies, and where memory is free.

mod arenas;
mod classes;
mod fragmentation;
mod options;
mod pixels;
mod placement;
mod sheet;

pub(crate) use classes::map_colours;
pub(crate) use fragmentation::fragmentation_map;
pub use options::MapOptions;
pub use placement::placement_map;
