//! The recorded run of a net.

use super::functions::Function;
use super::shape::{Shape, elements};

planlab_dsa::named_enum! {
    /// Inference or training.
    pub enum Mode {
        /// The forward pass only: no dropout, and normalisation uses stored statistics.
        Infer = "infer",
        /// The forward and the backward pass, with the gradients of all parameters.
        Train = "train",
    }
}

/// What a net returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The loss; the labels are an input.
    Loss,
    /// The prediction: no labels, no loss, no auxiliary classifiers.
    Output,
}

/// The number of a value, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub usize);

/// A parameter of the program. Several calls may share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameter(pub(super) usize);

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function.
    pub function: Function,
    /// The values that it reads.
    pub inputs: Vec<ValueId>,
    /// The parameters that it reads, as indices into [`Program::parameters`].
    pub parameters: Vec<usize>,
    /// The value that it returns.
    pub output: ValueId,
}

/// A step of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A function is called.
    Call(Call),
    /// The last handle of a value is dropped.
    Drop(ValueId),
    /// Scalars are kept until they are reported, after the propagation.
    Report(Vec<ValueId>),
}

/// The recorded run of a net on shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Inference or training.
    pub mode: Mode,
    /// The steps, in order.
    pub events: Vec<Event>,
    /// The shape of each value.
    pub shapes: Vec<Shape>,
    /// The shape of each parameter.
    pub parameters: Vec<Shape>,
    /// The inputs in the order in which the net asked for them: the batch, then its labels.
    pub inputs: Vec<ValueId>,
    /// The value that the net returns: the loss, or the prediction.
    pub result: ValueId,
}

impl Program {
    /// The number of elements of all parameters; `None` if it does not fit 64 bits.
    #[must_use]
    pub fn parameter_count(&self) -> Option<u64> {
        self.parameters.iter().try_fold(0_u64, |sum, shape| sum.checked_add(elements(shape)))
    }

    /// The shape of a value.
    ///
    /// # Panics
    ///
    /// If the program has no such value.
    #[must_use]
    pub fn shape_of(&self, value: ValueId) -> &Shape {
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
