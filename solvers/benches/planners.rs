//! Times of the planners on a trace like a net's, 100 to 1,000,000 buffers.
//!
//! Sizes from 100,000 on take minutes over all planners and are left out unless `PLANLAB_BENCH_LARGE` is
//! 1. Planners that are not practical at a size are left out there.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use planlab_dsa::{Budget, Buffer, Bytes, Guarantee, Instance, LiveRange, execute};

/// Layers of the net; forward and backward over them again and again.
const LAYERS: u32 = 100;

/// Training steps one after the other: of each layer an activation that lives until its backward step, a
/// workspace, and a gradient.
fn net(buffers: usize) -> Instance {
    let mut draw = Draw(buffers as u64 + 1);
    let mut all = Vec::with_capacity(buffers + 3);
    let mut step = 0;
    while all.len() < buffers {
        for layer in 0..LAYERS {
            let (forward, backward) = (step + 2 * layer, step + 4 * LAYERS - 2 * layer);
            for (start, end) in
                [(forward, backward), (forward, forward + 1 + draw.below(3)), (backward - 2, backward + 1)]
            {
                let magnitude = 1 + draw.below(14);
                let size = Bytes::new(512 * u64::from(1 + draw.below(1 << magnitude)));
                all.push(Buffer::new(size, LiveRange::new(start, end).expect("not empty")));
            }
        }
        step += 4 * LAYERS;
    }
    all.truncate(buffers);
    Instance::from_buffers(all).expect("valid")
}

/// A linear congruential generator: the same trace every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(limit)).expect("below a 32-bit limit")
    }
}

fn planners(criterion: &mut Criterion) {
    let is_large = std::env::var("PLANLAB_BENCH_LARGE").is_ok_and(|value| value == "1");
    let sizes = [100, 1_000, 10_000, 100_000, 1_000_000];
    for size in sizes.into_iter().filter(|&size| is_large || size < 100_000) {
        let instance = net(size);
        let mut group = criterion.benchmark_group(format!("planners/n{size}"));
        group.sample_size(10).throughput(Throughput::Elements(size as u64));
        for planner in planlab_solvers::registry() {
            let descriptor = planner.descriptor();
            let is_practical = descriptor.practical.is_none_or(|most| size <= most as usize);
            // Searches go on until they are stopped.
            if descriptor.guarantee == Guarantee::Exact || descriptor.randomized || !is_practical {
                continue;
            }
            group.bench_function(BenchmarkId::from_parameter(&descriptor.key), |bencher| {
                let run = |budget| execute(&planner, &instance, budget, 0).height();
                bencher.iter_batched(Budget::default, run, BatchSize::PerIteration);
            });
        }
        group.finish();
    }
}

criterion_group!(benches, planners);
criterion_main!(benches);
