//! The backward pass: operations by the rules of each function.

use std::rc::Rc;

use planlab_graph::{Operation, Tensor, TensorId};

use super::gradients::completed;
use super::held::{Gradient, Held, Target};
use super::lowering::{Costed, Lowering, unique};
use super::settings::Gradients;
use crate::models::net::{Call, ValueId};
use crate::models::rules::{self, Backward, Place, Source};

impl Lowering<'_> {
    /// Adds the gradient of the loss with respect to itself.
    pub(super) fn seed(&mut self) {
        let target = self.begin(self.program.result);
        self.graph.operation(Operation::new("seed").writes([target.tensor]));
    }

    pub(super) fn backward(&mut self, costed: &Costed<'_>) {
        let call = costed.call;
        let Some(Gradient { held, .. }) = self.gradients[call.output.0].take() else { return };
        if !self.needs_gradient[call.output.0] {
            return;
        }
        match rules::rule(&call.function).backward {
            Backward::Stops => {}
            Backward::Passes => self.pass(call, held),
            Backward::Splits => self.split(call, &held),
            Backward::Whole(sources, place) => self.whole(costed, &held, &call.inputs, sources, place),
            Backward::First(sources, place) => self.whole(costed, &held, &call.inputs[..1], sources, place),
            Backward::Parts(weights, data) => self.parts(costed, &held, weights, data),
            Backward::Factors => self.factors(costed, &held),
        }
    }

    fn learners(&self, inputs: &[ValueId]) -> Vec<ValueId> {
        inputs.iter().copied().filter(|input| self.needs_gradient[input.0]).collect()
    }

    fn pass(&mut self, call: &Call, held: Held) {
        let mut inputs = self.learners(&call.inputs);
        let last = inputs.pop();
        for input in inputs {
            self.give(input, held.clone());
        }
        if let Some(last) = last {
            self.give(last, held);
        }
    }

    fn split(&mut self, call: &Call, held: &Held) {
        let is_shared = held.is_shared();
        for input in self.learners(&call.inputs) {
            let owners = if is_shared { Rc::clone(&held.owners) } else { Rc::default() };
            self.give(input, Held { tensor: held.tensor, owners, is_whole: false });
        }
    }

    /// The tensors that a backward operation reads in addition to the gradient.
    fn sources(&mut self, costed: &Costed<'_>, sources: &[Source]) -> Vec<TensorId> {
        let call = costed.call;
        let mut tensors = Vec::new();
        for source in sources {
            match source {
                Source::Inputs => tensors.extend(call.inputs.iter().filter_map(|&input| self.tensor(input))),
                Source::LaterInputs => {
                    tensors.extend(call.inputs.iter().skip(1).filter_map(|&input| self.tensor(input)));
                }
                Source::Output => tensors.extend(self.tensor(call.output)),
                Source::Weights => tensors.push(self.parameter(costed, 0)),
                Source::BothWeights => tensors.extend([0, 1].map(|at| self.parameter(costed, at))),
                Source::Saved => tensors.extend(self.saved[call.output.0]),
            }
        }
        tensors
    }

    /// An operation of the backward pass.
    fn step(&self, costed: &Costed<'_>, suffix: &str, reads: Vec<TensorId>) -> Operation {
        let kind = costed.call.function.name();
        Operation::new(format!("{kind}-{suffix}"))
            .named(format!("{}.{suffix}", costed.name))
            .reads(unique(reads))
            .with_workspace(costed.workspace)
    }

    fn whole(
        &mut self,
        costed: &Costed<'_>,
        held: &Held,
        inputs: &[ValueId],
        sources: &[Source],
        place: Place,
    ) {
        let mut reads = vec![held.tensor];
        reads.extend(self.sources(costed, sources));
        let targets: Vec<Target> = self.learners(inputs).into_iter().map(|input| self.begin(input)).collect();
        let weights = self.parameter_gradients(costed, &mut reads);
        reads.extend(completed(&targets));
        let mut operation = self.step(costed, "backward", reads).with_flops(2 * costed.flops);
        let saved = self.saved[costed.call.output.0];
        let old = match place {
            Place::Nowhere => None,
            Place::Gradient => Some(held.tensor).filter(|_| held.is_whole),
            Place::Saved => saved,
        };
        let fits = |target: &&Target| {
            target.is_made && old.is_some_and(|old| self.graph.bytes(old) == self.graph.bytes(target.tensor))
        };
        if let (Some(old), Some(target)) = (old, targets.iter().find(fits)) {
            operation = operation.overwrites(old, target.tensor);
        }
        let writes = targets.iter().map(|target| target.tensor).chain(weights);
        self.graph.operation(operation.writes(unique(writes.collect())));
        self.finish(targets);
    }

    fn parts(&mut self, costed: &Costed<'_>, held: &Held, weights: &[Source], data: &[Source]) {
        if !costed.call.parameters.is_empty() {
            let mut reads = vec![held.tensor];
            reads.extend(self.sources(costed, weights));
            let writes = self.parameter_gradients(costed, &mut reads);
            let operation = self.step(costed, "weights", reads).writes(writes).with_flops(costed.flops);
            self.graph.operation(operation);
        }
        for input in self.learners(&costed.call.inputs) {
            let mut reads = vec![held.tensor];
            reads.extend(self.sources(costed, data));
            self.product(costed, input, reads);
        }
    }

    fn factors(&mut self, costed: &Costed<'_>, held: &Held) {
        let [a, b] = costed.call.inputs[..] else { return };
        for (input, other) in [(a, b), (b, a)] {
            if self.needs_gradient[input.0] {
                let reads = [held.tensor].into_iter().chain(self.tensor(other)).collect();
                self.product(costed, input, reads);
            }
        }
    }

    /// Adds one operation that computes the gradient of one input.
    fn product(&mut self, costed: &Costed<'_>, input: ValueId, mut reads: Vec<TensorId>) {
        let target = self.begin(input);
        reads.extend(completed(std::slice::from_ref(&target)));
        let operation = self.step(costed, "data", reads).writes([target.tensor]).with_flops(costed.flops);
        self.graph.operation(operation);
        self.finish(vec![target]);
    }

    /// The gradients of a call's parameters. One that an earlier operation wrote is read as well: this one adds to it.
    fn parameter_gradients(&mut self, costed: &Costed<'_>, reads: &mut Vec<TensorId>) -> Vec<TensorId> {
        let mut gradients = Vec::new();
        for (at, &index) in costed.call.parameters.iter().enumerate() {
            let parameter = self.parameter(costed, at);
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
        let tensor = Tensor::new(name, self.graph.bytes(parameter)).with_category("gradient");
        let tensor = match self.settings.gradients {
            Gradients::External => tensor.as_external(),
            Gradients::Planned => tensor.as_output(),
        };
        let tensor = self.graph.tensor(tensor);
        self.parameter_gradients[index] = Some(tensor);
        tensor
    }
}
