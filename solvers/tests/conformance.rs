//! Every planner of the registry keeps the contract: one test a planner, named by its key.
//!
//! ```sh
//! cargo test --package planlab-solvers --test conformance -- greedy-by-size
//! ```

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use planlab_dsa::Planner;
use planlab_dsa::testing::{Case, conformance_on, corpus};

fn main() -> ExitCode {
    let cases: Arc<[Case]> = corpus().into();
    let planners = planlab_solvers::registry().into_iter();
    let mut trials: Vec<Trial> = planners.map(|planner| keeps_the_contract(planner, &cases)).collect();
    trials.push(Trial::test("no_two_planners_share_a_key", no_two_planners_share_a_key));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn keeps_the_contract(planner: Box<dyn Planner>, cases: &Arc<[Case]>) -> Trial {
    let cases = Arc::clone(cases);
    Trial::test(planner.descriptor().key, move || {
        conformance_on(planner.as_ref(), &cases);
        Ok(())
    })
}

fn no_two_planners_share_a_key() -> Result<(), Failed> {
    let mut keys = BTreeSet::new();
    for planner in planlab_solvers::registry() {
        let key = planner.descriptor().key;
        if !keys.insert(key.clone()) {
            return Err(format!("two planners have the key `{key}`").into());
        }
    }
    Ok(())
}
