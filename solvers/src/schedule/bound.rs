//! A lower bound on the time of a schedule of classes that copies in after the forward pass: a linear relaxation.
//!
//! Each map is kept, swapped and recomputed in parts k + s + r = 1. At the end of the forward pass the kept parts are
//! on the device; the swapped parts come back after it. Recomputing a map adds at least the time c(X) of the functions
//! between it and the nearest maps with a class. Maps that share such functions share their time.
//!
//! ```text
//! min T   sum k |X|          <= capacity - base
//!         sum s |X| / rate   <= T - forward time
//!         sum r c(X)         <= T - time of all functions
//! ```
//!
//! At a given T, bytes that are neither kept nor swapped must be recomputed. So the program asks for the most bytes
//! that can be recomputed in the available time: a fractional knapsack, filled from the cheapest bytes. Both sides grow
//! with T, in straight pieces. So the least T lies on the first piece on which they meet, and no solver is needed.
//!
//! # Complexity
//!
//! O(n log n).
//!
//! # References
//!
//! 1. G. Dantzig: Discrete-variable extremum problems. Operations Research 5(2), 1957. doi:10.1287/opre.5.2.266. The
//!    fractional knapsack.

use planlab_graph::{ScheduleBound, ScheduleEvidence, ScheduleScope, simulate};

use super::class::Class;
use super::lab::Lab;

/// The bound; `None` if none of the maps that must leave can be recomputed or swapped, or if the program is infeasible.
#[must_use]
pub fn lp_bound(lab: &Lab<'_>) -> Option<ScheduleBound> {
    let problem = lab.problem();
    let (net, rate) = (&problem.net, problem.machine.copy_in);
    // A schedule that keeps everything takes the time of all functions, sums of gradients included.
    let least = simulate(&lab.keep_all(), None).ok()?.seconds;
    let forward: f64 = problem.times.forward().iter().sum();
    let total: f64 = lab.maps().map(|map| net.map(map).bytes.get() as f64).sum();
    let room = problem.capacity.get().saturating_sub(problem.base().get()) as f64;
    // Bytes that are neither kept nor swapped if T is `least`.
    let missing = total - room - rate * (least - forward);
    let mut pieces: Vec<(f64, f64)> = lab
        .least_recompute_seconds()
        .into_iter()
        .filter(|&(map, _)| lab.can_recompute(map))
        .map(|(map, seconds)| (seconds, net.map(map).bytes.get() as f64))
        .collect();
    pieces.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let seconds = least + extra_seconds(missing, rate, &pieces);
    Some(ScheduleBound { seconds, scope: ScheduleScope::Classes, evidence: ScheduleEvidence::Lp })
}

/// The least extra time in which `missing` bytes are copied at `rate`, or recomputed. `pieces` are seconds and bytes,
/// the cheapest bytes first.
fn extra_seconds(mut missing: f64, rate: f64, pieces: &[(f64, f64)]) -> f64 {
    let mut extra = 0.0;
    for &(seconds, bytes) in pieces {
        if missing <= 0.0 {
            return extra;
        }
        // While this piece is recomputed, copies continue.
        let settled = bytes + rate * seconds;
        if settled >= missing {
            return extra + seconds * missing / settled;
        }
        missing -= settled;
        extra += seconds;
    }
    extra + missing.max(0.0) / rate
}

impl Lab<'_> {
    /// The draft that keeps everything.
    fn keep_all(&self) -> planlab_graph::Schedule {
        self.draft_unbounded(&self.all(Class::Keep))
    }
}

#[cfg(test)]
mod tests {
    use super::extra_seconds;

    #[test]
    fn the_cheapest_bytes_are_recomputed_while_copies_run() {
        let pieces = [(1.0, 10.0), (4.0, 10.0)];
        assert_eq!(extra_seconds(-3.0, 2.0, &pieces), 0.0);
        assert_eq!(extra_seconds(6.0, 2.0, &pieces), 0.5);
        // 12 bytes in the first second, then 18 in 4 seconds.
        assert_eq!(extra_seconds(21.0, 2.0, &pieces), 3.0);
        assert_eq!(extra_seconds(34.0, 2.0, &pieces), 7.0);
    }
}
