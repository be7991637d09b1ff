//! Measures every quick planner of the registry on a trace like a net's, 1,000 to 100,000 buffers; every registered
//! planner is included.
//!
//! Groups are families of planners: `first-fit/n10000/size`, `best-fit/n10000/best-fit`. 1,000,000 buffers are left out
//! unless `PLANLAB_BENCH_LARGE` is 1. Planners are left out above the size that they are practical for. Searches are
//! left out entirely, since they run until they are stopped.

use std::collections::BTreeMap;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use planlab_dsa::testing::{pseudo_random, test_buffer};
use planlab_dsa::{Budget, Descriptor, Guarantee, Instance, Planner, execute};

/// Layers of the net; the trace repeats forward and backward passes over them.
const LAYERS: u32 = 100;

/// Training steps one after the other. Each layer has an activation that lives until its backward step, a workspace,
/// and a gradient.
fn net(buffers: usize) -> Instance {
    let mut draw = pseudo_random(buffers as u64 + 1);
    let mut below = |limit: u32| u32::try_from(draw(limit.into())).expect("below a 32-bit limit");
    let mut all = Vec::with_capacity(buffers + 3);
    let mut step = 0;
    while all.len() < buffers {
        for layer in 0..LAYERS {
            let (forward, backward) = (step + 2 * layer, step + 4 * LAYERS - 2 * layer);
            for (start, end) in
                [(forward, backward), (forward, forward + 1 + below(3)), (backward - 2, backward + 1)]
            {
                let magnitude = 1 + below(14);
                let size = 512 * u64::from(1 + below(1 << magnitude));
                all.push(test_buffer(size, start, end));
            }
        }
        step += 4 * LAYERS;
    }
    all.truncate(buffers);
    Instance::from_buffers(all).expect("valid")
}

/// The first part of a key.
fn family(key: &str) -> &str {
    key.split('/').next().unwrap_or(key)
}

fn is_quick(descriptor: &Descriptor, size: usize) -> bool {
    let searches = descriptor.guarantee == Guarantee::Exact || descriptor.randomized;
    !searches && descriptor.practical.is_none_or(|most| size <= most as usize)
}

fn planners(criterion: &mut Criterion) {
    let is_large = std::env::var("PLANLAB_BENCH_LARGE").is_ok_and(|value| value == "1");
    let sizes = [1_000, 10_000, 100_000, 1_000_000];
    let sizes = sizes.into_iter().filter(|&size| is_large || size < 1_000_000);
    let instances: Vec<Instance> = sizes.map(net).collect();
    let mut families: BTreeMap<String, Vec<Box<dyn Planner>>> = BTreeMap::new();
    for planner in planlab_solvers::registry() {
        families.entry(family(&planner.descriptor().key).to_owned()).or_default().push(planner);
    }
    for (family, planners) in &families {
        for instance in &instances {
            bench(criterion, family, planners, instance);
        }
    }
}

/// Every planner of a family on one instance.
fn bench(criterion: &mut Criterion, family: &str, planners: &[Box<dyn Planner>], instance: &Instance) {
    let size = instance.len();
    let quick = planners.iter().filter(|planner| is_quick(&planner.descriptor(), size));
    let quick: Vec<&Box<dyn Planner>> = quick.collect();
    if quick.is_empty() {
        return;
    }
    let mut group = criterion.benchmark_group(format!("{family}/n{size}"));
    group.sample_size(10).throughput(Throughput::Elements(size as u64));
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for planner in quick {
        let descriptor = planner.descriptor();
        let name = descriptor.key.strip_prefix(&format!("{family}/")).unwrap_or(&descriptor.key);
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let run = |budget| execute(planner, instance, budget, 0).height();
            bencher.iter_batched(Budget::default, run, BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, planners);
criterion_main!(benches);
