//! The recorded corpus matches its manifest.

use std::collections::BTreeSet;

use planlab_dsa::{Bytes, Digest};
use planlab_workloads::Catalog;
use planlab_workloads::expected::{expected_figures, pool_costs, retained_bytes};
use planlab_workloads::recorded::{data_file, manifest, stored_file, stored_files};

#[test]
fn every_workload_has_the_digest_size_and_load_of_its_line() {
    assert!(manifest().workload.len() >= 130);
    for entry in &manifest().workload {
        let trace = entry.read_trace().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(trace.instance.digest(), entry.digest, "{}", entry.key);
        assert_eq!(trace.instance.len(), entry.buffers, "{}", entry.key);
        assert_eq!(trace.instance.load().bytes.get(), entry.load, "{}", entry.key);
        assert!(trace.notices.is_empty(), "{}: {:?}", entry.key, trace.notices);
        assert!(entry.provenance.len() > 20, "{}", entry.key);
    }
}

#[test]
fn every_file_is_listed_once_and_whole() {
    let workloads = manifest().workload.iter().map(|entry| entry.file.as_str());
    let files = manifest().file.iter().map(|entry| entry.file.as_str());
    let listed: Vec<&str> = workloads.chain(files).chain(["MANIFEST.toml"]).collect();
    assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>().len(), listed.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), stored_files().into_iter().collect());
    for entry in &manifest().file {
        let bytes = stored_file(&entry.file).expect("embedded");
        assert_eq!(Digest::of_bytes(bytes), entry.digest, "{}", entry.file);
        assert!(!data_file(&entry.file).expect("embedded").is_empty(), "{}", entry.file);
    }
}

#[test]
fn keys_ascend_and_are_found() {
    let keys: Vec<&str> = manifest().workload.iter().map(|entry| entry.key.as_str()).collect();
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    let catalog = Catalog::new(None);
    for key in
        ["torch/resnet50/train/b64/ws8m", "torch-cpu/bert-base/infer/b1/s128", "onnx/resnet50/infer/b1"]
    {
        let trace = catalog.load(key).expect(key);
        assert_eq!(trace.labels.meta_value("workload"), Some(key));
        assert_eq!(catalog.buffer_count(key).expect(key), trace.instance.len());
    }
}

#[test]
fn what_training_keeps_and_its_requests_are_what_the_paper_gives_for_alexnet() {
    let kept = [
        ("chainer/alexnet/train/b32", 748_544_000),
        ("chainer/alexnet/train/b128", 748_544_000),
        ("chainer/googlenet/train/b32", 160_581_632),
        ("chainer/resnet50/train/b64", 306_915_840),
        ("chainer/inception-resnet-v2/train/b128", 670_796_288),
        ("chainer/seq2seq/train/b256/iteration9", 2_774_190_592),
        ("model/seq2seq/train/b64/iteration3", 2_774_190_592),
    ];
    for (key, bytes) in kept {
        assert_eq!(retained_bytes(key), Some(Bytes::new(bytes)), "{key}");
    }
    let requested = expected_figures().propagation("chainer/alexnet/train/b32").expect("measured").sum;
    assert_eq!(requested.get() + 748_544_000, 1_503_106_048, "1.50 GB");
    for key in ["chainer/alexnet/infer/b1", "torch/resnet50/train/b64", "chainer/nothing/train/b1"] {
        assert_eq!(retained_bytes(key), None, "{key}");
    }
    let of = |key: &str| expected_figures().process_of(key).map(|process| process.key.as_str());
    assert_eq!(of("chainer/seq2seq/train/b64/iteration2"), Some("chainer/seq2seq/process/b64"));
    assert_eq!(of("chainer/inception-resnet-v2/train/b64"), None, "not recorded");
}

#[test]
fn expectations_are_about_workloads_that_are_there() {
    let catalog = Catalog::new(None);
    assert_eq!(expected_figures().propagation.len(), 16);
    for propagation in &expected_figures().propagation {
        let trace = catalog.load(&propagation.key).expect("recorded");
        assert_eq!(trace.instance.len(), propagation.buffers, "{}", propagation.key);
        assert_eq!(trace.instance.load().bytes, propagation.load, "{}", propagation.key);
        assert_eq!(trace.instance.total_size(), propagation.sum, "{}", propagation.key);
        assert!(propagation.best_fit_height >= propagation.load);
        assert!(propagation.cupy2_pool >= propagation.load && propagation.parameters > Bytes::ZERO);
    }
    assert_eq!(expected_figures().process.len(), 14);
    for process in &expected_figures().process {
        let trace = catalog.load(&process.key).expect("recorded");
        assert!(u64::from(trace.instance.horizon().get()) >= process.before_step, "{}", process.key);
        assert!(process.cupy2_pool_total >= process.cupy2_pool_used);
    }
}

#[test]
fn pool_costs_agree_with_the_expectations() {
    assert_eq!(pool_costs().len(), 16);
    for cost in pool_costs() {
        let known = expected_figures().propagation(&cost.key).expect("a propagation");
        assert_eq!(cost.buffers, known.buffers, "{}", cost.key);
        // Two runs of the pool: the bytes held differ by a fraction of a percent.
        let (one, other) = (cost.pool_total.get(), known.cupy2_pool.get());
        assert!(one.abs_diff(other) * 500 < other, "{}: {one} and {other}", cost.key);
        assert!(cost.pool_ms > 0.0 && cost.plan_ms >= 0.0);
    }
}
