//! A cell: one planner with its limits on one workload with one seed.

use std::num::NonZeroUsize;
use std::time::Duration;

use planlab_dsa::{Digest, Instance};
use serde::Serialize;

use super::{planners, saboteurs};
use crate::cli::LimitArgs;
use crate::inputs::{Hints, Source};
use crate::kinds::external;
use crate::shell::quantity::as_nanoseconds;

/// Default wall limit of a cell.
const DEFAULT_WALL: Duration = Duration::from_secs(10);

/// The definition of a cell, without the workload's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Cell {
    pub(crate) workload: String,
    pub(crate) planner: String,
    pub(crate) wall: Option<Duration>,
    pub(crate) memory: Option<u64>,
    pub(crate) work: Option<u64>,
    pub(crate) target: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    /// The digest of the planner's hints.
    pub(crate) hints: Option<Digest>,
    pub(crate) repetition: u32,
}

/// One trace, ready for cells.
pub(crate) struct Subject<'i> {
    pub(crate) source: &'i Source,
    pub(crate) instance: &'i Instance,
    pub(crate) digest: Digest,
    /// Offsets to start from, for the cells with hints.
    pub(crate) hints: Option<Hints>,
}

impl Cell {
    /// The cell of a trace with a planner, without limits that the planner does not honour.
    pub(crate) fn of(source: &Source, planner: &str, limits: &LimitArgs) -> Self {
        let honours = planners::honours(planner);
        // By default one thread for each core.
        let threads = limits.threads.or_else(|| std::thread::available_parallelism().ok());
        let threads = threads.map_or(1, NonZeroUsize::get);
        Self {
            workload: source.name.clone(),
            planner: planner.to_owned(),
            wall: Some(limits.time_limit.unwrap_or(DEFAULT_WALL)),
            memory: Some(limits.memory_limit),
            work: limits.work_limit.filter(|_| honours.work_limit),
            target: None,
            seed: limits.seed,
            threads: if honours.threads { threads } else { 1 },
            hints: None,
            repetition: 0,
        }
    }

    /// The digest under which the cell's rows are kept. It does not depend on the workload's name, the repetition or
    /// the order on the command line.
    pub(crate) fn key(&self, instance: Digest) -> String {
        let parts = serde_json::json!({
            "schema": planlab_results::SCHEMA,
            "instance": instance,
            "planner": self.planner,
            "version": self.planner_version(),
            "parameters": self.parameters(),
            "wall_ns": self.wall.map(as_nanoseconds),
            "memory": self.memory,
            "target": self.target,
            "seed": self.seed,
        });
        Digest::of_bytes(parts.to_string().as_bytes()).to_string()
    }

    /// The digest of the planner's sources.
    pub(crate) fn planner_version(&self) -> String {
        if saboteurs::KEYS.contains(&self.planner.as_str()) {
            return "saboteur".to_owned();
        }
        let external = external::entries().iter().find(|entry| entry.key == self.planner);
        external.map_or(planlab_solvers::SOURCE_DIGEST, external::Entry::version).to_owned()
    }

    /// Parameters besides the planner's key that differ from their default, as JSON.
    pub(crate) fn parameters(&self) -> String {
        let mut parameters = serde_json::Map::new();
        if self.threads != 1 {
            parameters.insert("threads".to_owned(), self.threads.into());
        }
        if let Some(work) = self.work {
            parameters.insert("work_limit".to_owned(), work.into());
        }
        if let Some(hints) = self.hints {
            parameters.insert("hints".to_owned(), hints.to_string().into());
        }
        serde_json::Value::Object(parameters).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_depends_on_what_makes_the_cell_and_on_nothing_else() {
        let cell = Cell {
            workload: "a".to_owned(),
            planner: "best-fit".to_owned(),
            wall: Some(Duration::from_secs(10)),
            memory: None,
            work: None,
            target: None,
            seed: 0,
            threads: 1,
            hints: None,
            repetition: 0,
        };
        let instance = Digest::of_bytes(b"instance");
        let key = cell.key(instance);
        let same = Cell { workload: "b".to_owned(), repetition: 3, ..cell.clone() };
        assert_eq!(same.key(instance), key);
        let others = [
            Cell { planner: "bump".to_owned(), ..cell.clone() },
            Cell { wall: None, ..cell.clone() },
            Cell { memory: Some(1), ..cell.clone() },
            Cell { work: Some(1), ..cell.clone() },
            Cell { work: Some(2), ..cell.clone() },
            Cell { target: Some(1), ..cell.clone() },
            Cell { seed: 1, ..cell.clone() },
            Cell { threads: 2, ..cell.clone() },
            Cell { hints: Some(Digest::of_bytes(b"hints")), ..cell.clone() },
            Cell { hints: Some(Digest::of_bytes(b"other hints")), ..cell.clone() },
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(other.key(instance), key, "{other:?}");
            assert!(others[..at].iter().all(|one| one.key(instance) != other.key(instance)), "{other:?}");
        }
        assert_ne!(cell.key(Digest::of_bytes(b"another")), key);
    }
}
