//! Random graphs for tests.

use planlab_dsa::{Bytes, Stream};
use planlab_graph::{Graph, OpId, Operation, Tensor, TensorId, lower_graph};
use rand::{Rng, RngExt};

use super::HandOvers;

/// The load of an order, by its instance.
pub(super) fn load_of(graph: &Graph, order: &[OpId], hand_overs: HandOvers) -> Bytes {
    let instance = lower_graph(graph, order).expect("legal").instance;
    match hand_overs {
        HandOvers::Counted => instance.load_without_in_place().bytes,
        HandOvers::Relaxed => instance.load().bytes,
    }
}

/// A random graph whose operations run on random streams: with few streams, few sets of operations can run first.
pub(super) fn random_graph_on(rng: &mut impl Rng, count: usize, streams: u32) -> Graph {
    let graph = random_graph(rng, count);
    let mut builder = Graph::builder();
    graph.tensors().iter().for_each(|tensor| _ = builder.add_tensor(tensor.clone()));
    for operation in graph.operations() {
        builder.add_operation(operation.clone().on_stream(Stream::new(rng.random_range(0..streams))));
    }
    builder.build().expect("streams break no rule")
}

/// A graph of `count` operations with inputs, outputs, workspaces, permissions, views, joined pieces and changes in
/// place.
pub(crate) fn random_graph(rng: &mut impl Rng, count: usize) -> Graph {
    let mut graph = Graph::builder();
    let mut there: Vec<TensorId> = Vec::new();
    let size = |rng: &mut _| Bytes::new(RngExt::random_range(rng, 1..40));
    for number in 0..rng.random_range(0..3) {
        let input = Tensor::new(format!("input {number}"), size(rng));
        let is_external = rng.random_bool(0.4);
        there.push(graph.add_tensor(if is_external { input.as_external() } else { input }));
    }
    for _ in 0..count {
        let mut operation = Operation::new("f");
        for _ in 0..rng.random_range(0..3).min(there.len()) {
            let recent = there.len().saturating_sub(6);
            operation = operation.with_inputs([there[rng.random_range(recent..there.len())]]);
        }
        if rng.random_bool(0.2) {
            operation = operation.with_workspace(size(rng));
        }
        operation = match (operation.reads.first().copied(), rng.random_range(0..10)) {
            (Some(read), 0) => operation.with_outputs([read]),
            (Some(read), 1) => {
                let view = Tensor::new("view", graph.tensor_bytes(read)).with_base(read, Bytes::ZERO);
                let view = graph.add_tensor(view);
                there.push(view);
                operation.with_outputs([view])
            }
            (_, 2) => {
                let joined = graph.add_tensor(Tensor::new("joined", Bytes::new(20)));
                let piece = |at| Tensor::new("piece", Bytes::new(10)).with_base(joined, Bytes::new(at));
                let [left, right] = [0, 10].map(|at| graph.add_tensor(piece(at)));
                graph.add_operation(Operation::new("left").with_outputs([left]));
                graph.add_operation(Operation::new("right").with_outputs([right]));
                there.push(joined);
                operation.with_inputs([joined])
            }
            (read, _) => {
                let output = Tensor::new("output", size(rng));
                let output =
                    graph.add_tensor(if rng.random_bool(0.15) { output.as_output() } else { output });
                there.push(output);
                let fits = |read: &TensorId| graph.tensor_bytes(*read) >= graph.tensor_bytes(output);
                match read.filter(fits) {
                    Some(read) => operation.with_outputs([output]).with_in_place(read, output),
                    None => operation.with_outputs([output]),
                }
            }
        };
        graph.add_operation(operation);
    }
    graph.build().expect("valid")
}
