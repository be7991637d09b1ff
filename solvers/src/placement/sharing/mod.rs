//! Planners that share whole objects: an object holds one buffer at a time.
//!
//! Memory that is not addressed byte by byte (textures on a GPU) needs such plans, and so do frameworks that hand
//! out blocks of their own. The height is the sum of the sizes of the objects: no plan here can put two small
//! buffers into the place of a large one.

mod blocks;
mod greedy;
mod in_order;
mod objects;
mod size_distance;

pub use blocks::{
    BlockSharing, Entry, InPlaceEntries, Means, MemoryCost, MxnetSharing, Node, PatentFreeList, SharedBlocks,
    SharingGraph, SharingGraphError, Strategy, entry_lifetimes, memory_cost,
};
pub use greedy::SharedObjects;
pub use in_order::SharedObjectsInOrder;
pub(crate) use objects::{HONOURS, stack_objects};
pub use size_distance::SharedObjectsSizeDistance;
