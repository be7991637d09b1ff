//! Proofs that no plan fits a capacity, as a list of steps.

use serde::{Deserialize, Serialize};

/// One step of a proof, in depth-first order. Numbers are the buffers' indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The case that a buffer lies at its lowest offset; the other case, `Skip`, follows its proof.
    Place(usize),
    /// As `Place`, but nothing is pushed up: the only case.
    Settle(usize),
    /// The case that it lies above its lowest offset, on something that is not placed yet.
    Skip(usize),
    /// A buffer that was skipped rises with all that it could rest on.
    Raise(usize),
    /// A contradiction: a section, or a buffer, does not fit.
    Over,
}
