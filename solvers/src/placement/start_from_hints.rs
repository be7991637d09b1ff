//! Makes a plan from a run's hints: the start of a search that was given an old plan.
//!
//! - If every buffer has a hint or a pin and these offsets form a valid plan, that plan is offered unchanged, with the
//!   hand-overs that it needs if the run counts them.
//! - Else first fit: pinned buffers, then those with a hint from the lowest hint up, then the others from the largest
//!   down. First fit in the order of a plan's offsets lifts nothing above that plan (without pauses, alignments or
//!   hand-overs), so it keeps the good part of the hints.
//!
//! # Complexity
//!
//! One verification, or one first fit.

use planlab_dsa::{BufferId, Halt, Instance, Offset, Plan, Run, Scope};

use super::Order;
use super::greedy::{Rule, place_in_order};
use crate::demands::hand_overs_at;

/// Offers the plan that the run's hints suggest. Does nothing if there are no hints.
pub(crate) fn offer_hints(run: &mut Run<'_>) -> Result<(), Halt> {
    let Some(hints) = run.hints().filter(|hints| hints.iter().any(Option::is_some)) else {
        return Ok(());
    };
    let instance = run.instance();
    let of = |(buffer, hint): (&planlab_dsa::Buffer, &Option<Offset>)| buffer.pin.or(*hint);
    let offsets: Vec<Option<Offset>> = instance.buffers().iter().zip(hints).map(of).collect();
    let plan = match as_they_are(instance, &offsets, run.scope()) {
        None => place_in_order(run, &hinted_order(instance, &offsets), Rule::FirstFit)?,
        valid => valid,
    };
    plan.map_or(Ok(()), |plan| run.offer(plan))?;
    run.tick(instance.len() as u64)
}

fn as_they_are(instance: &Instance, offsets: &[Option<Offset>], scope: Scope) -> Option<Plan> {
    let offsets: Vec<Offset> = offsets.iter().copied().collect::<Option<_>>()?;
    let in_place = if scope == Scope::Any { hand_overs_at(instance, &offsets) } else { Vec::new() };
    let plan = Plan { offsets, in_place };
    // Invalid hints are no error; an invalid offer would be the planner's.
    instance.verify(plan.clone()).is_ok().then_some(plan)
}

/// Buffers with an offset from the lowest up, then the others from the largest down.
fn hinted_order(instance: &Instance, offsets: &[Option<Offset>]) -> Vec<BufferId> {
    let mut ids = Order::Size.sort_buffers(instance);
    ids.sort_by_key(|id| match offsets[id.index()] {
        Some(offset) => (false, offset, id.get()),
        None => (true, Offset::new(0), 0),
    });
    ids
}

#[cfg(test)]
mod tests {
    use planlab_dsa::testing::guillotine_instance;
    use planlab_dsa::{Budget, Bytes, Honours, Outcome, execute};

    use super::*;
    use crate::placement::testing::{in_place, scripted, test_buffer, test_descriptor, test_instance};

    fn hinted<'i>(instance: &'i Instance, hints: &[Option<u64>], in_place: bool) -> Outcome<'i> {
        let hints: Vec<_> = hints.iter().map(|hint| hint.map(Offset::new)).collect();
        let budget = Budget { hints: Some(hints.into()), ..Budget::default() };
        let honours = Honours { in_place, pins: true, alignment: true, ..Honours::default() };
        let outcome = execute(&scripted(test_descriptor("hints", honours), offer_hints), instance, budget, 0);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        outcome
    }

    fn offsets(outcome: &Outcome<'_>) -> Option<Vec<u64>> {
        outcome.best.as_ref().map(|best| best.offsets().iter().map(|offset| offset.get()).collect())
    }

    #[test]
    fn a_valid_hint_is_taken_and_others_become_an_order() {
        let all_live_at_once = test_instance(&[(2, 0, 2), (4, 0, 2), (8, 0, 2)]);
        let far = u64::MAX;
        type Case<'a> = (&'a str, &'a [Option<u64>], Option<[u64; 3]>);
        let cases: [Case<'_>; 7] = [
            ("valid", &[Some(12), Some(20), Some(0)], Some([12, 20, 0])),
            ("no hint at all", &[None, None, None], None),
            ("too few", &[Some(0)], None),
            ("overlapping: 1 below 0 below 2", &[Some(3), Some(0), Some(4)], Some([4, 0, 6])),
            ("equal: by id", &[Some(7), Some(7), Some(7)], Some([0, 2, 6])),
            ("the others by size, largest first", &[Some(9), None, None], Some([0, 10, 2])),
            ("beyond the last address", &[Some(far), Some(0), Some(far - 1)], Some([12, 0, 4])),
        ];
        for (name, hints, expected) in cases {
            let found = offsets(&hinted(&all_live_at_once, hints, false));
            assert_eq!(found, expected.map(Vec::from), "{name}");
        }
    }

    #[test]
    fn part_of_a_plan_is_not_lifted() {
        let (instance, plan) = guillotine_instance(500, Bytes::new(1 << 20), 5);
        let hints: Vec<_> =
            plan.offsets.iter().map(|offset| Some(offset.get()).filter(|at| at % 3 > 0)).collect();
        let planned = offsets(&hinted(&instance, &hints, false)).expect("a plan");
        let lifted = planned.iter().zip(&hints).filter(|&(&at, hint)| hint.is_some_and(|hint| at > hint));
        assert_eq!(lifted.count(), 0);
        assert!(hints.contains(&None));
    }

    #[test]
    fn a_pin_is_its_buffers_hint() {
        let pinned = test_buffer(4, 0, 2).with_pin(Offset::new(4));
        let instance = Instance::from_buffers(vec![test_buffer(2, 0, 2), pinned]).expect("valid");
        for wrong in [None, Some(0)] {
            assert_eq!(offsets(&hinted(&instance, &[Some(9), wrong], false)), Some(vec![9, 4]));
        }
    }

    #[test]
    fn hand_overs_are_found_where_the_run_counts_them() {
        let permission = in_place(0, 1);
        let instance = Instance::builder()
            .buffers([test_buffer(4, 0, 2), test_buffer(4, 1, 3)])
            .in_place([permission])
            .build()
            .expect("valid");
        let both = [Some(0), Some(0)];
        let with = hinted(&instance, &both, true);
        assert_eq!(with.best.as_ref().map(|best| best.in_place().to_vec()), Some(vec![permission]));
        assert_eq!(offsets(&hinted(&instance, &both, false)), Some(vec![0, 4]));
    }
}
