//! Traces, plans and schedules in the JSON of Chrome's trace viewer, which Perfetto (<https://ui.perfetto.dev>) opens.
//!
//! # References
//!
//! 1. Google, "Trace Event Format": metadata (`M`), counters (`C`), asynchronous slices (`b`, `e`), complete slices (`X`).

mod document;
mod schedule;
mod trace;

pub use schedule::write_schedule_perfetto;
pub use trace::write_perfetto;
