//! Checks that each adversary defeats the greedy whose name it has.

use planlab_dsa::{Budget, execute};
use planlab_solvers::find_planner;
use planlab_workloads::synthetic::construct_instance;

/// The height that a planner reaches, and the optimum, in bytes.
fn height_and_optimum(family: &str, n: &str, planner: &str) -> (u64, u64) {
    let made = construct_instance(&format!("adversary/{family}"), &[("n", n), ("seed", "3")]).expect("valid");
    let planner = find_planner(planner).expect("registered");
    let outcome = execute(&planner, &made.instance, Budget::default(), 0);
    (outcome.height().expect("a plan").get(), made.optimum.expect("known").get())
}

#[test]
fn every_trap_springs() {
    // The least heights with 10 and with 400 buffers, in percent of the optimum.
    for (family, planner, small, large) in [
        ("first-fit-start", "first-fit/start", 120, 180),
        ("greedy-by-size", "first-fit/size", 120, 150),
        ("first-fit-area", "first-fit/area", 120, 120),
        ("first-fit-width", "first-fit/width", 130, 130),
        ("greedy-by-breadth", "greedy-by-breadth", 110, 140),
        ("best-fit", "best-fit", 140, 140),
    ] {
        for (n, least) in [("10", small), ("400", large)] {
            let (height, optimum) = height_and_optimum(family, n, planner);
            assert!(100 * height >= least * optimum, "{planner}, n {n}: {height}, optimum {optimum}");
        }
    }
}

#[test]
fn other_orders_escape() {
    for (family, planner) in [("first-fit-area", "first-fit/size"), ("first-fit-width", "first-fit/area")] {
        let (height, optimum) = height_and_optimum(family, "400", planner);
        assert_eq!(height, optimum, "{family}");
    }
}
