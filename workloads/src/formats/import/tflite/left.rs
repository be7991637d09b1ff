//! Tensors that are not planned.

use super::model::Tensor;
use crate::formats::import::Dropped;
use crate::formats::import::gather::Tally;

/// How many there are of each kind.
#[derive(Default)]
pub(crate) struct LeftOutTensors {
    constants: Tally,
    variables: Tally,
    unsized_: u64,
    dynamic: u64,
}

impl LeftOutTensors {
    /// Counts a tensor that no operator makes and that the subgraph is not given.
    pub(crate) fn count_unused(&mut self, tensor: &Tensor) {
        if tensor.has_data {
            self.constants.add_bytes(tensor.bytes.unwrap_or(0));
        }
    }

    /// Whether a tensor is planned; one that is not is counted.
    pub(crate) fn keeps_tensor(&mut self, tensor: &Tensor) -> bool {
        let bytes = tensor.bytes.unwrap_or(0);
        match tensor {
            Tensor { has_data: true, .. } => self.constants.add_bytes(bytes),
            Tensor { is_variable: true, .. } => self.variables.add_bytes(bytes),
            Tensor { bytes: None, .. } => self.unsized_ += 1,
            _ => {
                self.dynamic += u64::from(tensor.is_dynamic);
                return true;
            }
        }
        false
    }

    pub(crate) fn as_dropped(&self) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        dropped.extend(self.constants.as_dropped("tensors with data", "they have memory of their own"));
        dropped.extend(self.variables.as_dropped("variables", "they outlive the run"));
        let why = "they have no size";
        dropped.extend(Dropped::from_count(self.unsized_, "tensors of strings or resources", why));
        let why = "planned as the file has them, with 1 there";
        dropped.extend(Dropped::from_count(self.dynamic, "tensors with a dynamic dimension", why));
        dropped
    }
}
