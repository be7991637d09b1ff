//! Compares PyTorch's recorded peaks with ours, on the recorded window and on the whole process.

use std::collections::BTreeMap;

use planlab_dsa::{Buffer, Bytes, Instance, Label, Labels, LiveRange, Simulated};
use planlab_results::recorded_peak::{Explanation, RecordedPeak};
use planlab_solvers::online::{Requests, Simulator, find_allocator};
use planlab_workloads::process::{Process, TIED_HEAD_KEY, iterations, process_of};
use planlab_workloads::recorded::manifest;
use planlab_workloads::{Catalog, Trace};

/// The peaks of reserved bytes and of bytes in use.
fn peaks(trace: &Trace) -> (u64, u64) {
    let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let sizes = buffers.map(|(buffer, label)| label.requested.unwrap_or(buffer.size)).collect();
    let requests = Requests::new(&trace.instance).with_sizes(sizes);
    let mut pool = find_allocator("pytorch-caching").expect("registered").build(Box::new(Simulated::new()));
    let mut simulator = Simulator::new(&requests, pool.as_mut()).with_audit();
    simulator
        .run_iteration()
        .unwrap_or_else(|error| panic!("{:?}: {error}", trace.labels.meta_value("workload")));
    (simulator.usage().reserved_peak.get(), simulator.used_peak().get())
}

/// The peaks that PyTorch recorded.
fn recorded(trace: &Trace) -> (u64, u64) {
    let bytes =
        |key: &str| trace.labels.meta_value(key).and_then(|value| value.parse().ok()).expect("a number");
    (bytes("torch-reserved-peak-bytes"), bytes("torch-alloc-peak-bytes"))
}

/// The recorded windows of PyTorch's allocator.
fn windows() -> Vec<(String, Trace)> {
    let keys = manifest().workload.iter().filter(|entry| process_of(&entry.key).is_some());
    keys.map(|entry| (entry.key.clone(), entry.read_trace().unwrap_or_else(|error| panic!("{error}"))))
        .collect()
}

#[test]
fn the_process_explains_the_recorded_peaks_to_the_byte() {
    let catalog = Catalog::new(None);
    let mut counts: BTreeMap<Explanation, usize> = BTreeMap::new();
    for (key, window) in windows() {
        let process = catalog.load(&process_of(&key).expect("one")).unwrap_or_else(|error| panic!("{error}"));
        let (torch, ours) = (recorded(&window), peaks(&process));
        let iterations = iterations(&window);
        let peak = RecordedPeak {
            recorded: torch.0,
            window: peaks(&window).0,
            process: Some(ours.0),
            has_tied_head: process.labels.meta_value(TIED_HEAD_KEY).is_some(),
            iterations: iterations.marked,
            iterations_differ: iterations.differ,
        };
        let explanation = peak.explanation();
        if explanation <= Explanation::TiedHead {
            assert_eq!(ours, torch, "{key}: {explanation:?}");
        }
        *counts.entry(explanation).or_default() += 1;
    }
    let counts: Vec<usize> =
        Explanation::ALL.iter().map(|kind| counts.get(kind).copied().unwrap_or_default()).collect();
    assert_eq!(counts, [15, 0, 26, 4, 4, 1, 4]);
}

#[test]
fn three_of_four_tied_heads_are_needed() {
    let (mut tied, mut needed) = (0, 0);
    for (key, window) in windows() {
        let process = Process::from_pid(&window).unwrap_or_else(|error| panic!("{key}: {error}"));
        let with_head = process.trace().unwrap_or_else(|error| panic!("{key}: {error}"));
        if with_head.labels.meta_value(TIED_HEAD_KEY).is_some() {
            let without = process.without_tied_head().trace().expect("the same without one weight");
            tied += 1;
            needed += usize::from(peaks(&without) != recorded(&window));
        }
    }
    assert_eq!((tied, needed), (4, 3));
}

/// The step of a mark of a process.
fn mark(process: &Trace, name: &str) -> u32 {
    let mut marks = process.labels.meta_value("marks").expect("it has marks").split(' ');
    let step = marks.find_map(|mark| mark.strip_prefix(name)?.strip_prefix('@'));
    step.and_then(|step| step.parse().ok()).expect("a step")
}

/// A process with two more requests, the weight and the bias of the backbone's classifier. They come before the first
/// row of the heads, which has this name, and are freed after the last parameter.
fn with_classifier(process: &Trace, heads: &str) -> Trace {
    let first = process.labels.buffers.iter().position(|label| label.name == heads).expect("a row");
    let (heads, built) = (process.instance.buffers()[first].live.start().get(), mark(process, "warm-up"));
    let moved = |step: u32| step + 2 * u32::from(step >= heads) + 2 * u32::from(step >= built);
    let live = |start: u32, end: u32| LiveRange::new(start, end).expect("its free is a later step");
    let mut buffers: Vec<Buffer> = process.instance.buffers().to_vec();
    for buffer in &mut buffers {
        buffer.live = live(moved(buffer.live.start().get()), moved(buffer.live.end().get()));
    }
    let mut labels: Labels = process.labels.clone();
    for (at, size) in [(0, 8_192_000), (1, 4_000)] {
        buffers.push(Buffer::new(Bytes::new(size), live(heads + at, built + 2 + at)));
        labels.buffers.push(Label { name: format!("classifier/{at}"), ..Label::default() });
    }
    Trace::new(Instance::from_buffers(buffers).expect("it fits"), labels)
}

#[test]
fn two_requests_that_the_trace_does_not_show_explain_fcn_and_deeplab() {
    // The last row of the backbone is 317 in each trace.
    const HEADS: &str = "318";
    let catalog = Catalog::new(None);
    for net in ["fcn", "deeplabv3"] {
        for mode in ["infer/b1", "train/b8"] {
            let key = format!("torch/{net}-resnet50/{mode}/process");
            let process = catalog.load(&key).unwrap_or_else(|error| panic!("{error}"));
            let torch = recorded(&process);
            assert_ne!(peaks(&process), torch, "{key}");
            assert_eq!(peaks(&with_classifier(&process, HEADS)), torch, "{key}");
        }
    }
}

#[test]
fn every_recorded_trace_of_pytorch_has_a_process() {
    let catalog = Catalog::new(None);
    let keys = catalog.keys();
    let processes: Vec<&String> = keys.iter().filter(|key| key.ends_with("/process")).collect();
    assert_eq!(processes.len(), 54);
    for key in processes {
        assert!(catalog.describe(key).expect("listed").starts_with("the process that torch/"), "{key}");
    }
    let key = "torch/resnet50/train/b64/process";
    let process = catalog.load(key).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(process.labels.meta_value("workload"), Some(key));
    assert_eq!(catalog.buffer_count(key).expect("loaded"), process.instance.len());
    let error = catalog.load("torch-cpu/resnet50/infer/b1/process").expect_err("of another route");
    assert!(error.to_string().starts_with("there is no workload"), "{error}");
}
