//! Reproduces the requests of Chainer 3.0.0rc1 to its memory pool for a [`Program`]: the same blocks in the same order,
//! and every free between the same two requests.
//!
//! Chainer counts references. A block lives as long as anything holds it: a variable of the net, a node of the graph
//! whose array a function retained, an attribute of a function, a list of the backward pass. So this replays the run
//! with real reference counts (`Rc`) but without data: the tape records when a block is requested and when its last
//! holder drops it.
//!
//! ```text
//!   Variable --holds--> array, node        Node --holds--> its function, its array if retained
//!   Function --holds--> nodes of its inputs, retained outputs, attributes (masks, means, ...)
//! ```
//!
//! The backward pass visits functions by descending rank, and functions of the same rank in the order in which they
//! were found. The gradients of a function's outputs are held until the next function is visited. No activation is
//! freed before the loss is dropped, and the graph with it.
//!
//! # References
//!
//! 1. S. Tokui et al., *Chainer: a Next-Generation Open Source Framework for Deep Learning*, 2015; version 3.0.0rc1.
//! 2. Propagations of the real Chainer, recorded: `workloads/data/chainer`. The tests below compare with them.
//!
//! # Complexity
//!
//! O(calls log calls + reads).

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::{Rc, Weak};

use planlab_dsa::InstanceError;

use super::net::{Call, Convolution, Event, Function, Mode, Program, Shape, ValueId, Window, elements};
use super::tape::{Block, FLOAT, Tape, UNIT};
use super::workspace::Workspace;
use crate::formats::Trace;

/// Bytes of a label.
const LABEL: u64 = 4;

/// What has been requested, and the function that requests now.
#[derive(Default)]
struct Log {
    tape: Tape,
    op: String,
}

/// A block that is freed when its last holder drops it.
struct Memory {
    log: Rc<RefCell<Log>>,
    block: Block,
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.log.borrow_mut().tape.free(self.block);
    }
}

/// A view of a block. Parameters have no block.
#[derive(Clone)]
struct Array {
    shape: Shape,
    /// Bytes of an element.
    item: u64,
    /// Held but never read: the block is freed when its last holder is dropped.
    _memory: Option<Rc<Memory>>,
    is_contiguous: bool,
}

impl Array {
    fn view_as(&self, shape: Shape, is_contiguous: bool) -> Self {
        Self { shape, is_contiguous, ..self.clone() }
    }
}

#[derive(Default)]
struct Node {
    shape: Shape,
    needs_gradient: bool,
    rank: Cell<u32>,
    creator: RefCell<Option<Rc<Called>>>,
    /// The array, if a function retained it.
    data: RefCell<Option<Array>>,
    /// The gradient, while the backward pass holds it.
    gradient: RefCell<Option<Array>>,
}

/// A call, as the graph keeps it.
struct Called {
    call: usize,
    rank: u32,
    inputs: Vec<Rc<Node>>,
    outputs: Vec<Weak<Node>>,
    /// Retained outputs and attributes.
    _kept: Vec<Array>,
}

struct Variable {
    data: Array,
    node: Rc<Node>,
}

/// Why a program cannot be replayed.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainerError {
    /// There is no rule for a function, or for the variant of it that `detail` names. Calls count from 1.
    #[error(
        "call {call}: Chainer's requests for `{function}`{detail} are not known; use the ideal allocator"
    )]
    NoRule { call: usize, function: &'static str, detail: &'static str },
    /// The net has other inputs than a batch and its labels.
    #[error(
        "Chainer's requests are known for nets with two inputs, a batch and its labels; this net has {inputs}"
    )]
    Inputs { inputs: usize },
    /// The workspace of a call does not fit 64 bits.
    #[error("call {call}: its workspace does not fit 64 bits")]
    Workspace { call: usize },
    /// The sum of the sizes does not fit 64 bits.
    #[error(transparent)]
    Instance(#[from] InstanceError),
}

/// Checks that there is a rule for every call.
fn check_program(program: &Program, workspace: Workspace) -> Result<(), ChainerError> {
    for (call, made) in (1..).zip(program.calls()) {
        let function = made.function.name();
        let no_rule = |detail| ChainerError::NoRule { call, function, detail };
        lacking_rule(program, made).map_or(Ok(()), |detail| Err(no_rule(detail)))?;
        let bytes = FLOAT * elements(program.shape_of(made.output));
        let needed = workspace.bytes_for(bytes).and_then(|bytes| bytes.checked_add(UNIT));
        needed.ok_or(ChainerError::Workspace { call })?;
    }
    match program.inputs[..] {
        [ValueId(0), ValueId(1)] => Ok(()),
        _ => Err(ChainerError::Inputs { inputs: program.inputs.len() }),
    }
}

/// The variant of a call that has no rule; empty if the function has none at all, `None` if there is a rule.
fn lacking_rule(program: &Program, call: &Call) -> Option<&'static str> {
    let extents = program.shape_of(call.inputs[0]).len();
    let of_window = |window: &Window| match window.dilation {
        _ if extents != 4 => Some(" in other than two dimensions"),
        [_, 1, 1] => None,
        _ => Some(" with dilation"),
    };
    match &call.function {
        Function::Convolution(Convolution { is_transposed: true, .. }) => Some(""),
        Function::Convolution(Convolution { groups: 2.., .. }) => Some(" in groups"),
        Function::Convolution(Convolution { window, .. })
        | Function::MaxPooling(window)
        | Function::AveragePooling(window) => of_window(window),
        Function::Linear => match (extents, call.parameters.len()) {
            (2, 2) => None,
            (2, _) => Some(" without a bias"),
            _ => Some(" on more than rows"),
        },
        Function::Relu
        | Function::LocalResponseNorm
        | Function::Reshape
        | Function::Dropout
        | Function::BatchNorm
        | Function::Concat
        | Function::Add
        | Function::Scale
        | Function::SoftmaxCrossEntropy
        | Function::Accuracy => None,
        _ => Some(""),
    }
}

/// The requests of one propagation, with this workspace for each convolution. Blocks that outlive it (gradients of
/// parameters, reported scalars) are left out, as in the recorded propagations.
///
/// # Errors
///
/// [`ChainerError`] for a function that has no rule, and for sizes that do not fit 64 bits.
pub fn play_propagation(program: &Program, workspace: Workspace) -> Result<Trace, ChainerError> {
    check_program(program, workspace)?;
    let player = Player::new(program, workspace);
    let kept = player.play_program();
    // Blocks that outlive the propagation are not freed yet, and so are left out.
    let trace = player.log.borrow().tape.build_trace();
    drop(kept);
    Ok(trace?)
}

struct Player<'p> {
    program: &'p Program,
    workspace: Workspace,
    log: Rc<RefCell<Log>>,
    parameters: Vec<Rc<Node>>,
}

/// The blocks that outlive the propagation.
#[derive(Default)]
struct Kept {
    _reported: Vec<Array>,
    _gradients: Vec<Option<Array>>,
}

impl<'p> Player<'p> {
    fn new(program: &'p Program, workspace: Workspace) -> Self {
        let leaf = |shape: &Shape| {
            let data = Array { shape: shape.clone(), item: FLOAT, _memory: None, is_contiguous: true };
            Rc::new(Node { data: RefCell::new(Some(data)), ..Node::new_leaf(shape, true) })
        };
        let parameters = program.parameters.iter().map(leaf).collect();
        Self { program, workspace, log: Rc::default(), parameters }
    }

    fn is_training(&self) -> bool {
        self.program.mode == Mode::Train
    }

    fn new_array(&self, shape: &[u64], item: u64) -> Array {
        let mut log = self.log.borrow_mut();
        let Log { tape, op } = &mut *log;
        let block = tape.alloc(elements(shape) * item, op);
        drop(log);
        let memory = Memory { log: Rc::clone(&self.log), block };
        Array { shape: shape.to_vec(), item, _memory: Some(Rc::new(memory)), is_contiguous: true }
    }

    fn new_floats(&self, shape: &[u64]) -> Array {
        self.new_array(shape, FLOAT)
    }

    /// The workspace of a convolution with this output map.
    fn new_workspace(&self, output_map: &[u64]) -> Option<Array> {
        let bytes = self.workspace.bytes_for(FLOAT * elements(output_map))?;
        (bytes > 0).then(|| self.new_array(&[bytes], 1))
    }

    /// A copy of an array that is not contiguous.
    fn copy_contiguous(&self, array: &Array) -> Option<Array> {
        (!array.is_contiguous).then(|| self.new_array(&array.shape, array.item))
    }

    fn enter_operation(&self, op: &str) {
        op.clone_into(&mut self.log.borrow_mut().op);
    }

    /// Runs one propagation; returns what outlives it.
    fn play_program(&self) -> Kept {
        self.enter_operation("input");
        let input = |index: usize| {
            let item = if index == 0 { FLOAT } else { LABEL };
            let data = self.new_array(&self.program.shapes[index], item);
            Variable { node: Rc::new(Node::new_leaf(&data.shape, false)), data }
        };
        let mut values: BTreeMap<ValueId, Variable> =
            self.program.inputs.iter().map(|&value| (value, input(value.0))).collect();
        let mut reported = Vec::new();
        for (index, event) in self.program.events.iter().enumerate() {
            match event {
                Event::Call(call) => {
                    let output = self.play_call(index, call, &values);
                    values.insert(call.output, output);
                }
                Event::Drop(value) => drop(values.remove(value)),
                Event::Report(all) => {
                    reported.extend(all.iter().filter_map(|value| Some(values.get(value)?.data.clone())));
                }
            }
        }
        if !self.is_training() {
            return Kept::default();
        }
        let gradients = values.remove(&self.program.result).map(|loss| self.play_backward(loss));
        drop(values);
        self.enter_operation("report");
        for _ in &reported {
            drop(self.new_floats(&[]));
        }
        Kept { _reported: reported, _gradients: gradients.unwrap_or_default() }
    }

    fn play_call(&self, index: usize, call: &Call, values: &BTreeMap<ValueId, Variable>) -> Variable {
        let of_values = call.inputs.iter().filter_map(|value| values.get(value));
        let mut nodes: Vec<Rc<Node>> = of_values.clone().map(|value| Rc::clone(&value.node)).collect();
        let arrays: Vec<Array> = of_values.map(|value| value.data.clone()).collect();
        nodes.extend(call.parameters.iter().map(|&parameter| Rc::clone(&self.parameters[parameter])));
        self.enter_operation(call.function.name());
        let (data, mut kept) = self.play_forward(call, &arrays);
        let needs_gradient = nodes.iter().any(|node| node.needs_gradient);
        let node = Rc::new(Node::new_leaf(&data.shape, needs_gradient));
        if self.is_training() {
            let rank = nodes.iter().map(|node| node.rank.get()).max().unwrap_or(0);
            if retains_input(&call.function) {
                for (node, array) in nodes.iter().zip(&arrays) {
                    *node.data.borrow_mut() = Some(array.clone());
                }
            }
            if retains_output(&call.function) {
                *node.data.borrow_mut() = Some(data.clone());
                kept.push(data.clone());
            }
            let outputs = vec![Rc::downgrade(&node)];
            let called = Called { call: index, rank, inputs: nodes, outputs, _kept: kept };
            node.rank.set(rank + 1);
            *node.creator.borrow_mut() = Some(Rc::new(called));
        }
        Variable { data, node }
    }

    /// The output, and the attributes that the function keeps.
    fn play_forward(&self, call: &Call, inputs: &[Array]) -> (Array, Vec<Array>) {
        let x = &inputs[0];
        let out = self.program.shape_of(call.output);
        let mut kept = Vec::new();
        let output = match &call.function {
            Function::Convolution(_) => {
                let y = self.new_floats(out);
                let _temporaries = (self.copy_contiguous(x), self.new_workspace(out));
                y
            }
            Function::MaxPooling(_) | Function::AveragePooling(_) => {
                let _copy = self.copy_contiguous(x);
                self.new_floats(out)
            }
            Function::LocalResponseNorm => {
                let y = self.new_floats(out);
                kept.extend([self.new_floats(out), y.clone()]);
                y
            }
            Function::Dropout => {
                let _random = self.new_floats(out);
                kept.push(self.new_floats(out));
                self.new_floats(out)
            }
            Function::BatchNorm if self.is_training() => {
                let y = self.new_floats(out);
                let channels = [out[1]];
                kept.extend([self.new_floats(&channels), self.new_floats(&channels)]);
                y
            }
            Function::Concat => {
                let y = self.new_floats(out);
                let (count, extents) = (inputs.len() as u64, out.len() as u64);
                // CuPy ships pointers, offsets and strides of more than three arrays as arrays.
                let _tables = (count > 3).then(|| {
                    [
                        self.new_array(&[count], 8),
                        self.new_array(&[count], 4),
                        self.new_array(&[count * extents], 4),
                    ]
                });
                y
            }
            Function::Reshape => x.view_as(out.clone(), x.is_contiguous),
            Function::SoftmaxCrossEntropy => return self.cross_entropy(x, &inputs[1]),
            Function::Accuracy => {
                let labels = &inputs[1].shape;
                let _temporaries = (self.new_array(labels, 8), self.new_array(labels, 1));
                self.new_floats(&[])
            }
            // `check` has refused all functions without a rule.
            _ => self.new_floats(out),
        };
        (output, kept)
    }

    fn cross_entropy(&self, x: &Array, labels: &Array) -> (Array, Vec<Array>) {
        let _log_y = self.new_floats(&x.shape);
        let y = self.new_floats(&x.shape);
        let equal = self.new_array(&labels.shape, 1);
        let count = self.new_array(&[], 8);
        drop(equal);
        let _most = self.new_array(&[], 8);
        drop(count);
        let coefficient = self.new_floats(&[]);
        (self.new_floats(&[]), vec![y, coefficient])
    }

    /// The backward pass; returns the gradients of the parameters.
    #[expect(clippy::needless_pass_by_value, reason = "the graph is dropped with the loss at the end")]
    fn play_backward(&self, loss: Variable) -> Vec<Option<Array>> {
        self.enter_operation("backward");
        let seed = self.new_floats(&loss.data.shape);
        *loss.node.gradient.borrow_mut() = Some(seed);
        let mut queue = Queue::default();
        queue.push(loss.node.creator.borrow().clone());
        // The loop's variables hold these until the next function is visited.
        let mut held: (Option<Array>, Vec<Option<Array>>) = Default::default();
        while let Some(called) = queue.pop() {
            let outputs: Vec<Rc<Node>> = called.outputs.iter().filter_map(Weak::upgrade).collect();
            let incoming = outputs.first().and_then(|node| node.gradient.borrow().clone());
            let targets: Vec<&Rc<Node>> = called.inputs.iter().filter(|node| node.needs_gradient).collect();
            let known = targets.iter().map(|node| node.gradient.borrow().clone()).collect();
            drop(std::mem::replace(&mut held, (incoming, known)));
            let (Some(gradient), known) = (&held.0, &held.1) else { continue };
            let gradients = self.accumulate_gradients(&called, gradient, known);
            for node in outputs.iter().filter(|node| !Rc::ptr_eq(node, &loss.node)) {
                *node.gradient.borrow_mut() = None;
            }
            for (node, gradient) in targets.iter().zip(gradients) {
                if let Some(gradient) = gradient {
                    *node.gradient.borrow_mut() = Some(gradient);
                    queue.push(node.creator.borrow().clone());
                }
            }
        }
        self.parameters.iter().map(|node| node.gradient.borrow_mut().take()).collect()
    }

    /// The gradients of the inputs that need one, added to those that exist already.
    fn accumulate_gradients(
        &self,
        called: &Called,
        gy: &Array,
        known: &[Option<Array>],
    ) -> Vec<Option<Array>> {
        let made = self.input_gradients(called, gy);
        self.enter_operation("add");
        let sum = |(made, known): (&Option<Array>, &Option<Array>)| match (made, known) {
            (Some(made), Some(_)) => Some(self.new_floats(&made.shape)),
            (made, known) => made.clone().or_else(|| known.clone()),
        };
        made.iter().zip(known).map(sum).collect()
    }

    /// The gradients of the inputs that need one.
    fn input_gradients(&self, called: &Called, gy: &Array) -> Vec<Option<Array>> {
        let Event::Call(call) = &self.program.events[called.call] else { return Vec::new() };
        self.enter_operation(call.function.name());
        let needs = |input: usize| called.inputs[input].needs_gradient;
        let of = |input: usize| called.inputs[input].shape.as_slice();
        match &call.function {
            Function::Convolution(_) => {
                let mut made = Vec::new();
                if needs(0) {
                    made.push(Some(self.convolution_gradient(of(0), &[gy], gy)));
                }
                let x = called.inputs[0].data.borrow().clone();
                let arrays: Vec<&Array> = x.iter().chain([gy]).collect();
                made.push(Some(self.convolution_gradient(of(1), &arrays, gy)));
                if called.inputs.len() > 2 {
                    made.push(Some(self.new_floats(of(2))));
                }
                made
            }
            Function::Linear => {
                let all = (0..called.inputs.len()).filter(|&input| needs(input));
                all.map(|input| Some(self.new_floats(of(input)))).collect()
            }
            Function::BatchNorm => {
                let _copy = self.copy_contiguous(gy);
                (0..called.inputs.len()).map(|input| Some(self.new_floats(of(input)))).collect()
            }
            Function::LocalResponseNorm => {
                let _summand = self.new_floats(of(0));
                vec![Some(self.new_floats(of(0)))]
            }
            Function::MaxPooling(_) | Function::AveragePooling(_) => {
                let _copy = self.copy_contiguous(gy);
                vec![Some(self.new_floats(of(0)))]
            }
            Function::Relu | Function::Dropout | Function::Scale => vec![Some(self.new_floats(of(0)))],
            Function::SoftmaxCrossEntropy => {
                let _coefficient = self.new_floats(&[]);
                vec![Some(self.new_floats(of(0)))]
            }
            Function::Reshape => vec![Some(gy.view_as(of(0).to_vec(), gy.is_contiguous))],
            Function::Concat => {
                let part = |node: &Rc<Node>| Some(gy.view_as(node.shape.clone(), node.shape[0] == 1));
                called.inputs.iter().map(part).collect()
            }
            Function::Add => vec![Some(gy.clone()); 2],
            _ => Vec::new(),
        }
    }

    /// A gradient computed by cuDNN, which needs contiguous arrays.
    fn convolution_gradient(&self, shape: &[u64], arrays: &[&Array], gy: &Array) -> Array {
        let copy = |array: &&Array| self.copy_contiguous(array);
        // The copy of gy is requested before the gradient of the input, those of x and gy after that of the weights.
        let before: Vec<Option<Array>> =
            if arrays.len() == 1 { arrays.iter().map(copy).collect() } else { Vec::new() };
        let gradient = self.new_floats(shape);
        let _copies: Vec<Option<Array>> =
            if before.is_empty() { arrays.iter().map(copy).collect() } else { before };
        let _workspace = self.new_workspace(&gy.shape);
        gradient
    }
}

impl Node {
    fn new_leaf(shape: &[u64], needs_gradient: bool) -> Self {
        Self { shape: shape.to_vec(), needs_gradient, ..Self::default() }
    }
}

/// Functions to visit, each once: the highest rank first, and among equal ranks the one found first.
#[derive(Default)]
struct Queue {
    found: Vec<Rc<Called>>,
    waiting: BinaryHeap<(u32, Reverse<usize>)>,
}

impl Queue {
    fn push(&mut self, called: Option<Rc<Called>>) {
        let Some(called) = called else { return };
        if !self.found.iter().any(|known| known.call == called.call) {
            self.waiting.push((called.rank, Reverse(self.found.len())));
            self.found.push(called);
        }
    }

    fn pop(&mut self) -> Option<Rc<Called>> {
        let (_, Reverse(index)) = self.waiting.pop()?;
        Some(Rc::clone(&self.found[index]))
    }
}

/// Whether the graph keeps the arrays of the inputs.
const fn retains_input(function: &Function) -> bool {
    matches!(
        function,
        Function::Convolution(_)
            | Function::LocalResponseNorm
            | Function::MaxPooling(_)
            | Function::AveragePooling(_)
            | Function::Linear
            | Function::BatchNorm
            | Function::SoftmaxCrossEntropy
            | Function::Accuracy
    )
}

/// Whether the graph keeps the array of the output.
const fn retains_output(function: &Function) -> bool {
    matches!(function, Function::Relu | Function::MaxPooling(_) | Function::AveragePooling(_))
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Buffer;

    use super::*;
    use crate::Catalog;

    /// Requests in order with their sizes, and after how many requests each is freed.
    fn requests(trace: &Trace) -> Vec<(u64, usize)> {
        let mut buffers: Vec<_> = trace.instance.buffers().iter().collect();
        buffers.sort_by_key(|buffer| buffer.live.start());
        let starts: Vec<_> = buffers.iter().map(|buffer| buffer.live.start()).collect();
        let gap = |buffer: &Buffer| starts.partition_point(|&start| start < buffer.live.end());
        buffers.iter().map(|buffer| (buffer.size.get(), gap(buffer))).collect()
    }

    #[test]
    fn every_recorded_propagation_is_the_same_instance() {
        for net in ["alexnet", "googlenet", "resnet50", "inception-resnet-v2"] {
            for propagation in ["infer/b1", "train/b32", "train/b64", "train/b128"] {
                let key = format!("{net}/{propagation}");
                let recorded = Catalog::new(None).load(&format!("chainer/{key}")).expect("recorded");
                let made = crate::models::load_trace(&format!("model/{key}/chainer")).expect("it has rules");
                let (ours, theirs) = (requests(&made), requests(&recorded));
                let differs = ours.iter().zip(&theirs).position(|(a, b)| a != b);
                assert_eq!(
                    (ours.len(), differs),
                    (theirs.len(), None),
                    "{key}: {:?} {:?}",
                    differs.map(|at| &ours[at]),
                    differs.map(|at| &theirs[at])
                );
            }
        }
    }
}
