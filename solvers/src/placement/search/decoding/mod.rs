//! Plans as orders: first fit in an order, changes of it that place again only what they may affect, and walks of such
//! changes.

mod decoder;
mod model;
mod moves;
mod probe;
#[cfg(test)]
mod tests;
mod walk;
mod walls;

pub(crate) use decoder::{Change, Decoder};
pub(crate) use model::{Model, Part};
pub(crate) use moves::{Moves, random_below};
pub use probe::DecoderProbe;
pub(crate) use walk::{Search, Walk, search_from};
