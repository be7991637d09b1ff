//! Search trees over time: what is live, placed or highest in a run of steps.

mod adjacency;
mod columns;
mod first_at_most;
mod neighbours;
mod occupancy;
mod parts;
mod range_max;
mod tops;

pub(crate) use adjacency::Adjacency;
pub(crate) use columns::Columns;
pub(crate) use first_at_most::FirstAtMost;
pub(crate) use neighbours::Neighbours;
pub(crate) use occupancy::{Blocked, Occupancy, Room, Span};
pub(crate) use parts::parts;
pub(crate) use range_max::RangeMax;
pub(crate) use tops::Tops;
