//! Planners that come with a proof of how far from the load they can end, or descend from one.

pub mod boxing;
mod gergov;

pub use boxing::{Boxing, Shelves};
pub use gergov::Gergov;
