//! Planners that solve a flow problem.

mod chains;
mod mincost_flow;

pub use mincost_flow::MincostFlow;
