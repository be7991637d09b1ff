//! The recorder: a method for each function, which checks shapes and records the call.

use std::cell::RefCell;
use std::rc::Rc;

use super::functions::{Convolution, Function, Window};
use super::program::{Call, End, Event, Mode, Parameter, Program, ValueId};
use super::shape::{Shape, ShapeError, elements, is_countable};
use super::value::{Handle, NetValue, Recording};

/// The recorder that a net is written against. A function takes its inputs by value and drops them when it returns;
/// clone a value that is needed again.
#[derive(Debug)]
pub struct Net {
    mode: Mode,
    end: End,
    recording: Rc<RefCell<Recording>>,
    /// The caller holds the inputs, so the net never drops the last handle of one.
    inputs: RefCell<Vec<NetValue>>,
}

#[expect(clippy::needless_pass_by_value, reason = "a call drops its inputs when it returns")]
impl Net {
    /// Runs a net once on shapes. The net asks for its inputs ([`Net::new_input`]) and returns the value that `end`
    /// selects.
    ///
    /// # Errors
    ///
    /// The first [`ShapeError`] of the run.
    pub fn record_run(
        mode: Mode,
        end: End,
        net: impl FnOnce(&Self) -> NetValue,
    ) -> Result<Program, ShapeError> {
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

    /// Whether the net returns its loss.
    #[must_use]
    pub fn is_scored(&self) -> bool {
        self.end == End::Loss
    }

    /// A new input: a batch, labels, indices.
    pub fn new_input(&self, shape: Shape) -> NetValue {
        let value = self.new_value(shape);
        self.recording.borrow_mut().inputs.push(value.0.id);
        self.inputs.borrow_mut().push(value.clone());
        value
    }

    fn new_value(&self, shape: Shape) -> NetValue {
        let mut recording = self.recording.borrow_mut();
        let shape = recording.check_shape(shape);
        let id = ValueId(recording.shapes.len());
        recording.shapes.push(shape.clone());
        NetValue(Rc::new(Handle { id, shape, recording: Rc::clone(&self.recording) }))
    }

    /// A new parameter, which several calls may share.
    pub fn new_parameter(&self, shape: Shape) -> Parameter {
        let mut recording = self.recording.borrow_mut();
        let shape = recording.check_shape(shape);
        recording.parameters.push(shape);
        Parameter(recording.parameters.len() - 1)
    }

    fn record_call(
        &self,
        function: Function,
        inputs: &[&NetValue],
        parameters: impl IntoIterator<Item = Parameter>,
        shape: Shape,
    ) -> NetValue {
        let output = self.new_value(shape);
        let inputs = inputs.iter().map(|value| value.0.id).collect();
        let parameters = parameters.into_iter().map(|Parameter(index)| index).collect();
        let call = Call { function, inputs, parameters, output: output.0.id };
        let mut recording = self.recording.borrow_mut();
        recording.calls += 1;
        recording.events.push(Event::Call(call));
        drop(recording);
        output
    }

    fn record_failure(&self, error: impl FnOnce(usize) -> ShapeError) {
        let mut recording = self.recording.borrow_mut();
        let call = recording.calls + 1;
        recording.error.get_or_insert_with(|| error(call));
    }

    fn record_mismatch(&self, function: &Function, values: &[&NetValue]) {
        let shapes = values.iter().map(|value| value.0.shape.clone()).collect();
        self.record_failure(|call| ShapeError::Mismatch { function: function.name(), call, shapes });
    }

    /// The output's spatial extents; ones, and an error, if the window does not fit.
    fn slide_window(&self, function: &Function, window: Window, x: &NetValue, made: Option<Shape>) -> Shape {
        let extents = &x.0.shape[2..];
        made.unwrap_or_else(|| {
            let pads = &window.pad[3 - extents.len()..];
            let padded = extents.iter().zip(pads).map(|(extent, pad)| extent + 2 * pad).collect();
            let window = window.window_extents(extents.len());
            self.record_failure(|call| ShapeError::TooSmall {
                function: function.name(),
                call,
                extents: padded,
                window,
            });
            vec![1; extents.len()]
        })
    }

    /// A convolution with `out` output channels, without a bias.
    pub fn conv(&self, x: NetValue, out: u64, convolution: impl Into<Convolution>) -> NetValue {
        self.convolve(&x, out, convolution.into(), false)
    }

    /// A convolution with `out` output channels and a bias.
    pub fn conv_bias(&self, x: NetValue, out: u64, convolution: impl Into<Convolution>) -> NetValue {
        self.convolve(&x, out, convolution.into(), true)
    }

    fn convolve(&self, x: &NetValue, out: u64, convolution: Convolution, has_bias: bool) -> NetValue {
        let (window, extents) = (convolution.window, &x.0.shape[2..]);
        let weights = self.new_parameter(convolution.weight_shape(x.channels(), out, extents.len()));
        let bias = has_bias.then(|| self.new_parameter(vec![out]));
        let made = if convolution.is_transposed {
            window.spread_extents(extents)
        } else {
            window.output_extents(extents)
        };
        let function = Function::Convolution(convolution);
        let mut shape = vec![x.0.shape[0], out];
        shape.extend(self.slide_window(&function, window, x, made));
        self.record_call(function, &[x], [weights].into_iter().chain(bias), shape)
    }

    /// max(x, 0).
    pub fn relu(&self, x: NetValue) -> NetValue {
        self.each(Function::Relu, x)
    }

    /// Any function without parameters whose output has the shape of its input.
    pub fn each(&self, function: Function, x: NetValue) -> NetValue {
        self.record_call(function, &[&x], [], x.0.shape.clone())
    }

    /// Local response normalisation.
    pub fn lrn(&self, x: NetValue) -> NetValue {
        self.each(Function::LocalResponseNorm, x)
    }

    /// Max pooling.
    pub fn max_pool(&self, x: NetValue, window: Window) -> NetValue {
        self.pool(&x, window, Function::MaxPooling(window))
    }

    /// Average pooling.
    pub fn average_pool(&self, x: NetValue, window: Window) -> NetValue {
        self.pool(&x, window, Function::AveragePooling(window))
    }

    /// The mean of each channel (global average pooling).
    pub fn global_average_pool(&self, x: NetValue) -> NetValue {
        let mut kernel = [1; 3];
        let extents = &x.0.shape[2..];
        kernel[3 - extents.len()..].copy_from_slice(extents);
        self.average_pool(x, Window { kernel, ..Window::square(1) })
    }

    fn pool(&self, x: &NetValue, window: Window, function: Function) -> NetValue {
        let mut shape = x.0.shape[..2].to_vec();
        shape.extend(self.slide_window(&function, window, x, window.output_extents(&x.0.shape[2..])));
        self.record_call(function, &[x], [], shape)
    }

    /// A fully connected layer of `out` units with a bias; all axes but the first are flattened.
    pub fn linear(&self, x: NetValue, out: u64) -> NetValue {
        let (batch, features) = (x.shape()[0], elements(&x.shape()[1..]));
        let x = match x.shape().len() {
            0..=2 => x,
            _ => self.reshape(x, vec![batch, features]),
        };
        self.dense_bias(x, out)
    }

    /// The product of each row with weights, without a bias.
    pub fn dense(&self, x: NetValue, out: u64) -> NetValue {
        let weights = self.new_parameter(vec![out, x.width()]);
        self.project(x, out, [weights])
    }

    /// The product of each row with weights, and a bias.
    pub fn dense_bias(&self, x: NetValue, out: u64) -> NetValue {
        let weights = self.new_parameter(vec![out, x.width()]);
        let bias = self.new_parameter(vec![out]);
        self.project(x, out, [weights, bias])
    }

    /// The product of each row with given weights, and a bias if one is given.
    pub fn project(
        &self,
        x: NetValue,
        out: u64,
        parameters: impl IntoIterator<Item = Parameter>,
    ) -> NetValue {
        let mut shape = x.rows().to_vec();
        shape.push(out);
        self.record_call(Function::Linear, &[&x], parameters, shape)
    }

    /// The products of the matrices `[.., M, K]` and `[.., K, N]`, or `[.., N, K]` if the second is transposed.
    ///
    /// # Panics
    ///
    /// If the second has fewer than two extents.
    pub fn matmul(&self, a: NetValue, b: NetValue, is_transposed: bool) -> NetValue {
        let function = Function::MatMul { is_transposed };
        let axes = b.0.shape.len();
        let (inner, columns) = if is_transposed { (axes - 1, axes - 2) } else { (axes - 2, axes - 1) };
        let leading = a.0.shape.iter().rev().skip(2);
        if !leading.eq(b.0.shape.iter().rev().skip(2)) || a.width() != b.0.shape[inner] {
            self.record_mismatch(&function, &[&a, &b]);
        }
        let mut shape = a.rows().to_vec();
        shape.push(b.0.shape[columns]);
        self.record_call(function, &[&a, &b], [], shape)
    }

    /// The same elements in another shape.
    pub fn reshape(&self, x: NetValue, shape: Shape) -> NetValue {
        if is_countable(&shape) && elements(&shape) != elements(x.shape()) {
            self.record_failure(|call| ShapeError::Mismatch {
                function: Function::Reshape.name(),
                call,
                shapes: vec![x.0.shape.clone(), shape.clone()],
            });
        }
        self.record_call(Function::Reshape, &[&x], [], shape)
    }

    /// A block of the elements that starts at the indices `start`.
    pub fn slice(&self, x: NetValue, start: Vec<u64>, shape: Shape) -> NetValue {
        let ends = start.iter().zip(&shape).map(|(start, extent)| start.checked_add(*extent));
        let is_inside = ends.zip(x.shape()).all(|(end, &extent)| end.is_some_and(|end| end <= extent));
        let function = Function::Slice(start);
        if !is_inside || shape.len() != x.shape().len() {
            self.record_mismatch(&function, &[&x]);
        }
        self.record_call(function, &[&x], [], shape)
    }

    /// Dropout in training; otherwise the value itself.
    pub fn dropout(&self, x: NetValue) -> NetValue {
        if self.mode == Mode::Train { self.each(Function::Dropout, x) } else { x }
    }

    /// Batch normalisation.
    pub fn batch_norm(&self, x: NetValue) -> NetValue {
        let parameters = [(); 2].map(|()| self.new_parameter(vec![x.channels()]));
        self.record_call(Function::BatchNorm, &[&x], parameters, x.0.shape.clone())
    }

    /// Layer normalisation.
    pub fn layer_norm(&self, x: NetValue) -> NetValue {
        let parameters = [(); 2].map(|()| self.new_parameter(vec![x.width()]));
        self.record_call(Function::LayerNorm, &[&x], parameters, x.0.shape.clone())
    }

    /// Root-mean-square normalisation.
    pub fn rms_norm(&self, x: NetValue) -> NetValue {
        let gain = self.new_parameter(vec![x.width()]);
        self.record_call(Function::RmsNorm, &[&x], [gain], x.0.shape.clone())
    }

    /// Concatenates values along the channels.
    ///
    /// # Panics
    ///
    /// If there are no values.
    pub fn concat(&self, values: Vec<NetValue>) -> NetValue {
        self.join(&values, 1)
    }

    /// Concatenates values along the first axis.
    ///
    /// # Panics
    ///
    /// If there are no values.
    pub fn stack(&self, values: Vec<NetValue>) -> NetValue {
        self.join(&values, 0)
    }

    fn join(&self, values: &[NetValue], axis: usize) -> NetValue {
        let values: Vec<&NetValue> = values.iter().collect();
        let mut shape = values[0].0.shape.clone();
        let fits = |value: &&NetValue| {
            let mut other = value.0.shape.clone();
            other[axis] = shape[axis];
            other == shape
        };
        if !values.iter().all(fits) {
            self.record_mismatch(&Function::Concat, &values);
        }
        shape[axis] = values.iter().map(|value| value.0.shape[axis]).sum();
        self.record_call(Function::Concat, &values, [], shape)
    }

    fn pair(&self, function: Function, a: &NetValue, b: &NetValue) -> NetValue {
        if a.shape() != b.shape() {
            self.record_mismatch(&function, &[a, b]);
        }
        self.record_call(function, &[a, b], [], a.0.shape.clone())
    }

    /// The sum of two values of the same shape.
    pub fn add(&self, a: NetValue, b: NetValue) -> NetValue {
        self.pair(Function::Add, &a, &b)
    }

    /// The element-wise product of two values of the same shape.
    pub fn multiply(&self, a: NetValue, b: NetValue) -> NetValue {
        self.pair(Function::Multiply, &a, &b)
    }

    /// The product of a value `[N, C, ..]` with a factor for each of its channels, `[N, C, 1, ..]`.
    pub fn multiply_channels(&self, x: NetValue, factors: NetValue) -> NetValue {
        let fits = factors.shape().iter().zip(x.shape()).enumerate();
        if !fits.into_iter().all(|(axis, (&factor, &extent))| factor == if axis < 2 { extent } else { 1 }) {
            self.record_mismatch(&Function::Multiply, &[&x, &factors]);
        }
        self.record_call(Function::Multiply, &[&x, &factors], [], x.0.shape.clone())
    }

    /// The softmax over the last axis; it may add a bias from a table first.
    pub fn softmax(&self, x: NetValue, bias: Option<Parameter>) -> NetValue {
        self.record_call(Function::Softmax, &[&x], bias, x.0.shape.clone())
    }

    /// The product with a constant.
    pub fn scale(&self, x: NetValue) -> NetValue {
        self.each(Function::Scale, x)
    }

    /// The row of a table for each index.
    pub fn embedding(&self, indices: &NetValue, table: Parameter, width: u64) -> NetValue {
        let mut shape = indices.0.shape.clone();
        shape.push(width);
        self.record_call(Function::Embedding, &[indices], [table], shape)
    }

    /// The `k` largest elements of each row, with their indices.
    pub fn top_k(&self, x: NetValue, k: u64) -> NetValue {
        self.record_call(Function::TopK, &[&x], [], vec![x.0.shape[0], 2, k])
    }

    /// A copy of each row for each expert that `routes` ([`Net::top_k`]) chose for it, sorted by expert.
    pub fn dispatch(&self, x: NetValue, routes: &NetValue) -> NetValue {
        let rows = x.0.shape[0].saturating_mul(routes.width());
        self.record_call(Function::Dispatch, &[&x, routes], [], vec![rows, x.width()])
    }

    /// The weighted sums of the experts' outputs, one row for each row of `routes`.
    pub fn combine(&self, outputs: NetValue, routes: NetValue) -> NetValue {
        let shape = vec![routes.0.shape[0], outputs.width()];
        self.record_call(Function::Combine, &[&outputs, &routes], [], shape)
    }

    /// A recurrent layer of `units` over packed sequences `[tokens, width]`, which starts from zeros or from a state.
    pub fn lstm(&self, x: NetValue, state: Option<NetValue>, sequences: u64, units: u64) -> NetValue {
        let gates = 4 * units;
        let parameters = [vec![gates, x.width()], vec![gates, units], vec![gates], vec![gates]];
        let parameters = parameters.map(|shape| self.new_parameter(shape));
        let inputs: Vec<&NetValue> = [&x].into_iter().chain(&state).collect();
        self.record_call(Function::Lstm { sequences }, &inputs, parameters, vec![x.0.shape[0], units])
    }

    /// The states of a layer of [`Net::lstm`] after the last token of each sequence.
    pub fn lstm_state(&self, y: NetValue, sequences: u64) -> NetValue {
        self.record_call(Function::LstmState, &[&y], [], vec![sequences, 2 * y.width()])
    }

    /// Softmax and cross entropy: the loss of a classification.
    pub fn softmax_cross_entropy(&self, x: NetValue, labels: &NetValue) -> NetValue {
        self.record_call(Function::SoftmaxCrossEntropy, &[&x, labels], [], Vec::new())
    }

    /// The loss of a binary classification with constant labels.
    pub fn binary_cross_entropy(&self, x: NetValue) -> NetValue {
        self.record_call(Function::BinaryCrossEntropy, &[&x], [], Vec::new())
    }

    /// The share of correct predictions.
    pub fn accuracy(&self, x: NetValue, labels: &NetValue) -> NetValue {
        self.record_call(Function::Accuracy, &[&x, labels], [], Vec::new())
    }

    /// Keeps scalars until they are reported, after the propagation.
    pub fn report_values(&self, values: &[&NetValue]) {
        let ids = values.iter().map(|value| value.0.id).collect();
        self.recording.borrow_mut().events.push(Event::Report(ids));
    }
}
