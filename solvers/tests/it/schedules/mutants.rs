//! Valid schedules, each with one thing changed: what the slow simulator refuses, the validator refuses.

use planlab_dsa::{BufferId, Bytes, Offset};
use planlab_graph::{
    Engine, Event, FunctionId, Machine, MapId, Schedule, SchedulingProblem, Task, Verified, Violation,
    validate,
};
use planlab_solvers::schedule::{Class, Classes, Lab, Policy, Prefetch};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::nets::{random, resnet50, small_machine};
use super::slow;

/// More than any random net needs.
const MEMORY: usize = 4096;

fn pick<'v, T>(rng: &mut ChaCha8Rng, values: &'v [T]) -> &'v T {
    &values[rng.random_range(0..values.len())]
}

fn random_classes(rng: &mut ChaCha8Rng, lab: &Lab<'_>) -> Classes {
    let mut classes = lab.all(Class::Keep);
    for map in lab.maps() {
        let class = *pick(rng, &[Class::Keep, Class::Swap, Class::Recompute]);
        if class != Class::Recompute || lab.can_recompute(map) {
            classes.set(map, class);
        }
    }
    classes
}

/// A valid schedule of a random classification of a random net, often with hardly any room to spare.
fn random_schedule(rng: &mut ChaCha8Rng) -> (SchedulingProblem, Verified) {
    let roomy = SchedulingProblem::new(random(rng), small_machine());
    let policy = *pick(rng, &[Policy::Discard, Policy::Retain]);
    let prefetch = *pick(rng, &[Prefetch::AsRoomPermits, Prefetch::OneAhead, Prefetch::WithConvolution]);
    let lab = Lab::new(&roomy, policy, prefetch);
    let classes = random_classes(rng, &lab);
    let tight = roomy.clone().with_capacity(Bytes::new(lab.peak(&classes).get() + rng.random_range(0..6)));
    let lab = Lab::new(&tight, policy, prefetch);
    if let Ok((draft, _)) = lab.run(&classes) {
        let verified = Verified::new(&tight, draft).expect("valid");
        return (tight, verified);
    }
    let (draft, _) = Lab::new(&roomy, policy, prefetch).run(&classes).expect("there is room");
    let verified = Verified::new(&roomy, draft).expect("valid");
    (roomy, verified)
}

/// An engine that has events, and one of them.
fn random_event<'s>(rng: &mut ChaCha8Rng, schedule: &'s mut Schedule) -> (usize, &'s mut Event) {
    let engines: Vec<_> = (0..3).filter(|&engine| !schedule.events[engine].is_empty()).collect();
    let events = &mut schedule.events[*pick(rng, &engines)];
    let place = rng.random_range(0..events.len());
    (place, &mut events[place])
}

/// Changes one thing, and says what.
fn mutate(rng: &mut ChaCha8Rng, schedule: &mut Schedule) -> &'static str {
    let kind = rng.random_range(0..16);
    match kind {
        0..=4 => mutate_buffers(rng, schedule, kind),
        5..=9 => mutate_event(rng, schedule, kind),
        _ => mutate_order(rng, schedule, kind),
    }
}

fn mutate_buffers(rng: &mut ChaCha8Rng, schedule: &mut Schedule, kind: u32) -> &'static str {
    let count = schedule.buffers.len();
    let (first, second) = (rng.random_range(0..count), rng.random_range(0..count));
    match kind {
        0 => {
            let offset = schedule.buffers[first].offset;
            schedule.buffers[first].offset = schedule.buffers[second].offset;
            schedule.buffers[second].offset = offset;
            "two offsets swapped"
        }
        1 => {
            let by = rng.random_range(1..8);
            let offset = &mut schedule.buffers[first].offset;
            *offset = offset.map(|offset| Offset::new(offset.get().saturating_sub(by)));
            "a buffer moved down"
        }
        2 => {
            let offset = schedule.buffers[second].offset;
            schedule.buffers[first].offset = offset;
            "a buffer put on another"
        }
        3 => {
            let bytes = schedule.buffers[first].bytes.get();
            schedule.buffers[first].bytes = Bytes::new(bytes / 2);
            "a buffer halved"
        }
        _ => {
            schedule.seconds = schedule.seconds.map(|seconds| seconds * 0.99);
            "a false claim"
        }
    }
}

fn mutate_event(rng: &mut ChaCha8Rng, schedule: &mut Schedule, kind: u32) -> &'static str {
    let other = BufferId::from_index(rng.random_range(0..schedule.buffers.len()));
    let (_, event) = random_event(rng, schedule);
    match kind {
        5 => {
            event.seconds *= 0.5;
            "an event shortened"
        }
        6 => {
            let engine = rng.random_range(0..3);
            event.after[engine] = event.after[engine].saturating_sub(rng.random_range(1..4));
            "a wait shortened"
        }
        7 => {
            if let Some(last) = event.frees.pop() {
                let (_, event) = random_event(rng, schedule);
                event.frees.push(last);
            }
            "a free moved"
        }
        8 => {
            if let Some(read) = event.reads.last_mut() {
                *read = other;
            }
            "another operand"
        }
        _ => {
            if let Some(write) = event.writes.last_mut() {
                *write = other;
            }
            "another result"
        }
    }
}

fn mutate_order(rng: &mut ChaCha8Rng, schedule: &mut Schedule, kind: u32) -> &'static str {
    let (place, event) = random_event(rng, schedule);
    let task = event.task;
    let events = &mut schedule.events[task.engine().index()];
    let other = rng.random_range(0..events.len());
    match kind {
        10 => {
            events.swap(place, other);
            "two events swapped"
        }
        11 => {
            let event = events.remove(place);
            events.insert(other, event);
            "an event moved"
        }
        12 => {
            events.remove(place);
            "an event dropped"
        }
        13 => {
            let event = events[place].clone();
            events.insert(other, event);
            "an event repeated"
        }
        14 => {
            events[place].frees.pop();
            "a free dropped"
        }
        _ => {
            events[place].task = events[other].task;
            "another task"
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_mutant_passes_that_the_slow_simulator_refuses(seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (problem, verified) = random_schedule(&mut rng);
        let seconds = slow::run(&problem, verified.schedule(), MEMORY);
        let seconds = seconds.unwrap_or_else(|reason| panic!("valid, but {reason}"));
        prop_assert!((seconds - verified.seconds()).abs() <= 1e-9 * seconds);
        for _ in 0..40 {
            let mut schedule = verified.schedule().clone();
            let what = mutate(&mut rng, &mut schedule);
            let memory = Bytes::new(MEMORY as u64);
            if let (Ok(_), Err(reason)) =
                (validate(&problem, &schedule, Some(memory)), slow::run(&problem, &schedule, MEMORY))
            {
                prop_assert!(false, "{what}: passes, but {reason}");
            }
        }
    }
}
