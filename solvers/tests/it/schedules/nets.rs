//! Nets for tests.

use std::path::Path;

use planlab_dsa::Bytes;
use planlab_graph::{
    FeatureMap, Function, FunctionKind, Machine, MapId, SchedulingProblem, TrainingNet, Work,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

#[derive(Deserialize)]
struct RawNet {
    params: u64,
    tensors: Vec<RawTensor>,
    ops: Vec<RawOp>,
}

#[derive(Deserialize)]
struct RawTensor {
    name: String,
    bytes_per_image: u64,
    retained: bool,
}

#[derive(Deserialize)]
struct RawOp {
    kind: String,
    name: String,
    ins: Vec<usize>,
    out: usize,
    flops_fwd_per_image: f64,
    flops_bwd_per_image: f64,
    bytes_fwd_per_image: f64,
    bytes_bwd_per_image: f64,
    need: Vec<usize>,
    first: bool,
}

/// A file of `workloads/data/schedules`.
pub(crate) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/data/schedules").join(name);
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(zstd::decode_all(&packed[..]).expect("zstd")).expect("text")
}

/// ResNet-50 as Chainer runs it.
pub(super) fn resnet50(batch: u64) -> TrainingNet {
    let raw: RawNet =
        serde_json::from_str(&fixture("resnet50_chainer_per_image.json.zst")).expect("the fixture");
    let map = |raw: &RawTensor| FeatureMap {
        name: raw.name.clone(),
        bytes: Bytes::new(raw.bytes_per_image * batch),
    };
    let maps = raw.tensors.iter().map(map).collect();
    let functions = raw.ops.iter().map(|op| function(op, batch)).collect();
    let net = TrainingNet::new("resnet50", batch, raw.params, maps, functions).expect("a net");
    for (id, tensor) in net.map_ids().zip(&raw.tensors) {
        assert_eq!(net.is_retained(id), tensor.retained, "{}", tensor.name);
    }
    net
}

/// ResNet-50 on a built-in machine.
pub(super) fn resnet50_on(machine: &str, batch: u64) -> SchedulingProblem {
    SchedulingProblem::new(resnet50(batch), Machine::built_in(machine).expect("built in"))
}

fn function(op: &RawOp, batch: u64) -> Function {
    let kind = match &op.kind[..] {
        "conv" => FunctionKind::Convolution,
        "fc" => FunctionKind::FullyConnected,
        "add" => FunctionKind::Add,
        _ => FunctionKind::Other,
    };
    let images = batch as f64;
    // A matrix product's bytes are those of its weights, for any batch size.
    let bytes = if op.kind == "fc" { 1.0 } else { images };
    let backward = match kind {
        FunctionKind::Convolution if !op.first => 2,
        FunctionKind::Add => 0,
        _ => 1,
    };
    let work =
        |flops: f64, moved: f64, launches| Work { flops: flops * images, bytes: moved * bytes, launches };
    let ids = |maps: &[usize]| maps.iter().map(|&map| MapId::from_index(map)).collect();
    Function {
        name: op.name.clone(),
        kind,
        inputs: ids(&op.ins),
        output: MapId::from_index(op.out),
        needs: ids(&op.need),
        forward: work(op.flops_fwd_per_image, op.bytes_fwd_per_image, 1),
        backward: work(op.flops_bwd_per_image, op.bytes_bwd_per_image, backward),
    }
}

/// A net of a few functions with branches, sums and joins, and tensors of a few bytes.
pub(super) fn random(rng: &mut ChaCha8Rng) -> TrainingNet {
    let mut maps = vec![FeatureMap { name: "image".to_owned(), bytes: Bytes::new(rng.random_range(1..9)) }];
    let mut functions: Vec<Function> = Vec::new();
    for index in 0..rng.random_range(3..12) {
        let output = MapId::from_index(maps.len());
        let (kind, inputs) = random_inputs(rng, &maps);
        let bytes = match kind {
            FunctionKind::Add => maps[inputs[0].index()].bytes,
            _ => Bytes::new(rng.random_range(1..9)),
        };
        let mut needs: Vec<_> = inputs.iter().copied().chain([output]).collect();
        needs.dedup();
        needs.retain(|_| kind != FunctionKind::Add && rng.random_bool(0.5));
        let mut work = || Work { flops: f64::from(rng.random_range(1..9_u8)), bytes: 1.0, launches: 0 };
        let (forward, backward) = (work(), work());
        maps.push(FeatureMap { name: format!("m{index}"), bytes });
        let name = format!("f{index}");
        functions.push(Function { name, kind, inputs, output, needs, forward, backward });
    }
    TrainingNet::new("random", 1, 0, maps, functions).expect("a net")
}

fn random_inputs(rng: &mut ChaCha8Rng, maps: &[FeatureMap]) -> (FunctionKind, Vec<MapId>) {
    // Mostly the newest map, so that the net is long.
    let mut pick = |recent: bool| if recent { maps.len() - 1 } else { rng.random_range(0..maps.len()) };
    let (newest, first, second) = (pick(true), pick(false), pick(false));
    let id = MapId::from_index;
    match rng.random_range(0..5) {
        0 if maps[first].bytes == maps[newest].bytes => (FunctionKind::Add, vec![id(newest), id(first)]),
        1 if first != second => (FunctionKind::Other, vec![id(first), id(second)]),
        2 => (FunctionKind::Other, vec![id(first)]),
        3 => (FunctionKind::Convolution, vec![id(newest)]),
        _ => (FunctionKind::Other, vec![id(newest)]),
    }
}

/// A machine on which a random net's copies take about as long as its functions.
pub(super) fn small_machine() -> Machine {
    Machine {
        name: "small".to_owned(),
        copy_out: 2.0,
        copy_in: 1.5,
        flops: 1.0,
        memory: 10.0,
        launch: 0.25,
        capacity: Bytes::new(1 << 20),
        bytes_per_parameter: 0,
        large_batch_slowdown: 1.0,
        workspace: Bytes::new(3),
    }
}

/// A chain of functions that each write a byte, with `room` bytes beside the base. A copy takes longer than many functions.
pub(super) fn unit_chain(functions: usize, room: u64) -> SchedulingProblem {
    let maps = vec![FeatureMap { name: String::new(), bytes: Bytes::new(1) }; functions + 1];
    let work = Work { flops: 1.0, bytes: 0.0, launches: 0 };
    let function = |index: usize| Function {
        inputs: vec![MapId::from_index(index)],
        output: MapId::from_index(index + 1),
        needs: vec![MapId::from_index(index)],
        forward: work,
        backward: work,
        ..Function::default()
    };
    let net = TrainingNet::new("chain", 1, 0, maps, (0..functions).map(function).collect()).expect("a net");
    let machine = Machine { copy_out: 0.02, copy_in: 0.02, ..small_machine() };
    let problem = SchedulingProblem::new(net, machine);
    let capacity = problem.base().get() + room;
    problem.with_capacity(Bytes::new(capacity))
}
