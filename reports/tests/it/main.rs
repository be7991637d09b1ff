//! Tests of reports, as files.

mod files;
mod frameworks;
mod offload;
mod offload_cases;
mod replays;
mod report;
