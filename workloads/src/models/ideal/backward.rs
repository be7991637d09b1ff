//! The backward pass: operations by the rules of each function.

use std::rc::Rc;

use planlab_graph::{Operation, Tensor, TensorId};

use super::gradients::completed_gradients;
use super::lowering::{Costed, Lowering, unique};
use super::storage::{Gradient, Held, Target};
use crate::models::net::{Call, ValueId};
use crate::models::rules::{self, Backward, GradientPlace, Source};

impl Lowering<'_> {
    /// Adds the gradient of the loss with respect to itself.
    pub(super) fn add_loss_gradient(&mut self) {
        let target = self.begin_gradient(self.program.result);
        self.graph.add_operation(Operation::new("seed").with_outputs([target.tensor]));
    }

    pub(super) fn lower_backward(&mut self, costed: &Costed<'_>) {
        let call = costed.call;
        let Some(Gradient { held, .. }) = self.gradients[call.output.0].take() else { return };
        if !self.needs_gradient[call.output.0] {
            return;
        }
        match rules::rule_of(&call.function).backward {
            Backward::Stops => {}
            Backward::Passes => self.pass_gradient(call, held),
            Backward::Splits => self.split_gradient(call, &held),
            Backward::Whole(sources, place) => self.lower_whole(costed, &held, &call.inputs, sources, place),
            Backward::First(sources, place) => {
                self.lower_whole(costed, &held, &call.inputs[..1], sources, place);
            }
            Backward::Parts(weights, data) => self.lower_parts(costed, &held, weights, data),
            Backward::Factors => self.lower_factors(costed, &held),
        }
    }

    fn learning_inputs(&self, inputs: &[ValueId]) -> Vec<ValueId> {
        inputs.iter().copied().filter(|input| self.needs_gradient[input.0]).collect()
    }

    fn pass_gradient(&mut self, call: &Call, held: Held) {
        let mut inputs = self.learning_inputs(&call.inputs);
        let last = inputs.pop();
        for input in inputs {
            self.give_gradient(input, held.clone());
        }
        if let Some(last) = last {
            self.give_gradient(last, held);
        }
    }

    fn split_gradient(&mut self, call: &Call, held: &Held) {
        let is_shared = held.is_shared();
        for input in self.learning_inputs(&call.inputs) {
            let owners = if is_shared { Rc::clone(&held.owners) } else { Rc::default() };
            self.give_gradient(input, Held { tensor: held.tensor, owners, is_whole: false });
        }
    }

    /// The tensors that a backward operation reads in addition to the gradient.
    fn source_tensors(&mut self, costed: &Costed<'_>, sources: &[Source]) -> Vec<TensorId> {
        let call = costed.call;
        let mut tensors = Vec::new();
        for source in sources {
            match source {
                Source::Inputs => {
                    tensors.extend(call.inputs.iter().filter_map(|&input| self.tensor_of(input)));
                }
                Source::LaterInputs => {
                    tensors.extend(call.inputs.iter().skip(1).filter_map(|&input| self.tensor_of(input)));
                }
                Source::Output => tensors.extend(self.tensor_of(call.output)),
                Source::Weights => tensors.push(self.parameter_tensor(costed, 0)),
                Source::BothWeights => tensors.extend([0, 1].map(|at| self.parameter_tensor(costed, at))),
                Source::Saved => tensors.extend(self.saved[call.output.0]),
            }
        }
        tensors
    }

    /// An operation of the backward pass.
    fn backward_operation(&self, costed: &Costed<'_>, suffix: &str, reads: Vec<TensorId>) -> Operation {
        let kind = costed.call.function.name();
        Operation::new(format!("{kind}-{suffix}"))
            .with_name(format!("{}.{suffix}", costed.name))
            .with_inputs(unique(reads))
            .with_workspace(costed.workspace)
    }

    fn lower_whole(
        &mut self,
        costed: &Costed<'_>,
        held: &Held,
        inputs: &[ValueId],
        sources: &[Source],
        place: GradientPlace,
    ) {
        let mut reads = vec![held.tensor];
        reads.extend(self.source_tensors(costed, sources));
        let targets: Vec<Target> =
            self.learning_inputs(inputs).into_iter().map(|input| self.begin_gradient(input)).collect();
        let weights = self.parameter_gradients(costed, &mut reads);
        reads.extend(completed_gradients(&targets));
        let mut operation = self.backward_operation(costed, "backward", reads).with_flops(2 * costed.flops);
        let saved = self.saved[costed.call.output.0];
        let old = match place {
            GradientPlace::Nowhere => None,
            GradientPlace::Gradient => Some(held.tensor).filter(|_| held.is_whole),
            GradientPlace::Saved => saved,
        };
        let fits = |target: &&Target| {
            target.is_made
                && old
                    .is_some_and(|old| self.graph.tensor_bytes(old) == self.graph.tensor_bytes(target.tensor))
        };
        if let (Some(old), Some(target)) = (old, targets.iter().find(fits)) {
            operation = operation.with_in_place(old, target.tensor);
        }
        let writes = targets.iter().map(|target| target.tensor).chain(weights);
        self.graph.add_operation(operation.with_outputs(unique(writes.collect())));
        self.finish_gradients(targets);
    }

    fn lower_parts(&mut self, costed: &Costed<'_>, held: &Held, weights: &[Source], data: &[Source]) {
        if !costed.call.parameters.is_empty() {
            let mut reads = vec![held.tensor];
            reads.extend(self.source_tensors(costed, weights));
            let writes = self.parameter_gradients(costed, &mut reads);
            let operation = self
                .backward_operation(costed, "weights", reads)
                .with_outputs(writes)
                .with_flops(costed.flops);
            self.graph.add_operation(operation);
        }
        for input in self.learning_inputs(&costed.call.inputs) {
            let mut reads = vec![held.tensor];
            reads.extend(self.source_tensors(costed, data));
            self.add_product(costed, input, reads);
        }
    }

    fn lower_factors(&mut self, costed: &Costed<'_>, held: &Held) {
        let [a, b] = costed.call.inputs[..] else { return };
        for (input, other) in [(a, b), (b, a)] {
            if self.needs_gradient[input.0] {
                let reads = [held.tensor].into_iter().chain(self.tensor_of(other)).collect();
                self.add_product(costed, input, reads);
            }
        }
    }

    /// Adds one operation that computes the gradient of one input.
    fn add_product(&mut self, costed: &Costed<'_>, input: ValueId, mut reads: Vec<TensorId>) {
        let target = self.begin_gradient(input);
        reads.extend(completed_gradients(std::slice::from_ref(&target)));
        let operation = self
            .backward_operation(costed, "data", reads)
            .with_outputs([target.tensor])
            .with_flops(costed.flops);
        self.graph.add_operation(operation);
        self.finish_gradients(vec![target]);
    }

    /// The gradients of a call's parameters. One that an earlier operation wrote is read as well: this one adds to it.
    fn parameter_gradients(&mut self, costed: &Costed<'_>, reads: &mut Vec<TensorId>) -> Vec<TensorId> {
        let mut gradients = Vec::new();
        for (at, &index) in costed.call.parameters.iter().enumerate() {
            let parameter = self.parameter_tensor(costed, at);
            let gradient = match self.parameter_gradients[index] {
                Some(known) => {
                    reads.push(known);
                    known
                }
                None => self.parameter_gradient(index, parameter),
            };
            gradients.push(gradient);
        }
        gradients
    }

    fn parameter_gradient(&mut self, index: usize, parameter: TensorId) -> TensorId {
        let name = format!("{}.gradient", self.parameter_names[index]);
        let tensor = Tensor::new(name, self.graph.tensor_bytes(parameter)).with_category("gradient");
        let tensor = self.graph.add_tensor(tensor.as_external());
        self.parameter_gradients[index] = Some(tensor);
        tensor
    }
}
