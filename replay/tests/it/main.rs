//! Replays on real memory.

mod host;
mod hostile;
mod planned;
