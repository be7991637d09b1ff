//! Measures what more threads give the joint search: 20,000 units of work on ResNet-50 in less memory than it needs.
//!
//! Names end in the number of threads: `joint/anneal/2`. `joint/starts` is the part before the annealing, which has one
//! thread: subtract it from the times of the others.

use std::num::NonZeroUsize;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use planlab_graph::{ScheduleBudget, SchedulingProblem, execute_scheduler};
use planlab_solvers::schedule::Joint;

#[path = "../tests/it/schedules/nets.rs"]
#[allow(dead_code, reason = "the bench needs one of the nets")]
mod nets;

const WORK: u64 = 20_000;

/// Runs the search to its limit, and returns the work.
fn search_jointly(problem: &SchedulingProblem, joint: Joint, threads: usize) -> u64 {
    let threads = NonZeroUsize::new(threads);
    let budget = ScheduleBudget { work: Some(WORK), threads, ..ScheduleBudget::default() };
    execute_scheduler(&joint, problem, budget, 0).work
}

fn schedules(criterion: &mut Criterion) {
    let problem = nets::resnet50_on("x86-pcie3", 512);
    let mut group = criterion.benchmark_group("joint");
    group.sample_size(10);
    let starts = Joint::default().with_rounds(0);
    group.bench_function("starts", |bencher| bencher.iter(|| search_jointly(&problem, starts, 1)));
    group.throughput(Throughput::Elements(WORK));
    for threads in [1, 2, 4] {
        group.bench_function(BenchmarkId::new("anneal", threads), |bencher| {
            bencher.iter(|| search_jointly(&problem, Joint::default(), threads));
        });
    }
    group.finish();
}

criterion_group!(benches, schedules);
criterion_main!(benches);
