//! First fit, and best fit over gaps: each buffer, in a given order, at the lowest offset that is free during its live
//! range, or in the smallest gap that holds it.
//!
//! A gap is a maximal range of addresses that is free during the whole live range and has something placed above it.
//! With the best fit, the buffer lies at the bottom of the smallest gap that is large enough (ties: the lowest gap). If no
//! gap is, the buffer lies on top of everything that overlaps it in time.
//!
//! # References
//!
//! 1. D. E. Knuth, *The Art of Computer Programming*, vol. 1, section 2.5 (first fit and best fit for dynamic storage).
//! 2. M. R. Garey and D. S. Johnson, *Computers and Intractability*, 1979, problem SR2 (offline dynamic
//!    storage allocation).
//!
//! # Complexity
//!
//! First fit: O(n log^2 n) if plans are dense (see the module `occupancy`), as those of nets are. If holes stay open for
//! long, as with lifetimes drawn at random over the whole horizon, the time is multiplied by the number of holes below a
//! buffer. Best fit: O(n g log n) if a buffer has g sufficient gaps to compare. Dense plans have few.

use planlab_dsa::{Descriptor, Halt, Planner, Run};

use super::HONOURS;
use super::placer::{Rule, plan_in_order};
use crate::placement::Order;

/// The lowest free offset or the smallest sufficient gap, in an order; keys `first-fit/input`, `first-fit/size`, ..., and
/// `best-fit-gap/input`, `best-fit-gap/size`, ...
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange, Offset};
/// use planlab_solvers::placement::{Order, greedy::Fit};
///
/// let buffers = [(4, 0, 2), (8, 1, 3), (4, 2, 4)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let outcome = execute(&Fit::first_fit(Order::Size), &instance, Budget::default(), 0);
/// assert_eq!(outcome.best.ok_or("a plan")?.offsets(), [8, 0, 8].map(Offset::new));
/// let outcome = execute(&Fit::best_gap(Order::Start), &instance, Budget::default(), 0);
/// assert_eq!(outcome.best.ok_or("a plan")?.offsets(), [0, 4, 0].map(Offset::new));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    order: Order,
    rule: Rule,
}

impl Fit {
    /// First fit in an order.
    #[must_use]
    pub const fn first_fit(order: Order) -> Self {
        Self { order, rule: Rule::FirstFit }
    }

    /// Best fit over gaps in an order.
    #[must_use]
    pub const fn best_gap(order: Order) -> Self {
        Self { order, rule: Rule::BestFit }
    }
}

impl Planner for Fit {
    fn descriptor(&self) -> Descriptor {
        let (family, place, reference, complexity) = if self.rule == Rule::FirstFit {
            (
                "first-fit",
                "lowest free offset",
                "Knuth, The Art of Computer Programming 1, 2.5; Garey and Johnson 1979, SR2",
                "n log^2 n on dense plans",
            )
        } else {
            (
                "best-fit-gap",
                "smallest sufficient gap",
                "Knuth, The Art of Computer Programming 1, 2.5",
                "n g log n for g gaps to compare",
            )
        };
        Descriptor {
            key: format!("{family}/{}", self.order).into(),
            summary: format!("{place}, {}, ties by id", self.order.words()).into(),
            honours: HONOURS,
            reference,
            complexity,
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let order = self.order.sort_buffers(run.instance());
        plan_in_order(run, &order, self.rule)
    }
}
