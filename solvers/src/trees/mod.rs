//! Search trees over time: what is live, placed or highest in a run of steps.

mod adjacency;
mod columns;
mod first_at_most;
mod neighbours;
mod occupancy;
mod range_max;
mod tops;

pub(crate) use adjacency::Adjacency;
pub(crate) use columns::Columns;
pub(crate) use first_at_most::FirstAtMost;
pub(crate) use neighbours::Neighbours;
pub(crate) use occupancy::{Blocked, Occupancy, Room, Span};
pub(crate) use range_max::RangeMax;
pub(crate) use tops::Tops;

use std::ops::Range;

/// The fewest nodes that make up a run of leaves, in a tree with `leaves` leaves. The nodes are in an array: the root
/// at 1, the children of node k at 2k and 2k + 1, the leaves last.
pub(crate) fn parts(leaves: usize, run: &Range<usize>) -> impl Iterator<Item = usize> + use<> {
    let (mut low, mut high) = (run.start + leaves, run.end + leaves);
    std::iter::from_fn(move || {
        while low < high {
            if low % 2 == 1 {
                low += 1;
                return Some(low - 1);
            }
            if high % 2 == 1 {
                high -= 1;
                return Some(high);
            }
            low /= 2;
            high /= 2;
        }
        None
    })
}
