//! The record, the crash-safe store, and the statistics.

mod record;

pub use record::{Lane, Point, Provenance, Record, SCHEMA, Status};
