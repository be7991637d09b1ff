//! Exact search as a planner.

use planlab_dsa::{Descriptor, Guarantee, Halt, Honours, Planner, Run, Scope};

use super::hand_overs;
use super::minimise::{Task, look_at_capacity, minimise_height};
use crate::arenas::{has_arenas, plan_each_arena};
use crate::bounds::{self, Effort};
use crate::placement::Order;
use crate::placement::greedy::{Fit, HONOURS};
use crate::placement::skyline::BestFit;
use crate::placement::start_from_hints::offer_hints;

/// Branch and bound by [lowest offsets](super); has both bounds at any time.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::placement::exact::Exact;
///
/// // A load of 20, but no plan lower than 21.
/// let rows = [
///     (11, 0, 3), (6, 6, 8), (6, 1, 5), (3, 1, 4), (4, 3, 6), (7, 5, 7), (7, 3, 7), (12, 7, 8),
/// ];
/// let buffer = |(size, start, end)| Some(Buffer::new(Bytes::new(size), LiveRange::new(start, end).ok()?));
/// let instance = Instance::from_buffers(rows.into_iter().filter_map(buffer).collect())?;
/// let outcome = execute(&Exact, &instance, Budget::default(), 0);
/// assert_eq!(outcome.height(), Some(Bytes::new(21)));
/// assert!(outcome.is_optimal());
/// # Ok::<(), planlab_dsa::InstanceError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact;

/// The orders whose first fit gives the start, after the quicker best fit.
const START: [Order; 4] = [Order::Size, Order::Width, Order::Area, Order::Load];

impl Planner for Exact {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "exact".into(),
            summary: "branch and bound by lowest offsets, with proofs; precedences where hand-overs or windows ask for it".into(),
            guarantee: Guarantee::Exact,
            honours: Honours { hint: true, threads: true, ..HONOURS },
            randomized: true,
            reference: "M. D. Moffitt, MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning, ASPLOS 2023",
            complexity: "exponential; n log n + n times sections a node",
            practical: Some(2_000),
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        offer_hints(run)?;
        look_at_capacity(run)?;
        if BestFit.descriptor().honours.first_refused_feature(run.instance()).is_none() {
            BestFit.plan(run)?;
        }
        for order in START {
            Fit::first_fit(order).plan(run)?;
        }
        search_from_incumbent(run)
    }
}

/// Searches from the run's incumbent.
pub(crate) fn search_from_incumbent(run: &mut Run<'_>) -> Result<(), Halt> {
    bounds::raise_bounds(run, Effort::Quick)?;
    let hands_over = run.scope() == Scope::Any && !run.instance().in_place().is_empty();
    match Task::new(run) {
        Some(task) if !hands_over => minimise_height(run, &task),
        _ => hand_overs::minimise_hand_overs(run),
    }
}
