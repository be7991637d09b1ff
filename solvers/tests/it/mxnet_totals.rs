//! The totals that MXNet 0.11 prints for its own graphs, and those of the same rule without in-place
//! operations and with colours, all of them: `workloads/data/schedules`.

use std::collections::BTreeMap;
use std::path::Path;

use planlab_dsa::Bytes;
use planlab_solvers::placement::sharing::{
    BlockSharing, Entry, InPlaceEntries, Node, PatentFreeList, SharedBlocks, SharingGraph,
};
use serde_json::Value;

const GRAPHS: [&str; 4] =
    ["inception_bn_train_b32", "inception_bn_fwd_b32", "resnet200_train_b32", "resnet200_memonger_t576_b32"];

fn read(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/data/schedules");
    let packed = std::fs::read(folder.join(format!("{name}.json.zst"))).expect("the file is there");
    let text = zstd::decode_all(packed.as_slice()).expect("zstd");
    serde_json::from_slice(&text).expect("JSON")
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a number")).expect("small")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// The graph of a file: nodes in execution order, those without an operation are variables. What is
/// given back after the forward outputs are gradients, for which the caller has storage.
fn graph(file: &Value) -> SharingGraph {
    let mut entries = Vec::new();
    let mut first = Vec::new();
    for node in list(&file["nodes"]) {
        first.push(entries.len());
        let external = node["op"].is_null();
        for bytes in list(&node["out_bytes"]) {
            let bytes = Bytes::new(bytes.as_u64().expect("a number"));
            entries.push(Entry { bytes, external, held: 0 });
        }
    }
    let at = |reference: &Value| first[number(&reference[0])] + number(&reference[1]);
    let forward = number(&file["num_forward_outputs"]);
    for (turn, output) in list(&file["outputs"]).iter().enumerate() {
        let entry: &mut Entry = &mut entries[at(output)];
        if turn < forward {
            entry.held += 1;
        } else {
            entry.external = true;
        }
    }
    let short = |entry: usize| u32::try_from(entry).expect("few");
    let mut nodes = Vec::new();
    for (node, &first) in list(&file["nodes"]).iter().zip(&first) {
        if node["op"].is_null() {
            continue;
        }
        let pair = |pair: &Value| InPlaceEntries {
            read: number(&pair[0]),
            write: number(&pair[1]),
            identity: pair[2].as_bool().expect("yes or no"),
        };
        nodes.push(Node {
            reads: list(&node["inputs"]).iter().map(|input| short(at(input))).collect(),
            writes: (first..first + list(&node["out_bytes"]).len()).map(short).collect(),
            in_place: list(&node["inplace"]).iter().map(pair).collect(),
        });
    }
    SharingGraph::new(entries, nodes).expect("a valid graph")
}

/// The rules of a key such as `colors=2,inplace=1,range=16`.
fn rules(key: &str) -> BlockSharing {
    let parts: BTreeMap<&str, u64> = key
        .split(',')
        .map(|part| part.split_once('=').expect("key=value"))
        .map(|(name, value)| (name, value.parse().expect("a number")))
        .collect();
    BlockSharing::default()
        .with_colours(u32::try_from(parts["colors"]).expect("few"))
        .with_in_place(parts["inplace"] == 1)
        .with_match_range(parts["range"])
}

fn mebibytes(shared: &SharedBlocks) -> u64 {
    shared.total().get() >> 20
}

#[test]
fn every_total_is_the_expected_one() {
    let mut checked = 0;
    for name in GRAPHS {
        let file = read(name);
        let graph = graph(&file);
        for (key, expected) in file["expected"].as_object().expect("totals") {
            let shared = rules(key).plan(&graph);
            let found = (shared.total().get(), mebibytes(&shared), shared.blocks.len());
            let total = |field: &str| expected[field].as_u64().expect("a number");
            assert_eq!(found, (total("bytes"), total("MB"), number(&expected["blocks"])), "{name} {key}");
            checked += 1;
        }
    }
    assert_eq!(checked, 4 * 2 * 7 * 4);
}

/// The table of the memcost example, in MiB: no optimisation, in place, sharing, both, forward only.
#[test]
fn the_memcost_table_is_what_its_rules_give() {
    let train = graph(&read("inception_bn_train_b32"));
    let total = |in_place: bool, range: u64, graph: &SharingGraph| {
        mebibytes(&BlockSharing::default().with_in_place(in_place).with_match_range(range).plan(graph))
    };
    let columns = [(false, 0), (true, 0), (false, 16), (true, 16)];
    assert_eq!(columns.map(|(in_place, range)| total(in_place, range, &train)), [3826, 2781, 1504, 1340]);
    assert_eq!(total(true, 16, &graph(&read("inception_bn_fwd_b32"))), 242);
}

/// The windows of the free list, in MiB: with in-place operations, as NNVM searches them, and as the claims
/// have it, without.
#[test]
fn the_windows_of_the_free_list_give_the_same_with_in_place_operations() {
    let windows = |rules: BlockSharing, graph: &SharingGraph| {
        [1, 2, 4, 8, 16].map(|window| mebibytes(&rules.with_match_range(window).plan(graph)))
    };
    let train = graph(&read("inception_bn_train_b32"));
    let memonger = graph(&read("resnet200_memonger_t576_b32"));
    let rules = PatentFreeList::rules().with_in_place(true);
    let sorted = rules.with_largest_first(true);
    assert_eq!(windows(sorted, &train), [1771, 1391, 1341, 1340, 1340]);
    assert_eq!(windows(sorted, &memonger), [3165, 1948, 1948, 1958, 1957]);
    for graph in [train, memonger] {
        // The order within a node hardly matters: no total differs by more than a hundredth.
        for (sorted, unsorted) in windows(sorted, &graph).into_iter().zip(windows(rules, &graph)) {
            assert!(sorted.abs_diff(unsorted) * 100 <= sorted, "{sorted} {unsorted}");
        }
    }
}
