//! A net of branches, for tests and benchmarks.

use planlab_dsa::Bytes;
use planlab_graph::{Graph, GraphBuilder, Operation, Tensor};

/// A net for training, of about `operations`: blocks of four branches of two operations, joined; the backward pass
/// mirrors them. Gradients of weights are operations that no other waits for.
pub(crate) fn branching(operations: usize) -> Graph {
    let mut graph = Graph::builder();
    let tensor = |graph: &mut GraphBuilder, bytes: u64| graph.add_tensor(Tensor::new("", Bytes::new(bytes)));
    let mut input = tensor(&mut graph, 4096);
    graph.add_operation(Operation::new("load").with_outputs([input]));
    let mut saved = Vec::new();
    while graph.operation_count() * 25 / 9 < operations {
        let mut ends = Vec::new();
        for branch in 1..5 {
            let [middle, end] = [512 * branch, 1024].map(|bytes| tensor(&mut graph, bytes));
            let first = Operation::new("conv").with_inputs([input]).with_outputs([middle]);
            graph.add_operation(first.with_workspace(Bytes::new(300)));
            graph.add_operation(Operation::new("conv").with_inputs([middle]).with_outputs([end]));
            saved.extend([(input, middle), (middle, end)]);
            ends.push(end);
        }
        let joined = tensor(&mut graph, 4096);
        graph.add_operation(Operation::new("concat").with_inputs(ends).with_outputs([joined]));
        input = joined;
    }
    let mut gradient = tensor(&mut graph, 4096);
    graph.add_operation(Operation::new("loss").with_inputs([input]).with_outputs([gradient]));
    for &(from, to) in saved.iter().rev() {
        let bytes = graph.tensor_bytes(from).get();
        let next = tensor(&mut graph, bytes);
        let weights = graph.add_tensor(Tensor::new("", Bytes::new(64)).as_external());
        graph.add_operation(Operation::new("weights").with_inputs([gradient, from]).with_outputs([weights]));
        graph.add_operation(Operation::new("data").with_inputs([gradient, to]).with_outputs([next]));
        gradient = next;
    }
    graph.build().expect("a valid graph")
}
