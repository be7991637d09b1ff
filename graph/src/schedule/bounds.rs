//! Bounds on the time of an iteration, each with its scope and its evidence.

use serde::{Deserialize, Serialize};

use crate::schedule::problem::SchedulingProblem;
use crate::schedule::scheduler::Verified;
use crate::schedule::training_net::FunctionKind;

/// Relative difference below which two times count as equal: sums of seconds in another order.
const SAME: f64 = 1e-9;

/// The schedules that a bound covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleScope {
    /// All schedules.
    Any,
    /// Schedules that copy nothing in during the forward pass. At its end, the device contains only inputs of the net
    /// and maps that some backward pass reads: each such map is kept, swapped or recomputed.
    Classes,
}

/// How a bound was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleEvidence {
    /// Every pass of every function runs once.
    Compute,
    /// A linear relaxation of the choice to keep, swap or recompute.
    Lp,
}

/// A proven lower bound on the time of every schedule in the scope.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleBound {
    /// Seconds of one iteration.
    pub seconds: f64,
    /// The schedules that it covers.
    pub scope: ScheduleScope,
    /// How it was obtained.
    pub evidence: ScheduleEvidence,
}

impl ScheduleScope {
    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Classes => "classes",
        }
    }
}

impl ScheduleEvidence {
    /// The name in files and on screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Lp => "lp",
        }
    }
}

impl ScheduleBound {
    /// Whether a schedule refutes the bound.
    #[must_use]
    pub fn is_refuted_by(&self, schedule: &Verified) -> bool {
        self.scope <= schedule.scope() && schedule.seconds() < self.seconds * (1.0 - SAME)
    }

    /// Whether the bound proves that no schedule is faster than this one.
    #[must_use]
    pub fn proves(&self, schedule: &Verified) -> bool {
        // Only a bound on all schedules proves that none is faster.
        self.scope == ScheduleScope::Any && schedule.seconds() <= self.seconds * (1.0 + SAME)
    }

    /// The best of these bounds that covers a schedule; without a schedule, the best that covers every schedule.
    #[must_use]
    pub fn best_of(bounds: &[Self], schedule: Option<&Verified>) -> Option<Self> {
        let scope = schedule.map_or(ScheduleScope::Any, Verified::scope);
        let holds = bounds.iter().filter(|bound| bound.scope <= scope);
        holds.copied().max_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }
}

/// The time of every pass of every function, once, and of every sum of gradients: one sum fewer than a map has uses. A
/// lower bound for every schedule.
#[must_use]
pub fn compute_bound(problem: &SchedulingProblem) -> ScheduleBound {
    let (net, times) = (&problem.net, &problem.times);
    let mut uses = vec![0_u32; net.maps().len()];
    net.functions().iter().flat_map(|function| &function.inputs).for_each(|map| uses[map.index()] += 1);
    let passes = net.function_ids().map(|id| {
        let function = net.function(id);
        let passes_on = function.kind == FunctionKind::Add && uses[function.output.index()] > 0;
        let backward = if passes_on { 0.0 } else { times.backward()[id.index()] };
        times.forward()[id.index()] + backward
    });
    let sums = net
        .map_ids()
        .filter(|&map| net.has_gradient(map))
        .map(|map| f64::from(uses[map.index()].saturating_sub(1)) * times.accumulate()[map.index()]);
    let seconds = passes.chain(sums).sum();
    ScheduleBound { seconds, scope: ScheduleScope::Any, evidence: ScheduleEvidence::Compute }
}
