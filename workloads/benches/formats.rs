//! Benchmarks reading and writing trace files of 10,000 to 1,000,000 lines.
//!
//! `cargo bench -p planlab-workloads`
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use planlab_workloads::ReadOptions;
use planlab_workloads::formats::{read_trace, write_trace};
use planlab_workloads::synthetic::generate_trace;

fn formats(criterion: &mut Criterion) {
    for n in [10_000, 100_000, 1_000_000_u64] {
        let trace = generate_trace("chain", &[("n", &n.to_string())]).expect("valid parameters");
        let file = write_trace(&trace);
        let mut group = criterion.benchmark_group("formats");
        group.sample_size(10).throughput(Throughput::Elements(n));
        group.bench_function(BenchmarkId::new("read", n), |bencher| {
            bencher.iter(|| read_trace("bench.csv", &file, &ReadOptions::default()).expect("valid"));
        });
        group.bench_function(BenchmarkId::new("write", n), |bencher| bencher.iter(|| write_trace(&trace)));
        group.finish();
    }
}

criterion_group!(benches, formats);
criterion_main!(benches);
