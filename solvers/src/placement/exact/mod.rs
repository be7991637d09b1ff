//! Exact search: the lowest plan, and the proof that no plan is lower; key `exact`.
//!
//! | file | what it does |
//! |---|---|
//! | `minimise.rs` | restarts of the search at one capacity (`feasibility/`) between bound and incumbent, on every thread |
//! | `hand_overs.rs`, `merge.rs` | larger instances with in-place permissions: some are decided, the rest is searched, again and again |
//! | `precedence.rs` | small instances with hand-overs or windows: branches on which of two lies below |
//!
//! While minimising, a plan lowers the incumbent and a refuted capacity raises the bound; both remain when the run
//! ends. With one thread, equal seeds and work limits give equal plans.
//!
//! # References
//!
//! 1. M. D. Moffitt, *MiniMalloc: A lightweight memory allocator for hardware-accelerated machine
//!    learning*, ASPLOS 2023, doi:10.1145/3623278.3624752 (placement at the lowest offset in a canonical
//!    order, section bounds, decomposition, three static orders in rounds).
//! 2. J. R. Jackson, *Scheduling a production line to minimize maximum tardiness*, UCLA 1955 (the bound
//!    from release dates, here offsets).
//! 3. M. Luby, A. Sinclair and D. Zuckerman, *Optimal speedup of Las Vegas algorithms*, Information
//!    Processing Letters 47, 1993, doi:10.1016/0020-0190(93)90029-9 (the lengths of restarts).
//!
//! # Complexity
//!
//! Exponential. A node takes O(k log k + s) for k unplaced buffers that touch s sections in all.
//!
//! # Deviations from the paper
//!
//! From MiniMalloc: a refuted sibling leaves a *raised* lowest offset behind, not only a place in an order, and
//! everything that has to rest on it rises too. A section is checked against every offset, not its floor alone. Refuted
//! states are kept. Restarts blur the orders, and ranks are computed again when the problem splits. A capacity is only
//! one of many that a minimisation tries.

mod hand_overs;
mod merge;
pub(crate) mod minimise;
mod precedence;

#[cfg(test)]
mod certificate_tests;
#[cfg(test)]
mod tests;

pub use crate::certificate::{BadStep, Certificate, CertificateError, Step, StepFault};
pub use crate::feasibility::{Refutation, certify};

use planlab_dsa::{Descriptor, Guarantee, Halt, Honours, Planner, Run, Scope};

use self::minimise::{Task, look_at_capacity, minimise_height};
use crate::arenas::{has_arenas, plan_each_arena};
use crate::bounds::{self, Effort};
use crate::placement::Order;
use crate::placement::greedy::{Fit, HONOURS};
use crate::placement::skyline::BestFit;
use crate::placement::start_from_hints::offer_hints;

/// Branch and bound by [lowest offsets](self); has both bounds at any time.
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
