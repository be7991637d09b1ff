//! A problem as values and operations: what the device may hold, and what its engines can do.

use std::collections::BTreeMap;

use planlab_graph::{Content, Engine, FunctionId, FunctionKind, MapId, SchedulingProblem, Task};

/// A set of values.
pub(super) type Values = u64;
/// The most values of a model.
const MOST_VALUES: usize = Values::BITS as usize;

/// A map, a part of a gradient, or a sum of such values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) bytes: u64,
    pub(super) content: Content,
}

/// Something that an engine can do.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) task: Task,
    /// The values that it reads; a sum may read one value twice.
    pub(super) reads: Vec<usize>,
    pub(super) writes: Vec<usize>,
    /// The same as sets.
    pub(super) read_set: Values,
    pub(super) write_set: Values,
    pub(super) seconds: f64,
    /// Bytes of what it writes.
    pub(super) bytes: u64,
}

impl Operation {
    pub(super) const fn engine(&self) -> Engine {
        self.task.engine()
    }
}

/// What can happen in an iteration.
#[derive(Debug)]
pub(in crate::schedule) struct Model<'p> {
    pub(super) problem: &'p SchedulingProblem,
    pub(super) values: Vec<Value>,
    /// By engine.
    pub(super) operations: Vec<Operation>,
    /// Bytes for values.
    pub(super) room: u64,
    /// The inputs of the net that a function reads.
    pub(super) inputs: Values,
    /// For each value: the operations of the compute engine that write it.
    pub(super) makers: Vec<Vec<usize>>,
    /// For each function: its forward pass.
    pub(super) forward: Vec<usize>,
    /// For each function: its backward pass, unless it passes the gradient on.
    pub(super) backward: Vec<Option<usize>>,
    /// Gradients that take a sum which no other map shares: the backward pass that reads it, the value, and the seconds of
    /// the sum.
    pub(super) sums: Vec<(usize, usize, f64)>,
}

/// The operands of sums are numbered by their terms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    Part(FunctionId, usize),
    Sum(Vec<usize>),
}

struct Builder<'p> {
    problem: &'p SchedulingProblem,
    values: Vec<Value>,
    operations: Vec<Operation>,
    numbers: BTreeMap<Term, usize>,
    /// For each map: the values whose sum is its gradient, ascending.
    terms: Vec<Vec<usize>>,
    /// For each map: its gradient.
    gradients: Vec<Option<usize>>,
}

impl<'p> Model<'p> {
    /// The model of a problem. `None` if there are more than 64 values, 32 functions or 6 uses of a map.
    pub(in crate::schedule) fn new(problem: &'p SchedulingProblem) -> Option<Self> {
        let net = &problem.net;
        let maps = net.maps().len();
        let value = |map: MapId| Value { bytes: net.map(map).bytes.get(), content: Content::Map(map) };
        let mut builder = Builder {
            problem,
            values: net.map_ids().map(value).collect(),
            operations: Vec::new(),
            numbers: BTreeMap::new(),
            terms: vec![Vec::new(); maps],
            gradients: vec![None; maps],
        };
        if maps > MOST_VALUES || net.functions().len() > 32 {
            return None;
        }
        let is_input = |map: MapId| !net.has_gradient(map) && net.last_use(map).is_some();
        let forward = net.function_ids().map(|id| builder.add_forward(id)).collect();
        let mut backward = vec![None; net.functions().len()];
        for id in net.function_ids().rev() {
            backward[id.index()] = builder.add_backward(id)?;
        }
        let sums = builder.own_sums(&backward);
        builder.add_copies();
        let mut makers = vec![Vec::new(); builder.values.len()];
        for (index, operation) in builder.operations.iter().enumerate() {
            if operation.engine() == Engine::Compute {
                operation.writes.iter().for_each(|&value| makers[value].push(index));
            }
        }
        Some(Self {
            problem,
            values: builder.values,
            operations: builder.operations,
            room: problem.capacity.get().saturating_sub(problem.base().get()),
            inputs: as_set(net.map_ids().filter(|&map| is_input(map)).map(MapId::index)),
            makers,
            forward,
            backward,
            sums,
        })
    }

    /// The bytes of a set of values.
    pub(super) fn total_bytes(&self, values: Values) -> u64 {
        members(values).map(|value| self.values[value].bytes).sum()
    }
}

impl Builder<'_> {
    fn add_operation(&mut self, task: Task, reads: Vec<usize>, writes: Vec<usize>, seconds: f64) -> usize {
        self.operations.push(Operation {
            task,
            read_set: as_set(reads.iter().copied()),
            write_set: as_set(writes.iter().copied()),
            seconds,
            bytes: writes.iter().map(|&value| self.values[value].bytes).sum(),
            reads,
            writes,
        });
        self.operations.len() - 1
    }

    fn add_forward(&mut self, id: FunctionId) -> usize {
        let function = self.problem.net.function(id);
        let seconds = self.problem.times.forward()[id.index()];
        let reads = distinct(function.inputs.iter().map(|map| map.index()));
        self.add_operation(Task::Forward(id), reads, vec![function.output.index()], seconds)
    }

    /// The number of a gradient's value; `None` if there are too many values.
    fn number_value(&mut self, term: Term, map: MapId) -> Option<usize> {
        if let Some(&number) = self.numbers.get(&term) {
            return Some(number);
        }
        let number = self.values.len();
        let bytes = self.problem.net.map(map).bytes.get();
        self.values.push(Value { bytes, content: Content::Gradient(map) });
        self.numbers.insert(term, number);
        (number < MOST_VALUES).then_some(number)
    }

    /// Adds a function's backward pass, and the sums that lead to the gradient which it reads. All uses of its output are
    /// by functions that were added before. The outer `None` if there are too many values.
    fn add_backward(&mut self, id: FunctionId) -> Option<Option<usize>> {
        let net = &self.problem.net;
        let function = net.function(id);
        let gradient = self.add_sums(function.output)?;
        self.gradients[function.output.index()] = gradient;
        let passed_on = gradient.filter(|_| function.kind == FunctionKind::Add);
        let mut writes = Vec::new();
        for (place, &input) in
            function.inputs.iter().enumerate().filter(|&(_, &input)| net.has_gradient(input))
        {
            let term = match passed_on {
                Some(gradient) => gradient,
                None => self.number_value(Term::Part(id, place), input)?,
            };
            if passed_on.is_none() {
                writes.push(term);
            }
            self.terms[input.index()].push(term);
        }
        if passed_on.is_some() {
            return Some(None);
        }
        let needs = function.needs.iter().map(|map| map.index());
        let reads = distinct(needs.chain(gradient));
        let seconds = self.problem.times.backward()[id.index()];
        Some(Some(self.add_operation(Task::Backward(id), reads, writes, seconds)))
    }

    /// Adds every sum of parts of a map's gradient; returns the gradient. The outer `None` if there are too many values.
    fn add_sums(&mut self, map: MapId) -> Option<Option<usize>> {
        self.terms[map.index()].sort_unstable();
        let terms = self.terms[map.index()].clone();
        if terms.len() > 6 {
            return None;
        }
        let all = (1_usize << terms.len()) - 1;
        let mut numbers = vec![None; all + 1];
        for (mask, number) in numbers.iter_mut().enumerate().skip(1) {
            let chosen: Vec<usize> = members(mask as Values).map(|place| terms[place]).collect();
            *number = Some(match chosen[..] {
                [only] => only,
                _ => self.number_value(Term::Sum(chosen), map)?,
            });
        }
        let seconds = self.problem.times.accumulate_times()[map.index()];
        let mut known = std::collections::BTreeSet::new();
        for mask in 1..=all {
            for part in (1..mask).filter(|part| part & mask == *part && *part < mask - part) {
                let (Some(one), Some(other), Some(sum)) =
                    (numbers[part], numbers[mask - part], numbers[mask])
                else {
                    continue;
                };
                let reads = vec![one.min(other), one.max(other)];
                if known.insert((reads.clone(), sum)) {
                    self.add_operation(Task::Accumulate(map), reads, vec![sum], seconds);
                }
            }
        }
        Some(numbers[all].filter(|_| all > 0))
    }

    /// As [`Model::sums`].
    fn own_sums(&self, backward: &[Option<usize>]) -> Vec<(usize, usize, f64)> {
        let net = &self.problem.net;
        let mut uses = vec![0; self.values.len()];
        let distinct_terms = |map: MapId| distinct(self.terms[map.index()].iter().copied());
        for map in net.map_ids() {
            distinct_terms(map).into_iter().for_each(|term| uses[term] += 1);
        }
        let own = |map: MapId| {
            let pass = backward[net.producer_of(map)?.index()]?;
            let terms = &self.terms[map.index()];
            let is_own = terms.len() > 1 && terms.iter().all(|&term| uses[term] == 1);
            let seconds = self.problem.times.accumulate_times()[map.index()];
            Some((pass, self.gradients[map.index()].filter(|_| is_own)?, seconds))
        };
        net.map_ids().filter_map(own).collect()
    }

    fn add_copies(&mut self) {
        let problem = self.problem;
        for map in problem.net.map_ids() {
            let bytes = problem.net.map(map).bytes;
            let [out, back] = [problem.machine.out_seconds(bytes), problem.machine.in_seconds(bytes)];
            self.add_operation(Task::CopyOut(map), vec![map.index()], Vec::new(), out);
            self.add_operation(Task::CopyIn(map), Vec::new(), vec![map.index()], back);
        }
    }
}

fn distinct(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

pub(super) fn as_set(values: impl Iterator<Item = usize>) -> Values {
    values.fold(0, |set, value| set | 1 << value)
}

/// The members of a set, ascending.
pub(super) fn members(mut set: Values) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(first)
    })
}
