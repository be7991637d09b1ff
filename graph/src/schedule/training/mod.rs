//! The problem of a scheduler: a net in training, on a machine.

mod machine;
mod net;
mod parts;
mod problem;
mod times;
mod workspace;

pub use machine::Machine;
#[cfg(test)]
pub(crate) use net::tests::shortcut_net;
pub use net::{NetError, TrainingNet};
pub(crate) use parts::EXACT;
pub use parts::{FeatureMap, Function, FunctionId, FunctionKind, Kernel, MapId, Work};
pub use problem::SchedulingProblem;
pub(crate) use times::is_time;
pub use times::{Times, TimesError};
pub use workspace::{ConvolutionAlgorithm, ConvolutionChoice, WorkspaceLimitError};
