//! When each tensor of a subgraph, and of those that it runs, is live.
//!
//! A step is an operator, in the order in which they run; those of a subgraph that an operator runs come behind it. What
//! that operator reads is live until the last of them, as is what it makes. Before its first step a subgraph has one
//! for what it is given; the first subgraph is given that at step 0. One that runs several times has its buffers from
//! the first time to the last.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Call, Model, Subgraph, Tensor};
use crate::formats::flatbuffer::{Broken, ReadBudget, TABLE};
use crate::formats::import::Dropped;
use crate::formats::import::gather::Tally;

/// Subgraphs that run each other.
const DEEPEST: usize = 16;

/// When a tensor is live.
#[derive(Clone, Copy)]
pub(crate) struct Life {
    pub(crate) start: u64,
    /// Inclusive.
    pub(crate) last: u64,
    /// The step that makes it, by its number; none makes an input.
    pub(crate) step: Option<usize>,
    pub(crate) bytes: u64,
    /// Whether its subgraph gives it.
    is_output: bool,
    /// Whether it comes from outside of the model, or goes there.
    is_ours: bool,
}

impl Life {
    pub(crate) const fn category(self) -> &'static str {
        match self {
            Self { is_ours: true, step: None, .. } => "input",
            Self { is_ours: true, is_output: true, .. } => "output",
            _ => "activation",
        }
    }
}

/// A subgraph that was run, with all that it runs.
#[derive(Default)]
pub(crate) struct Lives<'m> {
    lives: BTreeMap<usize, Life>,
    /// The tensor whose memory a view is in.
    pub(crate) views: BTreeMap<usize, usize>,
    /// What each operator that ran is called: `3:while`, `3:while/0:add`.
    pub(crate) ops: Vec<String>,
    /// The same operators with their steps.
    calls: Vec<(u64, &'m Call)>,
    /// The subgraphs that ran.
    pub(crate) subgraphs: BTreeSet<usize>,
    /// The step that comes next.
    next: u64,
}

impl<'m> Lives<'m> {
    pub(crate) fn from_model(model: &'m Model, root: usize, spent: &mut ReadBudget) -> Result<Self, Broken> {
        let mut lives = Self::default();
        lives.run_subgraph(model, root, (&mut Vec::new(), ""), spent)?;
        Ok(lives)
    }

    /// Runs a subgraph inside of those that are `open`, whose operators are called `inside`.
    fn run_subgraph(
        &mut self,
        model: &'m Model,
        number: usize,
        (open, inside): (&mut Vec<usize>, &str),
        spent: &mut ReadBudget,
    ) -> Result<(), Broken> {
        let subgraph = &model.subgraphs[number];
        let refused = |reason: String| Err(Broken::new(subgraph.at, reason));
        if open.contains(&number) {
            return refused(format!("subgraph {number} runs itself in the end"));
        }
        if open.len() == DEEPEST {
            return refused(format!("more than {DEEPEST} subgraphs run each other"));
        }
        spent.take_bytes(TABLE * (1 + subgraph.tensors.len()), subgraph.at)?;
        let is_ours = open.is_empty();
        open.push(number);
        self.subgraphs.insert(number);
        let begin = self.next;
        self.next += u64::from(!is_ours);
        for &input in &subgraph.inputs {
            self.touch_tensor(model, input, (begin, None), is_ours);
        }
        for (at, call) in subgraph.calls.iter().enumerate() {
            let name = format!("{inside}{at}:{}", call.name);
            spent
                .take_bytes(TABLE + name.len() + 4 * (call.inputs.len() + call.outputs.len()), subgraph.at)?;
            self.call_operator(model, call, name, is_ours);
            let inside = call.runs.first().map(|_| format!("{}/", self.ops[self.ops.len() - 1]));
            for &other in &call.runs {
                self.run_subgraph(model, other, (open, inside.as_deref().unwrap_or_default()), spent)?;
            }
            let last = self.next - 1;
            call.inputs.iter().chain(&call.outputs).for_each(|&tensor| self.keep_until(tensor, last));
        }
        self.give_outputs(subgraph);
        open.pop();
        Ok(())
    }

    /// Makes an operator's outputs.
    fn call_operator(&mut self, model: &'m Model, call: &'m Call, name: String, is_ours: bool) {
        let (step, op) = (self.next, self.ops.len());
        self.next += 1;
        self.ops.push(name);
        self.calls.push((step, call));
        let shown = call.inputs.first().map(|&input| self.base_tensor(input));
        let shown = shown.filter(|base| call.is_view && self.lives.contains_key(base));
        for (at, &output) in call.outputs.iter().enumerate() {
            match shown.filter(|_| at == 0 && !self.lives.contains_key(&self.base_tensor(output))) {
                Some(base) => {
                    self.views.insert(output, base);
                    let bytes = model.tensors[output].bytes.unwrap_or(0);
                    self.lives.entry(base).and_modify(|life| life.bytes = life.bytes.max(bytes));
                }
                None => self.touch_tensor(model, output, (step, Some(op)), is_ours),
            }
        }
    }

    /// Keeps what a subgraph gives until its end.
    fn give_outputs(&mut self, subgraph: &Subgraph) {
        let end = self.next.saturating_sub(1);
        for &output in &subgraph.outputs {
            self.keep_until(output, end);
            let base = self.base_tensor(output);
            self.lives.entry(base).and_modify(|life| life.is_output = true);
        }
    }

    /// Begins the life of a tensor that has none.
    fn touch_tensor(
        &mut self,
        model: &Model,
        tensor: usize,
        (start, step): (u64, Option<usize>),
        is_ours: bool,
    ) {
        let bytes = model.tensors[tensor].bytes.unwrap_or(0);
        let life = Life { start, last: start, step, bytes, is_output: false, is_ours };
        self.lives.entry(self.base_tensor(tensor)).or_insert(life);
        self.keep_until(tensor, start);
    }

    fn keep_until(&mut self, tensor: usize, last: u64) {
        let base = self.base_tensor(tensor);
        self.lives.entry(base).and_modify(|life| life.last = life.last.max(last));
    }

    /// The tensor whose memory one is in.
    fn base_tensor(&self, tensor: usize) -> usize {
        self.views.get(&tensor).copied().unwrap_or(tensor)
    }

    /// The tensors that are planned, by number; the others are counted.
    pub(crate) fn planned_tensors(&self, model: &Model, left: &mut LeftOutTensors) -> Vec<(usize, Life)> {
        let all = self.subgraphs.iter().flat_map(|&number| model.subgraphs[number].tensors.clone());
        for tensor in all.filter(|tensor| !self.lives.contains_key(tensor)) {
            left.count_unused(&model.tensors[tensor]);
        }
        let lives = self.lives.iter().map(|(&tensor, &life)| (tensor, life));
        lives.filter(|&(tensor, _)| left.keeps_tensor(&model.tensors[tensor])).collect()
    }

    /// Tensors that may be written over others, which end there: output, input.
    pub(crate) fn in_place_pairs(&self, model: &Model) -> Vec<(usize, usize)> {
        let mut permissions = Vec::new();
        for (number, &(step, call)) in self.calls.iter().enumerate() {
            let &[output] = call.outputs.as_slice() else { continue };
            let Some(made) = self.lives.get(&output).filter(|life| life.step == Some(number)) else {
                continue;
            };
            // An input that is repeated along a dimension is read again after it was written over.
            let fits = |&input: &usize| {
                let (read, made) = (&model.tensors[input], &model.tensors[output]);
                read.elements == made.elements && read.bytes == made.bytes
            };
            for (at, &input) in call.inputs.iter().enumerate().take(call.elementwise) {
                let of = self.base_tensor(input);
                let is_new = call.inputs[..at].iter().all(|&other| self.base_tensor(other) != of);
                let ends = |life: &Life| life.last == step && !life.is_output && life.bytes >= made.bytes;
                let mut shown = call.inputs.iter().filter(|&&input| self.base_tensor(input) == of);
                if is_new && self.lives.get(&of).is_some_and(ends) && shown.all(fits) {
                    permissions.push((output, of));
                }
            }
        }
        permissions
    }
}

/// Tensors that are not planned: how many there are of each kind.
#[derive(Default)]
pub(crate) struct LeftOutTensors {
    constants: Tally,
    variables: Tally,
    unsized_: u64,
    dynamic: u64,
}

impl LeftOutTensors {
    /// Counts a tensor that no operator makes and that the subgraph is not given.
    pub(crate) fn count_unused(&mut self, tensor: &Tensor) {
        if tensor.has_data {
            self.constants.add_bytes(tensor.bytes.unwrap_or(0));
        }
    }

    /// Whether a tensor is planned; one that is not is counted.
    pub(crate) fn keeps_tensor(&mut self, tensor: &Tensor) -> bool {
        let bytes = tensor.bytes.unwrap_or(0);
        match tensor {
            Tensor { has_data: true, .. } => self.constants.add_bytes(bytes),
            Tensor { is_variable: true, .. } => self.variables.add_bytes(bytes),
            Tensor { bytes: None, .. } => self.unsized_ += 1,
            _ => {
                self.dynamic += u64::from(tensor.is_dynamic);
                return true;
            }
        }
        false
    }

    pub(crate) fn as_dropped(&self) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        dropped.extend(self.constants.as_dropped("tensors with data", "they have memory of their own"));
        dropped.extend(self.variables.as_dropped("variables", "they outlive the run"));
        let why = "they have no size";
        dropped.extend(Dropped::from_count(self.unsized_, "tensors of strings or resources", why));
        let why = "planned as the file has them, with 1 there";
        dropped.extend(Dropped::from_count(self.dynamic, "tensors with a dynamic dimension", why));
        dropped
    }
}
