//! What approximations guarantee, on every recorded net and every synthetic family.

use planlab_dsa::{Budget, Bytes, Guarantee, Instance, execute};
use planlab_solvers::planner;
use planlab_workloads::{recorded, synthetic};

const PLANNERS: [&str; 2] = ["gergov", "gergov/squeezed"];

/// The height over the load, in thousandths.
fn check(workload: &str, instance: &Instance, key: &str) -> u64 {
    let planner = planner(key).expect("registered");
    assert_eq!(planner.descriptor().guarantee, Guarantee::Ratio(3.0), "{key}");
    let outcome = execute(&planner, instance, Budget::default(), 0);
    let height = outcome.height().map(Bytes::get);
    let height = height.unwrap_or_else(|| panic!("{key} has no plan for {workload}: {:?}", outcome.end));
    let load = instance.load().bytes.get();
    assert!(height <= 3 * load, "{key} on {workload}: {height} is more than three times the load {load}");
    height * 1000 / load.max(1)
}

/// Checks both planners; moving down must not make a plan higher.
fn check_both(workload: &str, instance: &Instance) {
    let [published, squeezed] = PLANNERS.map(|key| check(workload, instance, key));
    assert!(squeezed <= published, "{workload}: {squeezed} over {published} thousandths");
}

#[test]
fn three_times_the_load_holds_on_every_recorded_net() {
    let workloads = &recorded::manifest().workload;
    assert!(workloads.len() >= 40, "only {} workloads", workloads.len());
    for entry in workloads {
        let trace = entry.trace().unwrap_or_else(|error| panic!("{}: {error}", entry.key));
        check_both(&entry.key, &trace.instance);
    }
}

#[test]
fn three_times_the_load_holds_on_every_family() {
    for family in synthetic::families() {
        for n in ["100", "1000", "5000"] {
            for seed in ["0", "1", "2"] {
                let trace = synthetic::generate(family.name, &[("n", n), ("seed", seed)]);
                let trace = trace.unwrap_or_else(|error| panic!("{}: {error}", family.name));
                check_both(&format!("{}/n{n}/s{seed}", family.name), &trace.instance);
            }
        }
    }
}
