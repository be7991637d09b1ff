//! What PyTorch writes about its memory: snapshots of its allocator for GPUs, and traces of its profiler.

mod life;
mod lives;
mod profiler;
mod snapshot;

pub(crate) use life::BEFORE;
pub(crate) use profiler::READER as PROFILER;
pub(crate) use snapshot::READER as SNAPSHOT;
