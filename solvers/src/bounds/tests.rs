//! Every argument against brute force and exhaustive search.

use planlab_dsa::testing::{
    Shape, brute_force, brute_force_without_hand_over, corpus, exhaustive, instances,
};
use planlab_dsa::{Budget, Bytes, Descriptor, Guarantee, Honours, Planner, execute};
use proptest::prelude::*;
use std::sync::Mutex;

use super::*;

/// States every bound there is.
struct Prover {
    effort: Effort,
    steps: Mutex<Vec<Step>>,
}

impl Planner for Prover {
    fn descriptor(&self) -> Descriptor {
        let honours = Honours {
            in_place: true,
            pins: true,
            alignment: true,
            arenas: true,
            apart: true,
            ..Honours::default()
        };
        Descriptor {
            key: "prover".into(),
            summary: "bounds alone".into(),
            guarantee: Guarantee::Heuristic,
            honours,
            randomized: false,
            reference: "",
            complexity: "n",
            practical: None,
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        prove(run, self.effort, &mut |step| self.steps.lock().expect("not poisoned").push(step))
    }
}

fn steps(instance: &Instance, effort: Effort) -> Vec<Step> {
    let prover = Prover { effort, steps: Mutex::default() };
    let outcome = execute(&prover, instance, Budget::default(), 0);
    assert!(outcome.end.is_ok(), "{:?}", outcome.end);
    prover.steps.into_inner().expect("not poisoned")
}

fn check(instance: &Instance) -> Result<(), TestCaseError> {
    let (any, without) = (brute_force(instance), brute_force_without_hand_over(instance));
    for step in steps(instance, Effort::Thorough) {
        let optimum = if step.scope == Scope::Any { any } else { without };
        if let Some(optimum) = optimum {
            prop_assert!(step.value <= optimum, "{step:?} above {optimum}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn never_above_the_optimum_of_plain_buffers(instance in instances(Shape::plain())) {
        check(&instance)?;
    }

    #[test]
    fn never_above_the_optimum_with_every_feature(instance in instances(Shape::everything())) {
        check(&instance)?;
    }

    #[test]
    fn never_above_the_optimum_with_alignment(
        instance in instances(Shape::plain().with_alignment(true).with_pins(true)),
    ) {
        check(&instance)?;
    }

    #[test]
    fn never_above_the_optimum_with_pauses(
        instance in instances(Shape::plain().with_pauses(true).with_in_place(true).with_apart(true)),
    ) {
        check(&instance)?;
    }

    #[test]
    fn never_above_the_optimum_of_more_plain_buffers(
        instance in instances(Shape::plain().with_max_buffers(12).with_max_size(9)),
    ) {
        if let Some(optimum) = exhaustive(&instance, 200_000) {
            for step in steps(&instance, Effort::Thorough) {
                prop_assert!(step.value <= optimum, "{step:?} above {optimum}");
            }
        }
    }
}

#[test]
fn never_above_the_optimum_of_the_corpus() {
    for case in corpus() {
        if case.instance.len() > 400 {
            continue;
        }
        for step in steps(&case.instance, Effort::Quick) {
            let optimum = if step.scope == Scope::Any { case.optimum } else { case.without_hand_over };
            let is_fine = optimum.is_none_or(|optimum| step.value <= optimum);
            assert!(is_fine, "{}: {step:?} above {optimum:?}", case.name);
        }
    }
}

/// Prints what each argument adds to the load where the optimum is above it. `cargo test --release
/// -p planlab-solvers --lib -- --ignored --nocapture bounds_table`
#[test]
#[ignore = "prints a table; takes minutes"]
fn bounds_table() {
    use rand::{RngExt, SeedableRng};
    let mut groups: Vec<(String, Vec<(Instance, Bytes)>)> = Vec::new();
    let cases =
        corpus().into_iter().filter(|case| case.name.contains("above-load") || case.why.contains("above"));
    let known = cases.filter_map(|case| Some((case.instance, case.optimum?)));
    groups.push(("corpus".into(), known.filter(|(i, o)| *o > i.load().bytes).collect()));
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    for (count, most) in [(8_u32, 9_u64), (10, 9), (12, 9), (12, 100)] {
        let mut found = Vec::new();
        let mut tried = 0_u32;
        while found.len() < 60 && tried < 60_000 {
            tried += 1;
            let mut buffers = Vec::new();
            for _ in 0..count {
                let (a, b) = (rng.random_range(0..16_u32), rng.random_range(0..16_u32));
                let live = planlab_dsa::LiveRange::new(a.min(b), a.max(b) + 1).expect("not empty");
                buffers.push(planlab_dsa::Buffer::new(Bytes::new(rng.random_range(1..=most)), live));
            }
            let instance = Instance::from_buffers(buffers).expect("valid");
            if let Some(optimum) = exhaustive(&instance, 300_000).filter(|&o| o > instance.load().bytes) {
                found.push((instance, optimum));
            }
        }
        groups.push((format!("n = {count}, sizes to {most} ({tried} tried)"), found));
    }
    for (name, group) in groups {
        for effort in [Effort::Quick, Effort::Thorough] {
            let (mut rows, mut closed) = (std::collections::BTreeMap::<&str, (usize, f64)>::new(), 0);
            for (instance, optimum) in &group {
                let steps = steps(instance, effort);
                closed += usize::from(steps.iter().any(|step| step.value == *optimum));
                for step in steps {
                    let row = rows.entry(step.evidence.name()).or_default();
                    row.0 += usize::from(!step.how.is_empty());
                    row.1 += step.seconds;
                }
            }
            println!("{name} {effort:?}: {} cases, closed {closed}, {rows:?}", group.len());
        }
    }
}
