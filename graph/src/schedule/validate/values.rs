//! Derives the content of every buffer, and checks that each event reads what its task reads.
//!
//! Values are numbered. A map has one number, whichever event computes it. A gradient is a sum of parts, one from each
//! use of the map; its sorted terms determine its number.

use std::collections::BTreeMap;

use planlab_dsa::BufferId;

use super::audit::{Audit, Value};
use super::violation::Violation;
use crate::{Content, Engine, Event, EventId, FunctionId, FunctionKind, MapId, Task};

impl Audit<'_> {
    fn number_value(&mut self, value: Value) -> usize {
        let next = self.numbers.len();
        let sum = if let Value::Sum(terms) = &value { Some(terms.clone()) } else { None };
        let number = *self.numbers.entry(value).or_insert(next);
        if let Some(terms) = sum {
            self.sums.insert(number, terms);
        }
        number
    }

    fn sum_terms(&mut self, mut terms: Vec<usize>) -> usize {
        terms.sort_unstable();
        match terms[..] {
            [only] => only,
            _ => self.number_value(Value::Sum(terms)),
        }
    }

    /// Finds the terms of each map's gradient, from the last function to the first.
    pub(super) fn find_gradients(&mut self) {
        let net = &self.problem.net;
        for id in net.function_ids().rev() {
            let function = net.function(id);
            // All uses of the output are by later functions, which are already processed.
            let terms = self.terms[function.output.index()].clone();
            if !terms.is_empty() {
                self.gradients[function.output.index()] = Some(self.sum_terms(terms));
            }
            for (place, input) in function.inputs.iter().enumerate() {
                let term = match (function.kind, self.gradients[function.output.index()]) {
                    (FunctionKind::Add, Some(gradient)) => gradient,
                    _ => self.number_value(Value::Part(id, place)),
                };
                self.terms[input.index()].push(term);
                self.terms[input.index()].sort_unstable();
            }
        }
    }

    /// Processes the events in an order in which writers come before readers, and derives the content of each buffer.
    pub(super) fn check_values(&mut self) -> Result<(), Violation> {
        for &buffer in &self.schedule.resident {
            if let Content::Map(map) = self.schedule.buffer(buffer).content {
                self.values[buffer.index()] = Some(self.number_value(Value::Map(map)));
            }
        }
        for event in self.in_causal_order() {
            let task = self.find_event(event).task;
            match task {
                Task::Forward(id) | Task::Recompute(id) => self.check_forward(event, id)?,
                Task::Backward(id) => self.check_backward(event, id)?,
                Task::Accumulate(map) => self.check_sum(event, map)?,
                Task::CopyOut(map) => {
                    let wanted = self.number_maps(&[map]);
                    self.check_reads(event, wanted)?;
                    self.check_results(event, &[])?;
                }
                Task::CopyIn(map) => self.check_copy_in(event, map)?,
            }
        }
        Ok(())
    }

    /// Ordered by the number of events that are surely complete before: an earlier event has fewer.
    fn in_causal_order(&self) -> Vec<EventId> {
        let mut order: Vec<_> = self.events().map(|(event, _)| event).collect();
        let before = |event: &EventId| {
            let clock = self.starts[event.engine.index()][event.place].clock;
            clock.into_iter().map(u64::from).sum::<u64>()
        };
        order.sort_by_key(|event| before(event));
        order
    }

    /// The numbers of maps, with their names for messages.
    fn number_maps(&mut self, maps: &[MapId]) -> BTreeMap<usize, String> {
        maps.iter().map(|&map| (self.number_value(Value::Map(map)), format!("map {map}"))).collect()
    }

    /// Whether the event reads exactly these values.
    fn check_reads(&self, event: EventId, mut missing: BTreeMap<usize, String>) -> Result<(), Violation> {
        for &buffer in &self.find_event(event).reads {
            let held = self.values[buffer.index()];
            if held.is_none_or(|value| missing.remove(&value).is_none()) {
                return Err(Violation::WrongValue { event, buffer });
            }
        }
        match missing.into_values().next() {
            Some(what) => Err(Violation::MissingValue { event, what }),
            None => Ok(()),
        }
    }

    /// Assigns values to the buffers that the event writes.
    fn check_results(&mut self, event: EventId, results: &[(Content, usize)]) -> Result<(), Violation> {
        let writes = &self.find_event(event).writes;
        let named = |(buffer, (content, _)): (&BufferId, &(Content, usize))| {
            self.schedule.buffer(*buffer).content == *content
        };
        if writes.len() != results.len() || !writes.iter().zip(results).all(named) {
            return Err(Violation::WrongResult { event });
        }
        for (buffer, &(_, value)) in writes.iter().zip(results) {
            self.values[buffer.index()] = Some(value);
        }
        Ok(())
    }

    fn check_forward(&mut self, event: EventId, id: FunctionId) -> Result<(), Violation> {
        let function = self.problem.net.function(id);
        let wanted = self.number_maps(&function.inputs);
        self.check_reads(event, wanted)?;
        let value = self.number_value(Value::Map(function.output));
        self.check_results(event, &[(Content::Map(function.output), value)])
    }

    fn check_backward(&mut self, event: EventId, id: FunctionId) -> Result<(), Violation> {
        let net = &self.problem.net;
        let function = net.function(id);
        let mut wanted = self.number_maps(&function.needs);
        if let Some(gradient) = self.gradients[function.output.index()] {
            wanted.insert(gradient, "the gradient of its output".to_owned());
        }
        self.check_reads(event, wanted)?;
        let mut results = Vec::new();
        for (place, &input) in function.inputs.iter().enumerate() {
            if net.has_gradient(input) {
                results.push((Content::Gradient(input), self.number_value(Value::Part(id, place))));
            }
        }
        self.check_results(event, &results)
    }

    /// The terms of a map's gradient whose sum is a value.
    fn terms_of(&self, map: MapId, value: usize) -> Option<Vec<usize>> {
        let terms = &self.terms[map.index()];
        if terms.contains(&value) {
            return Some(vec![value]);
        }
        let sum = self.sums.get(&value)?;
        sum.iter().all(|term| terms.contains(term)).then(|| sum.clone())
    }

    fn check_sum(&mut self, event: EventId, map: MapId) -> Result<(), Violation> {
        let mut rest = self.terms[map.index()].clone();
        let mut terms = Vec::new();
        for &buffer in &self.find_event(event).reads {
            let wrong = Violation::WrongValue { event, buffer };
            let held = self.values[buffer.index()].ok_or_else(|| wrong.clone())?;
            for term in self.terms_of(map, held).ok_or_else(|| wrong.clone())? {
                let place = rest.iter().position(|&other| other == term).ok_or_else(|| wrong.clone())?;
                rest.remove(place);
                terms.push(term);
            }
        }
        if self.find_event(event).reads.len() != 2 {
            return Err(Violation::MissingValue { event, what: "two parts of a gradient".to_owned() });
        }
        let value = self.sum_terms(terms);
        self.check_results(event, &[(Content::Gradient(map), value)])
    }

    fn check_copy_in(&mut self, event: EventId, map: MapId) -> Result<(), Violation> {
        let copies = self.schedule.events_of(Engine::Out).iter().enumerate();
        let is_out = |(place, data): (usize, &Event)| {
            data.task == Task::CopyOut(map) && self.is_before(EventId { engine: Engine::Out, place }, event)
        };
        if !copies.into_iter().any(is_out) {
            return Err(Violation::NotOnHost { event, map });
        }
        self.check_reads(event, BTreeMap::new())?;
        let value = self.number_value(Value::Map(map));
        self.check_results(event, &[(Content::Map(map), value)])
    }

    pub(super) fn check_counts(&self) -> Result<(), Violation> {
        let net = &self.problem.net;
        let mut counts = vec![(0, 0); net.functions().len()];
        for (_, event) in self.events() {
            match event.task {
                Task::Forward(id) => counts[id.index()].0 += 1,
                Task::Backward(id) => counts[id.index()].1 += 1,
                _ => {}
            }
        }
        for (function, (forward, backward)) in net.function_ids().zip(counts) {
            if forward != 1 {
                return Err(Violation::Forward { function, times: forward });
            }
            let passes_on = net.function(function).kind == FunctionKind::Add
                && self.gradients[net.function(function).output.index()].is_some();
            if backward != u32::from(!passes_on) {
                return Err(Violation::Backward { function, times: backward });
            }
        }
        Ok(())
    }
}
