//! A net as data: which functions it calls, with which shapes, and when its names let go of their values.
//!
//! A net is a Rust function over [`Net`]. What it calls is written down in order, and so is the moment at which the
//! last handle of a [`Value`] is dropped: how long the net's own variables keep a value matters to a framework that
//! counts references. A [`Program`] has no framework's habits in it; [`chainer`](super::chainer) plays one with those of
//! Chainer.
//!
//! ```text
//!  h = relu(conv(x))      Call conv -> 2   Call relu -> 3   Drop 2
//!  h = pool(h)            Call pool -> 4   Drop 3
//! ```

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Whether a net learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Forward alone; dropout is the identity, normalisation uses what was learned.
    Infer,
    /// Forward, backward, and the gradients of all parameters.
    Train,
}

/// Extents, the batch first: `[N, C, H, W]`, `[N, C]`, `[N]`; a scalar has none.
pub type Shape = Vec<u64>;

/// The number of elements of a shape.
#[must_use]
pub fn elements(shape: &[u64]) -> u64 {
    shape.iter().product()
}

/// Extents of a window, its stride and its padding, vertical first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Height and width.
    pub kernel: (u64, u64),
    /// Steps.
    pub stride: (u64, u64),
    /// Zeros on each side.
    pub pad: (u64, u64),
    /// Whether a window that reaches past the end counts, too.
    pub covers_all: bool,
}

impl Window {
    /// A square window with stride 1 and no padding.
    #[must_use]
    pub const fn square(kernel: u64) -> Self {
        Self::of(kernel, kernel)
    }

    /// A window with stride 1 and no padding.
    #[must_use]
    pub const fn of(height: u64, width: u64) -> Self {
        Self { kernel: (height, width), stride: (1, 1), pad: (0, 0), covers_all: false }
    }

    /// The same with a stride. Default: 1.
    #[must_use]
    pub const fn stride(mut self, stride: u64) -> Self {
        self.stride = (stride, stride);
        self
    }

    /// The same with padding. Default: 0.
    #[must_use]
    pub const fn pad(self, pad: u64) -> Self {
        self.pads(pad, pad)
    }

    /// The same with padding above and below, left and right. Default: 0.
    #[must_use]
    pub const fn pads(mut self, vertical: u64, horizontal: u64) -> Self {
        self.pad = (vertical, horizontal);
        self
    }

    /// The same, where windows that reach past the end count. Default: they do not.
    #[must_use]
    pub const fn covering(mut self) -> Self {
        self.covers_all = true;
        self
    }

    /// The extents of what comes out of `[height, width]`.
    fn output(self, (height, width): (u64, u64)) -> (u64, u64) {
        let one = |extent: u64, kernel: u64, stride: u64, pad: u64| {
            let more = if self.covers_all { stride - 1 } else { 0 };
            (extent + 2 * pad - kernel + more) / stride + 1
        };
        (
            one(height, self.kernel.0, self.stride.0, self.pad.0),
            one(width, self.kernel.1, self.stride.1, self.pad.1),
        )
    }
}

/// What a net calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Function {
    /// Cross-correlation with weights, and a bias if there is one.
    Convolution(Window),
    /// max(x, 0).
    Relu,
    /// Local response normalisation over channels.
    LocalResponseNorm,
    /// The greatest element of each window.
    MaxPooling(Window),
    /// The mean of each window.
    AveragePooling(Window),
    /// The same elements in another shape.
    Reshape,
    /// Matrix product with weights, and a bias.
    Linear,
    /// Elements are dropped at random (training alone).
    Dropout,
    /// Normalisation over the batch, scaled and shifted.
    BatchNorm,
    /// Joins along the channels.
    Concat,
    /// The sum of two.
    Add,
    /// The product with a constant.
    Scale,
    /// The loss of a classification.
    SoftmaxCrossEntropy,
    /// The share of right answers; no gradient flows through it.
    Accuracy,
}

impl Function {
    /// Its name in traces.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Convolution(_) => "convolution",
            Self::Relu => "relu",
            Self::LocalResponseNorm => "local-response-norm",
            Self::MaxPooling(_) => "max-pooling",
            Self::AveragePooling(_) => "average-pooling",
            Self::Reshape => "reshape",
            Self::Linear => "linear",
            Self::Dropout => "dropout",
            Self::BatchNorm => "batch-norm",
            Self::Concat => "concat",
            Self::Add => "add",
            Self::Scale => "scale",
            Self::SoftmaxCrossEntropy => "softmax-cross-entropy",
            Self::Accuracy => "accuracy",
        }
    }
}

/// The number of a value, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub usize);

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What is called.
    pub function: Function,
    /// Values that it reads.
    pub inputs: Vec<ValueId>,
    /// Parameters that it reads after them, by their place among the program's.
    pub parameters: Vec<usize>,
    /// The value that it makes.
    pub output: ValueId,
}

/// What happens, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A function is called.
    Call(Call),
    /// The net's last name for a value is gone.
    Drop(ValueId),
    /// Scalars are kept for the report after the propagation.
    Report(Vec<ValueId>),
}

/// A net that was run once on shapes alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Whether it learns.
    pub mode: Mode,
    /// What happened.
    pub events: Vec<Event>,
    /// The shape of each value; those of [`inputs`](Self::inputs) are the first.
    pub shapes: Vec<Shape>,
    /// The shape of each parameter.
    pub parameters: Vec<Shape>,
    /// How many values there are before the first call: the batch, and its labels.
    pub inputs: usize,
    /// The loss.
    pub loss: ValueId,
}

impl Program {
    /// The number of parameters' elements.
    #[must_use]
    pub fn parameter_count(&self) -> u64 {
        self.parameters.iter().map(|shape| elements(shape)).sum()
    }

    /// The shape of a value.
    ///
    /// # Panics
    ///
    /// If there is no such value.
    #[must_use]
    pub fn shape(&self, value: ValueId) -> &Shape {
        &self.shapes[value.0]
    }
}

#[derive(Debug, Default)]
struct Recording {
    events: Vec<Event>,
    shapes: Vec<Shape>,
    parameters: Vec<Shape>,
    is_over: bool,
}

/// A handle on a value; where the last one is dropped, the program says so.
#[derive(Clone)]
pub struct Value(Rc<Handle>);

struct Handle {
    id: ValueId,
    shape: Shape,
    recording: Rc<RefCell<Recording>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut recording = self.recording.borrow_mut();
        if !recording.is_over {
            recording.events.push(Event::Drop(self.id));
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.0.id, self.0.shape)
    }
}

impl Value {
    /// Its extents.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.0.shape
    }

    fn channels(&self) -> u64 {
        self.0.shape[1]
    }

    fn extents(&self) -> (u64, u64) {
        (self.0.shape[2], self.0.shape[3])
    }
}

/// What a net is written against. A function takes its inputs by value, and so lets go of them when it has ended, as a
/// nested call does; pass a clone of what is needed again.
#[derive(Debug)]
pub struct Net {
    mode: Mode,
    recording: Rc<RefCell<Recording>>,
}

impl Net {
    /// Runs a net once on a batch of inputs with their labels. The net returns its loss.
    pub fn record(
        mode: Mode,
        input: Shape,
        labels: Shape,
        net: impl FnOnce(&Self, &Value, &Value) -> Value,
    ) -> Program {
        let recorder = Self { mode, recording: Rc::default() };
        let (x, t) = (recorder.value(input), recorder.value(labels));
        let loss = net(&recorder, &x, &t);
        let mut recording = recorder.recording.borrow_mut();
        recording.is_over = true;
        let Recording { events, shapes, parameters, .. } = std::mem::take(&mut *recording);
        recording.is_over = true;
        Program { mode, events, shapes, parameters, inputs: 2, loss: loss.0.id }
    }

    /// Whether it learns.
    #[must_use]
    pub fn is_training(&self) -> bool {
        self.mode == Mode::Train
    }

    fn value(&self, shape: Shape) -> Value {
        let mut recording = self.recording.borrow_mut();
        let id = ValueId(recording.shapes.len());
        recording.shapes.push(shape.clone());
        Value(Rc::new(Handle { id, shape, recording: Rc::clone(&self.recording) }))
    }

    fn parameter(&self, shape: Shape) -> usize {
        let parameters = &mut self.recording.borrow_mut().parameters;
        parameters.push(shape);
        parameters.len() - 1
    }

    fn call(&self, function: Function, inputs: &[&Value], parameters: Vec<usize>, shape: Shape) -> Value {
        let output = self.value(shape);
        let inputs = inputs.iter().map(|value| value.0.id).collect();
        let call = Call { function, inputs, parameters, output: output.0.id };
        self.recording.borrow_mut().events.push(Event::Call(call));
        output
    }

    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    fn same(&self, function: Function, x: Value) -> Value {
        self.call(function, &[&x], Vec::new(), x.0.shape.clone())
    }

    /// Convolution with `out` channels, without a bias.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn conv(&self, x: Value, out: u64, window: Window) -> Value {
        let weights = self.parameter(vec![out, x.channels(), window.kernel.0, window.kernel.1]);
        self.convolve(&x, out, window, vec![weights])
    }

    /// Convolution with `out` channels and a bias.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn conv_bias(&self, x: Value, out: u64, window: Window) -> Value {
        let weights = self.parameter(vec![out, x.channels(), window.kernel.0, window.kernel.1]);
        let bias = self.parameter(vec![out]);
        self.convolve(&x, out, window, vec![weights, bias])
    }

    fn convolve(&self, x: &Value, out: u64, window: Window, parameters: Vec<usize>) -> Value {
        let (height, width) = window.output(x.extents());
        let shape = vec![x.shape()[0], out, height, width];
        self.call(Function::Convolution(window), &[x], parameters, shape)
    }

    /// max(x, 0).
    pub fn relu(&self, x: Value) -> Value {
        self.same(Function::Relu, x)
    }

    /// Local response normalisation.
    pub fn lrn(&self, x: Value) -> Value {
        self.same(Function::LocalResponseNorm, x)
    }

    /// The greatest element of each window.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn max_pool(&self, x: Value, window: Window) -> Value {
        self.pool(&x, window, Function::MaxPooling(window))
    }

    /// The mean of each window.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn average_pool(&self, x: Value, window: Window) -> Value {
        self.pool(&x, window, Function::AveragePooling(window))
    }

    fn pool(&self, x: &Value, window: Window, function: Function) -> Value {
        let (height, width) = window.output(x.extents());
        self.call(function, &[x], Vec::new(), vec![x.shape()[0], x.channels(), height, width])
    }

    /// A fully connected layer of `out` units; more than two extents are flattened first.
    pub fn linear(&self, x: Value, out: u64) -> Value {
        let (batch, features) = (x.shape()[0], elements(&x.shape()[1..]));
        let x = match x.shape().len() {
            0..=2 => x,
            _ => self.reshape(x, vec![batch, features]),
        };
        let parameters = vec![self.parameter(vec![out, features]), self.parameter(vec![out])];
        self.call(Function::Linear, &[&x], parameters, vec![batch, out])
    }

    /// The same elements in another shape.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn reshape(&self, x: Value, shape: Shape) -> Value {
        self.call(Function::Reshape, &[&x], Vec::new(), shape)
    }

    /// Dropout in training, else the value itself.
    pub fn dropout(&self, x: Value) -> Value {
        if self.is_training() { self.same(Function::Dropout, x) } else { x }
    }

    /// Batch normalisation.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn batch_norm(&self, x: Value) -> Value {
        let channels = x.channels();
        let parameters = vec![self.parameter(vec![channels]), self.parameter(vec![channels])];
        self.call(Function::BatchNorm, &[&x], parameters, x.0.shape.clone())
    }

    /// Joins values along their channels.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn concat(&self, values: Vec<Value>) -> Value {
        let mut shape = values[0].0.shape.clone();
        shape[1] = values.iter().map(Value::channels).sum();
        self.call(Function::Concat, &values.iter().collect::<Vec<_>>(), Vec::new(), shape)
    }

    /// The sum of two values of one shape.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn add(&self, a: Value, b: Value) -> Value {
        self.call(Function::Add, &[&a, &b], Vec::new(), a.0.shape.clone())
    }

    /// The product with a constant.
    pub fn scale(&self, x: Value) -> Value {
        self.same(Function::Scale, x)
    }

    /// The loss of a classification.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn softmax_cross_entropy(&self, x: Value, labels: &Value) -> Value {
        self.call(Function::SoftmaxCrossEntropy, &[&x, labels], Vec::new(), Vec::new())
    }

    /// The share of right answers.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn accuracy(&self, x: Value, labels: &Value) -> Value {
        self.call(Function::Accuracy, &[&x, labels], Vec::new(), Vec::new())
    }

    /// Keeps scalars for the report after the propagation.
    pub fn report(&self, values: &[&Value]) {
        let ids = values.iter().map(|value| value.0.id).collect();
        self.recording.borrow_mut().events.push(Event::Report(ids));
    }
}
