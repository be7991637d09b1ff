//! Nets for tests.

use std::path::Path;

use planlab_dsa::Bytes;
use planlab_graph::{FeatureMap, Function, FunctionKind, MapId, Net, Work};
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
pub(super) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/data/schedules").join(name);
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(zstd::decode_all(&packed[..]).expect("zstd")).expect("text")
}

/// ResNet-50 as Chainer runs it.
pub(super) fn resnet50(batch: u64) -> Net {
    let raw: RawNet =
        serde_json::from_str(&fixture("resnet50_chainer_per_image.json.zst")).expect("the fixture");
    let map = |raw: &RawTensor| FeatureMap {
        name: raw.name.clone(),
        bytes: Bytes::new(raw.bytes_per_image * batch),
    };
    let maps = raw.tensors.iter().map(map).collect();
    let functions = raw.ops.iter().map(|op| function(op, batch)).collect();
    let net = Net::new("resnet50", batch, raw.params, maps, functions).expect("a net");
    for (id, tensor) in net.map_ids().zip(&raw.tensors) {
        assert_eq!(net.is_retained(id), tensor.retained, "{}", tensor.name);
    }
    net
}

fn function(op: &RawOp, batch: u64) -> Function {
    let kind = match &op.kind[..] {
        "conv" => FunctionKind::Convolution,
        "fc" => FunctionKind::FullyConnected,
        "add" => FunctionKind::Add,
        _ => FunctionKind::Other,
    };
    let images = batch as f64;
    // A matrix product's bytes are those of its weights, whatever the batch.
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
