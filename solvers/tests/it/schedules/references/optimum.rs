//! The exact optimum of small problems: a search over states that shares no code with the schedulers, the simulator or
//! the validator.
//!
//! A state is what has run, what is on the device and on the host, and what runs now with its remaining time. Events
//! start at 0 or when another ends: an event that starts later can start earlier. Memory is counted in bytes, without
//! offsets. Freeing takes no time, and happens when memory is needed, with every choice of what to free; only what
//! nothing can use is freed before. So the result is at most the time of any valid schedule.
//! Times are whole numbers.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times and indices are small")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use planlab_graph::{FunctionKind, SchedulingProblem, TrainingNet};
use rustc_hash::FxHashMap;

/// A set of functions, maps or gradient values, one bit each.
type Set = u64;

fn has(set: Set, index: usize) -> bool {
    set >> index & 1 == 1
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let first = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (first < Set::BITS as usize).then_some(first)
    })
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

/// Adds the sets of places, `chosen` among them, that reach `missing` bytes with their last place.
fn add_choices(loose: &[(u64, Set, Set)], missing: u64, chosen: Set, choices: &mut Vec<Set>) {
    for place in (Set::BITS - chosen.leading_zeros()) as usize..loose.len() {
        let gone = chosen | 1 << place;
        match missing.checked_sub(loose[place].0) {
            None | Some(0) => choices.push(gone),
            Some(missing) => add_choices(loose, missing, gone, choices),
        }
    }
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
    /// For each gradient value, the pairs of values whose sum it is, as sets.
    operands_of: Vec<Vec<Set>>,
    /// For each function with a backward pass, the gradient value that the pass reads.
    gradient_of: Vec<Option<usize>>,
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
        let produced = all_of(functions.iter().map(|function| function.output.index()));
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
            operands_of: Vec::new(),
            gradient_of: vec![None; functions.len()],
            resident: all_of((0..map_bytes.len()).filter(|&map| !has(produced, map))),
            map_bytes,
        };
        rules.add_jobs(problem, net, &passes_on);
        rules
    }

    fn add_jobs(&mut self, problem: &SchedulingProblem, net: &TrainingNet, passes_on: &[bool]) {
        let mut values = Values::default();
        let mut terms: Vec<Vec<usize>> = vec![Vec::new(); self.map_bytes.len()];
        let mut all_made = 0;
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
                if !has(self.resident, input) {
                    made |= 1 << part;
                }
            }
            all_made |= made;
            if !passes_on[index] {
                self.gradient_of[index] = gradient;
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
        for (map, terms) in terms.iter_mut().enumerate() {
            // No backward pass makes the parts of a net's input, but it may share others.
            terms.retain(|&term| !has(self.resident, map) || has(all_made, term));
            self.add_sums(map, terms, &mut values, whole(problem.times.accumulate_times()[map]));
        }
        assert!(values.bytes.len() <= 64 && self.jobs.len() < 255, "too large for this search");
        self.operands_of = vec![Vec::new(); values.bytes.len()];
        for job in self.jobs.iter().filter(|job| job.forward.is_none() && job.backward.is_none()) {
            members(job.makes_gradients).for_each(|sum| self.operands_of[sum].push(job.gradients));
        }
        self.value_bytes = values.bytes;
    }

    /// Returns all sums of two disjoint lists of a gradient's parts. Equal parts are one value, which a sum may read twice.
    fn add_sums(&mut self, map: usize, terms: &[usize], values: &mut Values, time: u32) {
        let mut value = |parts: Set| {
            let chosen = members(parts).map(|place| terms[place]).collect();
            values.sum(chosen, self.map_bytes[map])
        };
        let mut known = BTreeSet::new();
        for parts in 1..1 << terms.len() {
            for first in (1..parts).filter(|first| first & parts == *first && *first < parts & !first) {
                let (one, other, sum) = (value(first), value(parts & !first), value(parts));
                if known.insert((one.min(other), one.max(other), sum)) {
                    self.jobs.push(Job {
                        gradients: 1 << one | 1 << other,
                        makes_gradients: 1 << sum,
                        time,
                        ..Job::default()
                    });
                }
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
        state.gradients &= self.usable_gradients(&state);
        state
    }

    /// The gradient values from which sums lead to what a backward pass still reads.
    fn usable_gradients(&self, state: &State) -> Set {
        let mut needed: Set = members(self.all_backward & !state.backward)
            .filter_map(|id| self.gradient_of[id])
            .fold(0, |set, value| set | 1 << value);
        let mut open = needed;
        while open != 0 {
            // A present sum may be dropped and made again of what is there.
            let operands = members(open).flat_map(|value| &self.operands_of[value]);
            let found = operands.fold(0, |set, operands| set | operands);
            open = found & !needed;
            needed |= found;
        }
        needed
    }

    /// The states after `asked` bytes are made free, in each way that frees nothing without need. Running events read
    /// what is locked: maps and gradient values.
    fn with_room(&self, state: State, asked: u64, locked: (Set, Set)) -> Vec<State> {
        let missing = (self.taken(&state) + asked).saturating_sub(self.free);
        if missing == 0 {
            return vec![state];
        }
        let maps = members(state.maps & !locked.0).map(|map| (self.map_bytes[map], 1 << map, 0));
        let values = members(state.gradients & !locked.1);
        let values = values.map(|value| (self.value_bytes[value], 0, 1 << value));
        let loose: Vec<(u64, Set, Set)> = maps.chain(values).collect();
        let mut choices = Vec::new();
        add_choices(&loose, missing, 0, &mut choices);
        let bytes = |places: Set| members(places).map(|place| loose[place].0).sum::<u64>();
        choices.retain(|&gone| members(gone).all(|place| bytes(gone) - loose[place].0 < missing));
        let without = |gone: Set| {
            members(gone).map(|place| loose[place]).fold(state, |state, (_, map, value)| State {
                maps: state.maps & !map,
                gradients: state.gradients & !value,
                ..state
            })
        };
        choices.into_iter().map(without).collect()
    }

    /// The maps and gradient values that running events read.
    fn locked(&self, state: &State) -> (Set, Set) {
        let (job, copied) = (self.job(state), state.running[1].0.checked_sub(1));
        (job.maps | copied.map_or(0, |map| 1 << map), job.gradients)
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
                let (maps, gradients) = self.locked(&state);
                let locked = (maps | job.maps, gradients | job.gradients);
                for mut next in self.with_room(state, asked, locked) {
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
pub(crate) fn optimum_below(problem: &SchedulingProblem, limit: f64) -> Option<u32> {
    let rules = Rules::new(problem);
    // An input that no function reads need not be there.
    let read = rules.inputs_of.iter().fold(0, |set, inputs| set | inputs);
    let start = State {
        forward: 0,
        backward: 0,
        maps: rules.resident & read,
        host: 0,
        gradients: 0,
        running: [(0, 0); 3],
    };
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
