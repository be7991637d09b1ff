//! The verifier agrees with the oracle on valid, nearly valid and arbitrary plans.

use crate::common::{config, planned};
use planlab_dsa::testing::{Fault, Shape, oracle_height, plan_faults};
use planlab_dsa::{Instance, Plan, Violation};
use proptest::prelude::*;

const FILE: &str = "tests/verifier.regressions";

/// Whether the oracle reports the same fault as the verifier.
fn is_found(violation: &Violation, faults: &[Fault]) -> bool {
    faults.iter().any(|fault| match (violation, fault) {
        (Violation::WrongCount { expected, got }, Fault::Count { expected: e, got: g }) => {
            (expected, got) == (e, g)
        }
        (Violation::Overflow { buffer, .. }, Fault::Overflow(id)) => id.is_none_or(|id| id == *buffer),
        (Violation::Misaligned { buffer, .. }, Fault::Misaligned(id)) => buffer == id,
        (Violation::OffPin { buffer, .. }, Fault::OffPin(id)) => buffer == id,
        (Violation::HandOver { pair, .. }, Fault::HandOver(other)) => pair == other,
        (Violation::Together { pair }, Fault::Together(other)) => pair == other,
        (Violation::Overlap { first, second, .. }, Fault::Overlap { first: a, second: b, .. }) => {
            (first.min(second), first.max(second)) == (a, b)
        }
        (Violation::OverCapacity { arena, .. }, Fault::OverCapacity(id)) => arena == id,
        _ => false,
    })
}

fn agrees(instance: &Instance, plan: &Plan) -> Result<(), TestCaseError> {
    let faults = plan_faults(instance, plan);
    match (instance.verify(plan.clone()), oracle_height(instance, plan)) {
        (Ok(verified), Ok(height)) => {
            prop_assert_eq!(verified.height(), height);
            prop_assert_eq!(Some(height), plan.height(instance));
        }
        (Err(violation), Err(_)) => {
            prop_assert!(is_found(&violation, &faults), "{}: {:?}", violation, faults);
        }
        (verified, found) => prop_assert!(false, "the verifier: {verified:?}, the oracle: {found:?}"),
    }
    names_the_earliest(instance, plan)
}

/// Among all overlaps the verifier reports one at the earliest step, with steps and addresses that both buffers use.
fn names_the_earliest(instance: &Instance, plan: &Plan) -> Result<(), TestCaseError> {
    let Err(Violation::Overlap { first, second, steps, bytes }) = instance.verify(plan.clone()) else {
        return Ok(());
    };
    let step = |fault: &Fault| match fault {
        Fault::Overlap { step, .. } => Some(*step),
        _ => None,
    };
    let earliest = plan_faults(instance, plan).iter().filter_map(step).min();
    prop_assert_eq!(Some(steps.start().get()), earliest);
    for id in [first, second] {
        let (buffer, offset) = (instance.buffer(id), plan.offsets[id.index()].get());
        prop_assert!(buffer.live.encloses(steps));
        prop_assert!(
            offset <= bytes.0.get() && bytes.0 < bytes.1 && bytes.1.get() <= offset + buffer.size.get()
        );
        let holds = |piece: planlab_dsa::Piece| {
            piece.steps.encloses(steps)
                && offset + piece.window.start.get() <= bytes.0.get()
                && bytes.1.get() <= offset + piece.window.end.get()
        };
        prop_assert!(buffer.active_pieces().any(holds), "{} does not hold {:?} at {}", id, bytes, steps);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(3000, FILE))]

    #[test]
    fn the_verifier_is_the_oracle((instance, plan) in planned(Shape::every_feature())) {
        agrees(&instance, &plan)?;
    }

    #[test]
    fn the_verifier_is_the_oracle_where_much_is_handed_over(
        (instance, plan) in planned(Shape::plain_buffers().with_in_place(true).with_max_steps(5).with_windows(true))
    ) {
        agrees(&instance, &plan)?;
    }

    #[test]
    fn the_verifier_is_the_oracle_on_plain_buffers(
        (instance, plan) in planned(Shape::plain_buffers().with_max_buffers(20).with_max_steps(6))
    ) {
        agrees(&instance, &plan)?;
    }
}
