//! The lab's own tables: traces in both shapes, and plans.

mod cells;
mod columns;
mod events;
mod header;
pub(crate) mod plan;
mod rows;
pub(crate) mod table;
pub(crate) mod write;
