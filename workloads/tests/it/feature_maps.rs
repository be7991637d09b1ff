//! Nets as feature maps, for schedulers.

use std::collections::BTreeMap;
use std::path::Path;

use planlab_graph::{TrainingNet, Work};
use planlab_workloads::models::{Mode, ModelError, Spec, find, models};
use serde_json::Value;

fn net(name: &str, batch: u64) -> TrainingNet {
    let spec = Spec::new(find(name).expect("a net"), Mode::Train, batch);
    spec.feature_maps().unwrap_or_else(|error| panic!("{error}"))
}

/// ResNet-50 of Chainer's example, per image.
fn fixture() -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("data/schedules/resnet50_chainer_per_image.json.zst");
    let packed = std::fs::read(path).expect("there is the file");
    serde_json::from_slice(&zstd::decode_all(&packed[..]).expect("zstd")).expect("JSON")
}

fn numbers(list: &Value) -> Vec<usize> {
    let numbers = list.as_array().expect("a list").iter();
    numbers.map(|number| usize::try_from(number.as_u64().expect("a number")).expect("small")).collect()
}

#[test]
fn resnet50_has_the_maps_functions_and_costs_of_the_fixture() {
    let (net, fixture) = (net("resnet50", 1), fixture());
    let list = |name: &str| fixture[name].as_array().expect("a list").clone();
    let sizes: Vec<u64> =
        list("tensors").iter().map(|tensor| tensor["bytes_per_image"].as_u64().expect("bytes")).collect();
    let ours: Vec<u64> = net.map_ids().map(|id| net.map(id).bytes.get()).collect();
    // The loss is one number; the fixture gives it the size of its scores.
    assert_eq!(ours[..ours.len() - 1], sizes[..sizes.len() - 1]);
    assert_eq!(net.map_ids().filter(|&id| net.is_retained(id)).count(), 105);
    assert_eq!(net.functions().len(), list("ops").len());
    for (ours, theirs) in net.functions().iter().zip(list("ops")) {
        let index = |id: &planlab_graph::MapId| id.index();
        assert_eq!(ours.inputs.iter().map(index).collect::<Vec<_>>(), numbers(&theirs["ins"]), "{theirs}");
        assert_eq!(ours.needs.iter().map(index).collect::<Vec<_>>(), numbers(&theirs["need"]), "{theirs}");
        let cost = |pass: &str| {
            let of = |what: &str| theirs[format!("{what}_{pass}_per_image")].as_f64().expect("a number");
            (of("flops"), of("bytes"))
        };
        let pair = |work: Work| (work.flops, work.bytes);
        assert_eq!(pair(ours.forward), cost("fwd"), "{theirs}");
        assert_eq!(pair(ours.backward), cost("bwd"), "{theirs}");
    }
}

#[test]
fn every_net_has_feature_maps_that_grow_with_the_batch() {
    for model in models() {
        let bytes = |batch: u64| -> u64 {
            let net = net(model.name, batch);
            net.map_ids().filter(|&id| net.is_retained(id)).map(|id| net.map(id).bytes.get()).sum()
        };
        let (one, four) = (bytes(1), bytes(4));
        assert!(one > 0 && four > 2 * one, "{}: {one} {four}", model.name);
    }
    let infer = Spec::new(find("alexnet").expect("a net"), Mode::Infer, 1);
    assert_eq!(infer.feature_maps(), Err(ModelError::NoBackward { net: "alexnet" }));
}

#[test]
fn alexnet_and_lstms_keep_what_their_backward_passes_need() {
    let alexnet = net("alexnet", 1);
    let retained = alexnet.map_ids().filter(|&id| alexnet.is_retained(id)).count();
    assert_eq!(retained, 13);
    let seq2seq = net("seq2seq", 4);
    let kinds: BTreeMap<bool, usize> =
        seq2seq.functions().iter().fold(BTreeMap::new(), |mut kinds, function| {
            *kinds.entry(function.name.ends_with(".gates")).or_default() += 1;
            kinds
        });
    assert_eq!(kinds[&true], 6);
}
