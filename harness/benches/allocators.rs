//! Measures the time for a request with its free, for every online allocator and a plan, on memory that is only
//! counted.
//!
//! Groups are workloads: `allocators/chainer/alexnet/infer/b1/tlsf`, `.../plan`. An element is a request with its free.
//! Each measured propagation begins and ends without live blocks, after three unmeasured ones. Allocators that identify
//! requests by operation get the operations.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use planlab_dsa::{
    Address, Backing, Budget, Bytes, Digest, Instance, OnlineAllocator, Requests, Simulated, Stream, execute,
};
use planlab_replay::{Kind, Planned, Sequence};
use planlab_solvers::online::registry;
use planlab_workloads::{Catalog, Trace};

const WORKLOADS: [&str; 3] =
    ["chainer/alexnet/infer/b1", "chainer/googlenet/train/b32", "chainer/resnet50/train/b32"];
/// The planner that makes the plan.
const PLANNER: &str = "best-fit";

/// Plays a propagation without a table of functions, as the loop of a replay does.
fn propagate<A: OnlineAllocator + ?Sized>(memory: &mut A, sequence: &Sequence, addresses: &mut [Address]) {
    let operations = sequence.operations().filter(|_| memory.wants_operations());
    let mut entered = None;
    for (kind, buffers) in sequence.runs() {
        for &buffer in buffers {
            let at = buffer as usize;
            if kind == Kind::Alloc {
                let operation = operations.map(|operations| operations[at]);
                if operation != entered {
                    entered = operation;
                    operation.into_iter().for_each(|operation| memory.enter_operation(operation));
                }
                let size = Bytes::new(sequence.sizes()[at]);
                addresses[at] = black_box(memory.alloc(size, Stream::default()).expect("no limit"));
            } else {
                memory.free(addresses[at]).expect("live");
            }
        }
    }
    memory.end_propagation();
}

fn planned(instance: &Instance) -> Planned {
    let planner = planlab_solvers::find_planner(PLANNER).expect("registered");
    let outcome = execute(&*planner, instance, Budget::default(), 0);
    Planned::new(&outcome.best.expect("a plan"), Box::new(Simulated::new())).expect("a segment")
}

/// The operation that requests each buffer.
fn operations(trace: &Trace) -> Vec<u64> {
    let number = |op: Option<&str>| Digest::of_bytes(op.unwrap_or_default().as_bytes()).as_number();
    trace.labels.buffers.iter().map(|label| number(label.op.as_deref())).collect()
}

fn allocators(criterion: &mut Criterion) {
    for workload in WORKLOADS {
        let trace = Catalog::new(None).load(workload).expect("a workload");
        let sequence = Sequence::new(&Requests::new(&trace.instance).with_operations(operations(&trace)));
        let mut group = criterion.benchmark_group(format!("allocators/{workload}"));
        group.sample_size(10).throughput(Throughput::Elements(sequence.request_count()));
        let mut addresses = vec![Address::NULL; sequence.sizes().len()];
        let mut plan = planned(&trace.instance);
        group.bench_function(BenchmarkId::from_parameter("plan"), |bencher| {
            bencher.iter(|| propagate(&mut plan, &sequence, &mut addresses));
        });
        for entry in registry() {
            let backing: Box<dyn Backing> = Box::new(Simulated::new());
            let mut memory = entry.build(backing);
            (0..3).for_each(|_| propagate(memory.as_mut(), &sequence, &mut addresses));
            group.bench_function(BenchmarkId::from_parameter(entry.key), |bencher| {
                bencher.iter(|| propagate(memory.as_mut(), &sequence, &mut addresses));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, allocators);
criterion_main!(benches);
