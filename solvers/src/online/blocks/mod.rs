//! What pools are made of: the memory of a device, and the blocks that it is cut into.

mod device;
mod exact_size;
mod heap;
mod lists;
mod one_region;

pub(super) use device::{Device, UNIT, pool};
pub(super) use exact_size::{ExactSize, exact_size_pool};
pub(super) use heap::{Block, BlockId, Heap, Index, State};
pub(super) use lists::Lists;
pub(super) use one_region::{LIMIT, OneRegion};
