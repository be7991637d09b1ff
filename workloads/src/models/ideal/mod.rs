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
//! - Parameters and their gradients are external: the caller keeps them. [`Gradients::Planned`] turns gradients into
//!   buffers.
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
mod storage;
#[cfg(test)]
mod tests;

use planlab_dsa::Bytes;
use planlab_graph::{Graph, GraphBuilder, GraphError, Tensor, TensorId};

use self::gradients::Gradient;
use self::storage::{Part, Storage};
use super::net::{Call, Function, Mode, Program, ValueId, elements};
use super::rules::{self, FLOAT};
use super::workspace::Workspace;

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

/// Lowers a program to a graph.
///
/// # Errors
///
/// [`LowerError::TooLarge`] if the FLOPs or the workspace of a call do not fit 64 bits.
pub fn lower(program: &Program, settings: Settings) -> Result<Graph, LowerError> {
    let mut lowering = Lowering::new(program, settings);
    let calls: Vec<Costed<'_>> =
        program.calls().enumerate().map(|(at, call)| lowering.cost(at, call)).collect::<Result<_, _>>()?;
    for costed in &calls {
        lowering.forward(costed);
    }
    if program.mode == Mode::Train {
        lowering.seed();
        for costed in calls.iter().rev() {
            lowering.backward(costed);
        }
    }
    Ok(lowering.graph.build()?)
}

/// A call with its costs.
struct Costed<'p> {
    call: &'p Call,
    name: String,
    flops: u64,
    workspace: Bytes,
}

struct Lowering<'p> {
    program: &'p Program,
    settings: Settings,
    graph: GraphBuilder,
    /// The value whose storage holds the result.
    result: ValueId,
    /// By value: inputs, and outputs of calls that have been lowered.
    storages: Vec<Option<Storage>>,
    /// By value: those with a storage of their own.
    tensors: Vec<Option<TensorId>>,
    names: Vec<String>,
    needs_gradient: Vec<bool>,
    saved: Vec<Option<TensorId>>,
    gradients: Vec<Option<Gradient>>,
    /// By value: the number of gradient tensors so far.
    gradient_tensors: Vec<u32>,
    parameters: Vec<Option<TensorId>>,
    parameter_names: Vec<String>,
    parameter_gradients: Vec<Option<TensorId>>,
}

impl<'p> Lowering<'p> {
    fn new(program: &'p Program, settings: Settings) -> Self {
        let (values, parameters) = (program.shapes.len(), program.parameters.len());
        let mut lowering = Self {
            program,
            settings,
            graph: Graph::builder(),
            result: root(program, program.result),
            storages: vec![None; values],
            tensors: vec![None; values],
            names: vec![String::new(); values],
            needs_gradient: vec![false; values],
            saved: vec![None; values],
            gradients: (0..values).map(|_| None).collect(),
            gradient_tensors: vec![0; values],
            parameters: vec![None; parameters],
            parameter_names: vec![String::new(); parameters],
            parameter_gradients: vec![None; parameters],
        };
        for (number, &input) in program.inputs.iter().enumerate() {
            lowering.own(input, format!("input{number}"), "input");
        }
        lowering
    }

    fn cost(&self, at: usize, call: &'p Call) -> Result<Costed<'p>, LowerError> {
        let function = call.function.name();
        let too_large = |what| LowerError::TooLarge { call: at + 1, function, what };
        let flops = rules::flops(self.program, call).filter(|flops| flops.checked_mul(2).is_some());
        let workspace = match call.function {
            Function::Convolution(_) => self.settings.workspace.bytes(self.bytes(call.output).get()),
            _ => Some(0),
        };
        Ok(Costed {
            call,
            name: format!("{function}{}", at + 1),
            flops: flops.ok_or_else(|| too_large("floating-point operations"))?,
            workspace: Bytes::new(workspace.ok_or_else(|| too_large("bytes of workspace"))?),
        })
    }

    fn bytes(&self, value: ValueId) -> Bytes {
        Bytes::new(FLOAT * elements(self.program.shape(value)))
    }

    /// Gives a value a storage of its own.
    fn own(&mut self, value: ValueId, name: String, category: &'static str) -> TensorId {
        let mut tensor = Tensor::new(name.clone(), self.bytes(value)).with_category(category);
        tensor.output = value == self.result;
        let tensor = self.graph.tensor(tensor);
        self.tensors[value.0] = Some(tensor);
        self.storages[value.0] = Some(Storage { root: value, part: Part::Whole });
        self.names[value.0] = name;
        tensor
    }

    fn storage(&self, value: ValueId) -> Storage {
        self.storages[value.0].clone().unwrap_or(Storage { root: value, part: Part::Some })
    }

    /// The tensor that holds a value.
    fn tensor(&self, value: ValueId) -> Option<TensorId> {
        self.tensors[self.storage(value).root.0]
    }

    fn is_whole(&self, value: ValueId) -> bool {
        self.storage(value).part == Part::Whole
    }

    fn parameter(&mut self, costed: &Costed<'_>, at: usize) -> TensorId {
        let index = costed.call.parameters[at];
        if let Some(known) = self.parameters[index] {
            return known;
        }
        let role = rules::role(&costed.call.function, at).map_or_else(|| at.to_string(), str::to_owned);
        let bytes = Bytes::new(FLOAT * elements(&self.program.parameters[index]));
        let name = format!("{}.{role}", costed.name);
        let tensor = Tensor::new(name.clone(), bytes).with_category("parameter");
        let tensor = self.graph.tensor(tensor.as_external());
        self.parameter_names[index] = name;
        self.parameters[index] = Some(tensor);
        tensor
    }
}

/// The value whose storage holds a value.
fn root(program: &Program, mut value: ValueId) -> ValueId {
    for call in program.calls().rev() {
        if call.output == value && rules::is_view(&call.function) {
            value = call.inputs[0];
        }
    }
    value
}

/// The tensors without repetitions, in order of first occurrence.
fn unique(tensors: Vec<TensorId>) -> Vec<TensorId> {
    let mut seen = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        if !seen.contains(&tensor) {
            seen.push(tensor);
        }
    }
    seen
}
