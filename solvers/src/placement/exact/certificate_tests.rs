//! Tests of certificates: the checker accepts those that the search writes, and nothing else.

use planlab_dsa::testing::{Shape, brute_force_without_hand_over, corpus, deep_config, instances};
use planlab_dsa::{Bytes, Instance, Offset, Scope, initial_bound};
use proptest::prelude::*;
use proptest::sample::Index;

use super::{Certificate, Refutation, Step, certify};
use crate::feasibility::Problem;
use crate::placement::testing::aligned;

/// Many more nodes than a random instance needs.
const NODES: u64 = 2_000_000;

fn attempt(instance: &Instance, capacity: u64) -> Refutation {
    certify(instance, Bytes::new(capacity), NODES, &mut |_| Ok(())).expect("nothing halts it")
}

fn proof(instance: &Instance, capacity: u64) -> Certificate {
    match attempt(instance, capacity) {
        Refutation::Proved(certificate) => certificate,
        other => panic!("capacity {capacity}: {other:?}: {instance:?}"),
    }
}

fn optimum(instance: &Instance) -> Option<u64> {
    brute_force_without_hand_over(instance).map(Bytes::get)
}

/// Every capacity below the optimum has a certificate; the optimum has none.
fn check_all(instance: &Instance) {
    if Problem::new(instance).is_none() {
        assert_eq!(attempt(instance, 1), Refutation::Unsupported);
        return;
    }
    let optimum = optimum(instance).unwrap_or(0);
    assert_eq!(attempt(instance, optimum), Refutation::Feasible, "{instance:?}");
    for capacity in 0..optimum {
        let certificate = proof(instance, capacity);
        let bound = certificate.check_proof(instance).unwrap_or_else(|error| panic!("{error}: {instance:?}"));
        assert!(capacity < bound.get() && bound.get() <= optimum, "{bound} at {capacity}: {instance:?}");
        assert!(capacity + 1 < optimum || bound.get() == optimum);
    }
}

/// Changes a list of steps at one place.
fn mutate(steps: &mut Vec<Step>, how: u8, first: usize, second: usize, buffer: usize) {
    match how % 4 {
        0 => drop(steps.remove(first)),
        1 => steps.swap(first, second),
        2 => steps.insert(first, steps[second]),
        _ => {
            let kinds = [
                Step::Over,
                Step::Place(buffer),
                Step::Settle(buffer),
                Step::Skip(buffer),
                Step::Raise(buffer),
            ];
            steps[first] = kinds[second % kinds.len()];
        }
    }
}

fn mixed() -> Shape {
    Shape::plain_buffers().with_pauses(true).with_apart(true).with_pins(true).with_alignment(true)
}

proptest! {
    #![proptest_config(deep_config(4_500))]

    #[test]
    fn every_capacity_below_the_optimum_is_certified(
        instance in prop_oneof![
            instances(Shape::plain_buffers()),
            instances(Shape::plain_buffers().with_alignment(true).with_pins(true)),
            instances(mixed()),
            instances(mixed().with_max_steps(3).with_max_size(8).with_max_buffers(6)),
        ],
    ) {
        check_all(&instance);
    }
}

proptest! {
    #![proptest_config(deep_config(1_500))]

    /// A changed proof may still be a proof, but never of a capacity that some plan fits.
    #[test]
    fn nothing_false_is_accepted(
        instance in instances(mixed().with_max_steps(5)),
        changes in proptest::collection::vec((any::<u8>(), any::<Index>(), any::<Index>(), 0..8_usize), 0..4),
        part in any::<Index>(),
    ) {
        let optimum = optimum(&instance).unwrap_or(0);
        if optimum == 0 || Problem::new(&instance).is_none() {
            return Ok(());
        }
        let mut certificate = proof(&instance, part.index(usize::try_from(optimum).expect("small")) as u64);
        for (how, first, second, buffer) in changes {
            let count = certificate.steps.len();
            if count > 0 {
                mutate(&mut certificate.steps, how, first.index(count), second.index(count), buffer);
            }
        }
        if let Ok(bound) = certificate.check_proof(&instance) {
            prop_assert!(bound.get() <= optimum);
        }
        certificate.capacity = Bytes::new(optimum);
        prop_assert!(certificate.check_proof(&instance).is_err());
    }

    /// A proof must contain every case.
    #[test]
    fn a_proof_without_one_of_its_cases_is_refused(instance in instances(mixed().with_max_steps(5)), at in any::<Index>()) {
        let optimum = optimum(&instance).unwrap_or(0);
        if optimum == 0 || Problem::new(&instance).is_none() {
            return Ok(());
        }
        let mut certificate = proof(&instance, optimum - 1);
        let at = at.index(certificate.steps.len());
        let step = certificate.steps.remove(at);
        let needed = matches!(step, Step::Over | Step::Place(_) | Step::Skip(_));
        prop_assert!(!needed || certificate.check_proof(&instance).is_err());
    }
}

#[test]
fn instances_above_their_load_are_certified() {
    let mut count = 0;
    for case in
        corpus().iter().filter(|case| case.name.starts_with("above-load") && case.instance.len() <= 20)
    {
        let instance = &case.instance;
        let optimum = case.without_hand_over.expect("known").get();
        let load = initial_bound(instance).best_claim(Scope::NoHandOver).value.get();
        assert!(load < optimum, "{}", case.name);
        for capacity in [load, optimum - 1] {
            let bound = proof(instance, capacity).check_proof(instance).expect("accepted");
            assert!(bound.get() > capacity && bound.get() <= optimum, "{}: {bound}", case.name);
        }
        assert_eq!(attempt(instance, optimum), Refutation::Feasible, "{}", case.name);
        count += 1;
    }
    assert!(count >= 5, "only {count} cases");
}

#[test]
fn any_capacity_is_understood() {
    let mut feasible = 0;
    for case in corpus().iter().filter(|case| case.instance.len() <= 12) {
        let found = attempt(&case.instance, u64::MAX);
        assert!(matches!(found, Refutation::Feasible | Refutation::Unsupported), "{}: {found:?}", case.name);
        feasible += u32::from(found == Refutation::Feasible);
    }
    assert!(feasible >= 5, "only {feasible} cases");
}

/// An alignment of 4 rounds the pinned end 7 up to 8, like the free ends 5 and 6.
#[test]
fn ends_that_are_rounded_up_to_one_offset() {
    let rows = [(4, 1, 12, 1), (1, 1, 6, 4), (1, 1, 5, 4), (2, 9, 11, 4), (1, 8, 12, 2), (16, 1, 4, 1)];
    let mut buffers = rows.map(|(size, start, end, align)| aligned(size, start, end, align)).to_vec();
    buffers[4].pin = Some(Offset::new(6));
    check_all(&Instance::from_buffers(buffers).expect("valid"));
}

#[test]
fn a_proof_becomes_text_and_back() {
    let steps = [Step::Place(3), Step::Settle(0), Step::Skip(12), Step::Raise(7), Step::Over];
    let text = steps.map(|step| step.to_string());
    assert_eq!(text, ["p3", "s0", "k12", "r7", "o"]);
    for (step, text) in steps.into_iter().zip(&text) {
        assert_eq!(text.parse(), Ok(step));
    }
    for bad in ["", "p", "o1", "p-1", "p+1", "x3", "p99999999999999999999", "é1"] {
        assert!(bad.parse::<Step>().is_err(), "{bad}");
    }
}
