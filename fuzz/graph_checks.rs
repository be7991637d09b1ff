// What holds for any graph file. The fuzz target `graph` calls this with what the fuzzer finds, and the tests of
// `planlab-graph` with the seeds in `corpus/graph`.

use planlab_graph::{Dependencies, placement_problem, read_jsonl, write_dot, write_jsonl};

/// Checks that a graph is refused with a line, or comes back from its own text as it was; it can be lowered and drawn.
pub(crate) fn check_graph(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let graph = match read_jsonl("input", text) {
        Ok(graph) => graph,
        Err(error) => return assert!(error.line() >= 1, "{error}"),
    };
    let written = write_jsonl(&graph);
    let again = read_jsonl("again", &written).expect("what is written can be read");
    assert_eq!(again, graph, "{written}");
    assert_eq!(write_jsonl(&again), written);
    assert_eq!(Dependencies::from_tensors(&graph).check_order(&graph.operation_order()), Ok(()));
    let lowered = placement_problem(&graph, &graph.operation_order()).is_ok();
    assert_eq!(lowered, write_dot(&graph, &graph.operation_order()).is_ok());
}
