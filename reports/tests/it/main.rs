//! Reports, as files.

mod offload;
mod replays;
mod report;
