//! Chains for tests, and their optima by exhaustive search.

use std::collections::BTreeSet;

use planlab_dsa::Bytes;
use planlab_graph::{FunctionKind, SchedulingProblem, Times};

use super::chain::Segment;
use super::sequence::Step;
use crate::schedule::testing::{chain_net, shortcut_problem};

/// A chain of functions whose backward passes read input and output, in `room` bytes beside the image of one byte.
pub(super) fn chain_problem(
    sizes: &[u64],
    forward: &[u32],
    backward: &[u32],
    room: u64,
) -> SchedulingProblem {
    let bytes: Vec<u64> = std::iter::once(1).chain(sizes.iter().copied()).collect();
    let net = chain_net(&bytes, FunctionKind::Other, true);
    let seconds = |times: &[u32]| -> Vec<f64> { times.iter().copied().map(f64::from).collect() };
    let sums = vec![0.0; sizes.len() + 1];
    let times = Times::new(&net, seconds(forward), seconds(backward), sums).expect("times");
    let machine = shortcut_problem().machine;
    SchedulingProblem::new(net, machine).with_times(times).with_capacity(Bytes::new(room + 1))
}

/// A segment without transient bytes beside its output, what it saves and gradients.
pub(super) fn plain_segment(output: u64, saved: u64, input_gradient: u64) -> Segment {
    Segment {
        output,
        gradient: output,
        saved,
        advance_peak: output,
        save_peak: saved,
        backward_peak: saved + output + input_gradient,
        forward: 1.0,
        backward: 1.0,
    }
}

/// What is held of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Held {
    Nothing,
    Output,
    Saved,
}

/// For each segment what is held, and the number of segments whose backward pass is to come.
type State = (Vec<Held>, usize);

/// The least seconds of a chain in `room` bytes over all sequences of runs and drops; times are whole. `None` if it
/// does not fit.
pub(super) fn least_seconds(segments: &[Segment], room: u64) -> Option<f64> {
    let start = (vec![Held::Nothing; segments.len()], segments.len());
    search_states(start, |state| state.1 == 0, |state| next_states(segments, room, state))
}

/// The least seconds from a state to a last one. `list_next` returns the states that follow a state, each with the seconds
/// that it takes.
fn search_states<S: Clone + Ord>(
    start: S,
    is_last: impl Fn(&S) -> bool,
    list_next: impl Fn(&S) -> Vec<(u64, S)>,
) -> Option<f64> {
    let mut open = BTreeSet::from([(0_u64, start)]);
    let mut closed = BTreeSet::new();
    while let Some((seconds, state)) = open.pop_first() {
        if is_last(&state) {
            return Some(seconds as f64);
        }
        if closed.insert(state.clone()) {
            let next = list_next(&state);
            open.extend(next.into_iter().map(|(step, state)| (seconds + step, state)));
        }
    }
    None
}

/// The bytes of what is held, and of the gradient of the last segment that is open.
fn held_bytes(segments: &[Segment], held: &[Held], open: usize) -> u64 {
    let bytes = |(held, segment): (&Held, &Segment)| match held {
        Held::Nothing => 0,
        Held::Output => segment.output,
        Held::Saved => segment.saved,
    };
    held.iter().zip(segments).map(bytes).sum::<u64>() + segments[open - 1].gradient
}

/// The states after a run or a drop, with its seconds.
fn next_states(segments: &[Segment], room: u64, state: &State) -> Vec<(u64, State)> {
    let (held, open) = state;
    let taken = held_bytes(segments, held, *open);
    let mut next = Vec::new();
    let mut go_on = |seconds: f64, index: usize, to: Held, open: usize| {
        let mut held = held.clone();
        held[index] = to;
        next.push((whole(seconds), (held, open)));
    };
    for (index, segment) in segments[..*open].iter().enumerate() {
        let has_input = index == 0 || held[index - 1] != Held::Nothing;
        match held[index] {
            Held::Nothing if has_input => {
                if taken + segment.advance_peak <= room {
                    go_on(segment.forward, index, Held::Output, *open);
                }
                if taken + segment.save_peak <= room {
                    go_on(segment.forward, index, Held::Saved, *open);
                }
            }
            Held::Nothing => {}
            Held::Output => go_on(0.0, index, Held::Nothing, *open),
            Held::Saved => {
                go_on(0.0, index, Held::Nothing, *open);
                go_on(0.0, index, Held::Output, *open);
                let others = taken - segment.saved - segments[open - 1].gradient;
                if index + 1 == *open && has_input && others + segment.backward_peak <= room {
                    go_on(segment.backward, index, Held::Nothing, index);
                }
            }
        }
    }
    next
}

/// For each segment what stays until its backward pass, or its output until the backward pass that reads it; the newest
/// output, which the next run may read though it does not stay; and the number of segments whose backward pass is to
/// come.
type PersistentState = (Vec<Held>, Option<usize>, usize);

/// As [`least_seconds`], over persistent sequences alone: what a segment saves stays until its backward pass, and an input
/// that a run keeps stays until the backward pass that reads it.
pub(super) fn least_persistent_seconds(segments: &[Segment], room: u64) -> Option<f64> {
    let start = (vec![Held::Nothing; segments.len()], None, segments.len());
    search_states(start, |state| state.2 == 0, |state| next_persistent_states(segments, room, state))
}

/// The states after a run, with its seconds.
fn next_persistent_states(
    segments: &[Segment],
    room: u64,
    (held, newest, open): &PersistentState,
) -> Vec<(u64, PersistentState)> {
    let kept = held_bytes(segments, held, *open);
    let mut next = Vec::new();
    for (index, segment) in segments[..*open].iter().enumerate() {
        let has_kept_input = index == 0 || held[index - 1] != Held::Nothing;
        if !has_kept_input && *newest != Some(index - 1) {
            continue;
        }
        if held[index] == Held::Saved {
            let others = kept - segment.saved;
            if index + 1 == *open && others - segment.gradient + segment.backward_peak <= room {
                next.push((whole(segment.backward), (release_segment(held, index), None, index)));
            }
            continue;
        }
        let taken = kept + if has_kept_input { 0 } else { segments[index - 1].output };
        let runs = [
            (segment.advance_peak, false, false),
            (segment.advance_peak, true, false),
            (segment.save_peak, true, true),
        ];
        for (_, keeps_input, saves) in runs.into_iter().filter(|(peak, ..)| taken + peak <= room) {
            let mut held = held.clone();
            if keeps_input && index > 0 {
                held[index - 1] = held[index - 1].max(Held::Output);
            }
            if saves {
                held[index] = Held::Saved;
            }
            next.push((whole(segment.forward), (held, Some(index), *open)));
        }
    }
    next
}

/// What stays after the backward pass of a segment.
fn release_segment(held: &[Held], index: usize) -> Vec<Held> {
    let mut held = held.to_vec();
    held[index] = Held::Nothing;
    if index > 0 && held[index - 1] == Held::Output {
        held[index - 1] = Held::Nothing;
    }
    held
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small whole number")]
fn whole(seconds: f64) -> u64 {
    seconds as u64
}

/// Runs some steps, and returns their seconds. Panics if they take more than `room` bytes or lack an input.
pub(super) fn replay_steps(segments: &[Segment], steps: &[Step], room: u64) -> f64 {
    let mut is_saved = vec![false; segments.len()];
    let mut is_input_held = vec![false; segments.len()];
    let (mut newest, mut open, mut seconds) = (None, segments.len(), 0.0);
    for &step in steps {
        let (Step::Advance(index) | Step::Checkpoint(index) | Step::Save(index) | Step::Backward(index)) =
            step;
        let has_input = index == 0 || is_input_held[index] || is_saved[index - 1];
        assert!(has_input || newest == Some(index - 1), "{step:?} has no input");
        is_input_held[index] |= !matches!(step, Step::Advance(_));
        let segment = &segments[index];
        let mut taken = segments[open - 1].gradient;
        for (index, segment) in segments.iter().enumerate() {
            let is_held = is_input_held.get(index + 1).is_some_and(|&held| held);
            taken += if is_saved[index] { segment.saved } else { u64::from(is_held) * segment.output };
        }
        let is_loose = index > 0 && !is_input_held[index] && !is_saved[index - 1];
        let input = if is_loose { segments[index - 1].output } else { 0 };
        let peak = match step {
            Step::Advance(_) | Step::Checkpoint(_) => segment.advance_peak,
            Step::Save(_) => segment.save_peak,
            Step::Backward(_) => {
                assert!(is_saved[index] && open == index + 1, "{step:?} comes too early");
                taken -= segment.saved + segment.gradient;
                segment.backward_peak
            }
        };
        assert!(taken + input + peak <= room, "{step:?} does not fit in {room}: {steps:?}");
        newest = Some(index);
        match step {
            Step::Backward(_) => {
                (is_saved[index], is_input_held[index], open, newest) = (false, false, index, None);
                seconds += segment.backward;
            }
            Step::Save(_) => (is_saved[index], seconds) = (true, seconds + segment.forward),
            Step::Advance(_) | Step::Checkpoint(_) => seconds += segment.forward,
        }
    }
    assert_eq!(open, 0, "steps are missing: {steps:?}");
    seconds
}
