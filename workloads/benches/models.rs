//! Benchmarks the step from the key of a model to its instance.
//!
//! `cargo bench -p planlab-workloads --bench models`
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::{Criterion, criterion_group, criterion_main};
use planlab_workloads::models::load_trace;

fn models(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("models");
    for key in [
        "model/llama-7b/train/b1",
        "model/resnet152/train/b32",
        "model/inception-resnet-v2/train/b32/chainer",
    ] {
        group.bench_function(key, |bencher| bencher.iter(|| load_trace(key).expect("a model")));
    }
    group.finish();
}

criterion_group!(benches, models);
criterion_main!(benches);
