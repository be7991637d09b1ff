//! Models of ONNX as nets in training, with published figures.

use planlab_graph::{FunctionKind, TrainingNet};
use planlab_workloads::formats::import::read_training_net;
use planlab_workloads::formats::{Document, InputLimits, recognise_document};
use planlab_workloads::recorded::stored_file;

fn net(sample: &str) -> TrainingNet {
    let bytes = stored_file(sample).expect("embedded");
    let document = recognise_document(sample, bytes, InputLimits::default()).expect("readable");
    let Document::Foreign(reader, input) = document else { panic!("{sample} is not recognised") };
    assert_eq!(reader.key, "onnx");
    read_training_net(input, "net", None, &[]).expect("a net")
}

fn count_kind(net: &TrainingNet, kind: FunctionKind) -> usize {
    net.functions().iter().filter(|function| function.kind == kind).count()
}

#[test]
fn squeezenet_has_the_published_work() {
    let net = net("samples/squeezenet1_0_noweights.onnx");
    assert_eq!((net.batch(), count_kind(&net, FunctionKind::Convolution)), (1, 26));
    // Convolutions, ReLUs, concatenations, poolings.
    assert_eq!(net.functions().len(), 26 + 26 + 8 + 3 + 1);
    let flops: f64 = net.functions().iter().map(|function| function.forward.flops).sum();
    assert_eq!(flops, SQUEEZENET, "818.9 million products at 224 x 224");
}

const SQUEEZENET: f64 = 1637849152.0;

#[test]
fn alexnet_has_the_published_parameters() {
    let net = net("samples/light_bvlc_alexnet.onnx");
    assert_eq!(net.parameters(), 60_965_224);
    let kinds = [FunctionKind::Convolution, FunctionKind::FullyConnected];
    assert_eq!(kinds.map(|kind| count_kind(&net, kind)), [5, 3]);
    // Of 224 x 224 images, floats.
    assert_eq!(net.maps()[0].bytes.get(), 3 * 224 * 224 * 4);
}
