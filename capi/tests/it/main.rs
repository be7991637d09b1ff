//! The C library from outside.

mod call;
mod concurrent;
mod header;
mod hostile;
mod programs;
mod same_as_rust;
