//! A [`Program`] as a graph of operations, without any framework's habits.
//!
//! Each call is an operation that writes its output, and what its backward pass needs beside inputs and output
//! (`rules.rs` has the table). Views are no operations: a reshaped or sliced value lies where its source lies. In
//! training, the backward operations follow in the reverse order of the calls, each with what it really reads. So a
//! tensor lives from its maker to its last reader, nothing is kept by a name, and no request is rounded.
//!
//! ```text
//!  conv     x, W   -> y                  relu      y    -> z        z may lie where y lies
//!  relu'    z, gz  -> gy                 weights'  x, gy -> gW      data'  W, gy -> gx
//! ```
//!
//! - Parameters and their gradients are external: the caller keeps them. [`Gradients::Planned`] makes gradients buffers.
//! - The gradients of weights are made before that of the input, so that the input is gone when the other is made.
//! - A sum passes its gradient on to both inputs, a concatenation its parts: there is no copy. A slice's gradient is
//!   written into that of its source.
//! - The gradient of a value with several readers is summed where the first one lies, as long as no other value has
//!   the same storage for its gradient; else where the later one lies.
//! - The result (loss or output) is kept to the end.
//!
//! # Deviations
//!
//! - Reshape also stands for a change of order (heads of an attention): a matrix product takes strides.
//! - Each function is one operation, as a library of kernels has it: nothing is fused across functions, attention keeps
//!   its scores, and normalisation in training does not overwrite its input, which it reads again.
//! - The running statistics of batch normalisation, masks of attention and angles of rotary embeddings are constants
//!   that take no memory here; indices and labels take 4 bytes.
//!
//! # Complexity
//!
//! O(calls + reads).

use std::rc::Rc;

use planlab_dsa::Bytes;
use planlab_graph::{Graph, GraphBuilder, GraphError, Operation, Tensor, TensorId};

use super::net::{Call, Function, Mode, Program, ValueId, elements};
use super::rules::{self, Backward, FLOAT, Overwrites, Place, Source};
use super::workspace::Workspace;

/// Who keeps the gradients of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gradients {
    /// The caller: they are no buffers.
    #[default]
    External,
    /// The plan: each lives from its making to the end.
    Planned,
}

/// What may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The workspace of each convolution, forward and backward. Default: none.
    pub workspace: Workspace,
    /// Who keeps the gradients of parameters. Default: the caller.
    pub gradients: Gradients,
}

impl Default for Settings {
    fn default() -> Self {
        Self { workspace: Workspace::NONE, gradients: Gradients::External }
    }
}

/// Why a program has no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A count that does not fit 64 bits.
    #[error("call {call} ({function}): its {what} do not fit 64 bits")]
    TooLarge {
        /// Its place among the calls, from 1.
        call: usize,
        /// The function that is called.
        function: &'static str,
        /// What was counted.
        what: &'static str,
    },
    /// The operations make no graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// The graph of a program.
///
/// # Errors
///
/// [`LowerError::TooLarge`] for operations or a workspace that cannot be counted.
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

/// A call with what it costs.
struct Costed<'p> {
    call: &'p Call,
    name: String,
    flops: u64,
    workspace: Bytes,
}

/// The storage of a value, and its part of that.
#[derive(Clone, Debug)]
struct Storage {
    /// The value that was made by a call, or is an input.
    root: ValueId,
    part: Part,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// From `start`, in the extents of a value that has all of the storage.
    Box {
        of: ValueId,
        start: Vec<u64>,
        extents: Vec<u64>,
    },
    /// A part of a part: nothing is known about where it lies.
    Some,
}

impl Part {
    fn is_apart(&self, other: &Self) -> bool {
        let (Self::Box { of, start, extents }, Self::Box { of: other_of, start: other, extents: reach }) =
            (self, other)
        else {
            return false;
        };
        let mut axes = start.iter().zip(extents).zip(other.iter().zip(reach));
        of == other_of && axes.any(|((a, long), (b, far))| a + long <= *b || b + far <= *a)
    }
}

/// A gradient that lies in a tensor, or in a part of it.
#[derive(Clone, Debug)]
struct Held {
    tensor: TensorId,
    /// One for each value whose gradient lies in the same place.
    owners: Rc<()>,
    is_whole: bool,
}

impl Held {
    fn is_shared(&self) -> bool {
        Rc::strong_count(&self.owners) > 1
    }
}

/// The gradient of a storage so far.
#[derive(Debug)]
struct Gradient {
    held: Held,
    written: Vec<Part>,
}

/// Where an operation writes a gradient.
struct Target {
    value: ValueId,
    tensor: TensorId,
    /// Whether the operation makes the tensor.
    is_made: bool,
    /// Whether it is to be added to what is there.
    is_term: bool,
}

struct Lowering<'p> {
    program: &'p Program,
    settings: Settings,
    graph: GraphBuilder,
    /// The value whose storage the result lies in.
    result: ValueId,
    /// By value; inputs and outputs of calls that are lowered.
    storages: Vec<Option<Storage>>,
    /// By value, those that have a storage of their own.
    tensors: Vec<Option<TensorId>>,
    names: Vec<String>,
    needs_gradient: Vec<bool>,
    saved: Vec<Option<TensorId>>,
    gradients: Vec<Option<Gradient>>,
    /// By value: how many there were.
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

    /// Gives a value a storage.
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

    /// The tensor that a value lies in.
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

    fn forward(&mut self, costed: &Costed<'_>) {
        let call = costed.call;
        let needs =
            !call.parameters.is_empty() || call.inputs.iter().any(|input| self.needs_gradient[input.0]);
        self.needs_gradient[call.output.0] = needs && self.program.mode == Mode::Train;
        match &call.function {
            Function::Reshape => self.storages[call.output.0] = Some(self.storage(call.inputs[0])),
            Function::Slice(start) => self.slice(call, start),
            _ => self.compute(costed),
        }
    }

    fn slice(&mut self, call: &Call, start: &[u64]) {
        let Storage { root, part } = self.storage(call.inputs[0]);
        let extents = self.program.shape(call.output).clone();
        let part = match part {
            Part::Whole => Part::Box { of: call.inputs[0], start: start.to_vec(), extents },
            Part::Box { .. } | Part::Some => Part::Some,
        };
        self.storages[call.output.0] = Some(Storage { root, part });
    }

    fn compute(&mut self, costed: &Costed<'_>) {
        let call = costed.call;
        let category = if call.output == self.result { "output" } else { "activation" };
        let output = self.own(call.output, costed.name.clone(), category);
        let mut reads: Vec<TensorId> = call.inputs.iter().filter_map(|&input| self.tensor(input)).collect();
        if rules::reads_state(&call.function) {
            reads.extend(call.inputs.iter().filter_map(|input| self.saved[input.0]));
        }
        reads.extend((0..call.parameters.len()).map(|at| self.parameter(costed, at)));
        let saved = self.save(costed);
        let mut operation = Operation::new(call.function.name())
            .named(costed.name.clone())
            .reads(unique(reads))
            .writes([output].into_iter().chain(saved))
            .with_workspace(costed.workspace)
            .with_flops(costed.flops);
        let free = |input: &&ValueId| self.is_whole(**input);
        let targets = call.inputs.iter().filter(free).filter_map(|&input| self.tensor(input));
        match rules::rule(&call.function).overwrites {
            Overwrites::Nothing => {}
            Overwrites::Input => {
                for input in unique(targets.collect()) {
                    if self.graph.bytes(input) == self.graph.bytes(output) {
                        operation = operation.overwrites(input, output);
                    }
                }
            }
            Overwrites::InputBySaved => {
                let scores = self.tensor(call.inputs[0]).filter(|_| self.is_whole(call.inputs[0]));
                if let (Some(input), Some(saved)) = (scores, saved) {
                    operation = operation.overwrites(input, saved);
                }
            }
        }
        self.graph.operation(operation);
    }

    /// What a call leaves beside its output: for its backward pass, or a state for later calls.
    fn save(&mut self, costed: &Costed<'_>) -> Option<TensorId> {
        let (call, program) = (costed.call, self.program);
        let [input, output] = [call.inputs[0], call.output].map(|value| program.shape(value));
        let (what, bytes) = if self.needs_gradient[call.output.0] {
            ("saved", rules::saved_bytes(&call.function, input, output))
        } else {
            ("state", rules::state_bytes(&call.function, output))
        };
        if bytes == 0 {
            return None;
        }
        let tensor = Tensor::new(format!("{}.{what}", costed.name), Bytes::new(bytes)).with_category(what);
        let tensor = self.graph.tensor(tensor);
        self.saved[call.output.0] = Some(tensor);
        Some(tensor)
    }

    /// The gradient of the loss with respect to itself.
    fn seed(&mut self) {
        let target = self.begin(self.program.result);
        self.graph.operation(Operation::new("seed").writes([target.tensor]));
    }

    fn backward(&mut self, costed: &Costed<'_>) {
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

    /// The tensors that an operation reads beside the gradient.
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

    /// One operation that makes the gradient of one input.
    fn product(&mut self, costed: &Costed<'_>, input: ValueId, mut reads: Vec<TensorId>) {
        let target = self.begin(input);
        reads.extend(completed(std::slice::from_ref(&target)));
        let operation = self.step(costed, "data", reads).writes([target.tensor]).with_flops(costed.flops);
        self.graph.operation(operation);
        self.finish(vec![target]);
    }

    /// The gradients of a call's parameters. One that was made before is read, too: the operation adds to it.
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

    /// A tensor of its own name for a gradient, or a term of one, of a storage.
    fn gradient_tensor(&mut self, root: ValueId, kind: &str, bytes: Bytes) -> TensorId {
        let number = &mut self.gradient_tensors[root.0];
        *number += 1;
        let number = if *number == 1 { String::new() } else { number.to_string() };
        let name = format!("{}.{kind}{number}", self.names[root.0]);
        self.graph.tensor(Tensor::new(name, bytes).with_category("gradient"))
    }

    fn fresh(&mut self, root: ValueId) -> Held {
        let bytes = self.bytes(root);
        Held { tensor: self.gradient_tensor(root, "gradient", bytes), owners: Rc::default(), is_whole: true }
    }

    /// Where the operation to come writes the gradient of a value.
    fn begin(&mut self, value: ValueId) -> Target {
        let Storage { root, part } = self.storage(value);
        if self.gradients[root.0].is_none() {
            let held = self.fresh(root);
            let tensor = held.tensor;
            self.gradients[root.0] = Some(Gradient { held, written: vec![part] });
            return Target { value, tensor, is_made: true, is_term: false };
        }
        if let Some(tensor) = self.vacant(root, &part) {
            return Target { value, tensor, is_made: false, is_term: false };
        }
        let tensor = self.gradient_tensor(root, "gradient-term", self.bytes(value));
        Target { value, tensor, is_made: true, is_term: true }
    }

    /// The gradient of the storage, if this part of it is still to be written.
    fn vacant(&mut self, root: ValueId, part: &Part) -> Option<TensorId> {
        let gradient = self.gradients[root.0].as_mut()?;
        if gradient.held.is_shared() || !gradient.written.iter().all(|other| other.is_apart(part)) {
            return None;
        }
        gradient.written.push(part.clone());
        Some(gradient.held.tensor)
    }

    fn finish(&mut self, targets: Vec<Target>) {
        for target in targets.into_iter().filter(|target| target.is_term) {
            let term =
                Held { tensor: target.tensor, owners: Rc::default(), is_whole: self.is_whole(target.value) };
            self.add(target.value, term);
        }
    }

    /// Takes a gradient that is there as that of a value.
    fn give(&mut self, value: ValueId, held: Held) {
        let Storage { root, part } = self.storage(value);
        match &self.gradients[root.0] {
            None if part == Part::Whole => {
                self.gradients[root.0] = Some(Gradient { held, written: vec![part] });
            }
            None => {
                let target = self.begin(value);
                self.copy(vec![held.tensor], target.tensor);
            }
            Some(_) => match self.vacant(root, &part) {
                Some(tensor) => self.copy(vec![held.tensor, tensor], tensor),
                None => self.add(value, held),
            },
        }
    }

    fn copy(&mut self, reads: Vec<TensorId>, to: TensorId) {
        self.graph.operation(Operation::new("copy-gradient").reads(reads).writes([to]));
    }

    /// Adds a term to the gradient of a value.
    fn add(&mut self, value: ValueId, term: Held) {
        let Storage { root, part } = self.storage(value);
        let Some(mut gradient) = self.gradients[root.0].take() else { return };
        let reads = unique(vec![gradient.held.tensor, term.tensor]);
        let sum = if !gradient.held.is_shared() {
            gradient.held
        } else if part == Part::Whole && !term.is_shared() {
            term
        } else {
            self.fresh(root)
        };
        self.graph.operation(Operation::new("add-gradient").reads(reads).writes([sum.tensor]));
        gradient.written.push(part);
        self.gradients[root.0] = Some(Gradient { held: sum, written: gradient.written });
    }
}

/// The gradients of which another operation wrote a part before: what is there stays, so they are read, too.
fn completed(targets: &[Target]) -> Vec<TensorId> {
    let is_made = |tensor| targets.iter().any(|target| target.is_made && target.tensor == tensor);
    let parts = targets.iter().filter(|target| !target.is_made && !is_made(target.tensor));
    parts.map(|target| target.tensor).collect()
}

/// The value whose storage a value lies in.
fn root(program: &Program, mut value: ValueId) -> ValueId {
    for call in program.calls().rev() {
        if call.output == value && rules::is_view(&call.function) {
            value = call.inputs[0];
        }
    }
    value
}

/// Each once, in the order of the first.
fn unique(tensors: Vec<TensorId>) -> Vec<TensorId> {
    let mut seen = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        if !seen.contains(&tensor) {
            seen.push(tensor);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use planlab_graph::liveness;

    use super::super::net::{End, Net, Value};
    use super::*;

    fn graph(net: impl FnOnce(&Net) -> Value) -> Graph {
        let program = Net::record(Mode::Train, End::Loss, net).expect("shapes fit");
        lower(&program, Settings::default()).expect("small")
    }

    /// `kind: reads -> writes` of each operation of the backward pass.
    fn backward(graph: &Graph) -> Vec<String> {
        let lines = graph.operations().iter().map(|operation| {
            let (reads, writes) = (names(graph, &operation.reads), names(graph, &operation.writes));
            format!("{}: {reads} -> {writes}", operation.op)
        });
        lines.skip_while(|line| !line.starts_with("seed")).skip(1).collect()
    }

    fn loss(n: &Net, h: Value) -> Value {
        n.binary_cross_entropy(h)
    }

    #[test]
    fn each_backward_operation_reads_what_it_needs() {
        let graph = graph(|n| {
            let h = n.relu(n.dense_bias(n.input(vec![2, 3]), 4));
            loss(n, n.dense(h, 1))
        });
        assert_eq!(
            backward(&graph),
            [
                "binary-cross-entropy-backward: binary-cross-entropy4.gradient linear3 -> linear3.gradient",
                "linear-weights: linear3.gradient relu2 -> linear3.weight.gradient",
                "linear-data: linear3.gradient linear3.weight -> relu2.gradient",
                "relu-backward: relu2.gradient relu2 -> linear1.gradient",
                "linear-weights: linear1.gradient input0 -> linear1.weight.gradient linear1.bias.gradient",
            ]
        );
        let (instance, labels) = liveness(&graph, &graph.order()).expect("in order");
        let name = |buffer: planlab_dsa::BufferId| labels.buffers[buffer.index()].name.as_str();
        let pairs: Vec<_> =
            instance.in_place().iter().map(|pair| (name(pair.input), name(pair.output))).collect();
        assert_eq!(pairs, [("linear1", "relu2"), ("relu2.gradient", "linear1.gradient")]);
    }

    #[test]
    fn a_gradient_that_two_values_share_is_not_added_to() {
        // s = a + b; the loss reads a again, after the sum. The gradient of s is that of b, too.
        let graph = graph(|n| {
            let x = n.input(vec![2, 3]);
            let (a, b) = (n.dense(x.clone(), 3), n.dense(x, 3));
            let s = n.add(a.clone(), b);
            let late = n.scale(a);
            loss(n, n.stack(vec![s, late]))
        });
        let lines = backward(&graph);
        assert_eq!(
            lines[1..3],
            [
                "scale-backward: concat5.gradient -> linear1.gradient",
                "add-gradient: linear1.gradient concat5.gradient -> linear1.gradient",
            ]
        );
        assert!(
            lines.contains(&"linear-weights: concat5.gradient input0 -> linear2.weight.gradient".to_owned())
        );
    }

    #[test]
    fn where_all_share_a_gradient_the_sum_is_a_tensor_of_its_own() {
        let graph = graph(|n| {
            let a = n.dense(n.input(vec![2, 3]), 3);
            let b = n.scale(a.clone());
            let s = n.add(a.clone(), b);
            loss(n, n.add(s, a))
        });
        // The gradient of the last sum goes to a, to the first sum, and from there to a again and to b.
        assert_eq!(
            backward(&graph)[1..],
            [
                "add-gradient: add4.gradient -> linear1.gradient",
                "scale-backward: add4.gradient -> linear1.gradient-term2",
                "add-gradient: linear1.gradient linear1.gradient-term2 -> linear1.gradient",
                "linear-weights: linear1.gradient input0 -> linear1.weight.gradient",
            ]
        );
    }

    #[test]
    fn slices_write_their_parts_of_one_gradient() {
        let graph = graph(|n| {
            let joined = n.dense(n.input(vec![2, 3]), 6);
            let part = |start| n.slice(joined.clone(), vec![0, start], vec![2, 3]);
            let product = n.multiply(part(0), part(3));
            loss(n, n.add(product, n.scale(part(0))))
        });
        assert_eq!(
            backward(&graph)[1..],
            [
                "scale-backward: add7.gradient -> linear1.gradient",
                "multiply-backward: add7.gradient linear1 linear1.gradient -> linear1.gradient-term2 linear1.gradient",
                "add-gradient: linear1.gradient linear1.gradient-term2 -> linear1.gradient",
                "linear-weights: linear1.gradient input0 -> linear1.weight.gradient",
            ]
        );
    }

    #[test]
    fn a_parameter_that_is_used_twice_has_one_gradient() {
        let graph = graph(|n| {
            let weights = n.parameter(vec![3, 3]);
            let h = n.project(n.input(vec![2, 3]), 3, [weights]);
            loss(n, n.project(h, 3, [weights]))
        });
        let lines = backward(&graph);
        assert_eq!(lines[1], "linear-weights: linear2.gradient linear1 -> linear1.weight.gradient");
        assert_eq!(
            lines[3],
            "linear-weights: linear1.gradient input0 linear1.weight.gradient -> linear1.weight.gradient"
        );
    }

    fn names(graph: &Graph, tensors: &[TensorId]) -> String {
        let name = |tensor: &TensorId| graph.tensors()[tensor.index()].name.as_str();
        tensors.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_backward_pass_of_an_lstm_reads_both_weight_matrices() {
        let graph = graph(|n| {
            let h = n.lstm(n.input(vec![6, 3]), None, 2, 4);
            let state = n.lstm_state(h, 2);
            loss(n, state)
        });
        assert_eq!(
            backward(&graph)[2..],
            ["lstm-backward: lstm1.gradient input0 lstm1 lstm1.weight lstm1.recurrent-weight lstm1.saved -> \
              lstm1.weight.gradient lstm1.recurrent-weight.gradient lstm1.bias.gradient \
              lstm1.recurrent-bias.gradient"]
        );
        let state = graph.operations().iter().find(|operation| operation.op == "lstm-state").expect("called");
        assert_eq!(names(&graph, &state.reads), "lstm1 lstm1.saved");
    }

    #[test]
    fn the_cell_state_of_an_lstm_takes_memory_in_inference() {
        let program = Net::record(Mode::Infer, End::Output, |n| {
            let h = n.lstm(n.input(vec![6, 3]), None, 2, 4);
            let state = n.lstm_state(h, 2);
            n.lstm(n.input(vec![8, 3]), Some(state), 2, 4)
        });
        let graph = lower(&program.expect("shapes fit"), Settings::default()).expect("small");
        let lines: Vec<_> = graph
            .operations()
            .iter()
            .map(|operation| {
                format!("{} -> {}", names(&graph, &operation.reads[..2]), names(&graph, &operation.writes))
            })
            .collect();
        assert_eq!(
            lines,
            [
                "input0 lstm1.weight -> lstm1 lstm1.state",
                "lstm1 lstm1.state -> lstm-state2",
                "input1 lstm-state2 -> lstm3 lstm3.state",
            ]
        );
        let is_state = |tensor: &&Tensor| tensor.category.as_deref() == Some("state");
        let states: Vec<_> = graph.tensors().iter().filter(is_state).map(|tensor| tensor.bytes).collect();
        assert_eq!(states, [Bytes::new(2 * 4 * 4); 2]);
    }

    #[test]
    fn views_are_no_operations() {
        let program = Net::record(Mode::Infer, End::Output, |n| {
            let h = n.dense(n.input(vec![2, 3]), 4);
            n.reshape(n.slice(h, vec![0, 2], vec![2, 2]), vec![4])
        });
        let graph = lower(&program.expect("shapes fit"), Settings::default()).expect("small");
        assert_eq!(graph.operations().len(), 1);
        let outputs: Vec<_> = graph.tensors().iter().filter(|tensor| tensor.output).collect();
        assert_eq!(outputs.len(), 1);
        assert_eq!((outputs[0].name.as_str(), outputs[0].bytes), ("linear1", Bytes::new(32)));
    }

    #[test]
    fn counts_that_do_not_fit_are_errors() {
        let program =
            Net::record(Mode::Infer, End::Output, |n| n.dense(n.input(vec![1 << 40, 1 << 16]), 1 << 16));
        let error = lower(&program.expect("countable"), Settings::default());
        assert!(matches!(error, Err(LowerError::TooLarge { call: 1, .. })), "{error:?}");
    }

    /// What each operation of the backward pass makes of single numbers, all factors being 1.
    fn run(graph: &Graph) -> BTreeMap<String, u64> {
        let mut content = vec![0_u64; graph.tensors().len()];
        let is_backward = |operation: &&Operation| {
            ["-backward", "-data", "-weights", "-gradient"].iter().any(|end| operation.op.ends_with(end))
        };
        content[graph
            .operations()
            .iter()
            .find(|operation| operation.op == "seed")
            .map_or(0, |seed| seed.writes[0].index())] = 1;
        for operation in graph.operations().iter().filter(is_backward) {
            let read = |tensor: &TensorId| content[tensor.index()];
            let sum = match &operation.reads[..] {
                [both] if operation.op == "add-gradient" => 2 * read(both),
                all if operation.op == "add-gradient" => all.iter().map(read).sum(),
                all => read(&all[0]),
            };
            for tensor in &operation.writes {
                content[tensor.index()] = sum;
            }
        }
        let named = graph.tensors().iter().zip(content).filter(|(tensor, _)| tensor.external);
        named.map(|(tensor, content)| (tensor.name.clone(), content)).collect()
    }

    proptest::proptest! {
        /// However values are added up and read again, the gradient of a parameter counts the ways to the loss.
        #[test]
        fn a_gradient_counts_the_ways_to_the_loss(
            steps in proptest::collection::vec((0..4_u8, 0..100_usize, 0..100_usize), 1..14),
        ) {
            // By value: from which values it is made, a value twice if it counts twice.
            let mut sources: Vec<Vec<usize>> = vec![Vec::new()];
            let mut numbers = Vec::new();
            let graph = graph(|n| {
                let mut values = vec![n.dense(n.input(vec![1, 1]), 1)];
                numbers.push((1, 0));
                for &(kind, a, b) in &steps {
                    let (a, b) = (a % values.len(), b % values.len());
                    let (x, y) = (values[a].clone(), values[b].clone());
                    let (value, of) = match kind {
                        0 => (n.add(x, y), vec![a, b]),
                        1 => (n.multiply(x, y), vec![a, b]),
                        2 => (n.scale(x), vec![a]),
                        _ => {
                            numbers.push((values.len() + 1, values.len()));
                            (n.dense(x, 1), vec![a])
                        }
                    };
                    values.push(value);
                    sources.push(of);
                }
                loss(n, values.pop().expect("not empty"))
            });
            let mut ways = vec![0_u64; sources.len()];
            ways[sources.len() - 1] = 1;
            for value in (0..sources.len()).rev() {
                for &source in &sources[value] {
                    ways[source] += ways[value];
                }
            }
            let made = run(&graph);
            for (call, value) in numbers {
                let gradient = made.get(&format!("linear{call}.weight.gradient")).copied();
                proptest::prop_assert_eq!(gradient.unwrap_or(0), ways[value]);
            }
        }
    }
}
