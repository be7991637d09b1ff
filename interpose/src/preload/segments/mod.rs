//! Segments: memory for plans, in which any thread may look up an address; what the program does to its pages; and how
//! these go back when nobody uses them.

pub(super) mod attributes;
pub(super) mod check;
mod confine;
pub(super) mod entry;
pub(super) mod idle;
mod marks;
pub(super) mod pages;
pub(super) mod table;
