//! The gradients of values: which tensor holds each, and where terms are added up.

use std::rc::Rc;

use planlab_dsa::Bytes;
use planlab_graph::{Operation, Tensor, TensorId};

use super::held::{Gradient, Held, Target};
use super::lowering::{Lowering, unique};
use super::storage::{Part, Storage};
use crate::models::net::ValueId;

impl Lowering<'_> {
    /// A new tensor for the gradient of a storage, or for a term of it.
    fn gradient_tensor(&mut self, root: ValueId, kind: &str, bytes: Bytes) -> TensorId {
        let number = &mut self.gradient_tensors[root.0];
        *number += 1;
        let number = if *number == 1 { String::new() } else { number.to_string() };
        let name = format!("{}.{kind}{number}", self.names[root.0]);
        self.graph.tensor(Tensor::new(name, bytes).with_category("gradient"))
    }

    fn fresh(&mut self, root: ValueId) -> Held {
        let bytes = self.bytes(root);
        Held { tensor: self.gradient_tensor(root, "gradient", bytes), owners: Rc::default(), is_whole: true }
    }

    /// The tensor that the next operation writes the gradient of a value to.
    pub(super) fn begin(&mut self, value: ValueId) -> Target {
        let Storage { root, part } = self.storage(value);
        if self.gradients[root.0].is_none() {
            let held = self.fresh(root);
            let tensor = held.tensor;
            self.gradients[root.0] = Some(Gradient { held, written: vec![part] });
            return Target { value, tensor, is_made: true, is_term: false };
        }
        if let Some(tensor) = self.vacant(root, &part) {
            return Target { value, tensor, is_made: false, is_term: false };
        }
        let tensor = self.gradient_tensor(root, "gradient-term", self.bytes(value));
        Target { value, tensor, is_made: true, is_term: true }
    }

    /// The gradient of a storage, if this part of it has not been written yet.
    fn vacant(&mut self, root: ValueId, part: &Part) -> Option<TensorId> {
        let gradient = self.gradients[root.0].as_mut()?;
        if gradient.held.is_shared() || !gradient.written.iter().all(|other| other.is_apart(part)) {
            return None;
        }
        gradient.written.push(part.clone());
        Some(gradient.held.tensor)
    }

    /// Adds the terms among the targets to their gradients.
    pub(super) fn finish(&mut self, targets: Vec<Target>) {
        for target in targets.into_iter().filter(|target| target.is_term) {
            let term =
                Held { tensor: target.tensor, owners: Rc::default(), is_whole: self.is_whole(target.value) };
            self.add(target.value, term);
        }
    }

    /// Makes an existing gradient that of a value, without a copy where possible.
    pub(super) fn give(&mut self, value: ValueId, held: Held) {
        let Storage { root, part } = self.storage(value);
        match &self.gradients[root.0] {
            None if part == Part::Whole => {
                self.gradients[root.0] = Some(Gradient { held, written: vec![part] });
            }
            None => {
                let target = self.begin(value);
                self.copy(vec![held.tensor], target.tensor);
            }
            Some(_) => match self.vacant(root, &part) {
                Some(tensor) => self.copy(vec![held.tensor, tensor], tensor),
                None => self.add(value, held),
            },
        }
    }

    fn copy(&mut self, reads: Vec<TensorId>, to: TensorId) {
        self.graph.operation(Operation::new("copy-gradient").reads(reads).writes([to]));
    }

    /// Adds a term to the gradient of a value.
    fn add(&mut self, value: ValueId, term: Held) {
        let Storage { root, part } = self.storage(value);
        let Some(mut gradient) = self.gradients[root.0].take() else { return };
        let reads = unique(vec![gradient.held.tensor, term.tensor]);
        let sum = if !gradient.held.is_shared() {
            gradient.held
        } else if part == Part::Whole && !term.is_shared() {
            term
        } else {
            self.fresh(root)
        };
        self.graph.operation(Operation::new("add-gradient").reads(reads).writes([sum.tensor]));
        gradient.written.push(part);
        self.gradients[root.0] = Some(Gradient { held: sum, written: gradient.written });
    }
}

/// The gradients with another part that earlier operations wrote. That part stays, so the operation reads them.
pub(super) fn completed(targets: &[Target]) -> Vec<TensorId> {
    let is_made = |tensor| targets.iter().any(|target| target.is_made && target.tensor == tensor);
    let parts = targets.iter().filter(|target| !target.is_made && !is_made(target.tensor));
    parts.map(|target| target.tensor).collect()
}
