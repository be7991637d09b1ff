//! Blocks of memory shared by reference counts, as MXNet does: operations take blocks from a free list and give them back.

mod block_sharing;
mod colours;
mod free_lists;
mod graph;
mod memory_cost;
mod mxnet;
mod patent;

pub use block_sharing::{BlockSharing, SharedBlocks};
pub use graph::{Entry, InPlaceEntries, Node, SharingGraph, SharingGraphError};
pub use memory_cost::{MemoryCost, Strategy, entry_lifetimes, memory_cost};
pub use mxnet::{Means, MxnetSharing};
pub use patent::PatentFreeList;
