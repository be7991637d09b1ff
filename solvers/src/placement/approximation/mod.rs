//! Planners with a proven ratio to the load, or descended from one.

pub mod boxing;
mod gergov;

pub use boxing::{Boxing, Shelves};
pub use gergov::Gergov;
