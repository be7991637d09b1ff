//! Every planner of the registry keeps the contract: one test a planner, named by its key.
//!
//! ```sh
//! cargo test --package planlab-solvers --test conformance -- greedy-by-size
//! ```

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use planlab_dsa::Planner;
use planlab_dsa::testing::{Case, conformance_on, corpus};

fn main() -> ExitCode {
    let cases: Arc<[Case]> = corpus().into();
    let planners = planlab_solvers::registry().into_iter();
    let trials: Vec<Trial> = planners.map(|planner| keeps_the_contract(planner, &cases)).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn keeps_the_contract(planner: Box<dyn Planner>, cases: &Arc<[Case]>) -> Trial {
    let cases = Arc::clone(cases);
    Trial::test(planner.descriptor().key, move || {
        conformance_on(planner.as_ref(), &cases);
        Ok(())
    })
}
