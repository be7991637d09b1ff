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

use planlab_dsa::BufferId;
use planlab_graph::{Event, FunctionId, MapId, SchedulingProblem, Task, TrainingNet};

use super::class::{Class, Classes, Policy};
use crate::schedule::program::{Departure, Emitter, Program, Return};

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

/// The program of a classification. `vanished` has no bytes: neither it nor its gradients take memory, and adding two
/// of them costs only a launch. It measures the cost of a map's memory.
pub(super) fn build_program(
    problem: &SchedulingProblem,
    recipes: &Recipes,
    classes: &Classes,
    policy: Policy,
    vanished: Option<MapId>,
) -> Program {
    let emitter = Emitter::new(problem, vanished);
    let mut builder =
        Builder { recipes, classes, policy, emitter, departures: Vec::new(), returns: Vec::new() };
    builder.emit_forward();
    let forward = builder.emitter.events.len();
    for function in problem.net.function_ids().rev() {
        if problem.net.has_backward_pass(function) {
            for &map in &problem.net.function(function).needs {
                builder.restore_map(map);
            }
        }
        builder.emitter.emit_backward(function);
    }
    builder.finish_program(forward)
}

struct Builder<'a> {
    recipes: &'a Recipes,
    classes: &'a Classes,
    policy: Policy,
    emitter: Emitter<'a>,
    departures: Vec<Departure>,
    /// For each map that came back: its buffer.
    returns: Vec<(MapId, BufferId)>,
}

impl Builder<'_> {
    fn emit_forward(&mut self) {
        let net = &self.emitter.problem.net;
        for id in net.function_ids() {
            let function = net.function(id);
            let mut event = self.emitter.run_function(Task::Forward(id), id);
            let mut done: Vec<_> =
                function.inputs.iter().copied().filter(|&map| net.last_use(map) == Some(id)).collect();
            done.extend((net.last_use(function.output).is_none()).then_some(function.output));
            for map in done {
                self.leave_forward(map, &mut event);
            }
            self.emitter.events.push(event);
        }
    }

    /// Handles a map after its last use in the forward pass.
    fn leave_forward(&mut self, map: MapId, event: &mut Event) {
        let class = self.recipes.cones[map.index()].as_ref().map(|_| self.classes.class_of(map));
        let device = &mut self.emitter.device[map.index()];
        match class {
            Some(Class::Keep) => {}
            Some(Class::Swap) => {
                // A map that occurs twice among the inputs leaves once.
                let Some(buffer) = device.take() else { return };
                let after = self.emitter.events.len();
                self.departures.push(Departure { map, buffer, ready: after + 1, after });
            }
            Some(Class::Recompute) | None => event.frees.extend(device.take()),
        }
    }

    /// Puts a map on the device again. Returns whether it was recomputed.
    fn restore_map(&mut self, map: MapId) -> bool {
        if self.emitter.device[map.index()].is_some() {
            return false;
        }
        match self.classes.class_of(map) {
            Class::Recompute => self.recompute_map(map),
            Class::Keep | Class::Swap => self.bring_back(map),
        }
        self.classes.class_of(map) == Class::Recompute
    }

    fn bring_back(&mut self, map: MapId) {
        if self.departures.iter().any(|departure| departure.map == map) {
            self.returns.push((map, self.emitter.map_buffer(map)));
        }
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
                only_for_this.iter().filter_map(|map| self.emitter.device[map.index()].take()).collect();
            if let Some(last) = self.emitter.events.last_mut() {
                last.frees.extend(gone);
            }
        }
    }

    /// Runs a function again, after those that make what is not on the device; everything made stays.
    fn run_shared(&mut self, id: FunctionId) {
        let net = &self.emitter.problem.net;
        let function = net.function(id);
        for &input in &function.inputs {
            match net.producer_of(input) {
                Some(producer) if !net.is_retained(input) => {
                    if self.emitter.device[input.index()].is_none() {
                        self.run_shared(producer);
                    }
                }
                _ => {
                    self.restore_map(input);
                }
            }
        }
        let event = self.emitter.run_function(Task::Recompute(id), id);
        self.emitter.emit_event(event);
    }

    /// Recomputes a map; frees intermediate maps after their last use in the chain.
    fn run_chain(&mut self, chain: &[FunctionId]) {
        let net = &self.emitter.problem.net;
        let made = |map: &MapId| net.producer_of(*map).is_some_and(|function| chain.contains(&function));
        for (place, &id) in chain.iter().enumerate() {
            let function = net.function(id);
            let mut event = self.emitter.run_function(Task::Recompute(id), id);
            for input in function.inputs.iter().filter(|input| made(input)) {
                let later = &chain[place + 1..];
                if !later.iter().any(|&other| net.function(other).inputs.contains(input)) {
                    event.frees.extend(self.emitter.device[input.index()].take());
                }
            }
            self.emitter.emit_event(event);
        }
    }

    /// Frees all remaining buffers after their last use, and records when the swapped maps are needed.
    fn finish_program(mut self, forward: usize) -> Program {
        let mut departures = Vec::with_capacity(self.departures.len());
        let mut returns = Vec::with_capacity(self.returns.len());
        for departure in self.departures {
            let back = self.returns.iter().find(|(map, _)| *map == departure.map);
            let reads = back.and_then(|&(map, buffer)| Some((map, buffer, self.emitter.reads_of(buffer)?)));
            let Some((map, buffer, (first, last))) = reads else {
                self.emitter.events[departure.after].frees.push(departure.buffer);
                continue;
            };
            self.emitter.device[map.index()] = None;
            returns.push(Return { map, buffer, departure: departures.len(), earliest: forward, first, last });
            departures.push(departure);
        }
        let end = self.emitter.events.len() - 1;
        for buffer in std::mem::take(&mut self.emitter.device).into_iter().flatten() {
            // Buffers that nothing reads any more stay to the end.
            let last = self.emitter.reads_of(buffer).map_or(end, |(_, last)| last);
            self.emitter.events[last].frees.push(buffer);
        }
        self.emitter.finish_program(departures, returns)
    }
}

/// The program that swaps these maps and keeps all others.
#[cfg(test)]
pub(in crate::schedule) fn swapping_program(problem: &SchedulingProblem, swapped: &[usize]) -> Program {
    let mut classes = Classes::all_in_class(Class::Keep, problem.net.maps().len());
    swapped.iter().for_each(|&map| classes.set_class(MapId::from_index(map), Class::Swap));
    build_program(problem, &Recipes::new(&problem.net), &classes, Policy::Discard, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::testing::{branching_problem, shortcut_problem, step_names};

    /// The events of the compute engine, a letter and a number for each, if these maps are recomputed.
    fn steps(problem: &SchedulingProblem, recomputed: &[usize], policy: Policy) -> String {
        let recipes = Recipes::new(&problem.net);
        let mut classes = Classes::all_in_class(Class::Keep, problem.net.maps().len());
        recomputed.iter().for_each(|&map| classes.set_class(MapId::from_index(map), Class::Recompute));
        step_names(&build_program(problem, &recipes, &classes, policy, None))
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
