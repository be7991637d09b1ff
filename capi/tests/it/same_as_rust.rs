//! A call from C answers what a call from Rust answers, to the byte.

use std::ffi::CString;

use planlab_c::{planlab_options, planlab_status};
use planlab_dsa::{Budget, Bytes, Offset, Outcome, Plan, execute};
use planlab_workloads::Catalog;
use proptest::prelude::*;

use crate::call::{Problem, Told};

const WORK: u64 = 20_000;
const SEED: u64 = 7;

/// Limits under which a planner has one answer.
fn options() -> planlab_options {
    planlab_options {
        time_limit: f64::INFINITY,
        work_limit: WORK,
        seed: SEED,
        threads: 1,
        ..planlab_options::default()
    }
}

fn assert_same(told: &Told, outcome: &Outcome<'_>) {
    if let (Err(error), None) = (&outcome.end, &outcome.best) {
        assert!(!told.status.has_plan() && told.is_untouched(), "{:?}", told.status);
        assert_eq!(told.message(), error.to_string());
        return;
    }
    assert_eq!(told.result.bound, outcome.bound_claim().value.get());
    let optimal = told.status == planlab_status::PLANLAB_OPTIMAL;
    assert_eq!(optimal, outcome.is_optimal());
    let Some(best) = &outcome.best else {
        assert_eq!(told.status, planlab_status::PLANLAB_UNKNOWN);
        assert!(told.is_untouched());
        return;
    };
    assert!(told.status.has_plan(), "{:?}: {}", told.status, told.message());
    assert_eq!(told.result.height, best.height().get());
    let offsets: Vec<Offset> = told.offsets.iter().copied().map(Offset::new).collect();
    assert_eq!(offsets, best.offsets());
    let verified = best.instance().verify(Plan::from_offsets(offsets)).expect("valid");
    assert_eq!(verified.height(), Bytes::new(told.result.height));
}

fn compare(problem: &Problem, planner: &str) {
    let key = CString::new(planner).expect("no 0");
    let told = problem.plan(options(), Some(&key));
    let instance = match problem.columns().build_instance() {
        Ok(instance) => instance,
        Err(error) => {
            assert_eq!(told.status, planlab_status::PLANLAB_ERROR_BUFFER, "{error}");
            assert_eq!(told.message(), error.to_string());
            assert_eq!(told.buffer(), error.faulty_buffer().map(|buffer| buffer.get().into()));
            assert!(told.is_untouched());
            return;
        }
    };
    let planner = planlab_solvers::find_planner(planner).expect("in the registry");
    let budget = Budget { work: Some(WORK), ..Budget::default() };
    let outcome = execute(&*planner, &instance, budget, SEED);
    if outcome.end.is_ok() {
        assert_eq!(told.result.load, instance.load().bytes.get());
    }
    assert_same(&told, &outcome);
}

#[test]
fn recorded_nets_have_the_plans_that_rust_gives_them() {
    let catalog = Catalog::new(None);
    for key in ["chainer/alexnet/infer/b1", "torch/squeezenet1-0/train/b64"] {
        let trace = catalog.load(key).expect("recorded");
        let problem = Problem::of(&trace.instance);
        for planner in ["best-fit", "first-fit/size", "exact", "portfolio"] {
            compare(&problem, planner);
        }
    }
}

/// Problems of rows with a first step, a width, a size, an alignment and a pin; some without alignments or pins.
fn problems(rows: impl Strategy<Value = Vec<(i64, i64, u64, u64, i64)>>) -> impl Strategy<Value = Problem> {
    (rows, any::<bool>(), any::<bool>()).prop_map(|(rows, aligned, pinned)| Problem {
        lower: rows.iter().map(|row| row.0).collect(),
        upper: rows.iter().map(|row| row.0.saturating_add(row.1)).collect(),
        sizes: rows.iter().map(|row| row.2).collect(),
        alignments: aligned.then(|| rows.iter().map(|row| row.3).collect()),
        pins: pinned.then(|| rows.iter().map(|row| row.4).collect()),
    })
}

/// Mostly plain buffers; now and then what no caller should hand in. Sizes and alignments are small, or refused: with one
/// huge buffer beside small ones the exact search may count no work for billions of steps, and no limit ends it; see
/// [`huge`].
fn problem() -> impl Strategy<Value = Problem> {
    let step = prop_oneof![20 => 0_i64..30, 1 => any::<i64>()];
    let width = prop_oneof![20 => 1_i64..10, 1 => -1_i64..2];
    let size = prop_oneof![30 => 1_u64..100, 1 => Just(u64::MAX), 1 => Just(0)];
    let align = prop_oneof![30 => 1_u64..65, 1 => Just(u64::MAX), 1 => Just(0)];
    let pin = prop_oneof![30 => Just(-1_i64), 2 => 0_i64..500, 1 => prop_oneof![Just(-2), Just(i64::MIN), Just(i64::MAX)]];
    let row = (step, width, size, align, pin);
    let rows = prop::collection::vec(row, 0..24);
    problems(rows)
}

/// Few buffers at the edges of 64 bits, where an end, a sum of sizes or a multiple of an alignment may lie beyond.
fn huge() -> impl Strategy<Value = Problem> {
    let near = |edge: u64| (0_u64..4).prop_map(move |less| edge - less);
    let edges =
        || prop_oneof![near(u64::MAX), near(1 << 63), near((1 << 63) + 3), near(1 << 62), near(u64::MAX / 3)];
    let size = prop_oneof![6 => 1_u64..100, 3 => edges(), 1 => Just(0)];
    let align = prop_oneof![6 => 1_u64..65, 3 => edges(), 1 => Just(0)];
    let pin = prop_oneof![
        12 => Just(-1_i64),
        1 => 0_i64..500,
        1 => (0_i64..4).prop_map(|less| i64::MAX - less),
        1 => prop_oneof![Just(-2), Just(i64::MIN)],
    ];
    let row = (prop_oneof![4 => 0_i64..12, 1 => any::<i64>()], 1_i64..6, size, align, pin);
    let rows = prop::collection::vec(row, 1..7);
    problems(rows)
}

/// Whether a planner takes the problem.
fn takes(planner: &str, problem: &Problem) -> bool {
    let honours = planlab_solvers::find_planner(planner).expect("in the registry").descriptor().honours;
    !problem
        .columns()
        .build_instance()
        .is_ok_and(|instance| honours.first_refused_feature(&instance).is_some())
}

/// The strategy reaches both sides: plans, and each kind of refusal.
#[test]
fn sizes_at_the_edge_are_planned_or_refused() {
    let rows = |sizes: &[u64], alignments: &[u64]| {
        let rows: Vec<_> = sizes.iter().map(|&size| (0, 1, size)).collect();
        Problem { alignments: Some(alignments.to_vec()), ..Problem::new(&rows) }
    };
    for (problem, status) in [
        (rows(&[u64::MAX], &[1]), planlab_status::PLANLAB_OPTIMAL),
        (rows(&[1], &[1 << 63]), planlab_status::PLANLAB_OPTIMAL),
        (rows(&[1, 1], &[1 << 63, 1 << 62]), planlab_status::PLANLAB_OPTIMAL),
        (rows(&[1, 1], &[1 << 63, 1 << 63]), planlab_status::PLANLAB_ERROR_BUFFER),
        (rows(&[u64::MAX, 1], &[1, 1]), planlab_status::PLANLAB_ERROR_BUFFER),
        (rows(&[1], &[0]), planlab_status::PLANLAB_ERROR_BUFFER),
        (rows(&[0], &[1]), planlab_status::PLANLAB_ERROR_BUFFER),
    ] {
        for planner in EDGE_PLANNERS {
            compare(&problem, planner);
        }
        let told = problem.plan(options(), Some(c"best-fit"));
        let is_it = told.status == status || status.has_plan() && told.status.has_plan();
        assert!(is_it, "{problem:?}: {:?} {}", told.status, told.message());
    }
}

/// Planners that end without a search.
const EDGE_PLANNERS: [&str; 4] = ["best-fit", "greedy-by-size", "first-fit/size", "bump"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn columns_at_the_edge_of_64_bits_have_the_answer_that_rust_gives_them(
        problem in huge(),
        planner in prop::sample::select(EDGE_PLANNERS.to_vec()),
    ) {
        prop_assume!(takes(planner, &problem));
        compare(&problem, planner);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_columns_have_the_answer_that_rust_gives_them(
        problem in problem(),
        planner in prop::sample::select(vec!["portfolio", "best-fit", "greedy-by-size", "exact"]),
    ) {
        prop_assume!(takes(planner, &problem));
        compare(&problem, planner);
    }
}
