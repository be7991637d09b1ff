//! Tests whole nets as graphs: plans that are safe in every order, their cost, and orders with a lower load.

use std::num::NonZeroUsize;

use planlab_dsa::{Budget, Bytes, Plan, execute};
use planlab_graph::{
    Dependencies, Graph, Lowered, Operation, Rehearsal, Safety, Tensor, TensorId, lower_for_all_orders,
    lower_graph,
};
use planlab_solvers::reorder::{BestOrder, HandOvers, Orders};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::branching::branching;
use crate::mxnet_totals::{GRAPHS, list, number, read};

/// A file's nodes as operations; variables, and gradients stored by the caller, are external.
fn net(file: &Value) -> Graph {
    let mut graph = Graph::builder();
    let nodes = list(&file["nodes"]);
    let place = |reference: &Value| (number(&reference[0]), number(&reference[1]));
    let outputs: Vec<(usize, usize)> = list(&file["outputs"]).iter().map(place).collect();
    let forward = number(&file["num_forward_outputs"]);
    let mut ids: Vec<Vec<TensorId>> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let tensor = |(output, bytes): (usize, &Value)| {
            let tensor = Tensor::new("", Bytes::new(bytes.as_u64().expect("a number")));
            match outputs.iter().position(|&other| other == (index, output)) {
                _ if node["op"].is_null() => tensor.as_external(),
                Some(turn) if turn < forward => tensor.as_output(),
                Some(_) => tensor.as_external(),
                None => tensor,
            }
        };
        let tensors = list(&node["out_bytes"]).iter().enumerate().map(tensor);
        ids.push(tensors.map(|tensor| graph.add_tensor(tensor)).collect());
        let Some(kind) = node["op"].as_str() else { continue };
        let reads: Vec<TensorId> =
            list(&node["inputs"]).iter().map(place).map(|(node, output)| ids[node][output]).collect();
        let mut operation = Operation::new(kind.to_owned()).with_outputs(ids[index].iter().copied());
        for pair in list(&node["inplace"]) {
            let (input, output) = (reads[number(&pair[0])], ids[index][number(&pair[1])]);
            if graph.tensor_bytes(output) <= graph.tensor_bytes(input) {
                operation = operation.with_in_place(input, output);
            }
        }
        graph.add_operation(operation.with_inputs(reads));
    }
    graph.build().expect("a valid graph")
}

fn plan(lowered: &Lowered) -> Plan {
    let planner = planlab_solvers::find_planner("first-fit/area").expect("it is there");
    let outcome = execute(&planner, &lowered.instance, Budget::default(), 0);
    let best = outcome.best.expect("a plan");
    Plan { offsets: best.offsets().to_vec(), in_place: best.in_place().to_vec() }
}

fn plans(graph: &Graph, dependencies: &Dependencies) -> [(Lowered, Plan); 3] {
    let safe =
        |safety| lower_for_all_orders(graph, &graph.operation_order(), dependencies, safety).expect("legal");
    let plain = lower_graph(graph, &graph.operation_order()).expect("legal");
    [plain, safe(Safety::KeepApart), safe(Safety::Widened)].map(|lowered| {
        let plan = plan(&lowered);
        (lowered, plan)
    })
}

/// The number of failures in the given number of runs.
fn failures(
    graph: &Graph,
    dependencies: &Dependencies,
    (lowered, plan): &(Lowered, Plan),
    runs: usize,
    side_by_side: usize,
) -> usize {
    let rehearsal = Rehearsal::new(graph, dependencies, lowered, plan);
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let side_by_side = NonZeroUsize::new(side_by_side).expect("more than 0");
    (0..runs).filter(|_| rehearsal.run_once(&mut rng, side_by_side).is_err()).count()
}

#[test]
fn safe_plans_survive_every_order_and_plain_ones_do_not() {
    let nets = GRAPHS.map(|name| net(&read(name)));
    let mut failed = 0;
    for graph in nets.iter().chain([&branching(200)]) {
        let dependencies = Dependencies::from_tensors(graph);
        let [plain, apart, widened] = plans(graph, &dependencies);
        for side_by_side in [1, 4] {
            assert_eq!(failures(graph, &dependencies, &apart, 100, side_by_side), 0);
            assert_eq!(failures(graph, &dependencies, &widened, 100, side_by_side), 0);
            failed += failures(graph, &dependencies, &plain, 100, side_by_side);
        }
        let height = |plan: &(Lowered, Plan)| plan.1.height(&plan.0.instance).expect("small");
        assert!(height(&plain) <= height(&apart), "safety is not free");
    }
    assert!(failed > 0);
}

/// Streams allow fewer orders, and so fewer buffers must be kept apart; with one stream, none.
#[test]
fn with_one_stream_a_plain_plan_is_safe() {
    let graph = net(&read("inception_bn_train_b32"));
    let dependencies = Dependencies::with_streams(&graph);
    let safe = lower_for_all_orders(&graph, &graph.operation_order(), &dependencies, Safety::KeepApart)
        .expect("legal");
    let plain = lower_graph(&graph, &graph.operation_order()).expect("legal");
    assert_eq!(safe.instance, plain.instance);
    assert_eq!(failures(&graph, &dependencies, &(plain.clone(), plan(&plain)), 3, 4), 0);
}

#[test]
fn better_orders_of_whole_nets_are_legal_and_no_worse() {
    for name in GRAPHS {
        let graph = net(&read(name));
        let dependencies = Dependencies::from_tensors(&graph);
        let search = BestOrder::default().with_work(1 << 16).with_sets(64);
        for hand_overs in [HandOvers::Counted, HandOvers::Relaxed] {
            let orders = Orders::new(&graph, &dependencies, hand_overs);
            let before = orders.load_of(&graph.operation_order());
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let found = search.run_stages(&orders, &Budget::default(), &mut rng, |_, _| {});
            let instance = lower_graph(&graph, &found.order).expect("a legal order").instance;
            let after = match hand_overs {
                HandOvers::Counted => instance.load_without_in_place().bytes,
                HandOvers::Relaxed => instance.load().bytes,
            };
            assert_eq!(after, found.load);
            assert!(found.bound <= after && after <= before, "{name}: {before} {after}");
        }
    }
}
