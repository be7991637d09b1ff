//! Every planner of the registry keeps the contract.

use planlab_dsa::testing::conformance_of_all;

#[test]
fn every_planner_of_the_registry_keeps_the_contract() {
    let registry = planlab_solvers::registry();
    conformance_of_all(registry.iter().map(AsRef::as_ref));
}
