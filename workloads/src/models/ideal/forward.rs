//! The forward pass: an operation for each call that is not a view.

use planlab_dsa::Bytes;
use planlab_graph::{Operation, Tensor, TensorId};

use super::lowering::{Costed, Lowering, unique};
use super::storage::{Part, Storage};
use crate::models::net::{Call, Function, Mode, ValueId};
use crate::models::rules::{self, Overwrites};

impl Lowering<'_> {
    pub(super) fn lower_forward(&mut self, costed: &Costed<'_>) {
        let call = costed.call;
        let needs =
            !call.parameters.is_empty() || call.inputs.iter().any(|input| self.needs_gradient[input.0]);
        self.needs_gradient[call.output.0] = needs && self.program.mode == Mode::Train;
        match &call.function {
            Function::Reshape => self.storages[call.output.0] = Some(self.storage_of(call.inputs[0])),
            Function::Slice(start) => self.lower_slice(call, start),
            _ => self.lower_computation(costed),
        }
    }

    fn lower_slice(&mut self, call: &Call, start: &[u64]) {
        let Storage { root, part } = self.storage_of(call.inputs[0]);
        let extents = self.program.shape_of(call.output).clone();
        let part = match part {
            Part::Whole => Part::Box { of: call.inputs[0], start: start.to_vec(), extents },
            Part::Box { .. } | Part::Some => Part::Some,
        };
        self.storages[call.output.0] = Some(Storage { root, part });
    }

    fn lower_computation(&mut self, costed: &Costed<'_>) {
        let call = costed.call;
        let category = if call.output == self.result { "output" } else { "activation" };
        let output = self.give_own_storage(call.output, costed.name.clone(), category);
        let mut reads: Vec<TensorId> =
            call.inputs.iter().filter_map(|&input| self.tensor_of(input)).collect();
        // The states are data that the call for the input kept.
        if matches!(call.function, Function::LstmState) {
            reads.extend(call.inputs.iter().filter_map(|input| self.saved[input.0]));
        }
        reads.extend((0..call.parameters.len()).map(|at| self.parameter_tensor(costed, at)));
        let saved = self.save_for_backward(costed);
        let mut operation = Operation::new(call.function.name())
            .with_name(costed.name.clone())
            .with_inputs(unique(reads))
            .with_outputs([output].into_iter().chain(saved))
            .with_workspace(costed.workspace)
            .with_flops(costed.flops);
        let free = |input: &&ValueId| self.is_whole(**input);
        let targets = call.inputs.iter().filter(free).filter_map(|&input| self.tensor_of(input));
        match rules::rule_of(&call.function).overwrites {
            Overwrites::Nothing => {}
            Overwrites::Input => {
                for input in unique(targets.collect()) {
                    if self.graph.tensor_bytes(input) == self.graph.tensor_bytes(output) {
                        operation = operation.with_in_place(input, output);
                    }
                }
            }
            Overwrites::InputBySaved => {
                let scores = self.tensor_of(call.inputs[0]).filter(|_| self.is_whole(call.inputs[0]));
                if let (Some(input), Some(saved)) = (scores, saved) {
                    operation = operation.with_in_place(input, saved);
                }
            }
        }
        self.graph.add_operation(operation);
    }

    /// Saves data besides the output of a call: for its backward pass, or a state for later calls.
    fn save_for_backward(&mut self, costed: &Costed<'_>) -> Option<TensorId> {
        let (call, program) = (costed.call, self.program);
        let [input, output] = [call.inputs[0], call.output].map(|value| program.shape_of(value));
        let (what, bytes) = if self.needs_gradient[call.output.0] {
            ("saved", rules::saved_bytes(&call.function, input, output))
        } else {
            ("state", rules::state_bytes(&call.function, output))
        };
        if bytes == 0 {
            return None;
        }
        let tensor = Tensor::new(format!("{}.{what}", costed.name), Bytes::new(bytes)).with_category(what);
        let tensor = self.graph.add_tensor(tensor);
        self.saved[call.output.0] = Some(tensor);
        Some(tensor)
    }
}
