//! Tests nets as feature maps, for schedulers.

use planlab_graph::{ConvolutionAlgorithm, FunctionKind, Machine, SchedulingProblem, TrainingNet, Work};
use planlab_workloads::models::{Mode, ModelError, Spec, find, models};
use planlab_workloads::recorded::data_file;
use serde_json::Value;

fn net(name: &str, batch: u64) -> TrainingNet {
    let spec = Spec::new(find(name).expect("a net"), Mode::Train, batch);
    spec.feature_maps().unwrap_or_else(|error| panic!("{error}"))
}

/// ResNet-50 of Chainer's example, per image.
fn fixture() -> Value {
    let bytes = data_file("schedules/resnet50_chainer_per_image.json.zst").expect("it is embedded");
    serde_json::from_slice(&bytes).expect("JSON")
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
    let gates = seq2seq.functions().iter().filter(|function| function.name.ends_with(".gates"));
    assert_eq!(gates.count(), 6);
}

#[test]
fn every_convolution_has_its_kernel_and_nothing_else_has_one() {
    for model in models() {
        let net = net(model.name, 2);
        for id in net.function_ids() {
            let function = net.function(id);
            let is_convolution = function.kind == FunctionKind::Convolution;
            let has_kernel = net.convolution_kernel(id).is_some();
            assert_eq!(has_kernel, is_convolution, "{}: {}", model.name, function.name);
        }
    }
    let resnet = net("resnet50", 2);
    let first = resnet.convolution_kernel(resnet.function_ids().next().expect("one")).expect("a convolution");
    assert_eq!(
        (&first.extents[..], &first.strides[..], first.positions),
        (&[7, 7][..], &[2, 2][..], 112 * 112)
    );
    // Transposed convolutions move their windows over their outputs, once for each position of the input.
    let dcgan = net("dcgan", 2);
    let transposed = dcgan.function_ids().filter(|&id| dcgan.function(id).name.starts_with("transposed"));
    let positions: Vec<u64> =
        transposed.filter_map(|id| Some(dcgan.convolution_kernel(id)?.positions)).collect();
    assert_eq!(positions, [1, 4 * 4, 8 * 8, 16 * 16, 32 * 32]);
    let volumes = net("resnext101-3d", 1);
    let mut kernels = volumes.function_ids().filter_map(|id| volumes.convolution_kernel(id));
    assert!(kernels.all(|kernel| kernel.extents.len() == 3));
}

/// For each algorithm, fastest first, the number of ResNet-50's convolutions that use it. Then the largest workspace,
/// and the total time divided by that without a limit.
fn under_limit(batch: u64, factor: f64) -> ([usize; 4], u64, f64) {
    let machine = Machine::built_in("x86-pcie3").expect("built in");
    let problem = SchedulingProblem::new(net("resnet50", batch), machine);
    let choices = problem.convolution_algorithms(factor).expect("kernels");
    let count = |algorithm| choices.iter().filter(|choice| choice.algorithm == algorithm).count();
    let limited = problem.with_workspace_limit(factor).expect("kernels");
    let seconds = |problem: &SchedulingProblem| -> f64 {
        problem.times.forward().iter().chain(problem.times.backward()).sum()
    };
    let ratio = (seconds(&limited) / seconds(&problem) * 1e4).round() / 1e4;
    (ConvolutionAlgorithm::ALL.map(count), limited.machine.workspace.get(), ratio)
}

#[test]
fn a_workspace_limit_leaves_resnet50_other_algorithms() {
    // Without any workspace all 53 convolutions are plain products.
    assert_eq!(under_limit(32, 0.0), ([0, 0, 0, 53], 0, 1.1797));
    // At batch 1, the first convolution and the 3 x 3 ones of 64 and 128 channels cannot hold their indices: 4 * 9
    // bytes are more than 0.05 * 4 * 128. The largest one that can is 1 x 1 on 56 x 56.
    assert_eq!(under_limit(1, 0.05), ([0, 0, 45, 8], 4 * 56 * 56, 1.0302));
    assert_eq!(under_limit(32, 0.05), ([0, 0, 53, 0], 4 * 49 * 112 * 112, 1.0));
    // The first convolution uses FFT, and Winograd serves the 3 x 3 ones that do not halve the map.
    let transforms = 8 * 4 * (3 * 224 * 224 + 64 * 112 * 112);
    assert_eq!(under_limit(1, 20.0), ([16, 1, 36, 0], transforms, 0.9223));
    assert_eq!(under_limit(32, 20.0), ([16, 1, 36, 0], 32 * transforms, 0.8931));
}
