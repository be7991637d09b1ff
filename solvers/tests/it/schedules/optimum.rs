//! The exact optimum of small problems: a search over states that shares no code with the schedulers, the simulator or
//! the validator.
//!
//! A state is what has run, what is on the device and on the host, and what runs now with its remaining time. Events
//! start at 0 or when another ends: an event that starts later can start earlier. Memory is counted in bytes, without
//! offsets, and freed for nothing, as late as it is needed. So the result is at most the time of any valid schedule.
//! Times are whole numbers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use planlab_graph::{FunctionKind, SchedulingProblem, TrainingNet};
use rustc_hash::FxHashMap;

/// A set of functions, maps or gradient values, one bit each.
type Set = u32;

fn has(set: Set, index: usize) -> bool {
    set >> index & 1 == 1
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..32).filter(move |&index| has(set, index))
}

fn all_of(indices: impl IntoIterator<Item = usize>) -> Set {
    indices.into_iter().fold(0, |set, index| set | 1 << index)
}

/// Work of an engine: what it reads and makes, and its time.
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    /// Maps and gradient values that it reads.
    maps: Set,
    gradients: Set,
    makes_map: Option<usize>,
    makes_gradients: Set,
    /// The function that it runs forward or backward.
    forward: Option<usize>,
    backward: Option<usize>,
    time: u32,
}

/// The rules of a problem.
struct Rules {
    free: u64,
    map_bytes: Vec<u64>,
    value_bytes: Vec<u64>,
    jobs: Vec<Job>,
    /// The time to copy each map out and in.
    out: Vec<u32>,
    back: Vec<u32>,
    inputs_of: Vec<Set>,
    output_of: Vec<usize>,
    needs_of: Vec<Set>,
    all_forward: Set,
    all_backward: Set,
    /// For each map, the values that are parts of its gradient or sums of them, with the parts that each includes.
    values_of: Vec<Vec<(usize, u32)>>,
    /// For each map, the function that makes it, and whether the gradient only passes through it.
    producers: Vec<Option<(usize, bool)>>,
    resident: Set,
}

/// What has run, what is where, and what runs now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct State {
    forward: Set,
    backward: Set,
    maps: Set,
    host: Set,
    gradients: Set,
    /// For each engine, the number of its job or map, plus 1, and the remaining time; (0, 0) if it is idle.
    running: [(u8, u32); 3],
}

/// The number of each gradient value: a part, or a sorted list of two or more others.
#[derive(Default)]
struct Values {
    numbers: BTreeMap<Vec<usize>, usize>,
    bytes: Vec<u64>,
}

impl Values {
    fn part(&mut self, bytes: u64) -> usize {
        self.bytes.push(bytes);
        self.bytes.len() - 1
    }

    fn sum(&mut self, mut terms: Vec<usize>, bytes: u64) -> usize {
        terms.sort_unstable();
        if let [only] = terms[..] {
            return only;
        }
        let next = self.bytes.len();
        let number = *self.numbers.entry(terms).or_insert(next);
        if number == next {
            self.bytes.push(bytes);
        }
        number
    }
}

fn whole(seconds: f64) -> u32 {
    let rounded = seconds.round();
    assert!((seconds - rounded).abs() < 1e-6 && rounded >= 0.0, "{seconds} is no whole number");
    rounded as u32
}

impl Rules {
    fn new(problem: &SchedulingProblem) -> Self {
        let net = &problem.net;
        let map_bytes: Vec<u64> = net.maps().iter().map(|map| map.bytes.get()).collect();
        let functions = net.functions();
        let copy = |rate: f64| map_bytes.iter().map(|&bytes| whole(bytes as f64 / rate)).collect();
        let set = |maps: &[planlab_graph::MapId]| all_of(maps.iter().map(|map| map.index()));
        let is_used =
            |map: usize| functions.iter().any(|function| function.inputs.iter().any(|id| id.index() == map));
        let passes_on: Vec<bool> = functions
            .iter()
            .map(|function| function.kind == FunctionKind::Add && is_used(function.output.index()))
            .collect();
        let mut producers = vec![None; map_bytes.len()];
        for (index, function) in functions.iter().enumerate() {
            producers[function.output.index()] = Some((index, passes_on[index]));
        }
        let mut rules = Self {
            free: problem.capacity.get().saturating_sub(problem.base().get()),
            value_bytes: Vec::new(),
            jobs: Vec::new(),
            out: copy(problem.machine.copy_out),
            back: copy(problem.machine.copy_in),
            inputs_of: functions.iter().map(|function| set(&function.inputs)).collect(),
            output_of: functions.iter().map(|function| function.output.index()).collect(),
            needs_of: functions.iter().map(|function| set(&function.needs)).collect(),
            all_forward: all_of(0..functions.len()),
            all_backward: all_of((0..functions.len()).filter(|&index| !passes_on[index])),
            values_of: vec![Vec::new(); map_bytes.len()],
            resident: all_of((0..map_bytes.len()).filter(|&map| producers[map].is_none())),
            producers,
            map_bytes,
        };
        rules.add_jobs(problem, net, &passes_on);
        rules
    }

    fn add_jobs(&mut self, problem: &SchedulingProblem, net: &TrainingNet, passes_on: &[bool]) {
        let mut values = Values::default();
        let mut terms: Vec<Vec<usize>> = vec![Vec::new(); self.map_bytes.len()];
        for (index, function) in net.functions().iter().enumerate().rev() {
            let output = function.output.index();
            let gradient = (!terms[output].is_empty())
                .then(|| values.sum(terms[output].clone(), self.map_bytes[output]));
            let mut made = 0;
            for input in function.inputs.iter().map(|map| map.index()) {
                let part = match gradient {
                    Some(gradient) if passes_on[index] => gradient,
                    _ => values.part(self.map_bytes[input]),
                };
                terms[input].push(part);
                if self.producers[input].is_some() {
                    made |= 1 << part;
                }
            }
            if !passes_on[index] {
                self.jobs.push(Job {
                    maps: self.needs_of[index],
                    gradients: all_of(gradient),
                    makes_gradients: made,
                    backward: Some(index),
                    time: whole(problem.times.backward()[index]),
                    ..Job::default()
                });
            }
            self.jobs.push(Job {
                maps: self.inputs_of[index],
                makes_map: Some(output),
                forward: Some(index),
                time: whole(problem.times.forward()[index]),
                ..Job::default()
            });
        }
        for (map, terms) in terms.iter().enumerate() {
            if self.producers[map].is_some() {
                self.add_sums(map, terms, &mut values, whole(problem.times.accumulate()[map]));
            }
        }
        assert!(values.bytes.len() <= 32 && self.jobs.len() < 255, "too large for this search");
        self.value_bytes = values.bytes;
    }

    /// All sums of two disjoint sets of parts of a map's gradient.
    fn add_sums(&mut self, map: usize, terms: &[usize], values: &mut Values, time: u32) {
        let mut value = |parts: u32| {
            let chosen = members(parts).map(|place| terms[place]).collect();
            values.sum(chosen, self.map_bytes[map])
        };
        let everything = (1_u32 << terms.len()) - 1;
        for parts in 1..=everything {
            self.values_of[map].push((value(parts), parts));
            for first in (1..parts).filter(|first| first & parts == *first && *first < parts & !first) {
                let (one, other, sum) = (value(first), value(parts & !first), value(parts));
                self.jobs.push(Job {
                    gradients: 1 << one | 1 << other,
                    makes_gradients: 1 << sum,
                    time,
                    ..Job::default()
                });
            }
        }
    }

    fn bytes_of(&self, maps: Set, gradients: Set) -> u64 {
        members(maps).map(|map| self.map_bytes[map]).sum::<u64>()
            + members(gradients).map(|value| self.value_bytes[value]).sum::<u64>()
    }

    fn job(&self, state: &State) -> Job {
        state.running[0].0.checked_sub(1).map_or_else(Job::default, |job| self.jobs[usize::from(job)])
    }

    fn taken(&self, state: &State) -> u64 {
        let job = self.job(state);
        let coming = state.running[2].0.checked_sub(1).map_or(0, |map| 1 << map);
        self.bytes_of(state.maps, state.gradients)
            + self.bytes_of(all_of(job.makes_map), job.makes_gradients)
            + self.bytes_of(coming, 0)
    }

    /// Without maps and values that nothing can use any more.
    fn tidied(&self, mut state: State) -> State {
        let mut useful =
            members(self.all_backward & !state.backward).fold(0, |set, id| set | self.needs_of[id]);
        for id in (0..self.output_of.len()).rev() {
            if !has(state.forward, id) || has(useful, self.output_of[id]) {
                useful |= self.inputs_of[id];
            }
        }
        state.maps &= useful;
        state.host &= useful;
        let mut wanted = 0;
        for map in (0..self.values_of.len()).filter(|&map| self.is_pending(map, &state)) {
            let there = || self.values_of[map].iter().filter(|&&(value, _)| has(state.gradients, value));
            let is_summed = |parts: u32| there().any(|&(_, other)| other != parts && other & parts == parts);
            let open = there().filter(|&&(_, parts)| !is_summed(parts));
            wanted |= all_of(open.map(|&(value, _)| value));
        }
        state.gradients &= wanted;
        state
    }

    /// Whether a backward pass still reads the map's gradient.
    fn is_pending(&self, map: usize, state: &State) -> bool {
        match self.producers[map] {
            None => false,
            Some((id, false)) => !has(state.backward, id),
            Some((id, true)) => members(self.inputs_of[id]).any(|input| self.is_pending(input, state)),
        }
    }

    /// The states after `asked` bytes are made free, in each way that frees no map without need.
    fn with_room(&self, state: State, asked: u64, locked: Set) -> Vec<State> {
        let missing = (self.taken(&state) + asked).saturating_sub(self.free);
        if missing == 0 {
            return vec![state];
        }
        let loose = state.maps & !locked;
        let mut found = Vec::new();
        let mut gone = loose;
        while gone != 0 {
            let bytes = self.bytes_of(gone, 0);
            if bytes >= missing && members(gone).all(|map| bytes - self.map_bytes[map] < missing) {
                found.push(State { maps: state.maps & !gone, ..state });
            }
            gone = (gone - 1) & loose;
        }
        found
    }

    /// The maps that running events read.
    fn locked(&self, state: &State) -> Set {
        self.job(state).maps | state.running[1].0.checked_sub(1).map_or(0, |map| 1 << map)
    }

    fn can_start(&self, job: &Job, state: &State) -> bool {
        let is_new =
            job.makes_map.is_none_or(|map| !has(state.maps, map) && state.running[2].0 != map as u8 + 1)
                && job.makes_gradients & state.gradients == 0
                && job.backward.is_none_or(|id| !has(state.backward, id));
        is_new && job.maps & !state.maps == 0 && job.gradients & !state.gradients == 0
    }

    /// All states that can follow by starting events now.
    fn starts(&self, state: State) -> Vec<State> {
        let mut states = vec![state];
        if state.running[0].0 == 0 {
            for (number, job) in self.jobs.iter().enumerate().filter(|(_, job)| self.can_start(job, &state)) {
                let asked = self.bytes_of(all_of(job.makes_map), job.makes_gradients);
                for mut next in self.with_room(state, asked, job.maps | self.locked(&state)) {
                    next.running[0] = (number as u8 + 1, job.time);
                    states.push(next);
                }
            }
        }
        if state.running[1].0 == 0 {
            for before in states.clone() {
                for map in members(before.maps & !before.host) {
                    let mut next = before;
                    next.running[1] = (map as u8 + 1, self.out[map]);
                    states.push(next);
                }
            }
        }
        if state.running[2].0 == 0 {
            for before in states.clone() {
                for map in members(before.host & !before.maps)
                    .filter(|&map| self.job(&before).makes_map != Some(map))
                {
                    for mut next in self.with_room(before, self.map_bytes[map], self.locked(&before)) {
                        next.running[2] = (map as u8 + 1, self.back[map]);
                        states.push(next);
                    }
                }
            }
        }
        states
    }

    /// The state when the next event ends, and the time until then; `None` if nothing runs.
    fn advanced(&self, mut state: State) -> Option<(u32, State)> {
        let left = state.running.iter().filter(|(number, _)| *number > 0).map(|&(_, time)| time).min()?;
        let job = self.job(&state);
        for engine in 0..3 {
            let (number, time) = &mut state.running[engine];
            let Some(index) = number.checked_sub(1) else { continue };
            *time -= left;
            if *time > 0 {
                continue;
            }
            *number = 0;
            match engine {
                0 => {
                    state.maps |= all_of(job.makes_map);
                    state.gradients |= job.makes_gradients;
                    state.forward |= all_of(job.forward);
                    state.backward |= all_of(job.backward);
                }
                1 => state.host |= 1 << index,
                _ => state.maps |= 1 << index,
            }
        }
        Some((left, self.tidied(state)))
    }

    /// The time of all passes that have not run.
    fn remaining(&self, state: &State) -> u32 {
        let running = self.job(state);
        let is_due = |job: &&Job| {
            job.forward.is_some_and(|id| !has(state.forward, id) && running.forward != Some(id))
                || job.backward.is_some_and(|id| !has(state.backward, id) && running.backward != Some(id))
        };
        self.jobs.iter().filter(is_due).map(|job| job.time).sum::<u32>() + state.running[0].1
    }

    fn is_complete(&self, state: &State) -> bool {
        state.forward == self.all_forward && state.backward == self.all_backward && state.running[0].0 == 0
    }
}

/// The least time of an iteration, if that is below `limit`; `None` otherwise, or if no schedule fits.
pub(super) fn optimum_below(problem: &SchedulingProblem, limit: f64) -> Option<u32> {
    let rules = Rules::new(problem);
    let start =
        State { forward: 0, backward: 0, maps: rules.resident, host: 0, gradients: 0, running: [(0, 0); 3] };
    if rules.taken(&start) > rules.free {
        return None;
    }
    let mut best: FxHashMap<State, u32> = FxHashMap::default();
    let mut queue = BinaryHeap::from([Reverse((rules.remaining(&start), 0, start))]);
    best.insert(start, 0);
    while let Some(Reverse((_, time, state))) = queue.pop() {
        if rules.is_complete(&state) {
            return Some(time);
        }
        if best[&state] < time {
            continue;
        }
        for (took, next) in rules.starts(state).into_iter().filter_map(|state| rules.advanced(state)) {
            let at = time + took;
            let estimate = at + rules.remaining(&next);
            let known = best.entry(next).or_insert(u32::MAX);
            if at < *known && f64::from(estimate) < limit {
                *known = at;
                queue.push(Reverse((estimate, at, next)));
            }
        }
    }
    None
}
