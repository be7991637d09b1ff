//! The baseline that every planner has to beat.

mod bump;

pub use bump::Bump;
