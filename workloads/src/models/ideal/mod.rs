//! Lowers a [`Program`] to a graph of operations, independent of any framework.
//!
//! Each call is an operation that writes its output and the further data that its backward pass needs (`rules.rs` has
//! the table). Views are not operations: a reshaped or sliced value shares the storage of its source. In training, the
//! backward operations follow in reverse order of the calls, and each reads exactly what it needs. So a tensor lives
//! from its first write to its last read; no variable name keeps one longer, and no size is rounded up.
//!
//! ```text
//!  conv     x, W   -> y                  relu      y    -> z        z may overwrite y
//!  relu'    z, gz  -> gy                 weights'  x, gy -> gW      data'  W, gy -> gx
//! ```
//!
//! - Parameters and their gradients are external: the caller keeps them.
//! - The gradients of the weights come before that of the input, so that the input is free when the latter is computed.
//! - A sum passes its gradient on to both inputs, a concatenation passes on the parts; nothing is copied. The gradient
//!   of a slice is written into that of its source.
//! - The gradient of a value with several readers is accumulated in the first term, unless another value has its
//!   gradient in the same tensor; then in the later term.
//! - The result (loss or prediction) is kept to the end.
//!
//! # Inference
//!
//! The graph of [`Mode::Infer`] is not the forward half of the graph of [`Mode::Train`]. It lacks
//!
//! - the labels, the loss, the accuracy, and what only the loss needs: the auxiliary classifiers of GoogLeNet and
//!   Inception-v3, the discriminator of DCGAN;
//! - dropout, as an operation and with its mask;
//! - everything that is kept for the backward pass: the statistics of normalisations, the probabilities of a
//!   classification's loss, the gates of an LSTM (the cell state of each sequence stays, as one tensor a layer).
//!
//! All other operations are those of training. Among them is batch normalisation, which then uses stored statistics.
//! Since no backward operation reads activations, each is free after its last forward reader, and more permissions to
//! overwrite an input can be used. "Forward only" in the memory-cost table of MXNet's documentation is another graph:
//! the same symbol as in training, bound without gradients. It keeps the loss, dropout with its mask, and the means and
//! variances that batch normalisation returns. For the nets here, that column is this inference graph.
//!
//! # Deviations
//!
//! - Reshape also stands for a permutation of the axes (the heads of attention): matrix products accept strides.
//! - Each function is one operation, as in a library of kernels. Nothing is fused across functions, attention keeps its
//!   scores, and normalisation in training does not overwrite its input, which its backward pass reads.
//! - The running statistics of batch normalisation, the masks of attention and the angles of rotary embeddings are
//!   constants that take no memory here. Indices and labels take 4 bytes each.
//! - The gradient of an LSTM's last cell states is added to that of its output and takes no memory of its own.
//!
//! # Complexity
//!
//! O(calls + reads).

mod backward;
mod forward;
mod gradients;
mod lowering;
mod storage;
#[cfg(test)]
mod tests;

use planlab_graph::Graph;

use self::lowering::{Costed, Lowering};
use super::net::{Mode, Program};
use super::workspace::Workspace;

pub use lowering::LowerError;
pub(super) use lowering::unique;

/// Lowers a program to a graph, with this workspace for each convolution, forward and backward.
///
/// # Errors
///
/// [`LowerError::TooLarge`] if the FLOPs or the workspace of a call do not fit 64 bits.
pub fn lower_program(program: &Program, workspace: Workspace) -> Result<Graph, LowerError> {
    let mut lowering = Lowering::new(program, workspace);
    let calls: Vec<Costed<'_>> = program
        .calls()
        .enumerate()
        .map(|(at, call)| lowering.cost_call(at, call))
        .collect::<Result<_, _>>()?;
    for costed in &calls {
        lowering.lower_forward(costed);
    }
    if program.mode == Mode::Train {
        lowering.add_loss_gradient();
        for costed in calls.iter().rev() {
            lowering.lower_backward(costed);
        }
    }
    Ok(lowering.graph.build()?)
}
