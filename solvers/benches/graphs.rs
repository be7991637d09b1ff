//! Measures the work on a whole graph: lowering, for one order and for all, and better orders.
//!
//! Names end in the number of operations: `lower/1000`, `all-orders/pairs/1000`, `orders/greedy/1000`.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use planlab_dsa::Budget;
use planlab_graph::{Ancestors, Dependencies, Graph, Safety, lower_for_all_orders, lower_graph};
use planlab_solvers::reorder::{ExactOrder, Greedy, HandOvers, LocalSearch, Orders};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

#[path = "../tests/it/branching.rs"]
mod branching;

use branching::branching;

fn graphs(criterion: &mut Criterion) {
    for count in [1_000, 5_000] {
        let graph = branching(count);
        let dependencies = Dependencies::from_tensors(&graph);
        let mut group = criterion.benchmark_group("lower");
        group.sample_size(10);
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| lower_graph(&graph, &graph.operation_order()).expect("legal"));
        });
        group.finish();
        let mut group = criterion.benchmark_group("all-orders");
        group.sample_size(10);
        group.bench_function(BenchmarkId::new("ancestors", count), |bencher| {
            bencher.iter(|| Ancestors::from_dependencies(&dependencies, Ancestors::MEMORY).expect("small"));
        });
        for (name, safety) in [("pairs", Safety::KeepApart), ("widened", Safety::Widened)] {
            group.bench_function(BenchmarkId::new(name, count), |bencher| {
                bencher
                    .iter(|| lower_for_all_orders(&graph, &graph.operation_order(), &dependencies, safety));
            });
        }
        group.finish();
        orders(criterion, &graph, &dependencies, count);
    }
}

fn orders(criterion: &mut Criterion, graph: &Graph, dependencies: &Dependencies, count: usize) {
    let (orders, budget) = (Orders::new(graph, dependencies, HandOvers::Counted), Budget::default());
    let mut group = criterion.benchmark_group("orders");
    group.sample_size(10);
    group.bench_function(BenchmarkId::new("bound", count), |bencher| {
        // A clone that has no bound yet.
        let fresh = orders.clone();
        bencher.iter(|| fresh.clone().load_bound(&budget));
    });
    group.bench_function(BenchmarkId::new("greedy", count), |bencher| {
        bencher.iter(|| Greedy::default().greedy_order(&orders, &budget));
    });
    group.bench_function(BenchmarkId::new("local-search", count), |bencher| {
        let search = LocalSearch::default().with_work(1 << 20);
        bencher.iter(|| {
            search.improve_order(
                &orders,
                &graph.operation_order(),
                &budget,
                &mut ChaCha8Rng::seed_from_u64(1),
            )
        });
    });
    group.bench_function(BenchmarkId::new("exact", count), |bencher| {
        let search = ExactOrder::default().with_sets(1 << 8);
        bencher.iter(|| search.exact_order(&orders, &budget));
    });
    group.finish();
}

criterion_group!(benches, graphs);
criterion_main!(benches);
