//! Greedy by size: the largest buffer first, in the smallest gap that holds it.
//!
//! The same plans as `best-fit-gap/size`: the published loop walks over the placed buffers by offset and
//! keeps the smallest gap so far that is large enough, the first of equals.
//!
//! # References
//!
//! 1. Y. Pisarchyk and J. Lee, *Efficient memory management for deep neural net inference*, 2020,
//!    arXiv:2001.03288, section 5.
//!
//! # Complexity
//!
//! O(n g log n) if a buffer has g sufficient gaps to compare; the published loop is quadratic.
//!
//! # Deviations from the paper
//!
//! Ties between sizes, which the paper leaves open, go to the lower id. Pins, alignment, pauses, arenas,
//! kept-apart pairs and in-place permissions are honoured.

use planlab_dsa::{Descriptor, Halt, Planner, Run};

use super::HONOURS;
use super::placer::{Rule, plan_in_order};
use crate::placement::Order;

/// Largest first, best fit; key `greedy-by-size`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GreedyBySize;

impl Planner for GreedyBySize {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "greedy-by-size".into(),
            summary: "smallest sufficient gap, largest first, ties by id".into(),
            honours: HONOURS,
            reference: "Pisarchyk and Lee 2020, arXiv:2001.03288",
            complexity: "n g log n for g gaps to compare",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = Order::Size.sort_buffers(run.instance());
        plan_in_order(run, &order, Rule::BestFit)
    }
}
