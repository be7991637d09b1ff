//! A cell: one scheduler with its limits on one problem with one seed, and the planner that places its buffers.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

use planlab_dsa::Digest;
use planlab_graph::Scheduler as _;
use planlab_solvers::schedule::find_scheduler;

use super::saboteurs;
use crate::shell::quantity::as_nanoseconds;

/// Default wall time of a scheduler.
pub(crate) const WALL: Duration = Duration::from_secs(60);
/// Default wall time of the planner.
pub(crate) const PLANNER_WALL: Duration = Duration::from_secs(10);

/// The definition of a cell, without the problem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) scheduler: String,
    pub(crate) wall: Option<Duration>,
    pub(crate) memory: Option<u64>,
    pub(crate) work: Option<u64>,
    /// If set, the scheduler stops once an iteration takes at most this many seconds, and the planner once the offsets
    /// fit. Robustness is then not measured.
    pub(crate) target: Option<f64>,
    pub(crate) seed: u64,
    /// Threads that the scheduler may use; the planner has one.
    pub(crate) threads: usize,
    pub(crate) planner: String,
    pub(crate) planner_wall: Option<Duration>,
    pub(crate) repetition: u32,
}

impl Cell {
    /// The digest under which the cell's rows are kept. It does not depend on the workload's name or the repetition.
    pub(crate) fn key(&self, problem: &str) -> String {
        let mut parts = serde_json::json!({
            "schedule": planlab_results::schedule::SCHEDULE_SCHEMA,
            "problem": problem,
            "scheduler": self.scheduler,
            "version": self.version(),
            "wall_ns": self.wall.map(as_nanoseconds),
            "memory": self.memory,
            "work": self.work,
            "seed": self.seed,
            "planner": self.planner,
            "planner_wall_ns": self.planner_wall.map(as_nanoseconds),
            "target": self.target,
        });
        // Left out of older keys.
        if self.threads != 1 {
            parts["threads"] = self.threads.into();
        }
        Digest::of_bytes(parts.to_string().as_bytes()).to_string()
    }

    /// The digest of the scheduler's sources.
    pub(crate) fn version(&self) -> String {
        let is_saboteur = saboteurs::KEYS.contains(&self.scheduler.as_str());
        if is_saboteur { "saboteur" } else { planlab_solvers::SOURCE_DIGEST }.to_owned()
    }
}

/// The threads for a scheduler: 1 if it uses no more, else the given number, by default one for each core.
pub(crate) fn usable_threads(scheduler: &str, given: Option<NonZeroUsize>) -> usize {
    let uses_threads = find_scheduler(scheduler).is_some_and(|known| known.uses_threads());
    let threads = given.or_else(|| available_parallelism().ok()).filter(|_| uses_threads);
    threads.map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_depends_on_what_makes_the_cell_and_on_nothing_else() {
        let cell = Cell {
            scheduler: "swap-all".to_owned(),
            wall: Some(Duration::from_secs(10)),
            memory: None,
            work: None,
            target: None,
            seed: 0,
            threads: 1,
            planner: "portfolio".to_owned(),
            planner_wall: None,
            repetition: 0,
        };
        let key = cell.key("problem");
        assert_eq!(Cell { repetition: 3, ..cell.clone() }.key("problem"), key);
        let others = [
            Cell { scheduler: "swap-opt".to_owned(), ..cell.clone() },
            Cell { wall: None, ..cell.clone() },
            Cell { memory: Some(1), ..cell.clone() },
            Cell { work: Some(1), ..cell.clone() },
            Cell { target: Some(0.5), ..cell.clone() },
            Cell { seed: 1, ..cell.clone() },
            Cell { threads: 2, ..cell.clone() },
            Cell { planner: "best-fit".to_owned(), ..cell.clone() },
            Cell { planner_wall: Some(Duration::from_secs(1)), ..cell.clone() },
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(other.key("problem"), key, "{other:?}");
            assert!(others[..at].iter().all(|one| one.key("problem") != other.key("problem")), "{other:?}");
        }
        assert_ne!(cell.key("another"), key);
    }

    #[test]
    fn threads_are_for_schedulers_that_use_them() {
        let three = NonZeroUsize::new(3);
        assert_eq!(["joint", "local-search"].map(|key| usable_threads(key, three)), [3, 1]);
        assert!(usable_threads("joint", None) >= 1);
    }
}
