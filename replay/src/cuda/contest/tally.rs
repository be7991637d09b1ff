//! The results of a contender's turns.

use planlab_dsa::performance::{CallTime, End, Performance};

use crate::looks::are_mostly_clock;

/// The results of a contender's turns so far.
#[derive(Default)]
pub(super) struct Tally {
    /// All samples in order; for figures that differ between rounds, the largest.
    pub(super) performance: Performance,
    /// Picoseconds per request and per free, one entry for each batch.
    pub(super) calls: [Vec<u64>; 2],
    /// The number of runs in `calls`, each between two looks at the clock, and their total nanoseconds.
    pub(super) timed_runs: [(u64, u64); 2],
    /// Free-list entries looked at during the last round's timed propagations, and the number of these propagations.
    pub(super) search_steps: (u64, u64),
}

impl Tally {
    pub(super) fn new() -> Self {
        let performance = Performance {
            is_steady: true,
            physical_peak: Some(0),
            refusals: Some(0),
            ..Performance::default()
        };
        Self { performance, ..Self::default() }
    }

    pub(super) fn performance(&self) -> Performance {
        let [alloc, free] = [0, 1].map(|of: usize| {
            let (runs, all_ns) = self.timed_runs[of];
            if are_mostly_clock(runs, all_ns) { None } else { CallTime::from_times(self.calls[of].clone()) }
        });
        let (steps, propagations) = self.search_steps;
        let is_complete = self.performance.status == End::Complete;
        Performance {
            is_steady: self.performance.is_steady && is_complete,
            alloc,
            free,
            search_steps: steps / propagations.max(1),
            ..self.performance.clone()
        }
    }

    pub(super) fn add_refusals(&mut self, count: u64) {
        self.performance.refusals = self.performance.refusals.map(|known| known + count);
    }
}
