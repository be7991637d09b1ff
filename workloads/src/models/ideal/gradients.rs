//! The gradients of values: which tensor holds each, and where terms are added up.

use std::rc::Rc;

use planlab_dsa::Bytes;
use planlab_graph::{Operation, Tensor, TensorId};

use super::lowering::{Lowering, unique};
use super::storage::{Gradient, Held, Part, Storage, Target};
use crate::models::net::ValueId;

impl Lowering<'_> {
    /// A new tensor for the gradient of a storage, or for a term of it.
    fn gradient_tensor(&mut self, root: ValueId, kind: &str, bytes: Bytes) -> TensorId {
        let number = &mut self.gradient_tensors[root.0];
        *number += 1;
        let number = if *number == 1 { String::new() } else { number.to_string() };
        let name = format!("{}.{kind}{number}", self.names[root.0]);
        self.graph.add_tensor(Tensor::new(name, bytes).with_category("gradient"))
    }

    fn fresh_gradient(&mut self, root: ValueId) -> Held {
        let bytes = self.bytes_of(root);
        Held { tensor: self.gradient_tensor(root, "gradient", bytes), owners: Rc::default(), is_whole: true }
    }

    /// The tensor that the next operation writes the gradient of a value to.
    pub(super) fn begin_gradient(&mut self, value: ValueId) -> Target {
        let Storage { root, part } = self.storage_of(value);
        if self.gradients[root.0].is_none() {
            let held = self.fresh_gradient(root);
            let tensor = held.tensor;
            self.gradients[root.0] = Some(Gradient { held, written: vec![part] });
            return Target { value, tensor, is_made: true, is_term: false };
        }
        if let Some(tensor) = self.vacant_gradient(root, &part) {
            return Target { value, tensor, is_made: false, is_term: false };
        }
        let tensor = self.gradient_tensor(root, "gradient-term", self.bytes_of(value));
        Target { value, tensor, is_made: true, is_term: true }
    }

    /// The gradient of a storage, if this part of it has not been written yet.
    fn vacant_gradient(&mut self, root: ValueId, part: &Part) -> Option<TensorId> {
        let gradient = self.gradients[root.0].as_mut()?;
        if gradient.held.is_shared() || !gradient.written.iter().all(|other| other.is_apart(part)) {
            return None;
        }
        gradient.written.push(part.clone());
        Some(gradient.held.tensor)
    }

    /// Adds the terms among the targets to their gradients.
    pub(super) fn finish_gradients(&mut self, targets: Vec<Target>) {
        for target in targets.into_iter().filter(|target| target.is_term) {
            let term =
                Held { tensor: target.tensor, owners: Rc::default(), is_whole: self.is_whole(target.value) };
            self.add_term(target.value, term);
        }
    }

    /// Makes an existing gradient that of a value, without a copy where possible.
    pub(super) fn give_gradient(&mut self, value: ValueId, held: Held) {
        let Storage { root, part } = self.storage_of(value);
        match &self.gradients[root.0] {
            None if part == Part::Whole => {
                self.gradients[root.0] = Some(Gradient { held, written: vec![part] });
            }
            None => {
                let target = self.begin_gradient(value);
                self.copy_tensors(vec![held.tensor], target.tensor);
            }
            Some(_) => match self.vacant_gradient(root, &part) {
                Some(tensor) => self.copy_tensors(vec![held.tensor, tensor], tensor),
                None => self.add_term(value, held),
            },
        }
    }

    fn copy_tensors(&mut self, reads: Vec<TensorId>, to: TensorId) {
        self.graph.add_operation(Operation::new("copy-gradient").with_inputs(reads).with_outputs([to]));
    }

    /// Adds a term to the gradient of a value.
    fn add_term(&mut self, value: ValueId, term: Held) {
        let Storage { root, part } = self.storage_of(value);
        let Some(mut gradient) = self.gradients[root.0].take() else { return };
        let reads = unique(vec![gradient.held.tensor, term.tensor]);
        let sum = if !gradient.held.is_shared() {
            gradient.held
        } else if part == Part::Whole && !term.is_shared() {
            term
        } else {
            self.fresh_gradient(root)
        };
        self.graph
            .add_operation(Operation::new("add-gradient").with_inputs(reads).with_outputs([sum.tensor]));
        gradient.written.push(part);
        self.gradients[root.0] = Some(Gradient { held: sum, written: gradient.written });
    }
}

/// The gradients with another part that earlier operations wrote. That part stays, so the operation reads them.
pub(super) fn completed_gradients(targets: &[Target]) -> Vec<TensorId> {
    let is_made = |tensor| targets.iter().any(|target| target.is_made && target.tensor == tensor);
    let parts = targets.iter().filter(|target| !target.is_made && !is_made(target.tensor));
    parts.map(|target| target.tensor).collect()
}
