//! The recorder: a method for each function, which checks shapes and records the call.

use std::cell::RefCell;
use std::rc::Rc;

use super::functions::{Convolution, Function, Window};
use super::program::{Call, End, Event, Mode, Parameter, Program, ValueId};
use super::shape::{Shape, ShapeError, elements, is_countable};
use super::value::{Handle, Recording, Value};

/// The recorder that a net is written against. A function takes its inputs by value and drops them when it returns;
/// clone a value that is needed again.
#[derive(Debug)]
pub struct Net {
    mode: Mode,
    end: End,
    recording: Rc<RefCell<Recording>>,
    /// The caller holds the inputs, so the net never drops the last handle of one.
    inputs: RefCell<Vec<Value>>,
}

#[expect(clippy::needless_pass_by_value, reason = "a call drops its inputs when it returns")]
impl Net {
    /// Runs a net once on shapes. The net asks for its inputs ([`Net::input`]) and returns the value that `end`
    /// selects.
    ///
    /// # Errors
    ///
    /// The first [`ShapeError`] of the run.
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

    /// Whether the net is trained.
    #[must_use]
    pub fn is_training(&self) -> bool {
        self.mode == Mode::Train
    }

    /// Whether the net returns its loss.
    #[must_use]
    pub fn is_scored(&self) -> bool {
        self.end == End::Loss
    }

    /// A new input: a batch, labels, indices.
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

    /// A new parameter, which several calls may share.
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

    fn same(&self, function: Function, x: Value) -> Value {
        self.call(function, &[&x], [], x.0.shape.clone())
    }

    /// The output's spatial extents; ones, and an error, if the window does not fit.
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

    /// A convolution with `out` output channels, without a bias.
    pub fn conv(&self, x: Value, out: u64, convolution: impl Into<Convolution>) -> Value {
        self.convolve(&x, out, convolution.into(), false)
    }

    /// A convolution with `out` output channels and a bias.
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

    /// Any function without parameters whose output has the shape of its input.
    pub fn each(&self, function: Function, x: Value) -> Value {
        self.same(function, x)
    }

    /// Local response normalisation.
    pub fn lrn(&self, x: Value) -> Value {
        self.same(Function::LocalResponseNorm, x)
    }

    /// Max pooling.
    pub fn max_pool(&self, x: Value, window: Window) -> Value {
        self.pool(&x, window, Function::MaxPooling(window))
    }

    /// Average pooling.
    pub fn average_pool(&self, x: Value, window: Window) -> Value {
        self.pool(&x, window, Function::AveragePooling(window))
    }

    /// The mean of each channel (global average pooling).
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

    /// A fully connected layer of `out` units with a bias; all axes but the first are flattened.
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

    /// The product of each row with given weights, and a bias if one is given.
    pub fn project(&self, x: Value, out: u64, parameters: impl IntoIterator<Item = Parameter>) -> Value {
        let mut shape = x.rows().to_vec();
        shape.push(out);
        self.call(Function::Linear, &[&x], parameters, shape)
    }

    /// The products of the matrices `[.., M, K]` and `[.., K, N]`, or `[.., N, K]` if the second is transposed.
    ///
    /// # Panics
    ///
    /// If the second has fewer than two extents.
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

    /// A block of the elements that starts at the indices `start`.
    pub fn slice(&self, x: Value, start: Vec<u64>, shape: Shape) -> Value {
        let ends = start.iter().zip(&shape).map(|(start, extent)| start.checked_add(*extent));
        let is_inside = ends.zip(x.shape()).all(|(end, &extent)| end.is_some_and(|end| end <= extent));
        let function = Function::Slice(start);
        if !is_inside || shape.len() != x.shape().len() {
            self.mismatch(&function, &[&x]);
        }
        self.call(function, &[&x], [], shape)
    }

    /// Dropout in training; otherwise the value itself.
    pub fn dropout(&self, x: Value) -> Value {
        if self.is_training() { self.same(Function::Dropout, x) } else { x }
    }

    /// Batch normalisation.
    pub fn batch_norm(&self, x: Value) -> Value {
        let parameters = [(); 2].map(|()| self.parameter(vec![x.channels()]));
        self.call(Function::BatchNorm, &[&x], parameters, x.0.shape.clone())
    }

    /// Layer normalisation.
    pub fn layer_norm(&self, x: Value) -> Value {
        let parameters = [(); 2].map(|()| self.parameter(vec![x.width()]));
        self.call(Function::LayerNorm, &[&x], parameters, x.0.shape.clone())
    }

    /// Root-mean-square normalisation.
    pub fn rms_norm(&self, x: Value) -> Value {
        let gain = self.parameter(vec![x.width()]);
        self.call(Function::RmsNorm, &[&x], [gain], x.0.shape.clone())
    }

    /// Concatenates values along the channels.
    ///
    /// # Panics
    ///
    /// If there are no values.
    pub fn concat(&self, values: Vec<Value>) -> Value {
        let all: Vec<&Value> = values.iter().collect();
        self.join(&all, 1)
    }

    /// Concatenates values along the first axis.
    ///
    /// # Panics
    ///
    /// If there are no values.
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

    /// The sum of two values of the same shape.
    pub fn add(&self, a: Value, b: Value) -> Value {
        self.pair(Function::Add, &a, &b)
    }

    /// The element-wise product of two values of the same shape.
    pub fn multiply(&self, a: Value, b: Value) -> Value {
        self.pair(Function::Multiply, &a, &b)
    }

    /// The product of a value `[N, C, ..]` with a factor for each of its channels, `[N, C, 1, ..]`.
    pub fn multiply_channels(&self, x: Value, factors: Value) -> Value {
        let fits = factors.shape().iter().zip(x.shape()).enumerate();
        if !fits.into_iter().all(|(axis, (&factor, &extent))| factor == if axis < 2 { extent } else { 1 }) {
            self.mismatch(&Function::Multiply, &[&x, &factors]);
        }
        self.call(Function::Multiply, &[&x, &factors], [], x.0.shape.clone())
    }

    /// The softmax over the last axis; it may add a bias from a table first.
    pub fn softmax(&self, x: Value, bias: Option<Parameter>) -> Value {
        self.call(Function::Softmax, &[&x], bias, x.0.shape.clone())
    }

    /// The product with a constant.
    pub fn scale(&self, x: Value) -> Value {
        self.same(Function::Scale, x)
    }

    /// The row of a table for each index.
    pub fn embedding(&self, indices: &Value, table: Parameter, width: u64) -> Value {
        let mut shape = indices.0.shape.clone();
        shape.push(width);
        self.call(Function::Embedding, &[indices], [table], shape)
    }

    /// The `k` largest elements of each row, with their indices.
    pub fn top_k(&self, x: Value, k: u64) -> Value {
        self.call(Function::TopK, &[&x], [], vec![x.0.shape[0], 2, k])
    }

    /// A copy of each row for each expert that `routes` ([`Net::top_k`]) chose for it, sorted by expert.
    pub fn dispatch(&self, x: Value, routes: &Value) -> Value {
        let rows = x.0.shape[0].saturating_mul(routes.width());
        self.call(Function::Dispatch, &[&x, routes], [], vec![rows, x.width()])
    }

    /// The weighted sums of the experts' outputs, one row for each row of `routes`.
    pub fn combine(&self, outputs: Value, routes: Value) -> Value {
        let shape = vec![routes.0.shape[0], outputs.width()];
        self.call(Function::Combine, &[&outputs, &routes], [], shape)
    }

    /// A recurrent layer of `units` over packed sequences `[tokens, width]`, which starts from zeros or from a state.
    pub fn lstm(&self, x: Value, state: Option<Value>, sequences: u64, units: u64) -> Value {
        let gates = 4 * units;
        let parameters = [vec![gates, x.width()], vec![gates, units], vec![gates], vec![gates]];
        let parameters = parameters.map(|shape| self.parameter(shape));
        let inputs: Vec<&Value> = [&x].into_iter().chain(&state).collect();
        self.call(Function::Lstm { sequences }, &inputs, parameters, vec![x.0.shape[0], units])
    }

    /// The states of an [`Net::lstm`] after the last token of each sequence.
    pub fn lstm_state(&self, y: Value, sequences: u64) -> Value {
        self.call(Function::LstmState, &[&y], [], vec![sequences, 2 * y.width()])
    }

    /// Softmax and cross entropy: the loss of a classification.
    pub fn softmax_cross_entropy(&self, x: Value, labels: &Value) -> Value {
        self.call(Function::SoftmaxCrossEntropy, &[&x, labels], [], Vec::new())
    }

    /// The loss of a binary classification with constant labels.
    pub fn binary_cross_entropy(&self, x: Value) -> Value {
        self.call(Function::BinaryCrossEntropy, &[&x], [], Vec::new())
    }

    /// The share of correct predictions.
    pub fn accuracy(&self, x: Value, labels: &Value) -> Value {
        self.call(Function::Accuracy, &[&x, labels], [], Vec::new())
    }

    /// Keeps scalars until they are reported, after the propagation.
    pub fn report(&self, values: &[&Value]) {
        let ids = values.iter().map(|value| value.0.id).collect();
        self.recording.borrow_mut().events.push(Event::Report(ids));
    }
}
