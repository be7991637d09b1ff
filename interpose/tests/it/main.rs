//! Runs programs under the library and without: the output is the same, and the statistics show what was served.

mod aside;
mod common;
mod memory;
mod plugged;
mod programs;
mod random;
mod rough;
mod trace;
