//! A net of branches, for tests and benchmarks.

use planlab_dsa::Bytes;
use planlab_graph::{Graph, GraphBuilder, Operation, Tensor};

/// A net for training, of about `operations`: blocks of four branches of two operations, joined; the backward pass
/// mirrors them. Gradients of weights are operations that no other waits for.
pub(crate) fn branching(operations: usize) -> Graph {
    let mut graph = Graph::builder();
    let tensor = |graph: &mut GraphBuilder, bytes: u64| graph.tensor(Tensor::new("", Bytes::new(bytes)));
    let mut input = tensor(&mut graph, 4096);
    graph.operation(Operation::new("load").writes([input]));
    let mut saved = Vec::new();
    while graph.operations() * 25 / 9 < operations {
        let mut ends = Vec::new();
        for branch in 1..5 {
            let [middle, end] = [512 * branch, 1024].map(|bytes| tensor(&mut graph, bytes));
            let first = Operation::new("conv").reads([input]).writes([middle]);
            graph.operation(first.with_workspace(Bytes::new(300)));
            graph.operation(Operation::new("conv").reads([middle]).writes([end]));
            saved.extend([(input, middle), (middle, end)]);
            ends.push(end);
        }
        let joined = tensor(&mut graph, 4096);
        graph.operation(Operation::new("concat").reads(ends).writes([joined]));
        input = joined;
    }
    let mut gradient = tensor(&mut graph, 4096);
    graph.operation(Operation::new("loss").reads([input]).writes([gradient]));
    for &(from, to) in saved.iter().rev() {
        let bytes = graph.bytes(from).get();
        let next = tensor(&mut graph, bytes);
        let weights = graph.tensor(Tensor::new("", Bytes::new(64)).as_external());
        graph.operation(Operation::new("weights").reads([gradient, from]).writes([weights]));
        graph.operation(Operation::new("data").reads([gradient, to]).writes([next]));
        gradient = next;
    }
    graph.build().expect("a valid graph")
}
