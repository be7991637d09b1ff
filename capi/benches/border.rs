//! What a call through the C interface costs beside the same call from Rust.
#![allow(unsafe_code, reason = "calls as C makes them")]

use std::ffi::CStr;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use planlab_c::{planlab_options, planlab_plan, planlab_result};
use planlab_dsa::{Budget, Columns, execute};
use planlab_workloads::Catalog;

/// Work after which the searching planners stop, so that both sides do the same.
const WORK: u64 = 50_000_000;

struct Arrays {
    lower: Vec<i64>,
    upper: Vec<i64>,
    sizes: Vec<u64>,
}

impl Arrays {
    fn of(workload: &str) -> Self {
        let trace = Catalog::new(None).load(workload).expect("there is such a workload");
        let buffers = trace.instance.buffers();
        Self {
            lower: buffers.iter().map(|buffer| buffer.live.start().get().into()).collect(),
            upper: buffers.iter().map(|buffer| buffer.live.end().get().into()).collect(),
            sizes: buffers.iter().map(|buffer| buffer.size.get()).collect(),
        }
    }

    /// The height by Rust, from arrays to offsets.
    fn rust(&self, planner: &str) -> u64 {
        let columns =
            Columns { lower: &self.lower, upper: &self.upper, size: &self.sizes, ..Columns::default() };
        let instance = columns.instance().expect("valid");
        let planner = planlab_solvers::planner(planner).expect("in the registry");
        let budget = Budget { work: Some(WORK), ..Budget::default() };
        let outcome = execute(&*planner, &instance, budget, 0);
        let plan = outcome.best.as_ref().expect("a plan");
        let offsets: Vec<u64> = plan.offsets().iter().map(|offset| offset.get()).collect();
        black_box(offsets);
        plan.height().get()
    }

    /// The height by C.
    fn c(&self, planner: &CStr) -> u64 {
        let options = planlab_options {
            planner: planner.as_ptr(),
            threads: 1,
            work_limit: WORK,
            time_limit: f64::INFINITY,
            ..planlab_options::default()
        };
        let mut offsets = vec![0; self.sizes.len()];
        let mut result = planlab_result::default();
        let (lower, upper, sizes) = (self.lower.as_ptr(), self.upper.as_ptr(), self.sizes.as_ptr());
        // SAFETY: the arrays have as many entries as there are sizes.
        let status = unsafe {
            let count = self.sizes.len();
            planlab_plan(
                count,
                lower,
                upper,
                sizes,
                &raw const options,
                offsets.as_mut_ptr(),
                &raw mut result,
            )
        };
        assert!(status.has_plan());
        black_box(offsets);
        result.height
    }
}

fn border(criterion: &mut Criterion) {
    for (workload, key) in [
        ("torch/resnet50/train/b64", c"best-fit"),
        ("torch/resnet50/train/b64", c"portfolio"),
        ("synthetic/uniform/n100000/s0", c"best-fit"),
    ] {
        let arrays = Arrays::of(workload);
        let planner = key.to_str().expect("UTF-8");
        assert_eq!(arrays.rust(planner), arrays.c(key));
        let mut group = criterion.benchmark_group(format!("{workload} {planner}"));
        group.sample_size(30).measurement_time(Duration::from_secs(8));
        group.bench_function("rust", |bencher| bencher.iter(|| arrays.rust(planner)));
        group.bench_function("c", |bencher| bencher.iter(|| arrays.c(key)));
        group.finish();
    }
}

criterion_group!(benches, border);
criterion_main!(benches);
