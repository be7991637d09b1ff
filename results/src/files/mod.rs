//! The files of a store: journals, shards, and the manifest that lists the shards.

pub(crate) mod disk;
#[cfg(feature = "parquet")]
pub mod frame;
pub(crate) mod journal;
mod latest;
pub(crate) mod manifest;
pub(crate) mod shards;

pub(crate) use journal::Journal;
pub(crate) use latest::Latest;
pub(crate) use manifest::Manifest;
pub use manifest::{MissingShard, missing_shards};
