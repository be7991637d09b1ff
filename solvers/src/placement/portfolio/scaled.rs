//! Plans an instance in its own unit of bytes, and scales the plan back.
//!
//! If every size grows with the batch, heights grow with it, too. So one plan is enough for all batch sizes of such a
//! net: that of its [canonical form](Canonical), times the unit. What the planner finds and proves for the form holds
//! for the instance. The form and so the plan are the same for all batch sizes, and the plan can be kept under the
//! form's digest.
//!
//! # References
//!
//! 1. T. Sekiyama, T. Imamichi, H. Imai and R. Raymond, *Profile-guided memory optimization for deep
//!    neural networks*, 2018, arXiv:1804.10001, section 5 (memory by batch size; there each gets a new plan).
//!
//! # Complexity
//!
//! O(n) for n buffers, plus the planner's own.
//!
//! # Deviations from the paper
//!
//! The paper makes a plan for each batch size.

use std::sync::Arc;

use planlab_dsa::{Buffer, Bytes, Descriptor, Event, Halt, Offset, Planner, Run, Stop};

use super::canonical::Canonical;
use super::planner::Portfolio;
use crate::nested::{Ended, Share, Then, raise_both, run_nested};

/// Another planner on the canonical form; key `scaled`, or `scaled/` and the planner's key if it is not `portfolio`.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::placement::Scaled;
///
/// let plan = |batch: u64| {
///     let buffers = [(3, 0, 2), (2, 1, 5), (2, 3, 6), (1, 4, 7)].map(|(size, start, end)| {
///         Buffer::new(Bytes::new(batch * size), LiveRange::new(start, end).expect("not empty"))
///     });
///     let instance = Instance::from_buffers(buffers.to_vec()).expect("valid");
///     let outcome = execute(&Scaled::default(), &instance, Budget::default(), 0);
///     outcome.height().map(Bytes::get)
/// };
/// assert_eq!(plan(64), plan(1).map(|height| 64 * height));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Scaled<P = Portfolio>(P);

impl Default for Scaled {
    fn default() -> Self {
        Self::new(Portfolio)
    }
}

impl<P: Planner> Scaled<P> {
    /// Uses another planner. Default: [`Portfolio`].
    #[must_use]
    pub const fn new(planner: P) -> Self {
        Self(planner)
    }
}

impl<P: Planner> Planner for Scaled<P> {
    fn descriptor(&self) -> Descriptor {
        let inner = self.0.descriptor();
        let key =
            if inner.key == "portfolio" { "scaled".into() } else { format!("scaled/{}", inner.key).into() };
        let summary = format!("{} on sizes in their common unit, scaled back", inner.key).into();
        Descriptor { key, summary, reference: "Sekiyama et al. 2018, arXiv:1804.10001", ..inner }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let form = Canonical::from_instance(run.instance());
        let share = Share {
            target: run.target().map(|target| Bytes::new(target.get() / form.unit())),
            hints: hints_in_units(run, form.unit()),
            ..Share::all_remaining(run)
        };
        let Ended { end, .. } = run_nested(run, &self.0, form.instance(), share, |run, event| {
            match event {
                Event::Incumbent(plan) => run.offer(form.enlarge_plan(plan.as_plan()))?,
                Event::Bound(bound) => raise_both(run, form.enlarge_bound(*bound))?,
            }
            Ok(Then::GoOn)
        })?;
        run.tick(0)?;
        match end? {
            Stop::Finished => Ok(()),
            stop => Err(Halt::Stop(stop)),
        }
    }
}

/// The hints in units of the form. Leaves out those past the last address: in the form they would be valid.
fn hints_in_units(run: &Run<'_>, unit: u64) -> Option<Arc<[Option<Offset>]>> {
    let reduce = |(hint, buffer): (&Option<Offset>, &Buffer)| {
        hint.filter(|hint| hint.end_of(buffer.size).is_some()).map(|hint| Offset::new(hint.get() / unit))
    };
    run.hints().map(|hints| hints.iter().zip(run.instance().buffers()).map(reduce).collect())
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, brute_force_within, deep_config, instances, scaled_and_shifted};
    use planlab_dsa::{Budget, Instance, execute};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::search::Lns;
    use crate::placement::testing::{test_arena, test_buffer};

    #[test]
    fn the_key_names_the_planner_where_it_is_another() {
        assert_eq!(Scaled::default().descriptor().key, "scaled");
        assert_eq!(Scaled::new(Lns).descriptor().key, "scaled/lns");
    }

    #[test]
    fn capacities_are_rounded_down_to_whole_units() {
        let buffers = [test_buffer(64, 0, 2), test_buffer(128, 1, 3)];
        let end = |capacity: Option<u64>, target: Option<u64>| {
            let builder = Instance::builder().buffers(buffers.clone()).arenas([test_arena(capacity)]);
            let instance = builder.build().expect("valid");
            let budget = Budget { target: target.map(Bytes::new), ..Budget::default() };
            let outcome = execute(&Scaled::default(), &instance, budget, 0);
            (outcome.end.clone(), outcome.height().map(Bytes::get))
        };
        assert_eq!(end(Some(255), None), (Ok(Stop::Proved), Some(192)));
        assert_eq!(end(Some(191), None), (Ok(Stop::Infeasible), None));
        assert_eq!(end(None, Some(191)).0, Ok(Stop::Infeasible));
        assert_eq!(end(None, Some(200)).1, Some(192));
    }

    #[test]
    fn a_hint_past_the_last_address_does_no_harm() {
        let instance = Instance::from_buffers(vec![test_buffer(16, 4, 6)]).expect("valid");
        for hint in [u64::MAX - 31, u64::MAX - 15, u64::MAX] {
            let budget = Budget { hints: Some([Some(Offset::new(hint))].into()), ..Budget::default() };
            let outcome = execute(&Scaled::default(), &instance, budget, 0);
            assert_eq!(outcome.height(), Some(Bytes::new(16)), "{hint}");
            assert_eq!(outcome.end, Ok(Stop::Proved), "{hint}");
        }
    }

    proptest! {
        #![proptest_config(deep_config(400))]

        #[test]
        fn it_has_the_optimum(instance in instances(Shape::every_feature().with_max_buffers(7))) {
            let budget = Budget { work: Some(50_000_000), ..Budget::default() };
            let planner = Scaled::new(crate::placement::exact::Exact);
            let outcome = execute(&planner, &instance, budget, 0);
            if let Some([lowest, _]) = brute_force_within(&instance, 500_000) {
                prop_assert_eq!(outcome.height(), lowest);
            }
            prop_assert!(outcome.is_optimal(), "{:?}", outcome.end);
        }

        #[test]
        fn batches_have_the_same_plan(
            instance in instances(Shape::plain_buffers().with_max_buffers(30).with_max_steps(20)),
            factor in 2_u64..1000,
        ) {
            let plan = |instance: &Instance| {
                let budget = Budget { work: Some(3_000), ..Budget::default() };
                let best = execute(&Scaled::default(), instance, budget, 0).best;
                best.map(|best| best.offsets().iter().map(|offset| offset.get()).collect::<Vec<_>>())
            };
            let large = plan(&scaled_and_shifted(&instance, factor, 0).expect("small"));
            let scaled = plan(&instance).map(|offsets| offsets.iter().map(|o| o * factor).collect::<Vec<_>>());
            prop_assert_eq!(large, scaled);
        }
    }
}
