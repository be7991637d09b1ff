//! Planners that share whole objects: an object holds one buffer at a time.
//!
//! Memory that is not addressed byte by byte (textures on a GPU) needs such plans, and so do frameworks that hand
//! out blocks of their own. The height is the sum of the sizes of the objects: no plan here can put two small
//! buffers into the place of a large one.

mod block_sharing;
mod blocks;
mod colours;
mod graph;
mod greedy;
mod in_order;
mod memory_cost;
mod mxnet;
mod nearest;
mod objects;
mod patent;
mod size_distance;
mod stages;

pub use block_sharing::{BlockSharing, SharedBlocks};
pub use graph::{Entry, InPlaceEntries, Node, SharingGraph, SharingGraphError};
pub use greedy::SharedObjects;
pub use in_order::SharedObjectsInOrder;
pub use memory_cost::{MemoryCost, Strategy, lifetimes, memory_cost};
pub use mxnet::{Means, MxnetSharing};
pub(crate) use objects::{HONOURS, stacked};
pub use patent::PatentFreeList;
pub use size_distance::SharedObjectsSizeDistance;
