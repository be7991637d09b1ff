//! The files of graphs, nets and schedules, and the pictures of graphs.

mod dot;
mod graph_jsonl;
mod lines;
mod net_jsonl;
mod profiles;
mod schedule_jsonl;

pub use dot::write_dot;
pub use graph_jsonl::{read_jsonl, write_jsonl};
pub use profiles::{MeasuredNet, ProfileError, ProfileFormat};
