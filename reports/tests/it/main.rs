//! Reports, as files.

mod frameworks;
mod offload;
mod replays;
mod report;
