//! Random valid schedules, and the changes that make mutants of them.
//!
//! | what a schedule may do | the changes that break it |
//! |---|---|
//! | run passes in another order | events swapped, moved, dropped, repeated; waits shortened |
//! | copy a map out beside its last reader | a free added, moved or dropped; one of two frees dropped |
//! | compute a map or a sum again | a pass or a sum run again, another task |
//! | leave out inputs that nothing reads | an input left out or added |
//! | put buffers at the same addresses | offsets swapped, buffers moved, halved or put on another |

use planlab_dsa::{BufferId, Bytes, Offset};
use planlab_graph::{Event, Schedule, ScheduleBudget, SchedulingProblem, Task, Verified, execute_scheduler};
use planlab_solvers::schedule::{Class, Classes, Joint, Lab, Policy, Prefetch};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::bounds::{PERCENTS, random_problem, within};
use super::nets::{random, small_machine};

/// More memory than any random net needs.
pub(super) const MEMORY: usize = 4096;

pub(super) fn pick<'v, T>(rng: &mut ChaCha8Rng, values: &'v [T]) -> &'v T {
    &values[rng.random_range(0..values.len())]
}

fn random_classes(rng: &mut ChaCha8Rng, lab: &Lab<'_>) -> Classes {
    let mut classes = lab.all_in_class(Class::Keep);
    for map in lab.classified_maps() {
        let class = *pick(rng, &[Class::Keep, Class::Swap, Class::Recompute]);
        if class != Class::Recompute || lab.can_recompute(map) {
            classes.set_class(map, class);
        }
    }
    classes
}

/// A valid schedule of a random net: of a random classification, or of the joint search.
pub(super) fn random_schedule(rng: &mut ChaCha8Rng) -> (SchedulingProblem, Verified) {
    if rng.random_bool(0.5) { joint_schedule(rng) } else { classified_schedule(rng) }
}

/// Passes change their order and copies run beside readers, if that is faster.
fn joint_schedule(rng: &mut ChaCha8Rng) -> (SchedulingProblem, Verified) {
    loop {
        let problem = within(&random_problem(rng.random(), 9), *pick(rng, &PERCENTS));
        let budget = ScheduleBudget { work: Some(300), ..ScheduleBudget::default() };
        if let Some(best) = execute_scheduler(&Joint::default(), &problem, budget, rng.random()).best {
            return (problem, best);
        }
    }
}

/// A schedule with little room to spare, if it runs then.
fn classified_schedule(rng: &mut ChaCha8Rng) -> (SchedulingProblem, Verified) {
    let roomy = SchedulingProblem::new(random(rng), small_machine());
    let policy = *pick(rng, &[Policy::Discard, Policy::Retain]);
    let prefetch = *pick(rng, &[Prefetch::AsRoomPermits, Prefetch::OneAhead, Prefetch::WithConvolution]);
    let lab = Lab::new(&roomy, policy, prefetch);
    let classes = random_classes(rng, &lab);
    let tight =
        roomy.clone().with_capacity(Bytes::new(lab.peak_bytes(&classes).get() + rng.random_range(0..6)));
    let lab = Lab::new(&tight, policy, prefetch);
    if let Ok((draft, _)) = lab.run_draft(&classes) {
        let verified = Verified::new(&tight, draft).expect("valid");
        return (tight, verified);
    }
    let (draft, _) = Lab::new(&roomy, policy, prefetch).run_draft(&classes).expect("there is room");
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

/// The number of kinds of changes, each with its own description.
pub(super) const KINDS: u32 = 22;

/// Changes one thing, and returns its description.
pub(super) fn mutate(rng: &mut ChaCha8Rng, schedule: &mut Schedule) -> &'static str {
    let kind = rng.random_range(0..KINDS);
    match kind {
        0..=4 => mutate_buffers(rng, schedule, kind),
        5..=9 => mutate_event(rng, schedule, kind),
        10..=16 => mutate_order(rng, schedule, kind),
        _ => extend_schedule(rng, schedule, kind),
    }
}

/// Gives two buffers each other's offset.
pub(super) fn swap_offsets(schedule: &mut Schedule, first: usize, second: usize) {
    let offset = schedule.buffers[first].offset;
    schedule.buffers[first].offset = schedule.buffers[second].offset;
    schedule.buffers[second].offset = offset;
}

fn mutate_buffers(rng: &mut ChaCha8Rng, schedule: &mut Schedule, kind: u32) -> &'static str {
    let count = schedule.buffers.len();
    let (first, second) = (rng.random_range(0..count), rng.random_range(0..count));
    match kind {
        0 => {
            swap_offsets(schedule, first, second);
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
            let events = schedule.events.iter_mut().flatten();
            let counts = events.flat_map(|event| event.after.iter_mut().chain(&mut event.room));
            let mut waits: Vec<&mut u32> = counts.filter(|count| **count > 0).collect();
            if !waits.is_empty() {
                let at = rng.random_range(0..waits.len());
                *waits[at] = waits[at].saturating_sub(rng.random_range(1..4));
            }
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

fn events_of(schedule: &mut Schedule, task: Task) -> &mut Vec<Event> {
    &mut schedule.events[task.engine().index()]
}

fn mutate_order(rng: &mut ChaCha8Rng, schedule: &mut Schedule, kind: u32) -> &'static str {
    let (place, event) = random_event(rng, schedule);
    let task = event.task;
    let events = events_of(schedule, task);
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
        15 => {
            if drop_second_free(rng, schedule) {
                return "one of two frees dropped";
            }
            events_of(schedule, task)[place].frees.pop();
            "a free dropped"
        }
        _ => {
            events[place].task = events[other].task;
            "another task"
        }
    }
}

/// Lets one event alone free a buffer that two free. Returns whether there is such a buffer.
fn drop_second_free(rng: &mut ChaCha8Rng, schedule: &mut Schedule) -> bool {
    let mut counts = vec![0; schedule.buffers.len()];
    let frees = schedule.events.iter().flatten().flat_map(|event| &event.frees);
    frees.for_each(|id| counts[id.index()] += 1);
    let events = schedule.events.iter_mut().flatten().flat_map(|event| {
        let is_shared: Vec<usize> =
            (0..event.frees.len()).filter(|&place| counts[event.frees[place].index()] > 1).collect();
        is_shared.first().map(|&place| (event, place))
    });
    let mut events: Vec<_> = events.collect();
    if events.is_empty() {
        return false;
    }
    let chosen = rng.random_range(0..events.len());
    let (event, place) = &mut events[chosen];
    event.frees.remove(*place);
    true
}

/// Adds something that a schedule may have, or leaves out an input.
fn extend_schedule(rng: &mut ChaCha8Rng, schedule: &mut Schedule, kind: u32) -> &'static str {
    match kind {
        17 => {
            add_free(rng, schedule);
            "a free added"
        }
        18 | 19 => run_again(rng, schedule, kind == 19),
        20 => {
            let place = rng.random_range(0..schedule.resident.len());
            schedule.resident.remove(place);
            "an input left out"
        }
        _ => {
            add_input(rng, schedule);
            "an input added"
        }
    }
}

/// Lets one more event free a buffer; returns the buffer, and the engine and the place of the event.
pub(super) fn add_free(rng: &mut ChaCha8Rng, schedule: &mut Schedule) -> (BufferId, (usize, usize)) {
    let buffer = BufferId::from_index(rng.random_range(0..schedule.buffers.len()));
    let (place, event) = random_event(rng, schedule);
    event.frees.push(buffer);
    (buffer, (event.task.engine().index(), place))
}

/// Adds a buffer like another one, above all others.
fn add_buffer_like(schedule: &mut Schedule, buffer: BufferId) -> BufferId {
    let top = schedule.height().expect("all are placed");
    let like = schedule.buffer(buffer).clone();
    let version = schedule.buffers.iter().filter(|other| other.content == like.content).count();
    let version = u32::try_from(version).expect("few");
    let added = schedule.add_buffer(like.content, version, like.bytes);
    schedule.buffers[added.index()].offset = Some(Offset::new(top.get()));
    added
}

/// Adds a buffer with an input, above all others or on one of them, which some event frees.
fn add_input(rng: &mut ChaCha8Rng, schedule: &mut Schedule) {
    let input = *pick(rng, &schedule.resident);
    let offset = pick(rng, &schedule.buffers).offset;
    let added = add_buffer_like(schedule, input);
    if rng.random_bool(0.5) {
        schedule.buffers[added.index()].offset = offset;
    }
    schedule.resident.push(added);
    random_event(rng, schedule).1.frees.push(added);
}

/// Computes a map once more, or a sum of gradients if there is one and it is wanted. The result lies above all others,
/// and nothing reads it.
fn run_again(rng: &mut ChaCha8Rng, schedule: &mut Schedule, wants_sum: bool) -> &'static str {
    let is_sum = |task: Task| matches!(task, Task::Accumulate(_));
    let is_pass = |task: Task| matches!(task, Task::Forward(_) | Task::Recompute(_));
    let places_of = |is_it: &dyn Fn(Task) -> bool| -> Vec<usize> {
        (0..schedule.events[0].len()).filter(|&place| is_it(schedule.events[0][place].task)).collect()
    };
    let (sums, passes) = (places_of(&is_sum), places_of(&is_pass));
    let runs_sum = wants_sum && !sums.is_empty();
    let places = if runs_sum { sums } else { passes };
    let place = *pick(rng, &places);
    let mut again = schedule.events[0][place].clone();
    if let Task::Forward(id) = again.task {
        again.task = Task::Recompute(id);
    }
    again.writes = again.writes.iter().map(|&buffer| add_buffer_like(schedule, buffer)).collect();
    again.frees.clone_from(&again.writes);
    let at = rng.random_range(place + 1..=schedule.events[0].len());
    insert_compute_event(schedule, at, again);
    schedule.seconds = None;
    if runs_sum { "a sum run again" } else { "a pass run again" }
}

/// Inserts an event of the compute engine; all others wait for the same events as before.
fn insert_compute_event(schedule: &mut Schedule, at: usize, added: Event) {
    let at = u32::try_from(at).expect("few");
    for event in schedule.events.iter_mut().flatten() {
        for waits in [&mut event.after, &mut event.room] {
            waits[0] += u32::from(waits[0] > at);
        }
        event.with = event.with.map(|place| place + u32::from(place >= at));
    }
    schedule.events[0].insert(at as usize, added);
}
