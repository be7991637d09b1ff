use std::collections::BTreeMap;

use planlab_dsa::Bytes;
use planlab_graph::{Operation, Tensor, TensorId, placement_problem};

use super::*;
use crate::models::net::{End, Net, NetValue};

fn graph(net: impl FnOnce(&Net) -> NetValue) -> Graph {
    let program = Net::record_run(Mode::Train, End::Loss, net).expect("shapes fit");
    lower_program(&program, Workspace::NONE).expect("small")
}

/// `kind: reads -> writes` of each operation of the backward pass.
fn backward(graph: &Graph) -> Vec<String> {
    let lines = graph.operations().iter().map(|operation| {
        let (reads, writes) = (names(graph, &operation.reads), names(graph, &operation.writes));
        format!("{}: {reads} -> {writes}", operation.op)
    });
    lines.skip_while(|line| !line.starts_with("seed")).skip(1).collect()
}

#[test]
fn each_backward_operation_reads_what_it_needs() {
    let graph = graph(|n| {
        let h = n.relu(n.dense_bias(n.new_input(vec![2, 3]), 4));
        n.binary_cross_entropy(n.dense(h, 1))
    });
    assert_eq!(
        backward(&graph),
        [
            "binary-cross-entropy-backward: binary-cross-entropy4.gradient linear3 -> linear3.gradient",
            "linear-weights: linear3.gradient relu2 -> linear3.weight.gradient",
            "linear-data: linear3.gradient linear3.weight -> relu2.gradient",
            "relu-backward: relu2.gradient relu2 -> linear1.gradient",
            "linear-weights: linear1.gradient input0 -> linear1.weight.gradient linear1.bias.gradient",
        ]
    );
    let (instance, labels) = placement_problem(&graph, &graph.operation_order()).expect("in order");
    let name = |buffer: planlab_dsa::BufferId| labels.buffers[buffer.index()].name.as_str();
    let pairs: Vec<_> =
        instance.in_place().iter().map(|pair| (name(pair.input), name(pair.output))).collect();
    assert_eq!(pairs, [("linear1", "relu2"), ("relu2.gradient", "linear1.gradient")]);
}

#[test]
fn a_gradient_that_two_values_share_is_not_added_to() {
    // s = a + b; the loss reads a again, after the sum. The gradient of s is that of b, too.
    let graph = graph(|n| {
        let x = n.new_input(vec![2, 3]);
        let (a, b) = (n.dense(x.clone(), 3), n.dense(x, 3));
        let s = n.add(a.clone(), b);
        let late = n.scale(a);
        n.binary_cross_entropy(n.stack(vec![s, late]))
    });
    let lines = backward(&graph);
    assert_eq!(
        lines[1..3],
        [
            "scale-backward: concat5.gradient -> linear1.gradient",
            "add-gradient: linear1.gradient concat5.gradient -> linear1.gradient",
        ]
    );
    assert!(lines.contains(&"linear-weights: concat5.gradient input0 -> linear2.weight.gradient".to_owned()));
}

#[test]
fn where_all_share_a_gradient_the_sum_is_a_tensor_of_its_own() {
    let graph = graph(|n| {
        let a = n.dense(n.new_input(vec![2, 3]), 3);
        let b = n.scale(a.clone());
        let s = n.add(a.clone(), b);
        n.binary_cross_entropy(n.add(s, a))
    });
    // The gradient of the last sum goes to a, to the first sum, and from there to a again and to b.
    assert_eq!(
        backward(&graph)[1..],
        [
            "add-gradient: add4.gradient -> linear1.gradient",
            "scale-backward: add4.gradient -> linear1.gradient-term2",
            "add-gradient: linear1.gradient linear1.gradient-term2 -> linear1.gradient",
            "linear-weights: linear1.gradient input0 -> linear1.weight.gradient",
        ]
    );
}

#[test]
fn slices_write_their_parts_of_one_gradient() {
    let graph = graph(|n| {
        let joined = n.dense(n.new_input(vec![2, 3]), 6);
        let part = |start| n.slice(joined.clone(), vec![0, start], vec![2, 3]);
        let product = n.multiply(part(0), part(3));
        n.binary_cross_entropy(n.add(product, n.scale(part(0))))
    });
    assert_eq!(
        backward(&graph)[1..],
        [
            "scale-backward: add7.gradient -> linear1.gradient",
            "multiply-backward: add7.gradient linear1 linear1.gradient -> linear1.gradient-term2 linear1.gradient",
            "add-gradient: linear1.gradient linear1.gradient-term2 -> linear1.gradient",
            "linear-weights: linear1.gradient input0 -> linear1.weight.gradient",
        ]
    );
}

#[test]
fn a_parameter_that_is_used_twice_has_one_gradient() {
    let graph = graph(|n| {
        let weights = n.new_parameter(vec![3, 3]);
        let h = n.project(n.new_input(vec![2, 3]), 3, [weights]);
        n.binary_cross_entropy(n.project(h, 3, [weights]))
    });
    let lines = backward(&graph);
    assert_eq!(lines[1], "linear-weights: linear2.gradient linear1 -> linear1.weight.gradient");
    assert_eq!(
        lines[3],
        "linear-weights: linear1.gradient input0 linear1.weight.gradient -> linear1.weight.gradient"
    );
}

fn names(graph: &Graph, tensors: &[TensorId]) -> String {
    let name = |tensor: &TensorId| graph.tensors()[tensor.index()].name.as_str();
    tensors.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_backward_pass_of_an_lstm_reads_both_weight_matrices() {
    let graph = graph(|n| {
        let h = n.lstm(n.new_input(vec![6, 3]), None, 2, 4);
        let state = n.lstm_state(h, 2);
        n.binary_cross_entropy(state)
    });
    assert_eq!(
        backward(&graph)[2..],
        ["lstm-backward: lstm1.gradient input0 lstm1 lstm1.weight lstm1.recurrent-weight lstm1.saved -> \
          lstm1.weight.gradient lstm1.recurrent-weight.gradient lstm1.bias.gradient \
          lstm1.recurrent-bias.gradient"]
    );
    let state = graph.operations().iter().find(|operation| operation.op == "lstm-state").expect("called");
    assert_eq!(names(&graph, &state.reads), "lstm1 lstm1.saved");
}

#[test]
fn the_cell_state_of_an_lstm_takes_memory_in_inference() {
    let program = Net::record_run(Mode::Infer, End::Output, |n| {
        let h = n.lstm(n.new_input(vec![6, 3]), None, 2, 4);
        let state = n.lstm_state(h, 2);
        n.lstm(n.new_input(vec![8, 3]), Some(state), 2, 4)
    });
    let graph = lower_program(&program.expect("shapes fit"), Workspace::NONE).expect("small");
    let lines: Vec<_> = graph
        .operations()
        .iter()
        .map(|operation| {
            format!("{} -> {}", names(&graph, &operation.reads[..2]), names(&graph, &operation.writes))
        })
        .collect();
    assert_eq!(
        lines,
        [
            "input0 lstm1.weight -> lstm1 lstm1.state",
            "lstm1 lstm1.state -> lstm-state2",
            "input1 lstm-state2 -> lstm3 lstm3.state",
        ]
    );
    let is_state = |tensor: &&Tensor| tensor.category.as_deref() == Some("state");
    let states: Vec<_> = graph.tensors().iter().filter(is_state).map(|tensor| tensor.bytes).collect();
    assert_eq!(states, [Bytes::new(2 * 4 * 4); 2]);
}

#[test]
fn views_are_no_operations() {
    let program = Net::record_run(Mode::Infer, End::Output, |n| {
        let h = n.dense(n.new_input(vec![2, 3]), 4);
        n.reshape(n.slice(h, vec![0, 2], vec![2, 2]), vec![4])
    });
    let graph = lower_program(&program.expect("shapes fit"), Workspace::NONE).expect("small");
    assert_eq!(graph.operations().len(), 1);
    let outputs: Vec<_> = graph.tensors().iter().filter(|tensor| tensor.output).collect();
    assert_eq!(outputs.len(), 1);
    assert_eq!((outputs[0].name.as_str(), outputs[0].bytes), ("linear1", Bytes::new(32)));
}

#[test]
fn counts_that_do_not_fit_are_errors() {
    let program =
        Net::record_run(Mode::Infer, End::Output, |n| n.dense(n.new_input(vec![1 << 40, 1 << 16]), 1 << 16));
    let error = lower_program(&program.expect("countable"), Workspace::NONE);
    assert!(matches!(error, Err(LowerError::TooLarge { call: 1, .. })), "{error:?}");
}

/// The result of each backward operation on single numbers, with all factors 1.
fn run(graph: &Graph) -> BTreeMap<String, u64> {
    let mut content = vec![0_u64; graph.tensors().len()];
    let is_backward = |operation: &&Operation| {
        ["-backward", "-data", "-weights", "-gradient"].iter().any(|end| operation.op.ends_with(end))
    };
    content[graph
        .operations()
        .iter()
        .find(|operation| operation.op == "seed")
        .map_or(0, |seed| seed.writes[0].index())] = 1;
    for operation in graph.operations().iter().filter(is_backward) {
        let read = |tensor: &TensorId| content[tensor.index()];
        let sum = match &operation.reads[..] {
            [both] if operation.op == "add-gradient" => 2 * read(both),
            all if operation.op == "add-gradient" => all.iter().map(read).sum(),
            all => read(&all[0]),
        };
        for tensor in &operation.writes {
            content[tensor.index()] = sum;
        }
    }
    let named = graph.tensors().iter().zip(content).filter(|(tensor, _)| tensor.external);
    named.map(|(tensor, content)| (tensor.name.clone(), content)).collect()
}

proptest::proptest! {
    /// However values are added up and read again, the gradient of a parameter counts the ways to the loss.
    #[test]
    fn a_gradient_counts_the_ways_to_the_loss(
        steps in proptest::collection::vec((0..4_u8, 0..100_usize, 0..100_usize), 1..14),
    ) {
        // For each value, the values that it is made from; a value appears twice if it counts twice.
        let mut sources: Vec<Vec<usize>> = vec![Vec::new()];
        let mut numbers = Vec::new();
        let graph = graph(|n| {
            let mut values = vec![n.dense(n.new_input(vec![1, 1]), 1)];
            numbers.push((1, 0));
            for &(kind, a, b) in &steps {
                let (a, b) = (a % values.len(), b % values.len());
                let (x, y) = (values[a].clone(), values[b].clone());
                let (value, of) = match kind {
                    0 => (n.add(x, y), vec![a, b]),
                    1 => (n.multiply(x, y), vec![a, b]),
                    2 => (n.scale(x), vec![a]),
                    _ => {
                        numbers.push((values.len() + 1, values.len()));
                        (n.dense(x, 1), vec![a])
                    }
                };
                values.push(value);
                sources.push(of);
            }
            n.binary_cross_entropy(values.pop().expect("not empty"))
        });
        let mut ways = vec![0_u64; sources.len()];
        ways[sources.len() - 1] = 1;
        for value in (0..sources.len()).rev() {
            for &source in &sources[value] {
                ways[source] += ways[value];
            }
        }
        let made = run(&graph);
        for (call, value) in numbers {
            let gradient = made.get(&format!("linear{call}.weight.gradient")).copied();
            proptest::prop_assert_eq!(gradient.unwrap_or(0), ways[value]);
        }
    }
}
