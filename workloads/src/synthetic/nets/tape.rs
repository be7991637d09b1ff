//! A net as a tape of forward operations, and its conversion to a graph: inference, or training with the backward pass
//! nested inside the forward one.
//!
//! ```text
//!  step       f0    f1    f2  | b2    b1    b0   update
//!  a0         [==================================)        needed again by b1 (or b0)
//!  a1               [=====================)
//!  g1                           [=========)
//!  w2                           [=====================)   weight gradients wait for the update
//! ```

use planlab_dsa::Bytes;
use planlab_graph::{Graph, GraphBuilder, OpId, Operation, Tensor, TensorId, placement_problem};

use crate::synthetic::family::Made;
use crate::synthetic::parameters::{Parameter, ParameterError, Values};

/// The data of an operation that training keeps for its backward pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Saves {
    Nothing,
    Inputs,
    Output,
}

/// A forward operation with one output.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) kind: &'static str,
    /// Earlier steps of the same iteration; if empty, it reads the iteration's input.
    pub(super) inputs: Vec<usize>,
    pub(super) bytes: u64,
    /// Bytes of the weights, and of their gradient; 0 for none.
    pub(super) weight: u64,
    /// Bytes of workspace, forward and backward; 0 for none.
    pub(super) workspace: u64,
    pub(super) saves: Saves,
}

impl Step {
    pub(super) fn new(kind: &'static str, inputs: impl Into<Vec<usize>>, bytes: u64, saves: Saves) -> Self {
        Self { kind, inputs: inputs.into(), bytes, weight: 0, workspace: 0, saves }
    }

    pub(super) fn with_weights(mut self, bytes: u64) -> Self {
        self.weight = bytes;
        self
    }

    pub(super) fn with_workspace(mut self, bytes: u64) -> Self {
        self.workspace = bytes;
        self
    }

    /// The number of buffers that the step makes.
    fn buffer_count(&self, train: bool) -> usize {
        let workspace = usize::from(self.workspace > 0);
        if train { 2 + usize::from(self.weight > 0) + 2 * workspace } else { 1 + workspace }
    }
}

/// One iteration: the bytes of its input, and its steps in order.
pub(super) struct Iteration {
    pub(super) input: u64,
    pub(super) steps: Vec<Step>,
}

/// Whether a net only runs forwards.
pub(super) const MODE: Parameter =
    Parameter::from_choices("mode", &["train", "infer"], "forward and backward, or forward only");
/// Whether element-wise operations may overwrite their input.
pub(super) const IN_PLACE: Parameter = Parameter::from_choices(
    "in-place",
    &["no", "yes"],
    "whether element-wise operations may overwrite their input",
);

/// Runs as many iterations as needed for exactly `n` buffers. The last iteration is cut short, and scratch buffers that
/// live for one operation make up the rest.
pub(super) fn lower_iterations(
    values: &Values,
    mut next: impl FnMut() -> Iteration,
) -> Result<Made, ParameterError> {
    let n = values.count("n");
    let train = values.choice("mode") == "train";
    let in_place = values.choice("in-place") == "yes";
    let mut net = Net { graph: Graph::builder(), train, in_place };
    let mut room = n;
    while room > FIXED {
        let mut iteration = next();
        // An iteration has at least the input, the gradient of the loss and the first step.
        let mut needed = FIXED;
        let fits = |step: &&Step| {
            needed += step.buffer_count(train);
            needed <= room
        };
        let count = iteration.steps.iter().take_while(fits).count();
        iteration.steps.truncate(count);
        if iteration.steps.is_empty() {
            break;
        }
        net.run_iteration(&iteration);
        room = n - net.graph.buffer_count();
    }
    net.distribute_scratch(room);
    let graph = net.graph.build().expect("a tape is a graph");
    let (instance, labels) = placement_problem(&graph, &graph.operation_order()).expect("a tape is in order");
    Ok(Made { instance, labels: Some(labels), optimum: None, witness: None })
}

/// Buffers of an iteration besides its steps: the input, and a spare one.
const FIXED: usize = 2;

struct Net {
    graph: GraphBuilder,
    train: bool,
    in_place: bool,
}

impl Net {
    fn add_tensor(&mut self, bytes: u64, category: &'static str) -> TensorId {
        self.graph.add_tensor(Tensor::new("", Bytes::new(bytes)).with_category(category))
    }

    fn run_iteration(&mut self, iteration: &Iteration) {
        let input = self.add_tensor(iteration.input, "input");
        self.graph.add_operation(Operation::new("load").with_outputs([input]));
        let mut outputs = Vec::with_capacity(iteration.steps.len());
        for step in &iteration.steps {
            let output = self.run_forward(step, input, &outputs);
            outputs.push(output);
        }
        if self.train {
            self.run_backward(iteration, input, &outputs);
        }
    }

    fn run_forward(&mut self, step: &Step, input: TensorId, outputs: &[TensorId]) -> TensorId {
        let output = self.add_tensor(step.bytes, "activation");
        let reads = step_reads(step, input, outputs);
        let mut operation = Operation::new(step.kind).with_outputs([output]);
        operation = operation.with_workspace(Bytes::new(step.workspace));
        let elementwise = step.weight == 0 && step.workspace == 0;
        if self.in_place && elementwise && self.graph.tensor_bytes(reads[0]).get() == step.bytes {
            operation = operation.with_in_place(reads[0], output);
        }
        self.graph.add_operation(operation.with_inputs(reads));
        output
    }

    fn run_backward(&mut self, iteration: &Iteration, input: TensorId, outputs: &[TensorId]) {
        let mut gradients: Vec<Option<TensorId>> = vec![None; outputs.len()];
        let mut weights = Vec::new();
        for (index, step) in iteration.steps.iter().enumerate().rev() {
            if index + 1 == outputs.len() {
                let loss = self.add_tensor(step.bytes, "gradient");
                self.graph
                    .add_operation(Operation::new("loss").with_inputs([outputs[index]]).with_outputs([loss]));
                gradients[index] = Some(loss);
            }
            // In an iteration that is cut short, an output that nothing reads has no gradient.
            let Some(gradient) = gradients[index] else { continue };
            let mut operation = Operation::new(step.kind).with_inputs([gradient]);
            operation = operation.with_workspace(Bytes::new(step.workspace));
            operation = match step.saves {
                Saves::Nothing => operation,
                Saves::Inputs => operation.with_inputs(step_reads(step, input, outputs)),
                Saves::Output => operation.with_inputs([outputs[index]]),
            };
            for &source in &step.inputs {
                let known = gradients[source];
                let bytes = iteration.steps[source].bytes;
                let target = known.unwrap_or_else(|| self.add_tensor(bytes, "gradient"));
                gradients[source] = Some(target);
                // A second consumer adds to the gradient in place.
                operation = operation.with_inputs(known).with_outputs([target]);
            }
            if step.weight > 0 {
                let weight = self.add_tensor(step.weight, "weight-gradient");
                weights.push(weight);
                operation = operation.with_outputs([weight]);
            }
            self.graph.add_operation(operation);
        }
        self.graph.add_operation(Operation::new("update").with_inputs(weights));
    }

    /// Distributes buffers that live for one operation over the net.
    fn distribute_scratch(&mut self, count: usize) {
        let operations = self.graph.operation_count();
        for index in 0..count {
            let scratch = self.add_tensor(SCRATCH, "scratch");
            self.graph.also_writes(OpId::from_index(index % operations), scratch);
        }
    }
}

/// Bytes of a scratch buffer.
const SCRATCH: u64 = 512;

fn step_reads(step: &Step, input: TensorId, outputs: &[TensorId]) -> Vec<TensorId> {
    if step.inputs.is_empty() {
        return vec![input];
    }
    step.inputs.iter().map(|&index| outputs[index]).collect()
}
