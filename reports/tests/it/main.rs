//! Reports, as files.

mod offload;
mod offload_cases;
mod replays;
mod report;
