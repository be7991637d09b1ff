//! Collects the parts of a graph, and checks the rules that the parts must keep.

use planlab_dsa::Bytes;

use super::error::GraphError;
use super::graph::Graph;
use super::layout::Layout;
use super::neighbours::{Neighbours, topological_order};
use super::pairs::data_pairs;
use super::parts::{Alias, OpId, Operation, Tensor, TensorId};
use super::writers::Writers;

/// The most pairs of operations that may depend on each other through tensors: about 1 GiB with both directions.
const MOST_DEPENDENCIES: usize = 1 << 26;

/// Collects the parts of a [`Graph`]. All methods that take an id panic if there is no such tensor or operation.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    tensors: Vec<Tensor>,
    operations: Vec<Operation>,
    workspaces: usize,
}

impl Graph {
    /// Starts a graph.
    #[must_use]
    pub fn builder() -> GraphBuilder {
        GraphBuilder::default()
    }
}

impl GraphBuilder {
    /// Adds a tensor.
    pub fn add_tensor(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor);
        TensorId::from_index(self.tensors.len() - 1)
    }

    /// Adds an operation after all others.
    pub fn add_operation(&mut self, operation: Operation) -> OpId {
        self.workspaces += usize::from(operation.workspace != Bytes::ZERO);
        self.operations.push(operation);
        OpId::from_index(self.operations.len() - 1)
    }

    /// Adds a tensor to the outputs of an operation.
    pub fn also_writes(&mut self, op: OpId, tensor: TensorId) {
        self.operations[op.index()].writes.push(tensor);
    }

    /// The number of operations so far.
    #[must_use]
    pub fn operation_count(&self) -> usize {
        self.operations.len()
    }

    /// The number of tensors and workspaces so far: at least as many as the graph has buffers.
    #[must_use]
    pub const fn buffer_count(&self) -> usize {
        self.tensors.len() + self.workspaces
    }

    /// The size of a tensor in bytes.
    #[must_use]
    pub fn tensor_bytes(&self, tensor: TensorId) -> Bytes {
        self.tensors[tensor.index()].bytes
    }

    /// Checks all rules. The operations must have been added in an order in which they can run.
    pub fn build(self) -> Result<Graph, GraphError> {
        let graph = self.build_unordered()?;
        // Dependencies are computed again where they are needed; this call only counts them.
        in_place_pairs(&graph)?;
        graph.operation_order().into_iter().try_for_each(|op| check_reads(&graph, op))?;
        Ok(graph)
    }

    /// Checks all rules and sorts the operations, which may have been added in any order. The ids of the operations
    /// follow the sorted order:
    ///
    /// - An operation runs after those that make what it reads.
    /// - An operation that updates a tensor keeps its turn among the operations that read or update bytes of it: it
    ///   runs after those that were added before it and before those that were added after it. Only the operations
    ///   that make the bytes may be added anywhere.
    /// - Of several operations that can run next, the one that was added first does.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::build`], and [`GraphError::Cycle`] if the first two rules contradict each other. Operations
    /// are named by the order in which they were added.
    pub fn build_in_any_order(self) -> Result<Graph, GraphError> {
        let graph = self.build_unordered()?;
        let after = Neighbours::new(graph.operations().len(), in_place_pairs(&graph)?);
        let order = topological_order(&after).map_err(|operations| GraphError::Cycle { operations })?;
        if order.is_sorted() {
            return Ok(graph);
        }
        let (tensors, mut operations) = graph.into_parts();
        let operations = order.iter().map(|op| std::mem::take(&mut operations[op.index()])).collect();
        Self { tensors, operations, workspaces: 0 }.build()
    }

    /// The graph, after all checks that do not depend on the order of the operations.
    fn build_unordered(self) -> Result<Graph, GraphError> {
        let Self { tensors, operations, .. } = self;
        if let Some(empty) = tensors.iter().position(|tensor| tensor.bytes == Bytes::ZERO) {
            return Err(GraphError::ZeroBytes { tensor: TensorId::from_index(empty) });
        }
        check_total(&tensors, &operations)?;
        check_aliases(&tensors)?;
        let bases_first = bases_first(&tensors)?;
        check_tensors(tensors.len(), &operations)?;
        let makers = find_makers(tensors.len(), &operations)?;
        operations.iter().enumerate().try_for_each(|(index, operation)| {
            check_operation(OpId::from_index(index), operation, &tensors, &makers)
        })?;
        let layout = Layout::new(&tensors, &bases_first);
        let sources = sources(&tensors, &makers, &bases_first);
        let writers = Writers::new(&layout, &operations)?;
        Ok(Graph { tensors, operations, makers, layout, sources, writers })
    }
}

fn in_place_pairs(graph: &Graph) -> Result<Vec<(OpId, OpId)>, GraphError> {
    let limit = MOST_DEPENDENCIES;
    data_pairs(graph, limit).ok_or(GraphError::TooManyDependencies { limit })
}

fn check_total(tensors: &[Tensor], operations: &[Operation]) -> Result<(), GraphError> {
    let mut total = Bytes::ZERO;
    for (index, tensor) in tensors.iter().enumerate() {
        let overflow = GraphError::TotalOverflow { tensor: TensorId::from_index(index) };
        total = total.checked_add(tensor.bytes).ok_or(overflow)?;
    }
    for (index, operation) in operations.iter().enumerate() {
        let overflow = GraphError::WorkspaceOverflow { op: OpId::from_index(index) };
        total = total.checked_add(operation.workspace).ok_or(overflow)?;
    }
    Ok(())
}

fn check_aliases(tensors: &[Tensor]) -> Result<(), GraphError> {
    for (index, tensor) in tensors.iter().enumerate() {
        let Some(Alias { base, offset }) = tensor.alias else { continue };
        let reason = match tensors.get(base.index()) {
            None => "there is no such tensor",
            Some(under) if offset.checked_add(tensor.bytes).is_none_or(|end| end > under.bytes) => {
                "it extends beyond the end"
            }
            Some(under) if tensor.external && !under.external => "it is external, but its base is not",
            Some(_) => continue,
        };
        return Err(GraphError::BadAlias { tensor: TensorId::from_index(index), base, reason });
    }
    Ok(())
}

/// The tensors, each after its base.
fn bases_first(tensors: &[Tensor]) -> Result<Vec<TensorId>, GraphError> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; tensors.len()];
    let (mut order, mut chain) = (Vec::with_capacity(tensors.len()), Vec::new());
    for first in (0..tensors.len()).map(TensorId::from_index) {
        let mut next = Some(first);
        while let Some(tensor) = next.filter(|tensor| states[tensor.index()] != State::Done) {
            let base = tensors[tensor.index()].alias.map(|alias| alias.base);
            states[tensor.index()] = State::Open;
            chain.push(tensor);
            if let Some(base) = base.filter(|base| states[base.index()] == State::Open) {
                return Err(GraphError::BadAlias { tensor, base, reason: "the aliases form a cycle" });
            }
            next = base;
        }
        while let Some(tensor) = chain.pop() {
            states[tensor.index()] = State::Done;
            order.push(tensor);
        }
    }
    Ok(order)
}

/// The maker of each tensor: its own, or that of its closest base that has one.
fn sources(tensors: &[Tensor], makers: &[Option<OpId>], bases_first: &[TensorId]) -> Vec<Option<OpId>> {
    let mut sources = makers.to_vec();
    for tensor in bases_first {
        if let Some(Alias { base, .. }) = tensors[tensor.index()].alias {
            sources[tensor.index()] = makers[tensor.index()].or(sources[base.index()]);
        }
    }
    sources
}

fn check_tensors(count: usize, operations: &[Operation]) -> Result<(), GraphError> {
    for (index, operation) in operations.iter().enumerate() {
        let pairs = operation.in_place.iter().flat_map(|&(input, output)| [input, output]);
        let mut all = operation.reads.iter().chain(&operation.writes).copied().chain(pairs);
        if let Some(tensor) = all.find(|tensor| tensor.index() >= count) {
            return Err(GraphError::UnknownTensor { op: OpId::from_index(index), tensor, count });
        }
    }
    Ok(())
}

fn find_makers(count: usize, operations: &[Operation]) -> Result<Vec<Option<OpId>>, GraphError> {
    let mut makers = vec![None; count];
    for (index, operation) in operations.iter().enumerate() {
        let op = OpId::from_index(index);
        for tensor in operation.made_tensors() {
            let first = *makers[tensor.index()].get_or_insert(op);
            if first != op {
                return Err(GraphError::TwoWriters { tensor, first, second: op });
            }
        }
    }
    Ok(makers)
}

fn check_operation(
    op: OpId,
    operation: &Operation,
    tensors: &[Tensor],
    makers: &[Option<OpId>],
) -> Result<(), GraphError> {
    let reads = operation.sorted_reads();
    for &(input, output) in &operation.in_place {
        let reason = if reads.binary_search(&input).is_err() {
            "the operation does not read the input"
        } else if makers[output.index()] != Some(op) {
            "the operation does not make the output"
        } else if tensors[output.index()].bytes > tensors[input.index()].bytes {
            "the output is larger than the input"
        } else {
            continue;
        };
        return Err(GraphError::BadInPlace { op, input, output, reason });
    }
    match operation.seconds {
        Some(seconds) if !(seconds.is_finite() && seconds >= 0.0) => {
            Err(GraphError::BadTime { op, seconds: seconds.to_string() })
        }
        _ => Ok(()),
    }
}

fn check_reads(graph: &Graph, op: OpId) -> Result<(), GraphError> {
    for &tensor in &graph.operations()[op.index()].reads {
        if let Some(maker) = graph.source_operations(tensor).into_iter().find(|&maker| maker >= op) {
            return Err(GraphError::ReadBeforeWrite { op, tensor, maker });
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A tensor of 4 bytes and one of 8.
    pub(crate) fn two() -> (GraphBuilder, TensorId, TensorId) {
        let mut graph = Graph::builder();
        let small = graph.add_tensor(Tensor::new("small", Bytes::new(4)));
        let large = graph.add_tensor(Tensor::new("large", Bytes::new(8)));
        (graph, small, large)
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let (mut graph, small, _) = two();
        graph.add_operation(Operation::new("read").with_inputs([small]));
        graph.add_operation(Operation::new("write").with_outputs([small]));
        let (op, maker) = (OpId::from_index(0), OpId::from_index(1));
        assert_eq!(graph.build(), Err(GraphError::ReadBeforeWrite { op, tensor: small, maker }));

        let (mut graph, ..) = two();
        let tensor = TensorId::from_index(7);
        graph.add_operation(Operation::new("read").with_inputs([tensor]));
        assert_eq!(graph.build(), Err(GraphError::UnknownTensor { op, tensor, count: 2 }));

        let (mut graph, ..) = two();
        graph.add_tensor(Tensor::new("nothing", Bytes::ZERO));
        assert_eq!(graph.build(), Err(GraphError::ZeroBytes { tensor: TensorId::from_index(2) }));

        let (mut graph, ..) = two();
        graph.add_operation(Operation { seconds: Some(f64::NAN), ..Operation::new("x") });
        assert_eq!(graph.build(), Err(GraphError::BadTime { op, seconds: "NaN".to_owned() }));
    }

    #[test]
    fn in_place_pairs_join_an_input_and_an_output_that_fits() {
        for (reads, writes, reason) in [
            (vec![0], vec![1], Some("the output is larger than the input")),
            (vec![], vec![1], Some("the operation does not read the input")),
            (vec![0], vec![], Some("the operation does not make the output")),
        ] {
            let (mut graph, small, large) = two();
            let ids = |ids: Vec<usize>| ids.into_iter().map(TensorId::from_index).collect::<Vec<_>>();
            graph.add_operation(
                Operation::new("x")
                    .with_inputs(ids(reads))
                    .with_outputs(ids(writes))
                    .with_in_place(small, large),
            );
            let found = match graph.build() {
                Err(GraphError::BadInPlace { reason, .. }) => Some(reason),
                _ => None,
            };
            assert_eq!(found, reason);
        }
    }

    #[test]
    fn an_update_does_not_make_its_tensor() {
        let (mut graph, small, _) = two();
        graph.add_operation(Operation::new("read").with_inputs([small]));
        graph.add_operation(Operation::new("update").with_inputs([small]).with_outputs([small]));
        assert_eq!(graph.build().expect("valid").maker_of(small), None);
    }

    #[test]
    fn two_operations_that_make_one_tensor_are_both_named() {
        let (mut graph, tensor, _) = two();
        let first = graph.add_operation(Operation::new("f").with_outputs([tensor]));
        graph.add_operation(Operation::new("update").with_inputs([tensor]).with_outputs([tensor]));
        let second = graph.add_operation(Operation::new("g").with_outputs([tensor]));
        assert_eq!(graph.build(), Err(GraphError::TwoWriters { tensor, first, second }));
    }

    #[test]
    fn sizes_fit_64_bits_together() {
        let (mut graph, small, _) = two();
        let huge = graph.add_tensor(Tensor::new("huge", Bytes::new(u64::MAX - 12)));
        graph.add_operation(Operation::new("f").with_inputs([small, huge]));
        assert!(graph.clone().build().is_ok());
        let op = graph.add_operation(Operation::new("g").with_workspace(Bytes::new(1)));
        assert_eq!(graph.clone().build(), Err(GraphError::WorkspaceOverflow { op }));
        let tensor = graph.add_tensor(Tensor::new("more", Bytes::new(1)));
        assert_eq!(graph.build(), Err(GraphError::TotalOverflow { tensor }));
    }

    #[test]
    fn operations_in_any_order_are_sorted_and_a_cycle_is_named() {
        let chain = |last_reads: usize| {
            let mut graph = Graph::builder();
            let ids: Vec<TensorId> =
                (0..4).map(|index| graph.add_tensor(Tensor::new(index.to_string(), Bytes::new(1)))).collect();
            graph.add_operation(Operation::new("c").with_inputs([ids[2]]).with_outputs([ids[3]]));
            graph.add_operation(Operation::new("b").with_inputs([ids[1]]).with_outputs([ids[2]]));
            graph.add_operation(Operation::new("free"));
            graph.add_operation(Operation::new("a").with_inputs([ids[last_reads]]).with_outputs([ids[1]]));
            graph
        };
        let graph = chain(0).build_in_any_order().expect("valid");
        assert_eq!(kinds(&graph), ["free", "a", "b", "c"]);
        assert_eq!(graph.maker_of(TensorId::from_index(3)), Some(OpId::from_index(3)));
        assert!(matches!(chain(0).build(), Err(GraphError::ReadBeforeWrite { .. })));
        let error = chain(3).build_in_any_order().expect_err("a cycle");
        assert_eq!(error, GraphError::Cycle { operations: [0, 3, 1].map(OpId::from_index).to_vec() });
        assert_eq!(error.to_string(), "operations wait for each other in a cycle: 0 -> 3 -> 1 -> 0");
    }

    #[test]
    fn an_alias_lies_inside_its_base() {
        let bad = |tensor: Tensor, reason: &str| {
            let (mut graph, ..) = two();
            graph.add_tensor(tensor);
            match graph.build() {
                Err(GraphError::BadAlias { reason: found, .. }) => assert_eq!(found, reason),
                other => panic!("{other:?}"),
            }
        };
        let view = |bytes, base, offset| {
            Tensor::new("view", Bytes::new(bytes)).with_base(TensorId::from_index(base), Bytes::new(offset))
        };
        bad(view(5, 1, 4), "it extends beyond the end");
        bad(view(1, 7, 0), "there is no such tensor");
        bad(view(1, 2, 0), "the aliases form a cycle");
        bad(view(1, 1, 0).as_external(), "it is external, but its base is not");
    }

    fn kinds(graph: &Graph) -> Vec<&str> {
        graph.operations().iter().map(|operation| &*operation.op).collect()
    }

    #[test]
    fn an_update_keeps_its_turn_in_any_order() {
        let (mut graph, w, _) = two();
        let [gradient, late] =
            ["gradient", "late"].map(|name| graph.add_tensor(Tensor::new(name, Bytes::new(4))));
        let view = graph.add_tensor(Tensor::new("view", Bytes::new(2)).with_base(w, Bytes::new(1)));
        // Before the update: it waits for the operation added last, and the update must wait for it.
        graph.add_operation(Operation::new("read before").with_inputs([w, late]).with_outputs([gradient]));
        graph.add_operation(Operation::new("update").with_inputs([w]).with_outputs([w]));
        graph.add_operation(Operation::new("read after").with_inputs([view]));
        graph.add_operation(Operation::new("make w").with_outputs([w]));
        graph.add_operation(Operation::new("make late").with_outputs([late]));
        let graph = graph.build_in_any_order().expect("valid");
        assert_eq!(kinds(&graph), ["make w", "make late", "read before", "update", "read after"]);
    }

    #[test]
    fn an_update_whose_turn_contradicts_the_data_is_a_cycle() {
        let (mut graph, w, late) = two();
        let reader = graph.add_operation(Operation::new("read").with_inputs([w, late]));
        let update = graph.add_operation(Operation::new("update").with_inputs([w]).with_outputs([w]));
        let last = graph.add_operation(Operation::new("read").with_inputs([w]).with_outputs([late]));
        let error = GraphError::Cycle { operations: vec![reader, update, last] };
        assert_eq!(graph.build_in_any_order(), Err(error));
    }

    #[test]
    fn a_chain_of_200_000_views_is_built_at_once() {
        let mut graph = Graph::builder();
        let mut last = graph.add_tensor(Tensor::new("", Bytes::new(8)));
        graph.add_operation(Operation::new("make").with_outputs([last]));
        for _ in 0..200_000 {
            last = graph.add_tensor(Tensor::new("", Bytes::new(8)).with_base(last, Bytes::ZERO));
            graph.add_operation(Operation::new("look").with_inputs([last]));
        }
        let stopwatch = planlab_dsa::testing::Stopwatch::start();
        let graph = graph.build().expect("valid");
        assert_eq!(graph.tensor_place(last).root, TensorId::from_index(0));
        assert_eq!(graph.storages()[0].users.len(), 200_001);
        // Walks along the chain from each view take minutes.
        stopwatch.assert_within(std::time::Duration::from_secs(20));
    }

    #[test]
    fn too_many_dependencies_are_an_error() {
        let (mut graph, _, large) = two();
        let pieces = [0, 4]
            .map(|at| graph.add_tensor(Tensor::new("piece", Bytes::new(4)).with_base(large, Bytes::new(at))));
        for piece in pieces {
            graph.add_operation(Operation::new("f").with_outputs([piece]));
        }
        for _ in 0..3 {
            graph.add_operation(Operation::new("g").with_inputs([large]));
        }
        let graph = graph.build().expect("valid");
        assert_eq!(data_pairs(&graph, 6).map(|pairs| pairs.len()), Some(6));
        assert_eq!(data_pairs(&graph, 5), None);
    }
}
