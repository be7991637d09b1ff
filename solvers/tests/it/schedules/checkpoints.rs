//! Tests checkpoints on MXNet's graph of a ResNet of 200 layers.

use std::convert::Infallible;

use planlab_dsa::{Budget, Bytes, execute};
use planlab_solvers::placement::sharing::{InPlaceEntries, entry_lifetimes};
use planlab_solvers::schedule::checkpoints::{
    Chen, Cut, Item, Memonger, Patent, Round, Thresholds, Update, cut_items,
};
use serde_json::Value;

use super::references::mirror::{MirrorGraph, MirrorNode, Reference};
use crate::mxnet_totals::{list, number, read};

/// The graph of a file, with nodes in execution order.
pub(crate) fn graph(name: &str) -> MirrorGraph {
    let file = read(name);
    let reference = |value: &Value| -> Reference { (number(&value[0]), number(&value[1])) };
    let node = |node: &Value| {
        let op = node["op"].as_str().map(str::to_owned);
        let outputs: Vec<_> =
            list(&node["out_bytes"]).iter().map(|bytes| Bytes::new(bytes.as_u64().expect("bytes"))).collect();
        let pair = |pair: &Value| InPlaceEntries {
            read: number(&pair[0]),
            write: number(&pair[1]),
            identity: pair[2].as_bool().expect("yes or no"),
        };
        MirrorNode {
            name: node["name"].as_str().expect("a name").to_owned(),
            // The statistics of a norm are visible only to its backward pass.
            visible: if op.as_deref() == Some("BatchNorm") { 1 } else { outputs.len() },
            op,
            inputs: list(&node["inputs"]).iter().map(reference).collect(),
            outputs,
            in_place: list(&node["inplace"]).iter().map(pair).collect(),
        }
    };
    let nodes = list(&file["nodes"]).iter().map(node).collect();
    let outputs = list(&file["outputs"]).iter().map(reference).collect();
    MirrorGraph::new(nodes, outputs, number(&file["num_forward_outputs"]))
}

fn mebibytes(rounds: &[Round]) -> Vec<(u64, u64)> {
    let whole = |bytes: f64| format!("{:.0}", bytes / 1_048_576.0).parse().expect("a number");
    rounds.iter().map(|round| (whole(round.threshold), round.cost >> 20)).collect()
}

/// The items of a graph whose blocks end at the inputs of residual blocks, and the cost of their cuts.
struct Net {
    graph: MirrorGraph,
    items: Vec<Item>,
    nodes: Vec<usize>,
}

impl Net {
    fn resnet200() -> Self {
        let graph = graph("resnet200_train_b32");
        let (items, nodes) = graph.items("elemwise_add");
        Self { graph, items, nodes }
    }

    fn shared(&self, cut: &Cut) -> Result<u64, Infallible> {
        Ok(self.graph.recomputed(cut, &self.nodes).shared_bytes(16))
    }

    /// The bytes of a plan with offsets, and the load.
    fn packed(&self, cut: &Cut) -> (Bytes, Bytes) {
        let graph = self.graph.recomputed(cut, &self.nodes).sharing();
        let instance = entry_lifetimes(&graph, true).expect("few buffers");
        let planner = planlab_solvers::find_planner("first-fit/area").expect("it is there");
        let height = execute(&planner, &instance, Budget::default(), 0).height().expect("a plan");
        (height, instance.load().bytes)
    }
}

#[test]
fn recomputation_gives_the_graph_of_the_original_program() {
    let net = Net::resnet200();
    assert_eq!(net.graph.shared_bytes(16) >> 20, 10_400);
    let cut = cut_items(&net.items, f64::from(576 << 20));
    let ours = net.graph.recomputed(&cut, &net.nodes);
    let theirs = graph("resnet200_memonger_t576_b32");
    assert_eq!((ours.nodes.len(), ours.nodes.len()), (3243, theirs.nodes.len()));
    for (ours, theirs) in ours.nodes.iter().zip(theirs.nodes) {
        assert_eq!((&ours.op, &ours.inputs, &ours.outputs), (&theirs.op, &theirs.inputs, &theirs.outputs));
    }
}

#[test]
fn memonger_tries_and_finds_what_the_original_program_does() {
    let net = Net::resnet200();
    let rounds = Memonger.search(&net.items, |cut| net.shared(cut)).expect("never fails");
    let expected = [
        (0, 2941),
        (889, 1992),
        (576, 1957),
        (707, 2105),
        (748, 2191),
        (789, 2191),
        (830, 1992),
        (871, 1992),
        (912, 1992),
    ];
    assert_eq!(mebibytes(&rounds), expected);
    let best = Memonger::choose_round(&rounds).expect("some");
    assert_eq!(best.threshold, f64::from(576 << 20));
    // Offsets for the same plan take a third less, and no plan takes fewer bytes.
    let (height, load) = net.packed(&best.cut);
    assert_eq!((height, height.get() / 104_858), (load, 12_917));
}

#[test]
fn the_patent_s_rules_differ_in_their_thresholds() {
    let net = Net::resnet200();
    let expected: [(Update, &[u64], u64); 4] = [
        (Update::Mean, &[0, 211, 301, 456, 544, 707, 832, 1010], 1992),
        (Update::Chen, &[0, 1259, 852, 815], 1992),
        (Update::Memonger, &[0, 891, 576, 650, 636, 653], 1862),
        (Update::Equal, &[0, 1295, 862, 785, 739], 1992),
    ];
    for (update, thresholds, least) in expected {
        let search = Patent::default().with_update(update);
        let rounds = search.search(&net.items, |cut| net.shared(cut)).expect("never fails");
        let tried: Vec<u64> = mebibytes(&rounds).iter().map(|&(threshold, _)| threshold).collect();
        assert_eq!(&tried[..thresholds.len()], thresholds, "{update:?}");
        let best = Patent::choose_round(&rounds).expect("some");
        assert_eq!(best.cost >> 20, least, "{update:?}");
        let (height, load) = net.packed(&best.cut);
        println!(
            "{update:?}: {least} MiB shared, {} MiB with offsets, load {}",
            height.get() >> 20,
            load.get() >> 20
        );
        assert!(height.get() < best.cost && height >= load, "{update:?}");
    }
}

#[test]
fn chen_s_grid_finds_no_more_than_its_first_guess_and_less_than_nothing_recomputed() {
    let net = Net::resnet200();
    let rounds = Chen.search(&net.items, |cut| net.shared(cut)).expect("never fails");
    println!("{:?}", mebibytes(&rounds));
    assert_eq!(rounds.len(), 8);
    let least = rounds.iter().map(|round| round.cost >> 20).min().expect("some");
    assert!(least <= rounds[1].cost >> 20 && least < 2941, "{least}");
}
