//! The state of a lowering: the graph so far, and where each value, parameter and gradient is.

use planlab_dsa::Bytes;
use planlab_graph::{Graph, GraphBuilder, GraphError, Tensor, TensorId};

use super::storage::{Gradient, Part, Storage};
use crate::models::net::{Call, Function, Program, ValueId, elements};
use crate::models::rules::{self, FLOAT};
use crate::models::workspace::Workspace;

/// Why a program cannot be lowered.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A count does not fit 64 bits. Calls count from 1.
    #[error("call {call} ({function}): its {what} do not fit 64 bits")]
    TooLarge { call: usize, function: &'static str, what: &'static str },
    /// The operations do not form a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// A call with its costs.
pub(super) struct Costed<'p> {
    pub(super) call: &'p Call,
    pub(super) name: String,
    pub(super) flops: u64,
    pub(super) workspace: Bytes,
}

pub(super) struct Lowering<'p> {
    pub(super) program: &'p Program,
    /// Of each convolution, forward and backward.
    workspace: Workspace,
    pub(super) graph: GraphBuilder,
    /// The value whose storage holds the result.
    pub(super) result: ValueId,
    /// By value: inputs, and outputs of calls that have been lowered.
    pub(super) storages: Vec<Option<Storage>>,
    /// By value: those with a storage of their own.
    pub(super) tensors: Vec<Option<TensorId>>,
    pub(super) names: Vec<String>,
    pub(super) needs_gradient: Vec<bool>,
    pub(super) saved: Vec<Option<TensorId>>,
    pub(super) gradients: Vec<Option<Gradient>>,
    /// By value: the number of gradient tensors so far.
    pub(super) gradient_tensors: Vec<u32>,
    pub(super) parameters: Vec<Option<TensorId>>,
    pub(super) parameter_names: Vec<String>,
    pub(super) parameter_gradients: Vec<Option<TensorId>>,
}

impl<'p> Lowering<'p> {
    pub(super) fn new(program: &'p Program, workspace: Workspace) -> Self {
        let (values, parameters) = (program.shapes.len(), program.parameters.len());
        let mut lowering = Self {
            program,
            workspace,
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
            lowering.give_own_storage(input, format!("input{number}"), "input");
        }
        lowering
    }

    pub(super) fn cost_call(&self, at: usize, call: &'p Call) -> Result<Costed<'p>, LowerError> {
        let function = call.function.name();
        let too_large = |what| LowerError::TooLarge { call: at + 1, function, what };
        let flops = rules::call_flops(self.program, call).filter(|flops| flops.checked_mul(2).is_some());
        let workspace = match call.function {
            Function::Convolution(_) => self.workspace.bytes_for(self.bytes_of(call.output).get()),
            _ => Some(0),
        };
        Ok(Costed {
            call,
            name: format!("{function}{}", at + 1),
            flops: flops.ok_or_else(|| too_large("floating-point operations"))?,
            workspace: Bytes::new(workspace.ok_or_else(|| too_large("bytes of workspace"))?),
        })
    }

    pub(super) fn bytes_of(&self, value: ValueId) -> Bytes {
        Bytes::new(FLOAT * elements(self.program.shape_of(value)))
    }

    /// Gives a value a storage of its own.
    pub(super) fn give_own_storage(
        &mut self,
        value: ValueId,
        name: String,
        category: &'static str,
    ) -> TensorId {
        let mut tensor = Tensor::new(name.clone(), self.bytes_of(value)).with_category(category);
        tensor.output = value == self.result;
        let tensor = self.graph.add_tensor(tensor);
        self.tensors[value.0] = Some(tensor);
        self.storages[value.0] = Some(Storage { root: value, part: Part::Whole });
        self.names[value.0] = name;
        tensor
    }

    pub(super) fn storage_of(&self, value: ValueId) -> Storage {
        self.storages[value.0].clone().unwrap_or(Storage { root: value, part: Part::Some })
    }

    /// The tensor that holds a value.
    pub(super) fn tensor_of(&self, value: ValueId) -> Option<TensorId> {
        self.tensors[self.storage_of(value).root.0]
    }

    pub(super) fn is_whole(&self, value: ValueId) -> bool {
        self.storage_of(value).part == Part::Whole
    }

    pub(super) fn parameter_tensor(&mut self, costed: &Costed<'_>, at: usize) -> TensorId {
        let index = costed.call.parameters[at];
        if let Some(known) = self.parameters[index] {
            return known;
        }
        let role =
            rules::parameter_role(&costed.call.function, at).map_or_else(|| at.to_string(), str::to_owned);
        let bytes = Bytes::new(FLOAT * elements(&self.program.parameters[index]));
        let name = format!("{}.{role}", costed.name);
        let tensor = Tensor::new(name.clone(), bytes).with_category("parameter");
        let tensor = self.graph.add_tensor(tensor.as_external());
        self.parameter_names[index] = name;
        self.parameters[index] = Some(tensor);
        tensor
    }
}

/// The value whose storage holds a value.
pub(super) fn root(program: &Program, mut value: ValueId) -> ValueId {
    for call in program.calls().rev() {
        if call.output == value && rules::is_view(&call.function) {
            value = call.inputs[0];
        }
    }
    value
}

/// The items without repetitions, in order of first occurrence.
pub(crate) fn unique<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut seen = Vec::with_capacity(items.len());
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
