//! One row of a scheduler's result: the training of a net on a machine with limited memory.

use planlab_dsa::Evidence;
use serde::{Deserialize, Serialize};

use super::row::{Row, RowKind, ShardedKind, run_table};
use crate::columns::numbers;
use crate::show::format::as_real;

/// The version of the row; raised when a column changes its meaning.
pub const SCHEDULE_SCHEMA: u32 = 1;

/// A point of a scheduler's trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Improvement {
    /// Nanoseconds since the start of the run.
    pub elapsed_ns: u64,
    /// Simulated iterations until then.
    pub work: u64,
    /// Time of an iteration with the best schedule, in nanoseconds.
    pub iteration_ns: u64,
}

/// The times of a schedule if operations deviate from their assumed times: each takes up to `percent` more or less,
/// uniformly at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// The largest deviation in percent.
    pub percent: u64,
    /// The number of draws.
    pub draws: u64,
    /// Median time of an iteration over the draws, in nanoseconds.
    pub median_ns: u64,
    /// Time of the slowest iteration in nanoseconds.
    pub worst_ns: u64,
    /// Median time of the passes alone with the same draws, in nanoseconds: a lower bound for every schedule.
    pub compute_ns: u64,
}

numbers! {
    Improvement { elapsed_ns, work, iteration_ns }
    Disturbance { percent, draws, median_ns, worst_ns, compute_ns }
}

/// A row of a scheduler on a problem.
pub type ScheduleRow = Row<SchedulerRun>;

run_table! {
    /// A scheduler on a problem.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct SchedulerRun {
        ..workload,
        /// Digest of the problem: the store keeps it as `problems/<digest>.jsonl`.
        pub problem: String,
        /// Images or sequences per iteration.
        pub batch: u64,
        /// The number of functions in the net.
        pub functions: u64,
        /// The number of feature maps that a backward pass reads: each is kept, swapped or recomputed.
        pub maps: u64,
        /// The machine's key.
        pub machine: String,
        /// Digest of the machine without its memory: different machine files may share one key.
        pub rates_digest: Option<String> = None,
        /// The source of the passes' times: `roofline` or `given`.
        pub times: Option<String> = None,
        /// Bytes per second from the device to the host.
        pub copy_out: f64,
        /// Bytes per second from the host to the device.
        pub copy_in: f64,
        /// Memory available to the schedule in bytes, base included.
        pub capacity: u64,
        /// Bytes that are always in use: parameters and workspace.
        pub base: u64,
        /// Memory in bytes if every feature map is kept, base included.
        pub in_core_bytes: Option<u64> = None,
        /// A proven bound on the memory of every schedule in bytes, base included. `infeasible` if it is above the capacity.
        pub least_memory: Option<u64> = None,
        /// The evidence for that bound: `compute` for what passes and sums take, or `search`.
        pub least_memory_evidence: Option<String> = None,
        /// Time of an iteration without waiting in nanoseconds: every pass once.
        pub compute_ns: u64,
        /// Scheduler key.
        pub scheduler: String,
        /// Digest of the scheduler's sources.
        pub scheduler_version: String,
        ..limits,
        /// Threads that the scheduler may use.
        pub threads: Option<u64> = None,
        ..ending,
        /// Time of an iteration with the best valid schedule, in nanoseconds.
        pub iteration_ns: Option<u64>,
        /// A proven lower bound on the time of schedules in `bound_scope`, in nanoseconds.
        pub bound_ns: u64,
        /// The evidence for the bound: `compute`, `lp` or `search`.
        pub bound_evidence: String,
        /// The schedules for which the bound holds: `any`. Older versions had bounds on `classes`, those that keep, swap
        /// or recompute each map.
        pub bound_scope: String,
        /// Feature maps that stay on the device.
        pub kept: Option<u64>,
        /// Feature maps that are copied to the host and back.
        pub swapped: Option<u64>,
        /// Feature maps that are dropped and computed again.
        pub recomputed: Option<u64>,
        /// Bytes that are copied to the host.
        pub copied_out: Option<u64>,
        /// Time spent recomputing functions in nanoseconds.
        pub recompute_ns: Option<u64>,
        /// The most bytes in use at once, base included.
        pub live_peak: Option<u64>,
        /// Memory in bytes for the offsets of an online best fit, base included.
        pub best_fit_height: Option<u64>,
        /// Memory in bytes for the best offsets, base included.
        pub height: Option<u64>,
        /// A proven bound on `height` in bytes.
        pub height_bound: Option<u64>,
        /// The evidence for that bound.
        pub height_evidence: Evidence,
        /// The planner that placed the buffers.
        pub planner: String,
        /// The wall limit of its run in nanoseconds.
        pub planner_wall_ns: Option<u64>,
        /// How the planner ended, `feasible` for example; empty if no planner was run. Without a plan from the planner,
        /// the height is that of the online best fit.
        #[serde(default)]
        pub planner_status: String,
        /// The planner's reason, if any.
        #[serde(default)]
        pub planner_reason: String,
        /// The schedule's times under deviations.
        pub disturbed: Vec<Disturbance>,
        /// Time of the run in nanoseconds, simulations and validations included.
        pub elapsed_ns: Option<u64>,
        /// CPU time of the child in nanoseconds.
        pub cpu_ns: Option<u64>,
        /// The most resident memory of the child in bytes.
        pub peak_rss_bytes: Option<u64>,
        /// The number of simulated iterations.
        pub work: u64,
        /// The best schedule over time.
        pub trajectory: Vec<Improvement>,
        /// Digest of the placement instance of the schedule's buffers.
        pub instance: Option<String>,
        /// Digest of the plan of their offsets.
        pub plan: Option<String>,
        /// Digest of the schedule: the store keeps it as `events/<digest>.jsonl`.
        pub schedule: Option<String>,
    }
}

impl ScheduleRow {
    /// Whether the buffers fit with their offsets; `None` without a schedule, or without a plan for it.
    #[must_use]
    pub fn fits_memory(&self) -> Option<bool> {
        Some(self.height? <= self.capacity)
    }

    /// Images or sequences per second; `None` without a schedule.
    #[must_use]
    pub fn images_per_second(&self) -> Option<f64> {
        self.iteration_ns.map(|ns| per_second(self.batch, ns))
    }

    /// Images per second without any waiting.
    #[must_use]
    pub fn images_per_second_at_most(&self) -> f64 {
        per_second(self.batch, self.compute_ns)
    }

    /// The [gap](time_gap) between the schedule and the row's own bound; `None` without one of them.
    #[must_use]
    pub fn gap(&self) -> Option<f64> {
        time_gap(self.iteration_ns?, self.bound_ns)
    }

    /// The slowdown compared with an iteration without waiting: 1 - speed / highest speed.
    #[must_use]
    pub fn speed_loss(&self) -> Option<f64> {
        let iteration = as_real(self.iteration_ns?);
        (iteration > 0.0).then(|| 1.0 - as_real(self.compute_ns) / iteration)
    }
}

/// (iteration - bound) / bound, and 0 if the two differ by rounding alone; below 0 if a valid schedule of that time refutes
/// the bound. `None` if the bound is 0. Both are in nanoseconds.
#[must_use]
pub fn time_gap(iteration_ns: u64, bound_ns: u64) -> Option<f64> {
    let difference = iteration_ns.abs_diff(bound_ns);
    let share = as_real(difference) / as_real(bound_ns);
    // Both are rounded to nanoseconds.
    let gap = if difference <= 1 || share <= ROUNDING {
        0.0
    } else if iteration_ns < bound_ns {
        -share
    } else {
        share
    };
    (bound_ns > 0).then_some(gap)
}

fn per_second(batch: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { as_real(batch) * 1e9 / as_real(ns) }
}

/// The relative difference of two times below which they count as equal.
const ROUNDING: f64 = 1e-9;

impl RowKind for SchedulerRun {
    const KNOWN: u32 = SCHEDULE_SCHEMA;
    const NAME: &'static str = "schedules";
    const JOURNAL: &'static str = "schedules.jsonl";

    fn worth(&self) -> u8 {
        self.status.row_worth()
    }
}

impl ShardedKind for SchedulerRun {
    const SHARDS: &'static str = "schedules";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_is_0_within_rounding_alone() {
        let second = 1_000_000_000;
        assert_eq!(time_gap(5 * second, 4 * second), Some(0.25));
        assert_eq!(time_gap(3 * second, 4 * second), Some(-0.25), "a refuted bound has no gap of 0");
        for rounded in [4 * second - 4, 4 * second - 1, 4 * second, 4 * second + 1, 4 * second + 4] {
            assert_eq!(time_gap(rounded, 4 * second), Some(0.0), "{rounded}");
        }
        assert!(time_gap(4 * second - 5, 4 * second) < Some(0.0) && time_gap(98, 100) < Some(0.0));
        assert_eq!(time_gap(second, 0), None);
    }
}
