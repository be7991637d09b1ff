//! Best fit over gaps: each buffer, in a given order, in the smallest gap that holds it.
//!
//! A gap is a maximal range of addresses that is free during the whole live range and has something placed above it.
//! The buffer lies at the bottom of the smallest gap that is large enough (ties: the lowest gap). If no gap is, the
//! buffer lies on top of everything that overlaps it in time.
//!
//! # References
//!
//! 1. D. E. Knuth, *The Art of Computer Programming*, vol. 1, section 2.5 (best fit for dynamic storage).
//!
//! # Complexity
//!
//! O(n g log n) if a buffer has g sufficient gaps to compare. Dense plans have few.

use planlab_dsa::{Descriptor, Halt, Planner, Run};

use super::HONOURS;
use super::placer::{Rule, plan_in_order};
use crate::placement::Order;

/// The smallest sufficient gap, in an order; keys `best-fit-gap/input`, `best-fit-gap/size`, ...
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange, Offset};
/// use planlab_solvers::placement::{Order, greedy::BestFitGap};
///
/// let buffers = [(4, 0, 2), (8, 1, 3), (4, 2, 4)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let outcome = execute(&BestFitGap::new(Order::Start), &instance, Budget::default(), 0);
/// assert_eq!(outcome.best.ok_or("a plan")?.offsets(), [0, 4, 0].map(Offset::new));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BestFitGap {
    order: Order,
}

impl BestFitGap {
    /// Best fit over gaps in an order.
    #[must_use]
    pub const fn new(order: Order) -> Self {
        Self { order }
    }
}

impl Planner for BestFitGap {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: format!("best-fit-gap/{}", self.order).into(),
            summary: format!("smallest sufficient gap, {}, ties by id", self.order.words()).into(),
            honours: HONOURS,
            reference: "Knuth, The Art of Computer Programming 1, 2.5",
            complexity: "n g log n for g gaps to compare",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = self.order.of(run.instance());
        plan_in_order(run, &order, Rule::BestFit)
    }
}
