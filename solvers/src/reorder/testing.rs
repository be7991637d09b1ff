//! Random graphs for tests.

use planlab_dsa::{Bytes, Stream};
use planlab_graph::{Graph, OpId, Operation, Tensor, TensorId, lower};
use rand::{Rng, RngExt};

use super::HandOvers;

/// The load of an order, by its instance.
pub(super) fn load_of(graph: &Graph, order: &[OpId], hand_overs: HandOvers) -> Bytes {
    let instance = lower(graph, order).expect("legal").instance;
    match hand_overs {
        HandOvers::Counted => instance.load_without_in_place().bytes,
        HandOvers::Relaxed => instance.load().bytes,
    }
}

/// A random graph whose operations run on random streams: with few streams, few sets of operations can run first.
pub(super) fn random_graph_on(rng: &mut impl Rng, count: usize, streams: u32) -> Graph {
    let graph = random_graph(rng, count);
    let mut builder = Graph::builder();
    graph.tensors().iter().for_each(|tensor| _ = builder.tensor(tensor.clone()));
    for operation in graph.operations() {
        builder.operation(operation.clone().on_stream(Stream::new(rng.random_range(0..streams))));
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
        there.push(graph.tensor(if is_external { input.as_external() } else { input }));
    }
    for _ in 0..count {
        let mut operation = Operation::new("f");
        for _ in 0..rng.random_range(0..3).min(there.len()) {
            let recent = there.len().saturating_sub(6);
            operation = operation.reads([there[rng.random_range(recent..there.len())]]);
        }
        if rng.random_bool(0.2) {
            operation = operation.with_workspace(size(rng));
        }
        operation = match (operation.reads.first().copied(), rng.random_range(0..10)) {
            (Some(read), 0) => operation.writes([read]),
            (Some(read), 1) => {
                let view = Tensor::new("view", graph.bytes(read)).within(read, Bytes::ZERO);
                let view = graph.tensor(view);
                there.push(view);
                operation.writes([view])
            }
            (_, 2) => {
                let joined = graph.tensor(Tensor::new("joined", Bytes::new(20)));
                let piece = |at| Tensor::new("piece", Bytes::new(10)).within(joined, Bytes::new(at));
                let [left, right] = [0, 10].map(|at| graph.tensor(piece(at)));
                graph.operation(Operation::new("left").writes([left]));
                graph.operation(Operation::new("right").writes([right]));
                there.push(joined);
                operation.reads([joined])
            }
            (read, _) => {
                let output = Tensor::new("output", size(rng));
                let output = graph.tensor(if rng.random_bool(0.15) { output.as_output() } else { output });
                there.push(output);
                let fits = |read: &TensorId| graph.bytes(*read) >= graph.bytes(output);
                match read.filter(fits) {
                    Some(read) => operation.writes([output]).overwrites(read, output),
                    None => operation.writes([output]),
                }
            }
        };
        graph.operation(operation);
    }
    graph.build().expect("valid")
}
