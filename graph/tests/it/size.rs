//! Large graphs. Each test finishes quickly; a quadratic step would take minutes or more.

use std::time::Duration;

use planlab_dsa::Bytes;
use planlab_dsa::testing::Stopwatch;
use planlab_graph::{Dependencies, Graph, GraphBuilder, OpId, Operation, Tensor, TensorId, lower_graph};

/// Ten times what a debug build takes, much shorter than a quadratic step.
const LIMIT: Duration = Duration::from_secs(30);

fn within_the_limit<T>(act: impl FnOnce() -> T) -> T {
    let stopwatch = Stopwatch::start();
    let result = act();
    stopwatch.assert_within(LIMIT);
    result
}

fn tensor(graph: &mut GraphBuilder, bytes: u64) -> TensorId {
    graph.add_tensor(Tensor::new("", Bytes::new(bytes)))
}

/// A storage that `count` pieces of one byte fill.
fn joined(graph: &mut GraphBuilder, count: usize) -> (TensorId, Vec<TensorId>) {
    let root = tensor(graph, count as u64);
    let piece = |at| Tensor::new("", Bytes::new(1)).with_base(root, Bytes::new(at));
    let pieces = (0..count as u64).map(|at| graph.add_tensor(piece(at))).collect();
    (root, pieces)
}

#[test]
fn views_of_joined_pieces_depend_on_their_own_piece() {
    let count = 100_000;
    let mut graph = Graph::builder();
    let (root, pieces) = joined(&mut graph, count);
    for &piece in &pieces {
        graph.add_operation(Operation::new("make").with_outputs([piece]));
    }
    for at in 0..count as u64 {
        let view = graph.add_tensor(Tensor::new("", Bytes::new(1)).with_base(root, Bytes::new(at)));
        graph.add_operation(Operation::new("read").with_inputs([view]));
    }
    within_the_limit(|| {
        let graph = graph.build().expect("valid");
        let lowered = lower_graph(&graph, &graph.operation_order()).expect("legal");
        assert_eq!(lowered.storages[0].users.len(), 2 * count);
        let dependencies = Dependencies::from_tensors(&graph);
        assert_eq!(dependencies.before(OpId::from_index(count + 7)), [OpId::from_index(7)]);
    });
}

/// An optimizer that repeatedly updates all parameters, views of one storage, in one operation.
#[test]
fn fused_updates_count_once() {
    let (count, rounds) = (2_000, 50);
    let mut graph = Graph::builder();
    let (_, weights) = joined(&mut graph, count);
    for _ in 0..rounds {
        for &weight in &weights {
            graph.add_operation(Operation::new("read").with_inputs([weight]));
        }
        graph.add_operation(
            Operation::new("update").with_inputs(weights.clone()).with_outputs(weights.clone()),
        );
    }
    within_the_limit(|| {
        let graph = graph.build().expect("valid");
        let dependencies = Dependencies::from_tensors(&graph);
        let (first, second) = (OpId::from_index(count), OpId::from_index(2 * count + 1));
        assert_eq!(dependencies.before(second).len(), count);
        assert_eq!(dependencies.before(OpId::from_index(count + 1)), [first]);
    });
}

#[test]
fn an_operation_may_have_many_inputs_and_outputs() {
    let count = 100_000;
    let mut graph = Graph::builder();
    let [inputs, outputs] = [(); 2].map(|()| (0..count).map(|_| tensor(&mut graph, 1)).collect::<Vec<_>>());
    let mut all = Operation::new("all")
        .with_inputs(inputs.clone())
        .with_outputs(outputs.clone())
        .with_outputs(inputs.clone());
    all.in_place = inputs.iter().copied().zip(outputs).collect();
    graph.add_operation(all);
    within_the_limit(|| {
        let graph = graph.build().expect("valid");
        assert_eq!(
            lower_graph(&graph, &graph.operation_order()).expect("legal").instance.in_place().len(),
            count
        );
    });
}

#[test]
fn a_net_of_200_000_operations_is_lowered_at_once() {
    let mut graph = Graph::builder();
    let mut last = tensor(&mut graph, 8);
    for _ in 0..200_000 {
        let next = tensor(&mut graph, 8);
        graph.add_operation(
            Operation::new("f").with_inputs([last]).with_outputs([next]).with_in_place(last, next),
        );
        last = next;
    }
    within_the_limit(|| {
        let graph = graph.build().expect("valid");
        let instance = lower_graph(&graph, &graph.operation_order()).expect("legal").instance;
        assert_eq!(
            (instance.load_without_in_place().bytes, instance.load().bytes),
            (Bytes::new(16), Bytes::new(8))
        );
    });
}
