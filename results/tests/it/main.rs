//! Stores, audits and diffs.

mod audit;
mod common;
mod diff;
mod instances;
#[cfg(feature = "parquet")]
mod records;
mod queries;
mod replay;
mod scale;
mod store;
