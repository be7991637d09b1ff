//! Measures how much faster the decoder of local search is after an exchange of two buffers than from scratch.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use planlab_dsa::{Buffer, Bytes, Instance, LiveRange};
use planlab_solvers::placement::search::DecoderProbe;

/// A linear congruential generator: gives the same instance every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(limit)).expect("below a 32-bit limit")
    }
}

/// Random buffers; about `live` of them are live at one step.
fn random(buffers: u32, live: u32) -> Instance {
    let mut draw = Draw(7);
    let horizon = 50 * buffers / live;
    let buffer = |_| {
        let (start, width) = (draw.below(horizon), 1 + draw.below(100));
        Buffer::new(
            Bytes::new(u64::from(1 + draw.below(1000))),
            LiveRange::new(start, start + width).expect("not empty"),
        )
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
