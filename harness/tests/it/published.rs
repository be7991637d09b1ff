//! Compares the paper's published figures with its planner on the recorded traces.

use crate::common::json;
use planlab_dsa::{Budget, Bytes, Evidence, Scope, Stop, execute};
use planlab_workloads::{Catalog, expected};
use tempfile::tempdir;

#[test]
fn best_fit_has_the_expected_heights_on_all_propagation_traces() {
    let catalog = Catalog::new(None);
    let expected = expected::expected_figures();
    assert_eq!(expected.propagation.len(), 16);
    for row in &expected.propagation {
        let trace = catalog.load(&row.key).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(trace.instance.load().bytes.get(), row.load.get(), "{}", row.key);
        for key in ["best-fit", "best-fit/reference"] {
            let planner = planlab_solvers::find_planner(key).expect("registered");
            let outcome = execute(&planner, &trace.instance, Budget::default(), 0);
            assert_eq!(
                outcome.height().map(Bytes::get),
                Some(row.best_fit_height.get()),
                "{key} {}",
                row.key
            );
        }
    }
}

#[test]
fn both_mip_planners_have_the_two_published_optima() {
    let folder = tempdir().expect("a folder");
    for (workload, optimum) in
        [("chainer/alexnet/infer/b1", 10_169_344), ("chainer/googlenet/infer/b1", 12_202_496)]
    {
        for planner in ["mip/highs", "mip/cbc"] {
            let plan = json(folder.path(), &["plan", workload, "--planner", planner], 0);
            assert_eq!(plan["height"], optimum, "{planner} {workload}");
            assert_eq!(plan["status"], "optimal", "{planner} {workload}");
        }
    }
}

#[test]
fn both_mip_planners_prove_optima_above_the_load() {
    let cases: Vec<_> = planlab_dsa::testing::corpus()
        .into_iter()
        .filter(|case| {
            let load = case.instance.load().bytes;
            case.instance.len() <= 20 && case.optimum.is_some_and(|optimum| optimum > load)
        })
        .filter(|case| {
            let honours =
                planlab_solvers::find_planner("mip/highs").expect("registered").descriptor().honours;
            // A relaxed or aligned bound may close the gap before the solver.
            honours.first_refused_feature(&case.instance).is_none()
                && planlab_dsa::initial_bound(&case.instance).best_claim(Scope::NoHandOver).value
                    < case.optimum.expect("known")
                && case.instance.in_place().is_empty()
        })
        .collect();
    assert!(cases.len() >= 20, "only {} instances", cases.len());
    for case in cases {
        for key in ["mip/highs", "mip/cbc"] {
            let planner = planlab_solvers::find_planner(key).expect("registered");
            let outcome = execute(&planner, &case.instance, Budget::default(), 0);
            assert_eq!(outcome.end, Ok(Stop::Proved), "{key} {}", case.name);
            assert_eq!(outcome.height(), case.optimum, "{key} {}", case.name);
            assert_eq!(outcome.bound_claim().evidence, Evidence::Mip, "{key} {}", case.name);
        }
    }
}
