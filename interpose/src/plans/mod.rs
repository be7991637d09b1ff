//! Planned rounds on memory: the plans of a thread, their segments, and the ground that provides these.

mod course;
mod ground;
pub(crate) mod pages;
mod shelf;

pub(crate) use course::Step;
pub(crate) use shelf::Shelf;

pub use ground::{Ground, Segment};
pub use pages::Pages;
