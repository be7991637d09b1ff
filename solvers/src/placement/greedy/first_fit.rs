//! First fit: each buffer, in a given order, at the lowest offset that is free during its live range.
//!
//! # References
//!
//! 1. D. E. Knuth, *The Art of Computer Programming*, vol. 1, section 2.5 (first fit for dynamic storage).
//! 2. M. R. Garey and D. S. Johnson, *Computers and Intractability*, 1979, problem SR2 (offline dynamic
//!    storage allocation).
//!
//! # Complexity
//!
//! O(n log^2 n) if plans are dense (see the module `occupancy`), as those of nets are. If holes stay open for long, as
//! with lifetimes drawn at random over the whole horizon, the time is multiplied by the number of holes below a buffer.

use planlab_dsa::{Descriptor, Halt, Planner, Run};

use super::HONOURS;
use super::placer::{Rule, plan_in_order};
use crate::placement::Order;

/// The lowest free offset, in an order; keys `first-fit/input`, `first-fit/size`, ...
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange, Offset};
/// use planlab_solvers::placement::{Order, greedy::FirstFit};
///
/// let buffers = [(4, 0, 2), (8, 1, 3), (4, 2, 4)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let outcome = execute(&FirstFit::new(Order::Size), &instance, Budget::default(), 0);
/// assert_eq!(outcome.best.ok_or("a plan")?.offsets(), [8, 0, 8].map(Offset::new));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FirstFit {
    order: Order,
}

impl FirstFit {
    /// First fit in an order.
    #[must_use]
    pub const fn new(order: Order) -> Self {
        Self { order }
    }
}

impl Planner for FirstFit {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: format!("first-fit/{}", self.order).into(),
            summary: format!("lowest free offset, {}, ties by id", self.order.words()).into(),
            honours: HONOURS,
            reference: "Knuth, The Art of Computer Programming 1, 2.5; Garey and Johnson 1979, SR2",
            complexity: "n log^2 n on dense plans",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = self.order.of(run.instance());
        plan_in_order(run, &order, Rule::FirstFit)
    }
}
