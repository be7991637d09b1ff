//! Replays on real memory.

mod host;
mod planned;
