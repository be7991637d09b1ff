//! Handles of values, and the recording that they belong to.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use super::program::{Event, ValueId};
use super::shape::{Shape, ShapeError, is_countable};

#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) events: Vec<Event>,
    pub(super) shapes: Vec<Shape>,
    pub(super) parameters: Vec<Shape>,
    pub(super) inputs: Vec<ValueId>,
    pub(super) calls: usize,
    pub(super) error: Option<ShapeError>,
    pub(super) is_over: bool,
}

impl Recording {
    /// The shape itself, or ones if it is not countable.
    pub(super) fn check_shape(&mut self, shape: Shape) -> Shape {
        if is_countable(&shape) {
            return shape;
        }
        let ones = vec![1; shape.len()];
        self.error.get_or_insert(ShapeError::Uncountable { call: self.calls + 1, shape });
        ones
    }
}

/// A handle of a value. The program records when the last handle of a value is dropped.
#[derive(Clone)]
pub struct NetValue(pub(super) Rc<Handle>);

pub(super) struct Handle {
    pub(super) id: ValueId,
    pub(super) shape: Shape,
    pub(super) recording: Rc<RefCell<Recording>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut recording = self.recording.borrow_mut();
        if !recording.is_over {
            recording.events.push(Event::Drop(self.id));
        }
    }
}

impl fmt::Debug for NetValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.0.id, self.0.shape)
    }
}

impl NetValue {
    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.0.shape
    }

    /// The second extent.
    ///
    /// # Panics
    ///
    /// If the value has fewer than two extents.
    #[must_use]
    pub fn channels(&self) -> u64 {
        self.0.shape[1]
    }

    /// The last extent; 1 for a scalar.
    #[must_use]
    pub fn width(&self) -> u64 {
        self.0.shape.last().copied().unwrap_or(1)
    }

    /// All extents but the last.
    pub(super) fn rows(&self) -> &[u64] {
        self.0.shape.split_last().map_or(&[], |(_, rows)| rows)
    }
}
