//! A second simulator, slow and independent: it runs a schedule on real bytes.
//!
//! Every map and every gradient has a number computed from its operands. All bytes of a buffer hold the number that was
//! written there; during a write and after a free they hold garbage. An event reads its operands' bytes at its start
//! and again at its end. In the end every function must have seen the right gradient.

use std::collections::BTreeMap;

use planlab_graph::{
    Engine, Event, FunctionId, FunctionKind, MapId, Schedule, SchedulingProblem, Task, TrainingNet,
};

const RUBBISH: u64 = 0xDEAD_BEEF;

fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9E37_79B9_7F4A_7C15, |hash: u64, &part| {
        (hash ^ part).wrapping_mul(0x0100_0000_01B3).rotate_left(29) ^ 0x51
    })
}

/// The results of a plain run.
struct Truth {
    maps: Vec<u64>,
    gradients: Vec<u64>,
}

fn forward_number(id: FunctionId, inputs: &[u64]) -> u64 {
    mix(&[&[1, id.index() as u64], inputs].concat())
}

fn part_number(id: FunctionId, place: usize, gradient: u64, needs: &[u64]) -> u64 {
    mix(&[&[2, id.index() as u64, place as u64, gradient], needs].concat())
}

/// The gradient of a map without uses.
const SEED: u64 = 7;

fn truth(net: &TrainingNet) -> Truth {
    let mut maps: Vec<u64> = net.map_ids().map(|map| mix(&[3, map.index() as u64])).collect();
    for id in net.function_ids() {
        let function = net.function(id);
        let inputs: Vec<_> = function.inputs.iter().map(|map| maps[map.index()]).collect();
        maps[function.output.index()] = forward_number(id, &inputs);
    }
    let mut gradients: Vec<Option<u64>> = vec![None; maps.len()];
    for id in net.function_ids().rev() {
        let function = net.function(id);
        let gradient = gradients[function.output.index()];
        let needs: Vec<_> = function.needs.iter().map(|map| maps[map.index()]).collect();
        for (place, input) in function.inputs.iter().enumerate() {
            let part = match gradient {
                Some(gradient) if function.kind == FunctionKind::Add => gradient,
                _ => part_number(id, place, gradient.unwrap_or(SEED), &needs),
            };
            let sum = gradients[input.index()].unwrap_or(0).wrapping_add(part);
            gradients[input.index()] = Some(sum);
        }
    }
    Truth { maps, gradients: gradients.into_iter().map(|gradient| gradient.unwrap_or(SEED)).collect() }
}

struct Machine<'a> {
    problem: &'a SchedulingProblem,
    schedule: &'a Schedule,
    truth: Truth,
    bytes: Vec<u64>,
    /// For each buffer: how often it is freed yet.
    freeing: Vec<u32>,
    host: BTreeMap<MapId, u64>,
    forward: Vec<u32>,
    backward: Vec<u32>,
}

/// An event that runs, with the numbers that it read.
struct Running {
    end: f64,
    operands: Vec<u64>,
}

/// The seconds that the schedule takes in `memory` bytes, or what went wrong.
pub(crate) fn run(problem: &SchedulingProblem, schedule: &Schedule, memory: usize) -> Result<f64, String> {
    let functions = problem.net.functions().len();
    let mut machine = Machine {
        problem,
        schedule,
        truth: truth(&problem.net),
        bytes: vec![RUBBISH; memory],
        freeing: vec![0; schedule.buffers.len()],
        host: BTreeMap::new(),
        forward: vec![0; functions],
        backward: vec![0; functions],
    };
    for id in schedule.events.iter().flatten().flat_map(|event| &event.frees) {
        *machine.freeing.get_mut(id.index()).ok_or("no such buffer")? += 1;
    }
    machine.fill_inputs()?;
    let seconds = machine.run()?;
    machine.check_end()?;
    match schedule.seconds {
        Some(claimed) if (claimed - seconds).abs() > 1e-6 * seconds => Err("a false claim".to_owned()),
        _ => Ok(seconds),
    }
}

impl Machine<'_> {
    /// The bytes of a buffer, as many as the net gives for its content.
    fn range(&self, buffer: usize) -> Result<std::ops::Range<usize>, String> {
        use planlab_graph::Content::{Gradient, Map};
        let data = self.schedule.buffers.get(buffer).ok_or("no such buffer")?;
        let (Map(map) | Gradient(map)) = data.content;
        let size = self.problem.net.maps().get(map.index()).ok_or("no such map")?.bytes.get();
        let start = usize::try_from(data.offset.ok_or("no offset")?.get()).map_err(|_| "far off")?;
        let end = start.checked_add(usize::try_from(size).expect("small")).ok_or("far off")?;
        if end > self.bytes.len() || (start as u64) < self.problem.base().get() {
            return Err(format!("buffer {buffer} lies outside"));
        }
        Ok(start..end)
    }

    fn read(&self, buffer: usize) -> Result<u64, String> {
        let bytes = &self.bytes[self.range(buffer)?];
        match bytes {
            [first, rest @ ..] if rest.iter().all(|byte| byte == first) && *first != RUBBISH => Ok(*first),
            _ => Err(format!("buffer {buffer} holds rubbish")),
        }
    }

    fn write(&mut self, buffer: usize, number: u64) -> Result<(), String> {
        let range = self.range(buffer)?;
        self.bytes[range].fill(number);
        Ok(())
    }

    fn fill_inputs(&mut self) -> Result<(), String> {
        for &id in &self.schedule.resident {
            let planlab_graph::Content::Map(map) = self.schedule.buffer(id).content else {
                return Err("a gradient from the start".to_owned());
            };
            if self.problem.net.has_gradient(map) {
                return Err("a computed map from the start".to_owned());
            }
            self.write(id.index(), self.truth.maps[map.index()])?;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<f64, String> {
        let schedule = self.schedule;
        let mut now = 0.0;
        let mut done = [0_usize; 3];
        let mut running: [Option<Running>; 3] = [None, None, None];
        loop {
            let mut started = true;
            while started {
                started = false;
                for engine in 0..3 {
                    let Some(event) = schedule.events[engine].get(done[engine]) else { continue };
                    let begun = done[0] + usize::from(running[0].is_some());
                    let met = (0..3)
                        .all(|other| event.after[other].max(event.room[other]) as usize <= done[other])
                        && event.with.is_none_or(|place| (place as usize) < begun);
                    if running[engine].is_none() && met {
                        let operands = self.begin(event)?;
                        running[engine] = Some(Running { end: now + event.seconds, operands });
                        started = true;
                    }
                }
            }
            let ends = running.iter().flatten().map(|running| running.end);
            let Some(next) = ends.min_by(f64::total_cmp) else { break };
            now = next;
            for engine in 0..3 {
                if running[engine].as_ref().is_some_and(|running| running.end <= now) {
                    let over = running[engine].take().expect("runs");
                    self.end(&schedule.events[engine][done[engine]], &over.operands)?;
                    done[engine] += 1;
                }
            }
        }
        match (0..3).find(|&engine| done[engine] < schedule.events[engine].len()) {
            Some(engine) => Err(format!("event {} of engine {engine} never starts", done[engine])),
            None => Ok(now),
        }
    }

    fn begin(&mut self, event: &Event) -> Result<Vec<u64>, String> {
        let operands = event.reads.iter().map(|id| self.read(id.index())).collect::<Result<Vec<_>, _>>()?;
        for id in &event.writes {
            self.write(id.index(), RUBBISH)?;
        }
        Ok(operands)
    }

    fn end(&mut self, event: &Event, operands: &[u64]) -> Result<(), String> {
        for (id, &before) in event.reads.iter().zip(operands) {
            if self.read(id.index())? != before {
                return Err(format!("buffer {id} changed while it was read"));
            }
        }
        self.check_time(event)?;
        let results = self.compute(event, operands)?;
        if results.len() != event.writes.len() {
            return Err("results and buffers differ in number".to_owned());
        }
        for (id, number) in event.writes.iter().zip(results) {
            self.write(id.index(), number)?;
        }
        for id in &event.frees {
            self.read(id.index())?;
            self.freeing[id.index()] -= 1;
            if self.freeing[id.index()] == 0 {
                self.write(id.index(), RUBBISH)?;
            }
        }
        Ok(())
    }

    fn check_time(&self, event: &Event) -> Result<(), String> {
        let (net, machine, times) = (&self.problem.net, &self.problem.machine, &self.problem.times);
        let (least, engine) = match event.task {
            Task::Forward(id) | Task::Recompute(id) => (times.forward()[id.index()], Engine::Compute),
            Task::Backward(id) => (times.backward()[id.index()], Engine::Compute),
            Task::Accumulate(map) => (times.accumulate_times()[map.index()], Engine::Compute),
            Task::CopyOut(map) => (net.map(map).bytes.get() as f64 / machine.copy_out, Engine::Out),
            Task::CopyIn(map) => (net.map(map).bytes.get() as f64 / machine.copy_in, Engine::In),
        };
        let is_there = self.schedule.events_of(engine).iter().any(|other| std::ptr::eq(other, event));
        if event.seconds < least * (1.0 - 1e-6) || !is_there {
            return Err("too fast, or on the wrong engine".to_owned());
        }
        Ok(())
    }

    /// The event's result from its operands, each found by its expected number.
    fn compute(&mut self, event: &Event, operands: &[u64]) -> Result<Vec<u64>, String> {
        let net = &self.problem.net;
        let demand = |number: u64| {
            if operands.contains(&number) { Ok(number) } else { Err("an operand is missing".to_owned()) }
        };
        let demand_maps = |maps: &[MapId]| -> Result<Vec<u64>, String> {
            maps.iter().map(|map| demand(self.truth.maps[map.index()])).collect()
        };
        match event.task {
            Task::Forward(id) | Task::Recompute(id) => {
                let inputs = demand_maps(&net.function(id).inputs)?;
                self.forward[id.index()] += u32::from(matches!(event.task, Task::Forward(_)));
                Ok(vec![forward_number(id, &inputs)])
            }
            Task::Backward(id) => {
                let function = net.function(id);
                let needs = demand_maps(&function.needs)?;
                let mut gradient = SEED;
                if net.last_use(function.output).is_some() {
                    gradient = demand(self.truth.gradients[function.output.index()])?;
                }
                self.backward[id.index()] += 1;
                let inputs =
                    function.inputs.iter().enumerate().filter(|(_, input)| net.has_gradient(**input));
                Ok(inputs.map(|(place, _)| part_number(id, place, gradient, &needs)).collect())
            }
            Task::Accumulate(_) => match operands {
                [first, second] => Ok(vec![first.wrapping_add(*second)]),
                _ => Err("a sum of other than two".to_owned()),
            },
            Task::CopyOut(map) => {
                let number = demand(self.truth.maps[map.index()])?;
                self.host.insert(map, number);
                Ok(Vec::new())
            }
            Task::CopyIn(map) => {
                let number = self.host.get(&map).ok_or("the host does not have it")?;
                Ok(vec![*number])
            }
        }
    }

    fn check_end(&self) -> Result<(), String> {
        let net = &self.problem.net;
        for id in net.function_ids() {
            let function = net.function(id);
            let passes_on = function.kind == FunctionKind::Add && net.last_use(function.output).is_some();
            let wanted = (1, u32::from(!passes_on));
            if (self.forward[id.index()], self.backward[id.index()]) != wanted {
                return Err(format!("function {id} does not run once each way"));
            }
        }
        Ok(())
    }
}
