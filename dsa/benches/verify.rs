//! Benchmarks verifier, loads and digest over the number of buffers, on two kinds of instances.
//!
//! `net-like`: hundreds of lanes, each filled with one short-lived buffer after another, as the steps of a net leave
//! them; every tenth buffer may be overwritten by the next of its lane.
//!
//! `uniform`: live ranges with uniform ends, so that a third of all buffers is live at a time, each at its own address.
//! The verifier's map then holds the most that it can.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use planlab_dsa::testing::test_buffer as buffer;
use planlab_dsa::{Buffer, BufferId, Digest, InPlace, Instance, Offset, Plan, initial_bound};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const COUNTS: [u32; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
const LANES: u32 = 400;
/// Bytes per lane; no buffer is larger.
const LANE: u64 = 1 << 20;

fn net_like(count: u32) -> (Instance, Plan) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let lanes = LANES.min(count / 10);
    // For each lane: the first step at which it is free, and its last buffer.
    let mut free = vec![(0_u32, None); lanes as usize];
    let (mut buffers, mut permissions, mut offsets) = (Vec::<Buffer>::new(), Vec::new(), Vec::new());
    for id in (0..count).map(BufferId::new) {
        let lane = rng.random_range(0..lanes as usize);
        let (at, last) = free[lane];
        let size = 512 * (1 + (LANE / 512 - 1) / rng.random_range(1..=64));
        let fits = |input: &BufferId| buffers[input.index()].size.get() >= size;
        let input = last.filter(|input| rng.random_range(0..10) == 0 && fits(input));
        let start = if input.is_some() { at - 1 } else { at + rng.random_range(0..3) };
        let end = start.max(at) + rng.random_range(1..=12);
        permissions.extend(input.map(|input| InPlace { input, output: id }));
        buffers.push(buffer(size, start, end));
        offsets.push(Offset::new(LANE * lane as u64));
        free[lane] = (end, Some(id));
    }
    let builder = Instance::builder().buffers(buffers).in_place(permissions.clone());
    (builder.build().expect("lanes do not overlap"), Plan { offsets, in_place: permissions })
}

fn uniform(count: u32) -> (Instance, Plan) {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut top = 0;
    let (mut buffers, mut offsets) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (a, b) = (rng.random_range(0..count), rng.random_range(0..count));
        let size = rng.random_range(1..=LANE);
        buffers.push(buffer(size, a.min(b), a.max(b) + 1));
        offsets.push(Offset::new(top));
        top += size;
    }
    (Instance::from_buffers(buffers).expect("plain buffers"), Plan::from_offsets(offsets))
}

fn benches(criterion: &mut Criterion) {
    type Family = (&'static str, fn(u32) -> (Instance, Plan));
    let families: [Family; 2] = [("net-like", net_like), ("uniform", uniform)];
    for (family, make) in families {
        for count in COUNTS {
            let (instance, plan) = make(count);
            let mut group = criterion.benchmark_group(family);
            group.sample_size(10).throughput(Throughput::Elements(u64::from(count)));
            let id = |what| BenchmarkId::new(what, count);
            group.bench_function(id("verify"), |bencher| {
                let verify = |plan| instance.verify(plan).expect("the plan is valid").height();
                bencher.iter_batched(|| plan.clone(), verify, BatchSize::LargeInput);
            });
            group.bench_function(id("load"), |bencher| bencher.iter(|| instance.load_curve().peak()));
            // A clone whose loads are not computed yet.
            let fresh = || instance.clone();
            group.bench_function(id("load-without-in-place"), |bencher| {
                bencher.iter_batched_ref(fresh, |it| it.load_without_in_place(), BatchSize::PerIteration);
            });
            group.bench_function(id("initial-bound"), |bencher| {
                bencher.iter_batched_ref(fresh, |it| initial_bound(it), BatchSize::PerIteration);
            });
            group.bench_function(id("digest"), |bencher| bencher.iter(|| instance.digest()));
            group.bench_function(id("plan-digest"), |bencher| bencher.iter(|| Digest::of_plan(&plan)));
            group.bench_function(id("build"), |bencher| {
                let parts = || (instance.buffers().to_vec(), instance.in_place().to_vec());
                let build = |(buffers, permissions): (Vec<Buffer>, Vec<InPlace>)| {
                    Instance::builder().buffers(buffers).in_place(permissions).build()
                };
                bencher.iter_batched(parts, build, BatchSize::PerIteration);
            });
        }
    }
}

criterion_group!(verify, benches);
criterion_main!(verify);
