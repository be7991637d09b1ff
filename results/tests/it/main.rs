//! Stores, audits and diffs.

mod audit;
mod common;
mod diff;
mod instances;
mod replay;
mod scale;
mod store;
