//! Tests of stores, audits and diffs.

mod audit;
mod cells;
mod common;
mod diff;
mod frameworks;
mod instances;
mod queries;
#[cfg(feature = "parquet")]
mod records;
mod replay;
mod rows;
mod scale;
mod schedules;
mod store;
