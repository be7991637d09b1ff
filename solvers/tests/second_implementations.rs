//! Planners against second implementations, written from their descriptions and sharing nothing with them.

#![allow(unreachable_pub, reason = "the files of independent/ are public functions")]

#[path = "independent/best_fit.rs"]
mod best_fit;
#[path = "independent/greedy_by_size.rs"]
mod greedy_by_size;

use planlab_dsa::testing::{Shape, instances};
use planlab_dsa::{Budget, Instance, execute};
use planlab_solvers::planner;
use proptest::prelude::*;

fn rows(instance: &Instance) -> Vec<(u64, u32, u32)> {
    let row = |buffer: &planlab_dsa::Buffer| {
        (buffer.size.get(), buffer.live.start().get(), buffer.live.end().get())
    };
    instance.buffers().iter().map(row).collect()
}

fn offsets(key: &str, instance: &Instance) -> Vec<u64> {
    let planner = planner(key).expect("registered");
    let best = execute(&planner, instance, Budget::default(), 0).best.expect("a plan");
    best.offsets().iter().map(|offset| offset.get()).collect()
}

proptest! {
    #[test]
    fn best_fit_is_what_its_description_says(
        instance in instances(Shape::plain().with_max_buffers(60).with_max_steps(40).with_max_size(40)),
    ) {
        let expected = best_fit::offsets(&rows(&instance));
        prop_assert_eq!(offsets("best-fit", &instance), expected.clone());
        prop_assert_eq!(offsets("best-fit/reference", &instance), expected);
    }

    #[test]
    fn greedy_by_size_is_what_its_description_says(
        instance in instances(Shape::plain().with_max_buffers(60).with_max_steps(40).with_max_size(40)),
    ) {
        prop_assert_eq!(offsets("greedy-by-size", &instance), greedy_by_size::offsets(&rows(&instance)));
    }
}
