//! Turns a classification of feature maps into the events of the compute engine: forward, backward, recomputation and
//! sums, with every buffer's allocation and release.
//!
//! The forward pass frees a map after its last use there if nothing needs it later, if it will be recomputed, or once
//! its copy to the host is complete. The backward pass takes the functions from the last to the first. If a function
//! needs a map that was not kept, the map is recomputed just before, from the nearest maps that are kept, swapped or
//! recomputed in turn. Gradients are new buffers, one for each use of a map. Sums of two of them are new buffers, too,
//! as in Chainer; a sum passes its output's gradient on.
//!
//! # Complexity
//!
//! O(n) for n events; a map recomputed for several others counts each time.

use planlab_dsa::{BufferId, Bytes};
use planlab_graph::{
    Content, Engine, Event, FunctionId, FunctionKind, MapId, Schedule, SchedulingProblem, Task, TrainingNet,
};

use super::class::{Class, Classes, Policy};

/// For each map: how to recompute it, and from what.
#[derive(Clone, Debug, Default)]
struct Cone {
    /// The functions, in order; the last one makes the map.
    chain: Vec<FunctionId>,
    /// The classified maps that they read, ascending.
    sources: Vec<MapId>,
}

/// The maps of a net that have a class, and how each is recomputed: the same for every classification.
#[derive(Clone, Debug)]
pub(super) struct Recipes {
    /// For each map: `None` if it has no class.
    cones: Vec<Option<Cone>>,
}

impl Recipes {
    /// Two kinds of maps have a class: those that a backward pass reads, and inputs of the net from which a
    /// recomputation starts.
    pub(super) fn new(net: &TrainingNet) -> Self {
        let mut cones = vec![None; net.maps().len()];
        for map in net.retained_maps() {
            let mut cone = Cone::default();
            if let Some(producer) = net.producer_of(map) {
                cone.gather_cone(net, producer);
            }
            cone.sources.sort_unstable();
            cone.sources.dedup();
            for &source in cone.sources.iter().filter(|&&source| !net.has_gradient(source)) {
                cones[source.index()].get_or_insert_default();
            }
            cones[map.index()] = Some(cone);
        }
        Self { cones }
    }

    /// The maps that have a class, ascending.
    pub(super) fn classified_maps(&self) -> impl DoubleEndedIterator<Item = MapId> {
        let maps = self.cones.iter().enumerate().filter(|(_, cone)| cone.is_some());
        maps.map(|(index, _)| MapId::from_index(index))
    }

    /// The time to recompute each map alone: the seconds of all functions between it and the nearest maps with a class.
    pub(super) fn recompute_seconds(&self, problem: &SchedulingProblem) -> Vec<(MapId, f64)> {
        let seconds = |id: &FunctionId| problem.times.forward()[id.index()];
        let chain = |map: MapId| self.cones[map.index()].iter().flat_map(|cone| &cone.chain);
        self.classified_maps().map(|map| (map, chain(map).map(seconds).sum())).collect()
    }
}

impl Cone {
    /// Depth first through the transient maps, from a function to what it reads.
    fn gather_cone(&mut self, net: &TrainingNet, function: FunctionId) {
        for &input in &net.function(function).inputs {
            match net.producer_of(input) {
                Some(producer) if !net.is_retained(input) => {
                    if !self.chain.contains(&producer) {
                        self.gather_cone(net, producer);
                    }
                }
                _ => self.sources.push(input),
            }
        }
        self.chain.push(function);
    }
}

/// A map that goes to the host and comes back.
#[derive(Clone, Debug)]
pub(super) struct Swap {
    pub(super) map: MapId,
    pub(super) bytes: u64,
    /// Its buffer in the forward pass.
    pub(super) out: BufferId,
    /// Its buffer in the backward pass; the same as `out` until an event needs it there.
    pub(super) back: BufferId,
    /// The compute event after which it can leave.
    pub(super) leaves: usize,
    /// The first and the last compute event that read it after its return.
    pub(super) first: usize,
    pub(super) last: usize,
}

/// The events of the compute engine, before the copies are scheduled.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Compute events only. Those that read a swapped map do not wait for it yet, and none frees it.
    pub(super) schedule: Schedule,
    /// Compute events of the forward pass.
    pub(super) forward: usize,
    /// In the order in which they can leave.
    pub(super) swaps: Vec<Swap>,
}

impl Program {
    /// The program of a classification. `vanished` has no bytes: neither it nor its gradients take memory, and adding
    /// two of them costs only a launch. It measures the cost of a map's memory.
    pub(super) fn new(
        problem: &SchedulingProblem,
        recipes: &Recipes,
        classes: &Classes,
        policy: Policy,
        vanished: Option<MapId>,
    ) -> Self {
        let mut builder = Builder::new(problem, recipes, classes, policy, vanished);
        builder.emit_forward();
        let forward = builder.events.len();
        for function in problem.net.function_ids().rev() {
            builder.emit_backward(function);
        }
        builder.finish_program(forward)
    }

    /// The compute events.
    pub(super) fn compute_steps(&self) -> &[Event] {
        self.schedule.events_of(Engine::Compute)
    }
}

/// Marks no buffer: buffer ids begin at 0 in each program and stay below this.
const NOWHERE: u32 = u32::MAX;

struct Builder<'a> {
    problem: &'a SchedulingProblem,
    recipes: &'a Recipes,
    classes: &'a Classes,
    policy: Policy,
    vanished: Option<MapId>,
    schedule: Schedule,
    events: Vec<Event>,
    /// For each map: the buffer that holds it now.
    device: Vec<Option<BufferId>>,
    /// For each map: the numbers of buffers that it and its gradient have had.
    versions: Vec<(u32, u32)>,
    /// For each map: the buffer with the sum of the gradients of its uses so far.
    gradients: Vec<Option<BufferId>>,
    /// For each buffer: the number of maps whose gradient it holds.
    shares: Vec<u32>,
    /// For each buffer: the first and the last backward event that read it; [`NOWHERE`] if none did.
    reads: Vec<(u32, u32)>,
    swaps: Vec<Swap>,
}

impl<'a> Builder<'a> {
    fn new(
        problem: &'a SchedulingProblem,
        recipes: &'a Recipes,
        classes: &'a Classes,
        policy: Policy,
        vanished: Option<MapId>,
    ) -> Self {
        let maps = problem.net.maps().len();
        let schedule = Schedule {
            net: problem.net.name().to_owned(),
            batch: Some(problem.net.batch()),
            machine: problem.machine.name.clone(),
            base: problem.base(),
            ..Schedule::default()
        };
        Self {
            problem,
            recipes,
            classes,
            policy,
            vanished,
            schedule,
            events: Vec::with_capacity(4 * problem.net.functions().len()),
            device: vec![None; maps],
            versions: vec![(0, 0); maps],
            gradients: vec![None; maps],
            shares: Vec::new(),
            reads: Vec::new(),
            swaps: Vec::new(),
        }
    }

    fn add_buffer(&mut self, content: Content) -> BufferId {
        let (map, version) = match content {
            Content::Map(map) => (map, &mut self.versions[map.index()].0),
            Content::Gradient(map) => (map, &mut self.versions[map.index()].1),
        };
        let is_vanished = self.vanished == Some(map);
        let bytes = if is_vanished { Bytes::ZERO } else { self.problem.net.map(map).bytes };
        let id = self.schedule.add_buffer(content, *version, bytes);
        *version += 1;
        self.shares.push(0);
        self.reads.push((NOWHERE, NOWHERE));
        id
    }

    fn map_buffer(&mut self, map: MapId) -> BufferId {
        let buffer = self.add_buffer(Content::Map(map));
        self.device[map.index()] = Some(buffer);
        buffer
    }

    /// The buffers of maps that are on the device, each once.
    fn held_buffers(&self, maps: &[MapId]) -> Vec<BufferId> {
        let mut held = Vec::with_capacity(maps.len() + 1);
        for buffer in maps.iter().filter_map(|map| self.device[map.index()]) {
            if !held.contains(&buffer) {
                held.push(buffer);
            }
        }
        held
    }

    fn emit_event(&mut self, event: Event) {
        let place = u32::try_from(self.events.len()).unwrap_or(NOWHERE);
        for buffer in &event.reads {
            let (first, last) = &mut self.reads[buffer.index()];
            *first = (*first).min(place);
            *last = place;
        }
        self.events.push(event);
    }

    /// A run of a function that reads what is on the device.
    fn run_function(&mut self, task: Task, id: FunctionId) -> Event {
        let function = self.problem.net.function(id);
        let mut event = Event::new(task, self.problem.times.forward()[id.index()]);
        event.reads = self.held_buffers(&function.inputs);
        event.writes.push(self.map_buffer(function.output));
        event
    }

    fn emit_forward(&mut self) {
        let net = &self.problem.net;
        for map in net.map_ids().filter(|&map| !net.has_gradient(map)) {
            let buffer = self.map_buffer(map);
            self.schedule.resident.push(buffer);
        }
        for id in net.function_ids() {
            let function = net.function(id);
            let mut event = self.run_function(Task::Forward(id), id);
            let mut done: Vec<_> =
                function.inputs.iter().copied().filter(|&map| net.last_use(map) == Some(id)).collect();
            done.extend((net.last_use(function.output).is_none()).then_some(function.output));
            for map in done {
                self.leave_forward(map, &mut event);
            }
            self.events.push(event);
        }
    }

    /// Handles a map after its last use in the forward pass.
    fn leave_forward(&mut self, map: MapId, event: &mut Event) {
        let class = self.recipes.cones[map.index()].as_ref().map(|_| self.classes.class_of(map));
        let device = &mut self.device[map.index()];
        match class {
            Some(Class::Keep) => {}
            Some(Class::Swap) => {
                // A map that occurs twice among the inputs leaves once.
                let Some(out) = device.take() else { return };
                let bytes = self.problem.net.map(map).bytes.get();
                let leaves = self.events.len();
                self.swaps.push(Swap { map, bytes, out, back: out, leaves, first: 0, last: 0 });
            }
            Some(Class::Recompute) | None => event.frees.extend(device.take()),
        }
    }

    fn emit_backward(&mut self, id: FunctionId) {
        let function = self.problem.net.function(id);
        for &map in &function.needs {
            self.restore_map(map);
        }
        let gradient = self.gradients[function.output.index()].take();
        match gradient {
            Some(gradient) if function.kind == FunctionKind::Add => self.pass_on(id, gradient),
            _ => self.emit_gradient(id, gradient),
        }
    }

    /// Passes the output's gradient on to each input.
    fn pass_on(&mut self, id: FunctionId, gradient: BufferId) {
        let net = &self.problem.net;
        for &input in net.function(id).inputs.iter().filter(|&&input| net.has_gradient(input)) {
            self.shares[gradient.index()] += 1;
            self.add_gradient(input, gradient);
        }
        if let Some(mut last) = self.events.pop() {
            self.drop_share(gradient, &mut last);
            self.events.push(last);
        }
    }

    fn emit_gradient(&mut self, id: FunctionId, gradient: Option<BufferId>) {
        let net = &self.problem.net;
        let function = net.function(id);
        let mut event = Event::new(Task::Backward(id), self.problem.times.backward()[id.index()]);
        event.reads = self.held_buffers(&function.needs);
        event.reads.extend(gradient);
        let mut parts = Vec::with_capacity(function.inputs.len());
        for &input in function.inputs.iter().filter(|&&input| net.has_gradient(input)) {
            let part = self.add_buffer(Content::Gradient(input));
            self.shares[part.index()] = 1;
            parts.push((input, part));
        }
        event.writes.extend(parts.iter().map(|&(_, part)| part));
        if let Some(gradient) = gradient {
            self.drop_share(gradient, &mut event);
        }
        self.emit_event(event);
        for (input, part) in parts {
            self.add_gradient(input, part);
        }
    }

    fn drop_share(&mut self, gradient: BufferId, event: &mut Event) {
        let shares = &mut self.shares[gradient.index()];
        *shares -= 1;
        if *shares == 0 {
            event.frees.push(gradient);
        }
    }

    /// Keeps the first gradient of a map in place; adds the next one to it, in a third buffer.
    fn add_gradient(&mut self, map: MapId, part: BufferId) {
        let Some(before) = self.gradients[map.index()] else {
            self.gradients[map.index()] = Some(part);
            return;
        };
        let is_vanished = self.vanished == Some(map);
        let seconds = if is_vanished {
            self.problem.machine.launch
        } else {
            self.problem.times.accumulate_times()[map.index()]
        };
        let mut event = Event::new(Task::Accumulate(map), seconds);
        event.reads = vec![before, part];
        let sum = self.add_buffer(Content::Gradient(map));
        self.shares[sum.index()] = 1;
        event.writes.push(sum);
        self.drop_share(before, &mut event);
        self.drop_share(part, &mut event);
        self.emit_event(event);
        self.gradients[map.index()] = Some(sum);
    }

    /// Puts a map on the device again. Returns whether it was recomputed.
    fn restore_map(&mut self, map: MapId) -> bool {
        if self.device[map.index()].is_some() {
            return false;
        }
        match self.classes.class_of(map) {
            Class::Recompute => self.recompute_map(map),
            Class::Keep | Class::Swap => self.bring_back(map),
        }
        self.classes.class_of(map) == Class::Recompute
    }

    fn bring_back(&mut self, map: MapId) {
        let Some(index) = self.swaps.iter().position(|swap| swap.map == map) else { return };
        self.swaps[index].back = self.map_buffer(map);
    }

    fn recompute_map(&mut self, map: MapId) {
        let recipes = self.recipes;
        let Some(cone) = &recipes.cones[map.index()] else { return };
        if self.policy == Policy::Share {
            return cone.chain.last().map_or((), |&producer| self.run_shared(producer));
        }
        let mut only_for_this = Vec::new();
        for &source in &cone.sources {
            if self.restore_map(source) {
                only_for_this.push(source);
            }
        }
        self.run_chain(&cone.chain);
        if self.policy == Policy::Discard {
            let gone: Vec<_> =
                only_for_this.iter().filter_map(|map| self.device[map.index()].take()).collect();
            if let Some(last) = self.events.last_mut() {
                last.frees.extend(gone);
            }
        }
    }

    /// Runs a function again, after those that make what is not on the device; everything made stays.
    fn run_shared(&mut self, id: FunctionId) {
        let net = &self.problem.net;
        let function = net.function(id);
        for &input in &function.inputs {
            match net.producer_of(input) {
                Some(producer) if !net.is_retained(input) => {
                    if self.device[input.index()].is_none() {
                        self.run_shared(producer);
                    }
                }
                _ => {
                    self.restore_map(input);
                }
            }
        }
        let event = self.run_function(Task::Recompute(id), id);
        self.emit_event(event);
    }

    /// Recomputes a map; frees intermediate maps after their last use in the chain.
    fn run_chain(&mut self, chain: &[FunctionId]) {
        let net = &self.problem.net;
        let made = |map: &MapId| net.producer_of(*map).is_some_and(|function| chain.contains(&function));
        for (place, &id) in chain.iter().enumerate() {
            let function = net.function(id);
            let mut event = self.run_function(Task::Recompute(id), id);
            for input in function.inputs.iter().filter(|input| made(input)) {
                let later = &chain[place + 1..];
                if !later.iter().any(|&other| net.function(other).inputs.contains(input)) {
                    event.frees.extend(self.device[input.index()].take());
                }
            }
            self.emit_event(event);
        }
    }

    /// Frees all remaining buffers after their last use, and records when the swapped maps are needed.
    fn finish_program(mut self, forward: usize) -> Program {
        let (wanted, unwanted): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.swaps).into_iter().partition(|swap| swap.back != swap.out);
        for swap in unwanted {
            self.events[swap.leaves].frees.push(swap.out);
        }
        self.swaps = wanted;
        for swap in &mut self.swaps {
            let (first, last) = self.reads[swap.back.index()];
            (swap.first, swap.last) = (first as usize, last as usize);
            self.device[swap.map.index()] = None;
        }
        for buffer in self.device.into_iter().flatten() {
            // Buffers that nothing reads any more stay to the end.
            let last = (self.reads[buffer.index()].1 as usize).min(self.events.len() - 1);
            self.events[last].frees.push(buffer);
        }
        self.schedule.events[Engine::Compute.index()] = self.events;
        Program { schedule: self.schedule, forward, swaps: self.swaps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::testing::{branching_problem, shortcut_problem};

    /// The events of the compute engine, a letter and a number for each, if these maps are recomputed.
    fn steps(problem: &SchedulingProblem, recomputed: &[usize], policy: Policy) -> String {
        let recipes = Recipes::new(&problem.net);
        let mut classes = Classes::all_in_class(Class::Keep, problem.net.maps().len());
        recomputed.iter().for_each(|&map| classes.set_class(MapId::from_index(map), Class::Recompute));
        let program = Program::new(problem, &recipes, &classes, policy, None);
        let name = |event: &Event| match event.task {
            Task::Forward(id) => format!("F{id}"),
            Task::Recompute(id) => format!("R{id}"),
            Task::Backward(id) => format!("B{id}"),
            Task::Accumulate(map) => format!("A{map}"),
            Task::CopyOut(_) | Task::CopyIn(_) => panic!("copies come later"),
        };
        program.compute_steps().iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_sum_passes_its_gradient_on() {
        assert_eq!(steps(&shortcut_problem(), &[], Policy::Discard), "F0 F1 F2 F3 F4 B4 B2 A2 B1 B0");
    }

    #[test]
    fn a_recomputed_map_is_dropped_or_stays() {
        let [discard, retain] =
            [Policy::Discard, Policy::Retain].map(|policy| steps(&shortcut_problem(), &[2, 4], policy));
        assert_eq!(discard, "F0 F1 F2 F3 F4 R0 R1 R2 R3 B4 R0 R1 B2 A2 B1 B0");
        assert_eq!(retain, "F0 F1 F2 F3 F4 R0 R1 R2 R3 B4 B2 A2 B1 B0");
    }
    #[test]
    fn map_without_a_class_is_recomputed_once_for_two_readers() {
        let [retain, share] =
            [Policy::Retain, Policy::Share].map(|policy| steps(&branching_problem(), &[2, 3], policy));
        assert_eq!(retain, "F0 F1 F2 F3 F4 B4 R0 R1 R0 R2 B3 B2 B1 A1 B0");
        assert_eq!(share, "F0 F1 F2 F3 F4 B4 R0 R1 R2 B3 B2 B1 A1 B0");
    }
}
