//! Tests what local search finds on ResNet-50.

use planlab_graph::{
    Machine, ScheduleBudget, ScheduleEvidence, Scheduler, SchedulingProblem, execute_scheduler,
};
use planlab_solvers::schedule::{LocalSearch, Policy, Pooch};

use super::nets::resnet50;

/// PoocH's plans reach 250.0 and 240.9 images per second, with offsets beyond the capacity. All offsets of local search
/// are inside it.
#[test]
fn local_search_beats_pooch_with_offsets_that_fit() {
    for batch in [512, 640] {
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        let problem = SchedulingProblem::new(resnet50(batch), machine);
        let run =
            |scheduler: &dyn Scheduler| execute_scheduler(scheduler, &problem, ScheduleBudget::default(), 0);
        let pooch = run(&Pooch::new(Policy::Discard)).best.expect("a schedule");
        assert!(pooch.height() > problem.capacity, "batch {batch}");
        let start = run(&LocalSearch::default().with_changes(0, 0)).best.expect("a schedule");
        let outcome = run(&LocalSearch::default().with_changes(30, 3000));
        let best = outcome.best.as_ref().expect("a schedule");
        let images = |seconds| problem.images_per_second(seconds);
        let (ours, theirs) = (images(best.seconds()), images(pooch.seconds()));
        let gap = outcome.best_gap().expect("a bound");
        println!(
            "b{batch}: {ours:.1} images/s, PoocH {theirs:.1}, start {:.1}, gap {gap:.3}",
            images(start.seconds())
        );
        assert!(best.height() <= problem.capacity && best.height() >= best.live_peak(), "batch {batch}");
        assert!(best.seconds() <= start.seconds() && ours > 1.1 * theirs, "batch {batch}: {ours}");
        assert_eq!(outcome.bound.evidence, ScheduleEvidence::Lp);
        assert!((0.0..0.12).contains(&gap), "batch {batch}: {gap}");
    }
}
