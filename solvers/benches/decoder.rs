//! Measures how much faster the decoder of local search is after an exchange of two buffers than from scratch.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use planlab_dsa::Instance;
use planlab_dsa::testing::{pseudo_random, test_buffer};
use planlab_solvers::placement::search::DecoderProbe;

/// Random buffers; about `live` of them are live at one step.
fn random(buffers: u32, live: u32) -> Instance {
    let mut draw = pseudo_random(7);
    let mut below = |limit: u32| u32::try_from(draw(limit.into())).expect("below a 32-bit limit");
    let horizon = 50 * buffers / live;
    let buffer = |_| {
        let (start, width) = (below(horizon), 1 + below(100));
        test_buffer(u64::from(1 + below(1000)), start, start + width)
    };
    Instance::from_buffers((0..buffers).map(buffer).collect()).expect("valid")
}

fn decoder(criterion: &mut Criterion) {
    for (buffers, live) in [(300, 30), (1_000, 30), (10_000, 30), (10_000, 300)] {
        let instance = random(buffers, live);
        let mut probe = DecoderProbe::new(&instance).expect("no pins");
        let name = format!("n{buffers}/live{live}");
        let mut group = criterion.benchmark_group("decoder");
        group.sample_size(10);
        group.bench_function(BenchmarkId::new("exchange", &name), |bencher| {
            bencher.iter(|| probe.exchange_random());
        });
        group.bench_function(BenchmarkId::new("from-scratch", &name), |bencher| {
            bencher.iter(|| probe.from_scratch());
        });
        group.finish();
    }
}

criterion_group!(benches, decoder);
criterion_main!(benches);
