//! The least time of a small chain without copies: an exhaustive search of all that may be kept, dropped and computed
//! again, which shares no code with the schedulers, the simulator or the validator.
//!
//! Memory is counted in bytes, without offsets, and times are whole numbers.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are small and whole")]

use std::collections::BTreeSet;

use planlab_graph::SchedulingProblem;

/// The maps on the device, the functions that ran forward, and the number of backward passes that are missing.
type State = (u32, u32, usize);

/// The least seconds of an iteration. Function i of the net makes map i + 1 of map i. `None` if no schedule fits.
pub(crate) fn least_recomputed_seconds(problem: &SchedulingProblem) -> Option<f64> {
    let count = problem.net.functions().len();
    let mut open = BTreeSet::from([(0_u64, (1, 0, count))]);
    let mut closed = BTreeSet::new();
    while let Some((seconds, state)) = open.pop_first() {
        if state.1 == (1 << count) - 1 && state.2 == 0 {
            return Some(seconds as f64);
        }
        if closed.insert(state) {
            let next = list_next(problem, state);
            open.extend(next.into_iter().map(|(step, state)| (seconds + step as u64, state)));
        }
    }
    None
}

/// The states after a pass or a drop, and the seconds that it takes.
fn list_next(problem: &SchedulingProblem, (maps, forward, missing): State) -> Vec<(f64, State)> {
    let (net, times) = (&problem.net, &problem.times);
    let count = net.functions().len();
    let bytes: Vec<u64> = net.maps().iter().map(|map| map.bytes.get()).collect();
    // The gradient of map n is there while n backward passes are missing; inputs and outputs of the net have none.
    let gradient = |map: usize| if map > 0 && map < count { bytes[map] } else { 0 };
    let held: u64 = (0..=count).filter(|&map| maps & 1 << map != 0).map(|map| bytes[map]).sum();
    let room = (problem.capacity.get() - problem.base().get()).checked_sub(held + gradient(missing));
    let mut next = Vec::new();
    for map in (0..=count).filter(|&map| maps & 1 << map != 0) {
        next.push((0.0, (maps & !(1 << map), forward, missing)));
        let fits = map < count && room.is_some_and(|room| bytes[map + 1] <= room);
        if fits && maps & 2 << map == 0 {
            next.push((times.forward()[map], (maps | 2 << map, forward | 1 << map, missing)));
        }
    }
    let Some(last) = missing.checked_sub(1) else { return next };
    let has_operands = net.functions()[last].needs.iter().all(|map| maps & 1 << map.index() != 0);
    if has_operands && room.is_some_and(|room| gradient(last) <= room) {
        next.push((times.backward()[last], (maps, forward, last)));
    }
    next
}
