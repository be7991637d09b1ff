//! The planner of the worked example (docs/invent-a-planner.md) keeps the contract, and is lower than where it starts.

use planlab_dsa::testing::{check_conformance, corpus};
use planlab_dsa::{Budget, Instance, Planner, execute};

#[path = "../../examples/squeaky_wheel.rs"]
#[expect(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod squeaky_wheel;

use squeaky_wheel::SqueakyWheel;

/// Whether an instance is small and asks and permits nothing that only `first-fit/size` knows.
fn is_plain(instance: &Instance) -> bool {
    let is_accepted = SqueakyWheel.descriptor().honours.first_refused_feature(instance).is_none();
    let has_pauses = instance.buffers().iter().any(|buffer| !buffer.pauses.is_empty());
    instance.len() <= 200 && is_accepted && !has_pauses && instance.in_place().is_empty()
}

#[test]
fn the_example_keeps_the_contract() {
    check_conformance(&SqueakyWheel);
}

#[test]
fn later_rounds_are_never_higher_than_the_first_and_sometimes_lower() {
    let by_size = planlab_solvers::find_planner("first-fit/size").expect("registered");
    let mut lower = 0;
    for case in corpus().iter().filter(|case| is_plain(&case.instance)) {
        let height = |planner: &dyn Planner| {
            execute(planner, &case.instance, Budget::default(), 0).best.expect("a plan").height()
        };
        let (first, last) = (height(&by_size), height(&SqueakyWheel));
        assert!(last <= first, "{}: {last} above {first}", case.name);
        lower += usize::from(last < first);
    }
    assert!(lower > 0, "no case where the rounds help");
}
