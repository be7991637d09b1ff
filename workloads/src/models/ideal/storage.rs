//! Where values and gradients are stored: views are parts of the storage of another value.

use std::rc::Rc;

use planlab_graph::TensorId;

use crate::models::net::ValueId;

/// The storage of a value, and the part of it that the value occupies.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    /// The value that owns the storage: an input, or the output of a call.
    pub(super) root: ValueId,
    pub(super) part: Part,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// A block that starts at `start` within the value `of`, which fills the storage.
    Box {
        of: ValueId,
        start: Vec<u64>,
        extents: Vec<u64>,
    },
    /// A part of a part: its place is not tracked.
    Some,
}

impl Part {
    /// Whether the two parts certainly do not overlap.
    pub(super) fn is_apart(&self, other: &Self) -> bool {
        let (Self::Box { of, start, extents }, Self::Box { of: other_of, start: other, extents: reach }) =
            (self, other)
        else {
            return false;
        };
        let mut axes = start.iter().zip(extents).zip(other.iter().zip(reach));
        of == other_of && axes.any(|((a, long), (b, far))| a + long <= *b || b + far <= *a)
    }
}

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
