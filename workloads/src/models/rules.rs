//! For each function: what its forward pass keeps, what its backward pass reads, and what may be overwritten. This is
//! the table behind [`ideal`](super::ideal).
//!
//! | function | what the backward pass reads beside the gradient of the output |
//! |---|---|
//! | convolution, linear | the input for the weights, the weights for the input |
//! | matmul | the other factor |
//! | relu, leaky relu, sigmoid, tanh, softmax | the output |
//! | gelu, silu, multiply | the input |
//! | max pooling, local response norm | input and output |
//! | average pooling, scale, rotary | nothing |
//! | dropout | its mask, one byte for each element |
//! | batch, layer and RMS norm | the input, its statistics, and the scale |
//! | embedding | the indices |
//! | top-k, dispatch, combine | top-k: the indices; dispatch: the routes; combine: the routes and the experts' outputs |
//! | LSTM | input, output, both weight matrices, and for each token and unit the four gates and the cell |
//! | softmax cross entropy | the labels and the probabilities, which may overwrite the scores |
//! | add, concat | nothing: the inputs share the gradient, or have parts of it |

use super::net::{Call, Function, Program, Shape, elements};

/// Bytes of a 32-bit number or index.
pub(super) const FLOAT: u64 = 4;

/// A value that the backward pass reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// All inputs.
    Inputs,
    /// All inputs but the first.
    LaterInputs,
    /// The output.
    Output,
    /// The first parameter.
    Weights,
    /// The first two parameters: the matrices of the input and of the hidden state.
    BothWeights,
    /// The data that the forward pass kept.
    Saved,
}

/// What a gradient may overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GradientPlace {
    Nowhere,
    /// The gradient of the output.
    Gradient,
    /// The data that the forward pass kept.
    Saved,
}

/// How the gradients of the inputs are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backward {
    /// Not at all: the function has no gradient.
    Stops,
    /// All inputs share the gradient of the output.
    Passes,
    /// Each input has a part of the gradient of the output.
    Splits,
    /// One operation computes the gradients of all inputs and parameters.
    Whole(&'static [Source], GradientPlace),
    /// Like `Whole`, but only for the first input.
    First(&'static [Source], GradientPlace),
    /// One operation, which reads the first list, computes the gradients of the parameters; then another, which reads
    /// the second list, that of the input.
    Parts(&'static [Source], &'static [Source]),
    /// One operation for each input; it reads the other input.
    Factors,
}

/// What the forward pass may overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overwrites {
    Nothing,
    /// The output may overwrite an input of the same size.
    Input,
    /// What is kept for the backward pass may overwrite the first input.
    InputBySaved,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) backward: Backward,
    pub(super) overwrites: Overwrites,
}

/// The row of a function.
pub(super) const fn rule_of(function: &Function) -> Rule {
    use Backward::{Factors, First, Parts, Passes, Splits, Stops, Whole};
    use GradientPlace::{Gradient, Nowhere};
    use Source::{BothWeights, Inputs, LaterInputs, Output, Saved, Weights};

    let (backward, overwrites) = match function {
        Function::Convolution(_) | Function::Linear => (Parts(&[Inputs], &[Weights]), Overwrites::Nothing),
        Function::MatMul { .. } => (Factors, Overwrites::Nothing),
        Function::Relu | Function::LeakyRelu | Function::Sigmoid | Function::Tanh | Function::Softmax => {
            (Whole(&[Output], Gradient), Overwrites::Input)
        }
        Function::Gelu | Function::Silu | Function::Multiply => {
            (Whole(&[Inputs], Gradient), Overwrites::Input)
        }
        Function::MaxPooling(_) | Function::LocalResponseNorm => {
            (Whole(&[Inputs, Output], Nowhere), Overwrites::Nothing)
        }
        Function::AveragePooling(_) => (Whole(&[], Nowhere), Overwrites::Nothing),
        Function::Scale | Function::Rotary => (Whole(&[], Gradient), Overwrites::Input),
        Function::Dropout => (Whole(&[Saved], Gradient), Overwrites::Input),
        Function::BatchNorm | Function::LayerNorm | Function::RmsNorm => {
            (Whole(&[Inputs, Weights, Saved], Gradient), Overwrites::Input)
        }
        Function::Concat => (Splits, Overwrites::Nothing),
        Function::Add => (Passes, Overwrites::Input),
        Function::Embedding => (Parts(&[Inputs], &[]), Overwrites::Nothing),
        Function::TopK => (Whole(&[Output], Nowhere), Overwrites::Nothing),
        Function::Dispatch => (First(&[LaterInputs], Nowhere), Overwrites::Nothing),
        Function::Combine => (Whole(&[Inputs], Nowhere), Overwrites::Nothing),
        Function::Lstm { .. } => (Whole(&[Inputs, Output, BothWeights, Saved], Nowhere), Overwrites::Nothing),
        Function::LstmState => (First(&[], Nowhere), Overwrites::Nothing),
        Function::SoftmaxCrossEntropy => {
            (First(&[LaterInputs, Saved], GradientPlace::Saved), Overwrites::InputBySaved)
        }
        Function::BinaryCrossEntropy => (Whole(&[Inputs], Nowhere), Overwrites::Nothing),
        Function::Reshape | Function::Slice(_) | Function::Accuracy => (Stops, Overwrites::Nothing),
    };
    Rule { backward, overwrites }
}

/// Whether the output shares the storage of the input.
pub(super) const fn is_view(function: &Function) -> bool {
    matches!(function, Function::Reshape | Function::Slice(_))
}

/// Bytes that the forward pass keeps for the backward pass, besides inputs and output; 0 for none.
pub(super) fn saved_bytes(function: &Function, input: &Shape, output: &Shape) -> u64 {
    let rows = || elements(output) / output.last().copied().unwrap_or(1);
    match function {
        Function::Dropout => elements(output),
        Function::BatchNorm => 2 * FLOAT * output[1],
        Function::LayerNorm => 2 * FLOAT * rows(),
        Function::RmsNorm => FLOAT * rows(),
        Function::SoftmaxCrossEntropy => FLOAT * elements(input),
        Function::Lstm { .. } => 5 * FLOAT * elements(output),
        _ => 0,
    }
}

/// Bytes of the state that a call keeps for later calls if no backward pass follows; 0 for none. In training, the state
/// is part of [`saved_bytes`].
pub(super) fn state_bytes(function: &Function, output: &Shape) -> u64 {
    match function {
        Function::Lstm { sequences } => {
            let units = output.last().copied().unwrap_or(1);
            FLOAT.saturating_mul(sequences.saturating_mul(units))
        }
        _ => 0,
    }
}

/// The name of a parameter, by its position among the call's parameters.
pub(super) fn parameter_role(function: &Function, at: usize) -> Option<&'static str> {
    let roles: &[&str] = match function {
        Function::Lstm { .. } => &["weight", "recurrent-weight", "bias", "recurrent-bias"],
        _ => &["weight", "bias"],
    };
    roles.get(at).copied()
}

/// FLOPs of a call's forward pass, two for each multiply-add. Only convolutions and matrix products count, as in
/// published figures.
pub(super) fn call_flops(program: &Program, call: &Call) -> Option<u64> {
    let weights = |at: usize| call.parameters.get(at).map(|&index| &program.parameters[index]);
    let output = program.shape_of(call.output);
    let products = match &call.function {
        Function::Convolution(convolution) => {
            let weights = weights(0)?;
            let mapped = if convolution.is_transposed { program.shape_of(call.inputs[0]) } else { output };
            u128::from(elements(mapped)) * u128::from(elements(weights) / weights[0])
        }
        Function::Linear => u128::from(elements(output)) * u128::from(weights(0)?[1]),
        Function::MatMul { .. } => {
            let inner = program.shape_of(call.inputs[0]).last().copied().unwrap_or(1);
            u128::from(elements(output)) * u128::from(inner)
        }
        Function::Lstm { .. } => {
            let matrices = u128::from(elements(weights(0)?)) + u128::from(elements(weights(1)?));
            u128::from(output[0]) * matrices
        }
        _ => 0,
    };
    u64::try_from(2 * products).ok()
}
