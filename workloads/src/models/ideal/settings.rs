//! What may be set for a lowering, and why it may fail.

use planlab_graph::GraphError;

use crate::models::workspace::Workspace;

/// Where the gradients of parameters are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gradients {
    /// In memory of the caller: they are not buffers.
    #[default]
    External,
    /// In the plan: each is a buffer from its first write to the end.
    Planned,
}

/// Options of the lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The workspace of each convolution, forward and backward. Default: none.
    pub workspace: Workspace,
    /// Where the gradients of parameters are kept. Default: in memory of the caller.
    pub gradients: Gradients,
}

impl Default for Settings {
    fn default() -> Self {
        Self { workspace: Workspace::NONE, gradients: Gradients::External }
    }
}

/// Why a program cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A count does not fit 64 bits.
    #[error("call {call} ({function}): its {what} do not fit 64 bits")]
    TooLarge {
        /// The number of the call, from 1.
        call: usize,
        /// The function.
        function: &'static str,
        /// What was counted.
        what: &'static str,
    },
    /// The operations do not form a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}
