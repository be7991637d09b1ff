//! The problem: buffers, their rules, the validated instance, and how many bytes are in use at each step.

mod buffer;
mod builder;
mod columns;
mod error;
mod instance;
mod labels;
pub(crate) mod load;
mod rules;
mod scope;
pub(crate) mod sweep;

pub use buffer::{Buffer, Pause, Piece};
pub use builder::InstanceBuilder;
pub use columns::{ColumnError, Columns};
pub use error::InstanceError;
pub use instance::{Instance, greatest_common_divisor};
pub use labels::{Label, Labels};
pub use rules::{Arena, InPlace, KeepApart};
pub use scope::Scope;
