//! Tests of schedules: the figures of the published methods on ResNet-50, and the validity of all results.

mod added_frees;
mod bounds;
mod chains;
mod checkpoint_nets;
pub(crate) mod checkpoints;
mod contract;
mod exact;
mod golden;
mod joint;
mod measured;
mod memory;
mod mutants;
mod mutations;
pub(crate) mod nets;
#[cfg(feature = "mip")]
mod offmate;
mod online;
mod references;
mod table;
