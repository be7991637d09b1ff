//! Calls from several threads at once, and from threads with little stack.

use std::ffi::CString;
use std::thread;

use planlab_c::{planlab_options, planlab_status};
use planlab_workloads::Catalog;

use crate::call::Problem;

const THREADS: usize = 8;

#[test]
fn eight_threads_get_what_one_gets() {
    let catalog = Catalog::new(None);
    let problem = |key| Problem::of(&catalog.load(key).expect("recorded").instance);
    let problems = [
        problem("chainer/alexnet/train/b32"),
        problem("torch/squeezenet1-0/train/b64"),
        Problem::new(&[(0, 1, 0)]),
        Problem::new(&[]),
    ];
    let plan = |problem: &Problem| {
        let options =
            planlab_options { threads: 1, work_limit: 50_000, time_limit: 600.0, ..Default::default() };
        problem.plan(options, None)
    };
    let alone: Vec<_> = problems.iter().map(plan).collect();
    let failed = planlab_status::PLANLAB_ERROR_BUFFER;
    assert_eq!(alone[2].status, failed);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (problems, alone) = (&problems, &alone);
            scope.spawn(move || {
                // Each begins with another problem, so that different ones are planned side by side.
                for turn in 0..2 * problems.len() {
                    let at = (number + turn) % problems.len();
                    let told = plan(&problems[at]);
                    assert_eq!(told.status, alone[at].status);
                    assert_eq!(told.offsets, alone[at].offsets);
                    assert_eq!(told.result.height, alone[at].result.height);
                }
            });
        }
    });
}

/// What musl gives a thread by default is less than what any other C library does.
const LITTLE_STACK: usize = 128 << 10;

#[test]
fn every_planner_is_content_with_the_stack_of_a_small_thread() {
    let trace = Catalog::new(None).load("chainer/googlenet/train/b32").expect("recorded");
    let problem = Problem::of(&trace.instance);
    // The library has none of the others, which tests of the whole workspace have.
    let is_ours = |key: &String| !matches!(planlab_solvers::family(key), Some("milp" | "cp"));
    for key in planlab_solvers::keys().into_iter().filter(is_ours) {
        let planner = CString::new(key.as_str()).expect("no 0");
        let small = thread::Builder::new().stack_size(LITTLE_STACK);
        let told = thread::scope(|scope| {
            let call = || {
                let options = planlab_options { time_limit: 0.05, threads: 2, ..Default::default() };
                problem.plan(options, Some(&planner))
            };
            small.spawn_scoped(scope, call).expect("a thread").join().expect("no panic")
        });
        let fine = told.status.has_plan() || told.status == planlab_status::PLANLAB_UNKNOWN;
        let unsupported = told.status == planlab_status::PLANLAB_ERROR_UNSUPPORTED;
        assert!(fine || unsupported, "{key}: {}", told.message());
    }
}
