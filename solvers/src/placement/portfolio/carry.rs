//! Carries a plan over to another batch size.
//!
//! - If every size, pin and alignment changes by the same factor, the old plan times the factor is a plan, as good as
//!   the old one was: the two have one [canonical form](Canonical).
//! - If only some sizes change (weights and workspaces do not grow with the batch), the vertical order of the buffers
//!   is still good: first fit in the order of the old offsets. It is as quick as any greedy planner, and a start for a
//!   search (`Budget::hints`).
//!
//! The new plan is verified in either case; only the order of the old one is used. Buffers must live at the same steps
//! in the same arenas, otherwise the order would be worthless. Alignments, pins, pairs to keep apart and permissions
//! may differ: first fit keeps those of the new instance, and instances with equal canonical forms agree in them.
//! Hand-overs of the old plan are kept if the new instance permits them.
//!
//! # Complexity
//!
//! One first fit.
//!
//! # What it gives
//!
//! `best-fit`'s plans of four recorded training nets (80 to 2822 buffers; 55 to 69 per cent of them grow with the
//! batch) were carried from batch 32 to 64 and 128, from 64 to 128 and from 128 to 32 (`harness/tests/it/scaling.rs`).
//! 14 of the 16 plans are at the load, as fresh ones are; from 128 to 32 `GoogLeNet` is 0.03 % above it and
//! `Inception-ResNet-v2` 0.24 %.

use std::sync::Arc;

use planlab_dsa::{
    Budget, BufferId, Descriptor, Guarantee, Halt, Honours, Instance, PlanError, Planner, Run, Stop,
    VerifiedPlan, execute,
};

use super::canonical::Canonical;
use crate::placement::Order;
use crate::placement::greedy::{Fit, Rule, plan_in_order};

/// Why a plan could not be carried over.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CarryError {
    /// The number of buffers differs.
    #[error("the plan is one of {old} buffers, but the instance has {new}")]
    Count { old: usize, new: usize },
    /// A buffer, the first such, lives at other steps, or in another arena.
    #[error("buffer {buffer} lives at other steps, or in another arena, than in the plan")]
    Life { buffer: BufferId },
    /// First fit in the order of the plan exceeds a capacity, or the pins admit no plan.
    #[error("the order of the plan gives no plan for these sizes ({})", end.name())]
    NoPlan { end: Stop },
    /// The attempt failed.
    #[error(transparent)]
    Failed(#[from] PlanError),
}

/// Carries the plan of one batch size over to an instance with the same buffers at the same steps.
///
/// # Errors
///
/// [`CarryError`] if a buffer lives at other steps or in another arena, or if the order gives no plan. Alignments, pins
/// and pairs to keep apart may differ: the new plan keeps those of the new instance.
///
/// ```
/// use planlab_dsa::{Buffer, Bytes, Instance, LiveRange, Offset, Plan};
/// use planlab_solvers::placement::carry_plan;
///
/// // A weight of 40 bytes, and two feature maps that grow with the batch.
/// let net = |batch: u64| {
///     let buffers = [(40, 0, 3), (8 * batch, 0, 2), (4 * batch, 1, 3)].map(|(size, start, end)| {
///         Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
///     });
///     Instance::from_buffers(buffers.to_vec()).expect("valid")
/// };
/// let (small, large) = (net(1), net(2));
/// let plan = small.verify(Plan::from_offsets([0, 44, 40].map(Offset::new)))?;
/// let carried = carry_plan(&plan, &large)?;
/// assert_eq!(carried.offsets(), [0, 48, 40].map(Offset::new));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn carry_plan<'n>(old: &VerifiedPlan<'_>, new: &'n Instance) -> Result<VerifiedPlan<'n>, CarryError> {
    check_structure(old.instance(), new)?;
    let (old_form, new_form) = (Canonical::from_instance(old.instance()), Canonical::from_instance(new));
    if old_form.instance() == new_form.instance() {
        let plan = new_form.enlarge_plan(&old_form.reduce_plan(old));
        return new.verify(plan).map_err(|violation| PlanError::from(violation).into());
    }
    let outcome = execute(&InOrderOf(old), new, Budget::default(), 0);
    let end = outcome.end?;
    outcome.best.map(Arc::unwrap_or_clone).ok_or(CarryError::NoPlan { end })
}

fn check_structure(old: &Instance, new: &Instance) -> Result<(), CarryError> {
    if old.len() != new.len() {
        return Err(CarryError::Count { old: old.len(), new: new.len() });
    }
    let mut pairs = old.buffers().iter().zip(new.buffers());
    let other = pairs.position(|(a, b)| (a.live, a.arena) != (b.live, b.arena));
    other.map_or(Ok(()), |at| Err(CarryError::Life { buffer: BufferId::from_index(at) }))
}

/// First fit in the order of a plan's offsets; ties go by id.
struct InOrderOf<'p>(&'p VerifiedPlan<'p>);

impl Planner for InOrderOf<'_> {
    fn descriptor(&self) -> Descriptor {
        let first_fit = Fit::first_fit(Order::Input).descriptor();
        let in_place = !self.0.in_place().is_empty();
        Descriptor {
            key: "carried".into(),
            summary: "first fit in the order of another plan".into(),
            guarantee: Guarantee::Heuristic,
            honours: Honours { in_place, ..first_fit.honours },
            ..first_fit
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let mut order: Vec<BufferId> = run.instance().ids().collect();
        order.sort_by_key(|id| (self.0.offsets()[id.index()], *id));
        plan_in_order(run, &order, Rule::FirstFit)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::{Shape, instances, oracle_height};
    use planlab_dsa::{Buffer, Bytes, KeepApart, Offset, Plan};
    use proptest::prelude::*;

    use super::*;
    use crate::placement::baseline::Bump;
    use crate::placement::testing::{aligned, test_arena, test_buffer};

    fn stacked(instance: &Instance) -> VerifiedPlan<'_> {
        Arc::unwrap_or_clone(execute(&Bump, instance, Budget::default(), 0).best.expect("a plan"))
    }

    #[test]
    fn other_buffers_and_other_lives_are_refused() {
        let old = Instance::from_buffers(vec![test_buffer(4, 0, 2), test_buffer(4, 1, 3)]).expect("valid");
        let plan = stacked(&old);
        let carried = |buffers: Vec<Buffer>| {
            let new = Instance::from_buffers(buffers).expect("valid");
            carry_plan(&plan, &new).map(VerifiedPlan::into_plan)
        };
        assert_eq!(carried(vec![test_buffer(4, 0, 2)]), Err(CarryError::Count { old: 2, new: 1 }));
        let other = carried(vec![test_buffer(4, 0, 2), test_buffer(4, 1, 4)]);
        assert_eq!(other, Err(CarryError::Life { buffer: BufferId::new(1) }));
    }

    #[test]
    fn alignments_pins_and_pairs_to_keep_apart_are_those_of_the_new_instance() {
        let old = [test_buffer(4, 0, 2), aligned(4, 0, 2, 8), test_buffer(2, 3, 4), test_buffer(2, 4, 5)];
        let old = Instance::from_buffers(old.to_vec()).expect("valid");
        let plan = old.verify(Plan::from_offsets([0, 8, 0, 0].map(Offset::new))).expect("a plan");
        // The alignment is gone, the first buffer is pinned above it, the last two are kept apart.
        let new = [
            test_buffer(4, 0, 2).with_pin(Offset::new(6)),
            test_buffer(4, 0, 2),
            test_buffer(2, 3, 4),
            test_buffer(2, 4, 5),
        ];
        let pair = KeepApart { first: BufferId::new(2), second: BufferId::new(3) };
        let new = Instance::builder().buffers(new).apart([pair]).build().expect("valid");
        let carried = carry_plan(&plan, &new).expect("a plan");
        assert_eq!(carried.offsets(), [6, 0, 0, 2].map(Offset::new));
    }

    #[test]
    fn a_capacity_that_the_order_breaks_is_told() {
        let old = Instance::from_buffers(vec![test_buffer(4, 0, 2), test_buffer(4, 1, 3)]).expect("valid");
        let builder = Instance::builder().buffers([test_buffer(8, 0, 2), test_buffer(4, 1, 3)]);
        let new = builder.arenas([test_arena(Some(8))]).build().expect("valid");
        assert_eq!(carry_plan(&stacked(&old), &new).err(), Some(CarryError::NoPlan { end: Stop::Finished }));
    }

    proptest! {
        #[test]
        fn a_multiple_of_an_instance_has_the_multiple_of_its_plan(
            instance in instances(Shape::plain_buffers().with_max_buffers(30)),
            factor in 2_u64..100,
        ) {
            let enlarge = |b: &Buffer| Buffer { size: Bytes::new(b.size.get() * factor), ..b.clone() };
            let large = Instance::from_buffers(instance.buffers().iter().map(enlarge).collect()).expect("valid");
            let plan = stacked(&instance);
            let carried = carry_plan(&plan, &large).expect("the same buffers");
            prop_assert_eq!(carried.height().get(), plan.height().get() * factor);
        }

        #[test]
        fn some_sizes_may_change(
            instance in instances(Shape::plain_buffers().with_max_buffers(30)),
            sizes in prop::collection::vec(1_u64..40, 30),
        ) {
            let resize = |(b, &size): (&Buffer, &u64)| Buffer { size: Bytes::new(size), ..b.clone() };
            let other = instance.buffers().iter().zip(&sizes).map(resize).collect();
            let other = Instance::from_buffers(other).expect("valid");
            let carried = carry_plan(&stacked(&instance), &other).expect("the same buffers");
            prop_assert_eq!(oracle_height(&other, carried.as_plan()).ok(), Some(carried.height()));
        }
    }
}
