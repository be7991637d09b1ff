//! Programs under the library, and without: what they print is the same, and the statistics say what was served.

mod common;
mod plugged;
mod programs;
mod random;
mod rough;
mod trace;
