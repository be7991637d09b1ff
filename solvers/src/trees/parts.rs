//! The nodes of a tree in an array: the root at 1, the children of node k at 2k and 2k + 1, the leaves last.

use std::ops::Range;

/// The fewest nodes that make up a run of leaves, in a tree with `leaves` leaves.
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
