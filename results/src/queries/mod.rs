//! The tables of a report as queries over the [`Tables`] of a store. Each other module is one table or check.

mod cells;
mod findings;
mod gaps;
mod heights;
mod leaderboard;
mod listing;
mod planners;
pub mod scale;
mod summary;

pub use crate::tables::{COLUMNS, Cell, ColumnDoc, QueryAnswer, STACK, Tables};
pub use cells::{CellRow, Cells, GAP_SHIFT, PENALTY_GAP};
pub use gaps::{Gap, GroupGaps, PlannerGaps};
pub use heights::{Height, HeightPairs};
pub use leaderboard::{Board, Leader, Leaders};
pub use listing::{ListedRow, Listing};
pub use planners::{Planner, Variant};
pub use summary::{Failure, Limits};
