//! The tensors that hold gradients.

use std::rc::Rc;

use planlab_graph::TensorId;

use super::storage::Part;
use crate::models::net::ValueId;

/// A gradient that is a tensor, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) tensor: TensorId,
    /// One reference for each value whose gradient is in the same tensor.
    pub(super) owners: Rc<()>,
    pub(super) is_whole: bool,
}

impl Held {
    pub(super) fn is_shared(&self) -> bool {
        Rc::strong_count(&self.owners) > 1
    }
}

/// The gradient of a storage, as far as it has been computed.
#[derive(Debug)]
pub(super) struct Gradient {
    pub(super) held: Held,
    pub(super) written: Vec<Part>,
}

/// The tensor that an operation writes a gradient to.
pub(super) struct Target {
    pub(super) value: ValueId,
    pub(super) tensor: TensorId,
    /// Whether the operation is the first to write the tensor.
    pub(super) is_made: bool,
    /// Whether the tensor is a term that has to be added to the gradient.
    pub(super) is_term: bool,
}
