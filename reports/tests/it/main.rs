//! Reports, as files.

mod replays;
mod report;
