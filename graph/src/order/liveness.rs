//! Converts an execution order to live ranges.
//!
//! The operation at position `k` of the order runs at step `k`. A tensor is live from the step of its maker (an
//! input: from step 0) to the step after its last use (an output: to the end), and a workspace for one step. If an
//! operation may write an output over an input that no later operation needs, the instance has the permission.
//!
//! ```text
//!  step      0      1      2
//!         | conv | relu | conv |
//!  x      [======)                  last read at 0
//!  y      [=============)           made at 0, last read at 1
//!  z             [=============)    may take the place of y at 1
//! ```

use planlab_dsa::{
    Buffer, BufferId, Bytes, InPlace, Instance, InstanceError, KeepApart, Label, Labels, LiveRange,
};

use super::dependencies::{Dependencies, positions};
use super::error::OrderError;
use super::storage::Storage;
use crate::{Graph, OpId, Operation};

/// The placement problem of a graph, and the origin of each buffer.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The placement problem.
    pub instance: Instance,
    /// The names of the buffers.
    pub labels: Labels,
    /// The storages of the graph. The first buffers of the instance are theirs, in this order.
    pub storages: Vec<Storage>,
    /// The buffer of each tensor's storage, by tensor id; `None` if no operation uses it or if it is external.
    pub buffer_of: Vec<Option<BufferId>>,
    /// The buffer of each operation's workspace, by operation id; `None` if it has none.
    pub workspace_of: Vec<Option<BufferId>>,
}

impl Lowered {
    /// Replaces the live ranges, permissions and pairs of the instance.
    pub(crate) fn with_instance(mut self, parts: Parts) -> Result<Self, InstanceError> {
        self.instance =
            Instance::builder().buffers(parts.buffers).in_place(parts.in_place).apart(parts.apart).build()?;
        Ok(self)
    }
}

pub(crate) struct Parts {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) in_place: Vec<InPlace>,
    pub(crate) apart: Vec<KeepApart>,
}

/// The placement problem of a graph that runs in `order`: a buffer for each storage (see [`Graph::storages`]), then
/// one for each workspace, in the order in which the operations run. Errors and complexity are as of
/// [`lower_graph`].
pub fn placement_problem(graph: &Graph, order: &[OpId]) -> Result<(Instance, Labels), OrderError> {
    lower_graph(graph, order).map(|lowered| (lowered.instance, lowered.labels))
}

/// Like [`placement_problem`], but also returns the origin of each buffer.
///
/// # Errors
///
/// [`OrderError`] if the order is not a permutation of the operations, runs an operation before its inputs exist, or
/// moves an update past another use of its bytes.
///
/// # Complexity
///
/// O(tensors + operations + (reads + writes) log); if the order differs from the graph's, also that of
/// [`Dependencies::from_tensors`].
pub fn lower_graph(graph: &Graph, order: &[OpId]) -> Result<Lowered, OrderError> {
    let steps = positions(graph.operations().len(), order)?;
    // The graph's own order is always legal.
    if !order.is_sorted() {
        check_dependencies(graph, &steps)?;
        Dependencies::from_tensors(graph).check_order(order)?;
    }
    let storages = graph.storages();
    let mut lowering = Lowering::default();
    for storage in &storages {
        lowering.lower_storage(graph, storage, &steps);
    }
    let mut workspace_of = vec![None; order.len()];
    for &op in order {
        workspace_of[op.index()] =
            lowering.lower_workspace(&graph.operations()[op.index()], steps[op.index()]);
    }
    let buffer_of = buffers_of(graph, &storages);
    let permissions = lowering.in_place_pairs(graph, &storages, &buffer_of, &steps);
    let instance = Instance::builder().buffers(lowering.buffers).in_place(permissions).build()?;
    let labels = Labels { buffers: lowering.labels, metadata: Vec::new() };
    Ok(Lowered { instance, labels, storages, buffer_of, workspace_of })
}

fn check_dependencies(graph: &Graph, steps: &[u32]) -> Result<(), OrderError> {
    for (index, operation) in graph.operations().iter().enumerate() {
        for &tensor in &operation.reads {
            let late = |maker: &OpId| steps[maker.index()] >= steps[index];
            if let Some(maker) = graph.source_operations(tensor).into_iter().find(late) {
                return Err(OrderError::Dependency { op: OpId::from_index(index), maker, tensor });
            }
        }
    }
    Ok(())
}

fn buffers_of(graph: &Graph, storages: &[Storage]) -> Vec<Option<BufferId>> {
    let mut buffer_of = vec![None; graph.tensors().len()];
    for (index, storage) in storages.iter().enumerate() {
        for tensor in graph.in_storage(storage.root) {
            buffer_of[tensor.index()] = Some(BufferId::from_index(index));
        }
    }
    buffer_of
}

#[derive(Default)]
struct Lowering {
    buffers: Vec<Buffer>,
    labels: Vec<Label>,
}

impl Lowering {
    fn append_buffer(&mut self, bytes: Bytes, (start, end): (u32, u32), label: Label) -> BufferId {
        let live = LiveRange::new(start, end).expect("a use takes a step");
        self.buffers.push(Buffer::new(bytes, live));
        self.labels.push(label);
        BufferId::from_index(self.buffers.len() - 1)
    }

    fn lower_storage(&mut self, graph: &Graph, storage: &Storage, steps: &[u32]) {
        let id = storage.root;
        let at = storage.users.iter().map(|op| steps[op.index()]);
        let first = at.clone().min().filter(|_| !storage.from_start).unwrap_or(0);
        let last = at.max().filter(|_| !storage.to_end);
        let end = last.map_or_else(|| u32::try_from(steps.len()).unwrap_or(u32::MAX), |last| last + 1);
        let tensor = &graph.tensors()[id.index()];
        let maker = graph.source_operations(id).into_iter().min_by_key(|op| steps[op.index()]);
        let op = maker.map(|op| graph.operations()[op.index()].op.clone().into_owned());
        let name = if tensor.name.is_empty() { id.to_string() } else { tensor.name.clone() };
        let category = tensor.category.clone().map(std::borrow::Cow::into_owned);
        self.append_buffer(storage.bytes, (first, end), Label { name, category, op, ..Label::default() });
    }

    fn lower_workspace(&mut self, operation: &Operation, step: u32) -> Option<BufferId> {
        if operation.workspace == Bytes::ZERO {
            return None;
        }
        let name = format!("workspace@{step}");
        let op = Some(operation.op.clone().into_owned());
        let label = Label { name, category: Some("workspace".to_owned()), op, ..Label::default() };
        Some(self.append_buffer(operation.workspace, (step, step + 1), label))
    }

    /// The in-place pairs of all operations that are the last use of the input.
    fn in_place_pairs(
        &self,
        graph: &Graph,
        storages: &[Storage],
        buffer_of: &[Option<BufferId>],
        steps: &[u32],
    ) -> Vec<InPlace> {
        let mut permissions = Vec::new();
        for (op, &step) in graph.operation_order().into_iter().zip(steps) {
            for (input, output) in in_place_buffers(graph, op, buffer_of) {
                let live = |id: BufferId| self.buffers[id.index()].live;
                let is_last = live(input).end().get() == step + 1 && !storages[input.index()].to_end;
                let is_first = live(output).start().get() == step && !storages[output.index()].from_start;
                if is_last && is_first {
                    permissions.push(InPlace { input, output });
                }
            }
        }
        permissions
    }
}

/// The hand-overs of an operation between two buffers.
pub(crate) fn in_place_buffers(
    graph: &Graph,
    op: OpId,
    buffer_of: &[Option<BufferId>],
) -> impl Iterator<Item = (BufferId, BufferId)> {
    graph
        .hand_overs(op)
        .filter_map(|(input, output)| Some((buffer_of[input.index()]?, buffer_of[output.index()]?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, Tensor, TensorId};

    fn tensor(graph: &mut GraphBuilder, name: &str) -> TensorId {
        graph.add_tensor(Tensor::new(name, Bytes::new(8)))
    }

    /// The problem of a graph that is run in its own order.
    fn lowered(graph: GraphBuilder) -> Lowered {
        let graph = graph.build().expect("valid");
        lower_graph(&graph, &graph.operation_order()).expect("a valid order")
    }

    fn lives(lowered: &Lowered) -> Vec<(u32, u32)> {
        lowered.instance.buffers().iter().map(|buffer| buffer.live.into()).collect()
    }

    /// x -> a -> b -> c, and x is read again at the end.
    fn chain() -> GraphBuilder {
        let mut graph = Graph::builder();
        let [x, a, b, c] = ["x", "a", "b", "c"].map(|name| tensor(&mut graph, name));
        graph.add_operation(Operation::new("f").with_inputs([x]).with_outputs([a]).with_in_place(x, a));
        graph.add_operation(Operation::new("g").with_inputs([a]).with_outputs([b]).with_in_place(a, b));
        graph.add_operation(
            Operation::new("h").with_inputs([b, x]).with_outputs([c]).with_workspace(Bytes::new(3)),
        );
        graph
    }

    #[test]
    fn a_tensor_lives_from_its_maker_to_after_its_last_use() {
        let graph = chain().build().expect("valid");
        let (instance, labels) = placement_problem(&graph, &graph.operation_order()).expect("a valid order");
        let lowered = lowered(chain());
        assert_eq!((&instance, &labels), (&lowered.instance, &lowered.labels));
        assert_eq!(lives(&lowered), [(0, 3), (0, 2), (1, 3), (2, 3), (2, 3)]);
        assert_eq!(labels.buffers[4].category.as_deref(), Some("workspace"));
    }

    #[test]
    fn only_a_last_use_may_be_overwritten() {
        // x is needed again at step 2, so only b over a remains.
        let pair = InPlace { input: BufferId::new(1), output: BufferId::new(2) };
        assert_eq!(lowered(chain()).instance.in_place(), [pair]);
    }

    #[test]
    fn a_wrong_order_is_refused() {
        let graph = chain().build().expect("valid");
        let order = |ids: &[usize]| ids.iter().map(|&id| OpId::from_index(id)).collect::<Vec<_>>();
        let early = placement_problem(&graph, &order(&[1, 0, 2]));
        assert!(matches!(early, Err(OrderError::Dependency { .. })), "{early:?}");
        for wrong in [vec![0, 1], vec![0, 1, 1], vec![0, 1, 2, 3]] {
            let result = placement_problem(&graph, &order(&wrong));
            assert!(matches!(result, Err(OrderError::NotAPermutation { .. })), "{result:?}");
        }
    }

    #[test]
    fn what_the_caller_keeps_is_no_buffer() {
        let mut graph = Graph::builder();
        let weights = graph.add_tensor(Tensor::new("weights", Bytes::new(5)).as_external());
        let y = tensor(&mut graph, "y");
        graph.add_operation(
            Operation::new("f").with_inputs([weights]).with_outputs([y]).with_in_place(weights, y),
        );
        graph.add_operation(Operation::new("g").with_inputs([weights, y]));
        let graph = graph.build();
        assert!(matches!(graph, Err(crate::GraphError::BadInPlace { .. })), "y is larger: {graph:?}");

        let mut graph = Graph::builder();
        let weights = graph.add_tensor(Tensor::new("weights", Bytes::new(8)).as_external());
        let y = tensor(&mut graph, "y");
        graph.add_operation(Operation::new("f").with_inputs([weights]).with_outputs([y]));
        let lowered = lowered(graph);
        assert_eq!(lowered.instance.buffers().len(), 1);
        assert_eq!(lowered.labels.buffers[0].name, "y");
    }

    #[test]
    fn an_output_is_never_overwritten() {
        let mut graph = Graph::builder();
        let [x, y] = ["x", "y"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(8)).as_output()));
        graph.add_operation(Operation::new("f").with_inputs([x]).with_outputs([y]).with_in_place(x, y));
        assert_eq!(lowered(graph).instance.in_place(), []);
    }

    #[test]
    fn aliases_are_part_of_their_buffer() {
        let mut graph = Graph::builder();
        let x = tensor(&mut graph, "x");
        let view = graph.add_tensor(Tensor::new("view", Bytes::new(8)).with_base(x, Bytes::ZERO));
        let part = graph.add_tensor(Tensor::new("part", Bytes::new(4)).with_base(view, Bytes::new(4)));
        let [y, z] = ["y", "z"].map(|name| tensor(&mut graph, name));
        let small = graph.add_tensor(Tensor::new("small", Bytes::new(4)));
        graph.add_operation(Operation::new("make").with_outputs([x]));
        graph.add_operation(Operation::new("reshape").with_inputs([x]).with_outputs([view]));
        graph.add_operation(
            Operation::new("relu").with_inputs([view]).with_outputs([y]).with_in_place(view, y),
        );
        graph.add_operation(Operation::new("relu").with_inputs([y]).with_outputs([z]).with_in_place(y, z));
        graph.add_operation(
            Operation::new("half").with_inputs([part]).with_outputs([small]).with_in_place(part, small),
        );
        let lowered = lowered(graph);
        // x with both aliases, y, z, small.
        assert_eq!(lives(&lowered), [(0, 5), (2, 4), (3, 4), (4, 5)]);
        assert_eq!(lowered.buffer_of[part.index()], Some(BufferId::new(0)));
        // A view still needs x when y is made, and a part of a buffer cannot be handed over.
        let pair = InPlace { input: BufferId::new(1), output: BufferId::new(2) };
        assert_eq!(lowered.instance.in_place(), [pair]);
    }

    #[test]
    fn a_change_keeps_its_turn() {
        let mut graph = Graph::builder();
        let w = tensor(&mut graph, "w");
        graph.add_operation(Operation::new("read").with_inputs([w]));
        graph.add_operation(Operation::new("update").with_inputs([w]).with_outputs([w]));
        let graph = graph.build().expect("valid");
        let [before, op] = [0, 1].map(OpId::from_index);
        let problem = placement_problem(&graph, &[op, before]);
        assert_eq!(problem.map(|_| ()), Err(OrderError::TooEarly { op, before }));
    }

    #[test]
    fn outputs_stay_and_unused_tensors_vanish() {
        let mut graph = Graph::builder();
        let kept = graph.add_tensor(Tensor::new("kept", Bytes::new(1)).as_output());
        tensor(&mut graph, "unused");
        let last = tensor(&mut graph, "last");
        graph.add_operation(Operation::new("f").with_outputs([kept]));
        graph.add_operation(Operation::new("g").with_outputs([last]));
        let lowered = lowered(graph);
        assert_eq!(lives(&lowered), [(0, 2), (1, 2)]);
        assert_eq!(lowered.labels.buffers[1].name, "last");
    }

    /// The output fills a storage whose bytes exist from the start.
    #[test]
    fn what_is_there_from_the_start_takes_no_place() {
        let mut graph = Graph::builder();
        let [x, cache] = ["x", "cache"].map(|name| tensor(&mut graph, name));
        let view = graph.add_tensor(Tensor::new("view", Bytes::new(8)).with_base(cache, Bytes::ZERO));
        graph.add_operation(
            Operation::new("f").with_inputs([x, cache]).with_outputs([view]).with_in_place(x, view),
        );
        let lowered = lowered(graph);
        assert!(lowered.storages[1].from_start);
        assert_eq!(lowered.instance.in_place(), []);
    }
}
