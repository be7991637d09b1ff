//! From an execution order to live ranges.
//!
//! The operation at position `k` of the order runs at step `k`. A tensor lives from the step of its maker
//! (an input: from 0) to the step after its last use (an output: to the end); a workspace lives for one
//! step. Where an operation may write over an input that nobody needs afterwards, the instance carries
//! the permission.
//!
//! ```text
//!  step      0      1      2
//!         | conv | relu | conv |
//!  x      [======)                  read last at 0
//!  y      [=============)           made at 0, read last at 1
//!  z             [=============)    may take y's place at 1
//! ```

use planlab_dsa::{Buffer, BufferId, Bytes, InPlace, Instance, InstanceError, Label, Labels, LiveRange};

use crate::{Graph, OpId, Operation, TensorId};

/// Why an order cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// Not every operation exactly once.
    #[error(
        "the order has {got} operations, the graph {expected}; operation {op} is missing, unknown or twice"
    )]
    NotAPermutation {
        /// Operations of the graph.
        expected: usize,
        /// Operations of the order.
        got: usize,
        /// One that is at fault.
        op: OpId,
    },
    /// An operation before one that it depends on.
    #[error("operation {op} comes before operation {maker}, which makes its input {tensor}")]
    Dependency {
        /// The operation that comes too early.
        op: OpId,
        /// The one that it needs.
        maker: OpId,
        /// The tensor between them.
        tensor: TensorId,
    },
    /// The sizes are too large together.
    #[error(transparent)]
    Instance(#[from] InstanceError),
}

/// The placement problem of a graph that runs in `order`: one buffer for each tensor that is used and not
/// external, by id, then one for each workspace, in the order's turn.
///
/// # Errors
///
/// [`OrderError`] for an order that is no permutation, or runs something before its inputs are there.
///
/// # Complexity
///
/// O(tensors + operations + reads + writes).
pub fn liveness(graph: &Graph, order: &[OpId]) -> Result<(Instance, Labels), OrderError> {
    let steps = positions(graph, order)?;
    check_dependencies(graph, &steps)?;
    let lives = lives(graph, &steps, order);
    let mut lowered = Lowered { buffer_of: vec![None; lives.len()], ..Lowered::default() };
    for (index, &life) in lives.iter().enumerate() {
        lowered.tensor(graph, TensorId::from_index(index), life);
    }
    for &op in order {
        lowered.workspace(&graph.operations()[op.index()], steps[op.index()]);
    }
    let permissions = lowered.permissions(graph, &steps);
    let instance = Instance::builder().buffers(lowered.buffers).in_place(permissions).build()?;
    Ok((instance, Labels { buffers: lowered.labels, metadata: Vec::new() }))
}

/// The step of each operation.
fn positions(graph: &Graph, order: &[OpId]) -> Result<Vec<u32>, OrderError> {
    let expected = graph.operations().len();
    let wrong = |op| OrderError::NotAPermutation { expected, got: order.len(), op };
    let mut steps = vec![None; expected];
    for (step, &op) in (0..).zip(order) {
        let slot = steps.get_mut(op.index()).ok_or_else(|| wrong(op))?;
        if slot.replace(step).is_some() {
            return Err(wrong(op));
        }
    }
    let all =
        steps.iter().enumerate().map(|(index, step)| step.ok_or_else(|| wrong(OpId::from_index(index))));
    all.collect()
}

fn check_dependencies(graph: &Graph, steps: &[u32]) -> Result<(), OrderError> {
    for (index, operation) in graph.operations().iter().enumerate() {
        for &tensor in &operation.reads {
            let Some(maker) = graph.maker(tensor) else { continue };
            if steps[maker.index()] >= steps[index] {
                return Err(OrderError::Dependency { op: OpId::from_index(index), maker, tensor });
            }
        }
    }
    Ok(())
}

/// First step and the one after the last, by tensor; `None` for a tensor that nobody uses.
fn lives(graph: &Graph, steps: &[u32], order: &[OpId]) -> Vec<Option<(u32, u32)>> {
    let mut lives: Vec<Option<(u32, u32)>> = vec![None; graph.tensors().len()];
    for (operation, &step) in graph.operations().iter().zip(steps) {
        for tensor in operation.reads.iter().chain(&operation.writes) {
            let (start, end) = lives[tensor.index()].get_or_insert((step, step + 1));
            *start = step.min(*start);
            *end = (step + 1).max(*end);
        }
    }
    let horizon = u32::try_from(order.len()).unwrap_or(u32::MAX);
    for (index, tensor) in graph.tensors().iter().enumerate() {
        let Some((start, end)) = &mut lives[index] else { continue };
        if graph.maker(TensorId::from_index(index)).is_none() {
            *start = 0;
        }
        if tensor.output {
            *end = horizon;
        }
    }
    lives
}

#[derive(Default)]
struct Lowered {
    buffers: Vec<Buffer>,
    labels: Vec<Label>,
    buffer_of: Vec<Option<BufferId>>,
}

impl Lowered {
    fn push(&mut self, bytes: Bytes, (start, end): (u32, u32), label: Label) -> BufferId {
        let live = LiveRange::new(start, end).expect("a use takes a step");
        self.buffers.push(Buffer::new(bytes, live));
        self.labels.push(label);
        BufferId::from_index(self.buffers.len() - 1)
    }

    fn tensor(&mut self, graph: &Graph, id: TensorId, life: Option<(u32, u32)>) {
        let tensor = &graph.tensors()[id.index()];
        let Some(life) = life.filter(|_| !tensor.external) else { return };
        let op = graph.maker(id).map(|op| graph.operations()[op.index()].op.clone().into_owned());
        let name = if tensor.name.is_empty() { id.to_string() } else { tensor.name.clone() };
        let category = tensor.category.clone().map(std::borrow::Cow::into_owned);
        let label = Label { name, category, op, ..Label::default() };
        self.buffer_of[id.index()] = Some(self.push(tensor.bytes, life, label));
    }

    fn workspace(&mut self, operation: &Operation, step: u32) {
        if operation.workspace == Bytes::ZERO {
            return;
        }
        let name = format!("workspace@{step}");
        let op = Some(operation.op.clone().into_owned());
        let label = Label { name, category: Some("workspace".to_owned()), op, ..Label::default() };
        self.push(operation.workspace, (step, step + 1), label);
    }

    /// The in-place pairs of all operations at which the input is used for the last time.
    fn permissions(&self, graph: &Graph, steps: &[u32]) -> Vec<InPlace> {
        let mut permissions = Vec::new();
        for (operation, &step) in graph.operations().iter().zip(steps) {
            for &(input, output) in &operation.in_place {
                let pair = (self.buffer_of[input.index()], self.buffer_of[output.index()]);
                let (Some(input), Some(output)) = pair else { continue };
                if self.buffers[input.index()].live.end().get() == step + 1 {
                    permissions.push(InPlace { input, output });
                }
            }
        }
        permissions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, Tensor};

    fn tensor(graph: &mut GraphBuilder, name: &str) -> TensorId {
        graph.tensor(Tensor::new(name, Bytes::new(8)))
    }

    /// x -> a -> b -> c, and x is read again at the end.
    fn chain() -> Graph {
        let mut graph = Graph::builder();
        let [x, a, b, c] = ["x", "a", "b", "c"].map(|name| tensor(&mut graph, name));
        graph.operation(Operation::new("f").reads([x]).writes([a]).overwrites(x, a));
        graph.operation(Operation::new("g").reads([a]).writes([b]).overwrites(a, b));
        graph.operation(Operation::new("h").reads([b, x]).writes([c]).with_workspace(Bytes::new(3)));
        graph.build().expect("valid")
    }

    #[test]
    fn a_tensor_lives_from_its_maker_to_after_its_last_use() {
        let graph = chain();
        let (instance, labels) = liveness(&graph, &graph.order()).expect("a valid order");
        let lives: Vec<(u32, u32)> = instance.buffers().iter().map(|buffer| buffer.live.into()).collect();
        assert_eq!(lives, [(0, 3), (0, 2), (1, 3), (2, 3), (2, 3)]);
        assert_eq!(labels.buffers[4].category.as_deref(), Some("workspace"));
    }

    #[test]
    fn only_a_last_use_may_be_overwritten() {
        let graph = chain();
        let (instance, _) = liveness(&graph, &graph.order()).expect("a valid order");
        // x is needed again at step 2, so only b over a is left.
        let pair = InPlace { input: BufferId::new(1), output: BufferId::new(2) };
        assert_eq!(instance.in_place(), [pair]);
    }

    #[test]
    fn a_wrong_order_is_refused() {
        let graph = chain();
        let order = |ids: &[usize]| ids.iter().map(|&id| OpId::from_index(id)).collect::<Vec<_>>();
        let early = liveness(&graph, &order(&[1, 0, 2]));
        assert!(matches!(early, Err(OrderError::Dependency { .. })), "{early:?}");
        for wrong in [vec![0, 1], vec![0, 1, 1], vec![0, 1, 2, 3]] {
            let result = liveness(&graph, &order(&wrong));
            assert!(matches!(result, Err(OrderError::NotAPermutation { .. })), "{result:?}");
        }
    }

    #[test]
    fn what_the_caller_keeps_is_no_buffer() {
        let mut graph = Graph::builder();
        let weights = graph.tensor(Tensor::new("weights", Bytes::new(5)).as_external());
        let y = tensor(&mut graph, "y");
        graph.operation(Operation::new("f").reads([weights]).writes([y]).overwrites(weights, y));
        graph.operation(Operation::new("g").reads([weights, y]));
        let graph = graph.build();
        assert!(matches!(graph, Err(crate::GraphError::BadInPlace { .. })), "y is larger: {graph:?}");

        let mut graph = Graph::builder();
        let weights = graph.tensor(Tensor::new("weights", Bytes::new(8)).as_external());
        let y = tensor(&mut graph, "y");
        graph.operation(Operation::new("f").reads([weights]).writes([y]));
        let graph = graph.build().expect("valid");
        let (instance, labels) = liveness(&graph, &graph.order()).expect("a valid order");
        assert_eq!(instance.buffers().len(), 1);
        assert_eq!(labels.buffers[0].name, "y");
    }

    #[test]
    fn outputs_stay_and_unused_tensors_vanish() {
        let mut graph = Graph::builder();
        let kept = graph.tensor(Tensor::new("kept", Bytes::new(1)).as_output());
        tensor(&mut graph, "unused");
        let last = tensor(&mut graph, "last");
        graph.operation(Operation::new("f").writes([kept]));
        graph.operation(Operation::new("g").writes([last]));
        let graph = graph.build().expect("valid");
        let (instance, labels) = liveness(&graph, &graph.order()).expect("a valid order");
        let lives: Vec<(u32, u32)> = instance.buffers().iter().map(|buffer| buffer.live.into()).collect();
        assert_eq!(lives, [(0, 2), (1, 2)]);
        assert_eq!(labels.buffers[1].name, "last");
    }
}
