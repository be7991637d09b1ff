//! A net as data: which functions it calls, with which shapes, and when its names let go of their values.
//!
//! A net is a Rust function over [`Net`]. What it calls is written down in order, and so is the moment at which the
//! last handle of a [`Value`] is dropped: how long the net's own variables keep a value matters to a framework that
//! counts references. A [`Program`] has no framework's habits in it; [`chainer`](super::chainer) plays one with those of
//! Chainer, [`ideal`](super::ideal) lowers one to a graph of operations.
//!
//! ```text
//!  h = relu(conv(x))      Call conv -> 2   Call relu -> 3   Drop 2
//!  h = pool(h)            Call pool -> 4   Drop 3
//! ```
//!
//! A shape that cannot be (a window larger than what it slides over, more elements than can be counted) does not stop
//! the net: the first is remembered, ones stand in for its extents, and [`Net::record`] gives the error.

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

impl Mode {
    /// Its word in keys.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Infer => "infer",
            Self::Train => "train",
        }
    }
}

/// What a net gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Its loss: it is told the labels.
    Loss,
    /// What it says about its input: no labels, no loss, no classifiers that only training needs.
    Output,
}

/// Extents, the batch first: `[N, C, H, W]`, `[N, C, D, H, W]`, `[N, tokens, width]`, `[N, C]`, `[N]`; a scalar has
/// none.
pub type Shape = Vec<u64>;

/// No value has more elements, so that bytes and rounded bytes fit 64 bits.
const MOST_ELEMENTS: u64 = 1 << 56;

/// The number of elements of a shape.
#[must_use]
pub fn elements(shape: &[u64]) -> u64 {
    shape.iter().product()
}

fn is_countable(shape: &[u64]) -> bool {
    let product = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
    product.is_some_and(|product| (1..=MOST_ELEMENTS).contains(&product))
}

/// Why a net cannot be run on an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A window that is larger than what it slides over.
    #[error(
        "call {call} ({function}): a window of {window:?} does not fit into {extents:?}; the input is too small"
    )]
    TooSmall {
        /// The function that is called.
        function: &'static str,
        /// Its place among the calls, from 1.
        call: usize,
        /// What it was to slide over, with its padding.
        extents: Shape,
        /// The window, with its dilation.
        window: Shape,
    },
    /// A value or parameter with no elements, or with more than 2^56.
    #[error("call {call}: a value of extents {shape:?} has no elements, or more than 2^56")]
    Uncountable {
        /// The place among the calls, from 1.
        call: usize,
        /// The extents.
        shape: Shape,
    },
    /// Inputs that do not go together.
    #[error("call {call} ({function}): inputs of extents {shapes:?} do not fit together")]
    Mismatch {
        /// The function that is called.
        function: &'static str,
        /// Its place among the calls, from 1.
        call: usize,
        /// The extents of each.
        shapes: Vec<Shape>,
    },
}

/// Extents of a window, its steps and its padding: depth, height, width. A value with two spatial extents uses the last
/// two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Depth, height and width.
    pub kernel: [u64; 3],
    /// Steps.
    pub stride: [u64; 3],
    /// Zeros on each side.
    pub pad: [u64; 3],
    /// Distance of neighbours within a window.
    pub dilation: [u64; 3],
    /// Whether a window that reaches past the end counts, too.
    pub covers_all: bool,
}

impl Window {
    /// A square window with stride 1 and no padding.
    #[must_use]
    pub const fn square(kernel: u64) -> Self {
        Self::of(kernel, kernel)
    }

    /// A cube with stride 1 and no padding.
    #[must_use]
    pub const fn cube(kernel: u64) -> Self {
        Self { kernel: [kernel; 3], ..Self::of(kernel, kernel) }
    }

    /// A window with stride 1 and no padding.
    #[must_use]
    pub const fn of(height: u64, width: u64) -> Self {
        Self { kernel: [1, height, width], stride: [1; 3], pad: [0; 3], dilation: [1; 3], covers_all: false }
    }

    /// The same with a stride. Default: 1.
    #[must_use]
    pub const fn stride(self, stride: u64) -> Self {
        self.strides([stride; 3])
    }

    /// The same with a stride for depth, height and width. Default: 1.
    #[must_use]
    pub const fn strides(mut self, stride: [u64; 3]) -> Self {
        self.stride = stride;
        self
    }

    /// The same with padding in height and width, and in depth if the window is a cube. Default: 0.
    #[must_use]
    pub const fn pad(mut self, pad: u64) -> Self {
        self.pad = [if self.kernel[0] > 1 { pad } else { 0 }, pad, pad];
        self
    }

    /// The same with padding above and below, left and right. Default: 0.
    #[must_use]
    pub const fn pads(mut self, vertical: u64, horizontal: u64) -> Self {
        self.pad = [0, vertical, horizontal];
        self
    }

    /// The same with neighbours further apart. Default: 1.
    #[must_use]
    pub const fn dilated(mut self, dilation: u64) -> Self {
        self.dilation = [dilation; 3];
        self
    }

    /// The same, where windows that reach past the end count. Default: they do not.
    #[must_use]
    pub const fn covering(mut self) -> Self {
        self.covers_all = true;
        self
    }

    /// Extents from neighbour to neighbour, for as many extents as there are.
    fn reach(self, rank: usize) -> Shape {
        let axes = 3 - rank..3;
        axes.map(|axis| self.dilation[axis] * (self.kernel[axis] - 1) + 1).collect()
    }

    /// The extents of what comes out of `extents`; `None` where the window does not fit.
    fn output(self, extents: &[u64]) -> Option<Shape> {
        let axes = (3 - extents.len()..).zip(extents).zip(self.reach(extents.len()));
        let one = |((axis, &extent), reach): ((usize, &u64), u64)| {
            let more = if self.covers_all { self.stride[axis] - 1 } else { 0 };
            let room = (extent + 2 * self.pad[axis]).checked_sub(reach)?;
            Some((room + more) / self.stride[axis] + 1)
        };
        axes.map(one).collect()
    }

    /// The extents of what comes out of `extents` where every element is spread over a window.
    fn spread(self, extents: &[u64]) -> Option<Shape> {
        let axes = (3 - extents.len()..).zip(extents).zip(self.reach(extents.len()));
        let one = |((axis, &extent), reach): ((usize, &u64), u64)| {
            ((extent - 1) * self.stride[axis] + reach).checked_sub(2 * self.pad[axis]).filter(|&out| out > 0)
        };
        axes.map(one).collect()
    }
}

/// A convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// What slides.
    pub window: Window,
    /// Into how many groups the channels are divided, each convolved on its own.
    pub groups: u64,
    /// Whether each element is spread over a window (the transpose of a convolution).
    pub is_transposed: bool,
}

impl From<Window> for Convolution {
    fn from(window: Window) -> Self {
        Self { window, groups: 1, is_transposed: false }
    }
}

impl Convolution {
    /// The same in groups. Default: 1.
    #[must_use]
    pub const fn grouped(mut self, groups: u64) -> Self {
        self.groups = groups;
        self
    }

    /// The same, transposed. Default: not.
    #[must_use]
    pub const fn transposed(mut self) -> Self {
        self.is_transposed = true;
        self
    }

    /// The extents of the weights.
    fn weights(&self, channels: u64, out: u64, rank: usize) -> Shape {
        let [first, second] = if self.is_transposed { [channels, out] } else { [out, channels] };
        let mut shape = vec![first, second / self.groups];
        shape.extend(&self.window.kernel[3 - rank..]);
        shape
    }
}

/// What a net calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Function {
    /// Cross-correlation with weights, and a bias if there is one.
    Convolution(Convolution),
    /// max(x, 0).
    Relu,
    /// max(x, 0) + a min(x, 0).
    LeakyRelu,
    /// 1 / (1 + exp(-x)).
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// x times the normal distribution's share below x.
    Gelu,
    /// x times the sigmoid of x.
    Silu,
    /// Local response normalisation over channels.
    LocalResponseNorm,
    /// The greatest element of each window.
    MaxPooling(Window),
    /// The mean of each window.
    AveragePooling(Window),
    /// The same elements in another shape or order, as a matrix product takes them.
    Reshape,
    /// A box of the elements, from these indices on; nothing is copied.
    Slice(Vec<u64>),
    /// Matrix product with weights, and a bias if there is one.
    Linear,
    /// Matrix products of two values, one for each of their leading indices; the second may be transposed.
    MatMul {
        /// Whether the second is given as `[.., N, K]`.
        is_transposed: bool,
    },
    /// Elements are dropped at random (training alone).
    Dropout,
    /// Normalisation over the batch, scaled and shifted.
    BatchNorm,
    /// Normalisation over the last extent, scaled and shifted.
    LayerNorm,
    /// Division by the root of the mean square over the last extent, scaled.
    RmsNorm,
    /// Exponentials over the last extent, divided by their sum; masks and scales beforehand are part of it.
    Softmax,
    /// Pairs of elements turned by the angle of their position.
    Rotary,
    /// Joins along the channels.
    Concat,
    /// The sum of two.
    Add,
    /// The product of two, element by element.
    Multiply,
    /// The product with a constant.
    Scale,
    /// A table's row for each index.
    Embedding,
    /// The greatest elements of each row and where they are, `[rows, 2, k]`.
    TopK,
    /// Rows, copied to the experts that `TopK` chose, in the order of the experts.
    Dispatch,
    /// The weighted sum of what the experts made of each row.
    Combine,
    /// A recurrent layer with gates over packed sequences, `[tokens, width]`.
    Lstm {
        /// The number of sequences: each has a cell state.
        sequences: u64,
    },
    /// The hidden and cell states after the last token of each sequence, `[N, 2 width]`.
    LstmState,
    /// The loss of a classification.
    SoftmaxCrossEntropy,
    /// The loss of yes or no.
    BinaryCrossEntropy,
    /// The share of right answers; no gradient flows through it.
    Accuracy,
}

impl Function {
    /// Its name in traces.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Convolution(Convolution { is_transposed: true, .. }) => "transposed-convolution",
            Self::Convolution(_) => "convolution",
            Self::Relu => "relu",
            Self::LeakyRelu => "leaky-relu",
            Self::Sigmoid => "sigmoid",
            Self::Tanh => "tanh",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
            Self::LocalResponseNorm => "local-response-norm",
            Self::MaxPooling(_) => "max-pooling",
            Self::AveragePooling(_) => "average-pooling",
            Self::Reshape => "reshape",
            Self::Slice(_) => "slice",
            Self::Linear => "linear",
            Self::MatMul { .. } => "matmul",
            Self::Dropout => "dropout",
            Self::BatchNorm => "batch-norm",
            Self::LayerNorm => "layer-norm",
            Self::RmsNorm => "rms-norm",
            Self::Softmax => "softmax",
            Self::Rotary => "rotary",
            Self::Concat => "concat",
            Self::Add => "add",
            Self::Multiply => "multiply",
            Self::Scale => "scale",
            Self::Embedding => "embedding",
            Self::TopK => "top-k",
            Self::Dispatch => "dispatch",
            Self::Combine => "combine",
            Self::Lstm { .. } => "lstm",
            Self::LstmState => "lstm-state",
            Self::SoftmaxCrossEntropy => "softmax-cross-entropy",
            Self::BinaryCrossEntropy => "binary-cross-entropy",
            Self::Accuracy => "accuracy",
        }
    }
}

/// The number of a value, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub usize);

/// A parameter, by its place among the program's. A net may use one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameter(usize);

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
    /// The shape of each value.
    pub shapes: Vec<Shape>,
    /// The shape of each parameter.
    pub parameters: Vec<Shape>,
    /// The values that no call makes, in their order: the batch, its labels.
    pub inputs: Vec<ValueId>,
    /// What the net gives: the loss, or its output.
    pub result: ValueId,
}

impl Program {
    /// The number of parameters' elements; `None` where it does not fit 64 bits.
    #[must_use]
    pub fn parameter_count(&self) -> Option<u64> {
        self.parameters.iter().try_fold(0_u64, |sum, shape| sum.checked_add(elements(shape)))
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

    /// The calls, in order.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.events.iter().filter_map(|event| match event {
            Event::Call(call) => Some(call),
            Event::Drop(_) | Event::Report(_) => None,
        })
    }
}

#[derive(Debug, Default)]
struct Recording {
    events: Vec<Event>,
    shapes: Vec<Shape>,
    parameters: Vec<Shape>,
    inputs: Vec<ValueId>,
    calls: usize,
    error: Option<ShapeError>,
    is_over: bool,
}

impl Recording {
    /// The shape itself, or ones where it cannot be.
    fn checked(&mut self, shape: Shape) -> Shape {
        if is_countable(&shape) {
            return shape;
        }
        let ones = vec![1; shape.len()];
        self.error.get_or_insert(ShapeError::Uncountable { call: self.calls + 1, shape });
        ones
    }
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

    /// The second extent.
    ///
    /// # Panics
    ///
    /// If it has only one.
    #[must_use]
    pub fn channels(&self) -> u64 {
        self.0.shape[1]
    }

    /// The last extent; 1 for a scalar.
    #[must_use]
    pub fn width(&self) -> u64 {
        self.0.shape.last().copied().unwrap_or(1)
    }

    /// The extents but for the last.
    fn rows(&self) -> &[u64] {
        self.0.shape.split_last().map_or(&[], |(_, rows)| rows)
    }
}

/// What a net is written against. A function takes its inputs by value, and so lets go of them when it has ended, as a
/// nested call does; pass a clone of what is needed again.
#[derive(Debug)]
pub struct Net {
    mode: Mode,
    end: End,
    recording: Rc<RefCell<Recording>>,
    /// Inputs are the caller's: the net never has the last name for one.
    inputs: RefCell<Vec<Value>>,
}

impl Net {
    /// Runs a net once on shapes alone. The net makes its inputs ([`Net::input`]) and returns what `end` asks for.
    ///
    /// # Errors
    ///
    /// The first [`ShapeError`].
    pub fn record(mode: Mode, end: End, net: impl FnOnce(&Self) -> Value) -> Result<Program, ShapeError> {
        let recorder = Self { mode, end, recording: Rc::default(), inputs: RefCell::default() };
        let result = net(&recorder);
        let mut recording = recorder.recording.borrow_mut();
        let Recording { events, shapes, parameters, inputs, error, .. } = std::mem::take(&mut *recording);
        recording.is_over = true;
        drop(recording);
        match error {
            Some(error) => Err(error),
            None => Ok(Program { mode, events, shapes, parameters, inputs, result: result.0.id }),
        }
    }

    /// Whether it learns.
    #[must_use]
    pub fn is_training(&self) -> bool {
        self.mode == Mode::Train
    }

    /// Whether it is to give its loss.
    #[must_use]
    pub fn is_scored(&self) -> bool {
        self.end == End::Loss
    }

    /// An input: a batch, labels, indices.
    pub fn input(&self, shape: Shape) -> Value {
        let value = self.value(shape);
        self.recording.borrow_mut().inputs.push(value.0.id);
        self.inputs.borrow_mut().push(value.clone());
        value
    }

    fn value(&self, shape: Shape) -> Value {
        let mut recording = self.recording.borrow_mut();
        let shape = recording.checked(shape);
        let id = ValueId(recording.shapes.len());
        recording.shapes.push(shape.clone());
        Value(Rc::new(Handle { id, shape, recording: Rc::clone(&self.recording) }))
    }

    /// A parameter that several calls may use.
    pub fn parameter(&self, shape: Shape) -> Parameter {
        let mut recording = self.recording.borrow_mut();
        let shape = recording.checked(shape);
        recording.parameters.push(shape);
        Parameter(recording.parameters.len() - 1)
    }

    fn call(
        &self,
        function: Function,
        inputs: &[&Value],
        parameters: impl IntoIterator<Item = Parameter>,
        shape: Shape,
    ) -> Value {
        let output = self.value(shape);
        let inputs = inputs.iter().map(|value| value.0.id).collect();
        let parameters = parameters.into_iter().map(|Parameter(index)| index).collect();
        let call = Call { function, inputs, parameters, output: output.0.id };
        let mut recording = self.recording.borrow_mut();
        recording.calls += 1;
        recording.events.push(Event::Call(call));
        drop(recording);
        output
    }

    fn fail(&self, error: impl FnOnce(usize) -> ShapeError) {
        let mut recording = self.recording.borrow_mut();
        let call = recording.calls + 1;
        recording.error.get_or_insert_with(|| error(call));
    }

    fn mismatch(&self, function: &Function, values: &[&Value]) {
        let shapes = values.iter().map(|value| value.0.shape.clone()).collect();
        self.fail(|call| ShapeError::Mismatch { function: function.name(), call, shapes });
    }

    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    fn same(&self, function: Function, x: Value) -> Value {
        self.call(function, &[&x], [], x.0.shape.clone())
    }

    /// What a window makes of the spatial extents; ones where it does not fit.
    fn slide(&self, function: &Function, window: Window, x: &Value, made: Option<Shape>) -> Shape {
        let extents = &x.0.shape[2..];
        made.unwrap_or_else(|| {
            let pads = &window.pad[3 - extents.len()..];
            let padded = extents.iter().zip(pads).map(|(extent, pad)| extent + 2 * pad).collect();
            let window = window.reach(extents.len());
            self.fail(|call| ShapeError::TooSmall {
                function: function.name(),
                call,
                extents: padded,
                window,
            });
            vec![1; extents.len()]
        })
    }

    /// Convolution with `out` channels, without a bias.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn conv(&self, x: Value, out: u64, convolution: impl Into<Convolution>) -> Value {
        self.convolve(&x, out, convolution.into(), false)
    }

    /// Convolution with `out` channels and a bias.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn conv_bias(&self, x: Value, out: u64, convolution: impl Into<Convolution>) -> Value {
        self.convolve(&x, out, convolution.into(), true)
    }

    fn convolve(&self, x: &Value, out: u64, convolution: Convolution, has_bias: bool) -> Value {
        let (window, extents) = (convolution.window, &x.0.shape[2..]);
        let weights = self.parameter(convolution.weights(x.channels(), out, extents.len()));
        let bias = has_bias.then(|| self.parameter(vec![out]));
        let made = if convolution.is_transposed { window.spread(extents) } else { window.output(extents) };
        let function = Function::Convolution(convolution);
        let mut shape = vec![x.0.shape[0], out];
        shape.extend(self.slide(&function, window, x, made));
        self.call(function, &[x], [weights].into_iter().chain(bias), shape)
    }

    /// max(x, 0).
    pub fn relu(&self, x: Value) -> Value {
        self.same(Function::Relu, x)
    }

    /// Any function of each element alone, of its row or of its channel, without parameters.
    pub fn each(&self, function: Function, x: Value) -> Value {
        self.same(function, x)
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

    /// The mean of each channel.
    pub fn global_average_pool(&self, x: Value) -> Value {
        let mut kernel = [1; 3];
        let extents = &x.0.shape[2..];
        kernel[3 - extents.len()..].copy_from_slice(extents);
        self.average_pool(x, Window { kernel, ..Window::square(1) })
    }

    fn pool(&self, x: &Value, window: Window, function: Function) -> Value {
        let mut shape = x.0.shape[..2].to_vec();
        shape.extend(self.slide(&function, window, x, window.output(&x.0.shape[2..])));
        self.call(function, &[x], [], shape)
    }

    /// A fully connected layer of `out` units with a bias; more than two extents are flattened first.
    pub fn linear(&self, x: Value, out: u64) -> Value {
        let (batch, features) = (x.shape()[0], elements(&x.shape()[1..]));
        let x = match x.shape().len() {
            0..=2 => x,
            _ => self.reshape(x, vec![batch, features]),
        };
        self.dense_bias(x, out)
    }

    /// The product of each row with weights, without a bias.
    pub fn dense(&self, x: Value, out: u64) -> Value {
        let weights = self.parameter(vec![out, x.width()]);
        self.project(x, out, [weights])
    }

    /// The product of each row with weights, and a bias.
    pub fn dense_bias(&self, x: Value, out: u64) -> Value {
        let weights = self.parameter(vec![out, x.width()]);
        let bias = self.parameter(vec![out]);
        self.project(x, out, [weights, bias])
    }

    /// The product of each row with given weights, and a bias if it is given, too.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn project(&self, x: Value, out: u64, parameters: impl IntoIterator<Item = Parameter>) -> Value {
        let mut shape = x.rows().to_vec();
        shape.push(out);
        self.call(Function::Linear, &[&x], parameters, shape)
    }

    /// The products of the matrices `[.., M, K]` and `[.., K, N]`, or `[.., N, K]` if the second is transposed.
    ///
    /// # Panics
    ///
    /// If the second has less than two extents.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn matmul(&self, a: Value, b: Value, is_transposed: bool) -> Value {
        let function = Function::MatMul { is_transposed };
        let axes = b.0.shape.len();
        let (inner, columns) = if is_transposed { (axes - 1, axes - 2) } else { (axes - 2, axes - 1) };
        let leading = a.0.shape.iter().rev().skip(2);
        if !leading.eq(b.0.shape.iter().rev().skip(2)) || a.width() != b.0.shape[inner] {
            self.mismatch(&function, &[&a, &b]);
        }
        let mut shape = a.rows().to_vec();
        shape.push(b.0.shape[columns]);
        self.call(function, &[&a, &b], [], shape)
    }

    /// The same elements in another shape.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn reshape(&self, x: Value, shape: Shape) -> Value {
        if is_countable(&shape) && elements(&shape) != elements(x.shape()) {
            self.fail(|call| ShapeError::Mismatch {
                function: Function::Reshape.name(),
                call,
                shapes: vec![x.0.shape.clone(), shape.clone()],
            });
        }
        self.call(Function::Reshape, &[&x], [], shape)
    }

    /// A box of the elements, from the indices `start` on.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn slice(&self, x: Value, start: Vec<u64>, shape: Shape) -> Value {
        let ends = start.iter().zip(&shape).map(|(start, extent)| start.checked_add(*extent));
        let is_inside = ends.zip(x.shape()).all(|(end, &extent)| end.is_some_and(|end| end <= extent));
        let function = Function::Slice(start);
        if !is_inside || shape.len() != x.shape().len() {
            self.mismatch(&function, &[&x]);
        }
        self.call(function, &[&x], [], shape)
    }

    /// Dropout in training, else the value itself.
    pub fn dropout(&self, x: Value) -> Value {
        if self.is_training() { self.same(Function::Dropout, x) } else { x }
    }

    /// Batch normalisation.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn batch_norm(&self, x: Value) -> Value {
        let parameters = [(); 2].map(|()| self.parameter(vec![x.channels()]));
        self.call(Function::BatchNorm, &[&x], parameters, x.0.shape.clone())
    }

    /// Layer normalisation.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn layer_norm(&self, x: Value) -> Value {
        let parameters = [(); 2].map(|()| self.parameter(vec![x.width()]));
        self.call(Function::LayerNorm, &[&x], parameters, x.0.shape.clone())
    }

    /// Normalisation by the root of the mean square.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn rms_norm(&self, x: Value) -> Value {
        let gain = self.parameter(vec![x.width()]);
        self.call(Function::RmsNorm, &[&x], [gain], x.0.shape.clone())
    }

    /// Joins values along their channels.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn concat(&self, values: Vec<Value>) -> Value {
        let all: Vec<&Value> = values.iter().collect();
        self.join(&all, 1)
    }

    /// Joins rows: values along their first extent.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn stack(&self, values: Vec<Value>) -> Value {
        let all: Vec<&Value> = values.iter().collect();
        self.join(&all, 0)
    }

    fn join(&self, values: &[&Value], axis: usize) -> Value {
        let mut shape = values[0].0.shape.clone();
        let fits = |value: &&Value| {
            let mut other = value.0.shape.clone();
            other[axis] = shape[axis];
            other == shape
        };
        if !values.iter().all(fits) {
            self.mismatch(&Function::Concat, values);
        }
        shape[axis] = values.iter().map(|value| value.0.shape[axis]).sum();
        self.call(Function::Concat, values, [], shape)
    }

    fn pair(&self, function: Function, a: &Value, b: &Value) -> Value {
        if a.shape() != b.shape() {
            self.mismatch(&function, &[a, b]);
        }
        self.call(function, &[a, b], [], a.0.shape.clone())
    }

    /// The sum of two values of one shape.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn add(&self, a: Value, b: Value) -> Value {
        self.pair(Function::Add, &a, &b)
    }

    /// The product of two values of one shape, element by element.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn multiply(&self, a: Value, b: Value) -> Value {
        self.pair(Function::Multiply, &a, &b)
    }

    /// The product with a constant.
    pub fn scale(&self, x: Value) -> Value {
        self.same(Function::Scale, x)
    }

    /// A row of the table for each index.
    pub fn embedding(&self, indices: &Value, table: Parameter, width: u64) -> Value {
        let mut shape = indices.0.shape.clone();
        shape.push(width);
        self.call(Function::Embedding, &[indices], [table], shape)
    }

    /// The `k` greatest of each row, and where they are.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn top_k(&self, x: Value, k: u64) -> Value {
        self.call(Function::TopK, &[&x], [], vec![x.0.shape[0], 2, k])
    }

    /// Each row once for each of the experts that `routes` ([`Net::top_k`]) names, in the order of the experts.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn dispatch(&self, x: Value, routes: &Value) -> Value {
        let rows = x.0.shape[0].saturating_mul(routes.width());
        self.call(Function::Dispatch, &[&x, routes], [], vec![rows, x.width()])
    }

    /// The weighted sums of what the experts made, a row for each row of `routes`.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn combine(&self, made: Value, routes: Value) -> Value {
        let shape = vec![routes.0.shape[0], made.width()];
        self.call(Function::Combine, &[&made, &routes], [], shape)
    }

    /// A recurrent layer of `units` over packed sequences `[tokens, width]`, which starts from zeros or from a state.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn lstm(&self, x: Value, state: Option<Value>, sequences: u64, units: u64) -> Value {
        let gates = 4 * units;
        let parameters = [vec![gates, x.width()], vec![gates, units], vec![gates], vec![gates]];
        let parameters = parameters.map(|shape| self.parameter(shape));
        let inputs: Vec<&Value> = [&x].into_iter().chain(&state).collect();
        self.call(Function::Lstm { sequences }, &inputs, parameters, vec![x.0.shape[0], units])
    }

    /// The states of an [`Net::lstm`] after the last token of each sequence.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn lstm_state(&self, y: Value, sequences: u64) -> Value {
        self.call(Function::LstmState, &[&y], [], vec![sequences, 2 * y.width()])
    }

    /// The loss of a classification.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn softmax_cross_entropy(&self, x: Value, labels: &Value) -> Value {
        self.call(Function::SoftmaxCrossEntropy, &[&x, labels], [], Vec::new())
    }

    /// The loss of yes or no, the answer a constant.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its input when it has ended")]
    pub fn binary_cross_entropy(&self, x: Value) -> Value {
        self.call(Function::BinaryCrossEntropy, &[&x], [], Vec::new())
    }

    /// The share of right answers.
    #[expect(clippy::needless_pass_by_value, reason = "the call lets go of its inputs when it has ended")]
    pub fn accuracy(&self, x: Value, labels: &Value) -> Value {
        self.call(Function::Accuracy, &[&x, labels], [], Vec::new())
    }

    /// Keeps scalars for the report after the propagation.
    pub fn report(&self, values: &[&Value]) {
        let ids = values.iter().map(|value| value.0.id).collect();
        self.recording.borrow_mut().events.push(Event::Report(ids));
    }
}
