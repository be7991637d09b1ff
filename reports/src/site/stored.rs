//! The instances of a store, and the drawings of plans and nets, as pages know them.

use planlab_results::{Record, WorkloadKey};

use super::page::Piece;
use super::parts::viewer::ViewerPart;
use crate::figures::Drawing;

/// An instance of the store.
pub(crate) struct Stored {
    pub(crate) steps: u32,
    /// Sum of the sizes, bytes.
    pub(crate) total: u64,
    /// Permissions to overwrite in place.
    pub(crate) in_place: usize,
    /// Each arena and its load, if there are several.
    pub(crate) arenas: Vec<(String, String)>,
    pub(crate) load_curve: Drawing,
    pub(crate) sizes: Drawing,
    pub(crate) mapped: Vec<Mapped>,
    /// All mapped plans on the same axes, unless there are pictures instead.
    pub(crate) viewer: Option<ViewerPart>,
}

/// A plan with maps; file names are relative to the report's folder.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    /// The cell's index in the model.
    pub(crate) cell: usize,
    /// Its first row, with all fields.
    pub(crate) row: Record,
    /// The cell's page.
    pub(crate) page: String,
    pub(crate) maps: Maps,
    /// Why the plan is not lower.
    pub(crate) why: Vec<Piece>,
    /// What the colours of pictures mean: `colour by category`.
    pub(crate) colours: &'static str,
}

impl Mapped {
    /// What the placement map shows.
    pub(crate) fn map_caption(&self) -> String {
        format!("Placement: time across, address up, {}.", self.colours)
    }
}

/// How a plan is shown.
#[derive(Clone, Debug)]
pub(crate) enum Maps {
    Viewer(ViewerPart),
    Pictures {
        placement: String,
        /// The fragmentation map.
        free: String,
        /// In pixels.
        size: (u32, u32),
    },
}

/// A drawing of a net.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) key: WorkloadKey,
    /// The file, relative to the report's folder.
    pub(crate) file: String,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
}
