//! What a mean over cells counts.

use crate::statistics::{ShiftedMean, shifted_geometric_mean};

/// A shift of 1 % prevents gaps of 0 from dominating a geometric mean.
pub const GAP_SHIFT: f64 = 0.01;
/// The gap that a mean counts for a cell without an answer: that of a plan twice as high as the bound. No answer counts for
/// more, so that nobody gains by having none.
pub const PENALTY_GAP: f64 = 1.0;
/// The shifted mean of these values; the other cells count as failures.
pub(super) fn mean_of(values: &[f64], cells: usize, shift: f64) -> ShiftedMean {
    let missing = std::iter::repeat_n(None, cells.saturating_sub(values.len()));
    shifted_geometric_mean(values.iter().copied().map(Some).chain(missing), shift)
}
