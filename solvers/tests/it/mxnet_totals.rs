//! Tests against the totals that MXNet 0.11 prints for its own graphs, and those of the same rule without in-place
//! operations and with colours: `workloads/data/schedules`.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;
use planlab_solvers::placement::sharing::{
    BlockSharing, PatentFreeList, SharedBlocks, SharingGraph, Strategy, memory_cost,
};
use serde_json::Value;

use crate::schedules::checkpoints::graph as mirror_graph;
use crate::schedules::nets::fixture;

pub(crate) const GRAPHS: [&str; 4] =
    ["inception_bn_train_b32", "inception_bn_fwd_b32", "resnet200_train_b32", "resnet200_memonger_t576_b32"];

pub(crate) fn read(name: &str) -> Value {
    serde_json::from_str(&fixture(&format!("{name}.json.zst"))).expect("JSON")
}

pub(crate) fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a number")).expect("small")
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn graph(name: &str) -> SharingGraph {
    mirror_graph(name).sharing()
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
    shared.total_bytes().get() >> 20
}

#[test]
fn every_total_is_the_expected_one() {
    let mut checked = 0;
    for name in GRAPHS {
        let file = read(name);
        let graph = graph(name);
        for (key, expected) in file["expected"].as_object().expect("totals") {
            let shared = rules(key).plan(&graph);
            let found = (shared.total_bytes().get(), mebibytes(&shared), shared.blocks.len());
            let total = |field: &str| expected[field].as_u64().expect("a number");
            assert_eq!(found, (total("bytes"), total("MB"), number(&expected["blocks"])), "{name} {key}");
            checked += 1;
        }
    }
    assert_eq!(checked, 4 * 2 * 7 * 4);
}

/// The table of the memcost example, in MiB with the number of blocks. Beside it, in tenths of a MiB, the load of the
/// same lifetimes and the height of best fit.
#[test]
fn the_memory_cost_table_is_what_its_rules_give() {
    let [train, forward] = ["inception_bn_train_b32", "inception_bn_fwd_b32"].map(graph);
    let planner = planlab_solvers::find_planner("best-fit").expect("it is there");
    let rows = memory_cost(&train, Some(&forward), &planner).expect("few buffers");
    let costs: Vec<_> = rows
        .iter()
        .map(|row| {
            let height = row.height.map(tenths).expect("a plan");
            (row.strategy, row.bytes.get() >> 20, row.blocks, tenths(row.load), height)
        })
        .collect();
    let expected = [
        (Strategy::NoOptimisation, 3826, 641, 11983, 11991),
        (Strategy::InPlace, 2781, 489, 11983, 11983),
        (Strategy::Sharing, 1504, 304, 11983, 11991),
        (Strategy::Both, 1340, 303, 11983, 11983),
        (Strategy::ForwardOnly, 242, 11, 1960, 1960),
    ];
    assert_eq!(costs, expected);
    assert_eq!(rows[3].height, Some(rows[3].load), "optimal");
}

/// Offsets for the lifetimes of the other graphs reach their load, too.
#[test]
fn offsets_beat_blocks_on_deep_nets() {
    let planner = planlab_solvers::find_planner("first-fit/area").expect("it is there");
    for (name, both, load) in
        [("resnet200_train_b32", 10400, 102_318), ("resnet200_memonger_t576_b32", 1957, 12_917)]
    {
        let rows = memory_cost(&graph(name), None, &planner).expect("few buffers");
        assert_eq!(rows.len(), 4, "no forward pass was given");
        assert_eq!((rows[3].bytes.get() >> 20, tenths(rows[3].load)), (both, load), "{name}");
        assert_eq!(rows[3].height, Some(rows[3].load), "{name}");
    }
}

fn tenths(bytes: Bytes) -> u64 {
    (bytes.get() * 10 + (1 << 19)) >> 20
}

/// The windows of the free list, in MiB: with in-place operations, as NNVM searches them, and without, as in the
/// claims.
#[test]
fn the_windows_of_the_free_list_give_the_same_with_in_place_operations() {
    let windows = |rules: BlockSharing, graph: &SharingGraph| {
        [1, 2, 4, 8, 16].map(|window| mebibytes(&rules.with_match_range(window).plan(graph)))
    };
    let train = graph("inception_bn_train_b32");
    let memonger = graph("resnet200_memonger_t576_b32");
    let rules = PatentFreeList::window_rules().with_in_place(true);
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
