//! Pairs the cells of two sides.

use std::collections::BTreeMap;
use std::fmt;

use crate::rows::{Record, latest_builds};

/// The identity of a cell, independent of the build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct CellName {
    /// The planner with its parameters.
    pub label: String,
    /// The workload's key; side A's if both have the cell.
    pub workload: String,
    /// Digest of the instance.
    pub instance: String,
    /// Seed of the run.
    pub seed: u64,
    /// The given capacity in bytes.
    pub target_bytes: Option<u64>,
    /// Wall limit in nanoseconds.
    pub wall_limit_ns: Option<u64>,
    /// Memory limit in bytes.
    pub memory_limit_bytes: Option<u64>,
}

impl CellName {
    fn from_record(record: &Record) -> Self {
        Self {
            label: record.planner_label(),
            workload: record.workload.to_string(),
            instance: record.instance.clone(),
            seed: record.seed,
            target_bytes: record.target_bytes,
            wall_limit_ns: record.wall_limit_ns,
            memory_limit_bytes: record.memory_limit_bytes,
        }
    }
}

impl fmt::Display for CellName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.label, self.workload)?;
        if self.seed != 0 {
            write!(f, ", seed {}", self.seed)?;
        }
        match self.target_bytes {
            Some(bytes) => write!(f, ", capacity {bytes}"),
            None => Ok(()),
        }
    }
}

/// The rows of one cell on both sides, with at least one row on either.
pub(super) struct Pair<'r> {
    pub(super) name: CellName,
    pub(super) a: Vec<&'r Record>,
    pub(super) b: Vec<&'r Record>,
}

/// Without the workload's name: one content may have two.
type Problem = (String, String, u64, Option<u64>, Option<u64>);
/// Limits of wall time and memory.
type Limits = (Option<u64>, Option<u64>);
type Key = (Problem, Limits);
type Side<'r> = BTreeMap<Key, Vec<&'r Record>>;

fn pair_key(record: &Record) -> Key {
    let problem = (
        record.planner_label(),
        record.instance.clone(),
        record.seed,
        record.target_bytes,
        // Part of the parameters in recent rows, but not in old ones.
        record.work_limit,
    );
    (problem, (record.wall_limit_ns, record.memory_limit_bytes))
}

/// All cells of two sides.
pub(super) struct Pairing<'r> {
    pub(super) pairs: Vec<Pair<'r>>,
    pub(super) only_a: Vec<CellName>,
    pub(super) only_b: Vec<CellName>,
    /// Cells that differ only in their limits.
    pub(super) other_limits: Vec<CellName>,
}

impl<'r> Pairing<'r> {
    /// Pairs equal cells. With `across_limits`, also pairs cells that differ only in their limits, if the match is
    /// unique.
    pub(super) fn new(a: &'r [Record], b: &'r [Record], across_limits: bool) -> Self {
        let (mut a, mut b): (Side<'r>, Side<'r>) = (latest_builds(a, pair_key), latest_builds(b, pair_key));
        let equal: Vec<Key> = a.keys().filter(|key| b.contains_key(*key)).cloned().collect();
        let mut pairs: Vec<Pair<'r>> =
            equal.iter().filter_map(|key| pair_rows(a.remove(key)?, b.remove(key)?)).collect();
        let alike = alike_keys(&a, &b);
        let mut other_limits = Vec::new();
        for (of_a, of_b) in alike {
            let Some(pair) = a.remove(&of_a).zip(b.remove(&of_b)).and_then(|(a, b)| pair_rows(a, b)) else {
                continue;
            };
            other_limits.push(pair.name.clone());
            if across_limits {
                pairs.push(pair);
            }
        }
        pairs.sort_by(|x, y| x.name.cmp(&y.name));
        Self { pairs, only_a: cell_names(a), only_b: cell_names(b), other_limits }
    }
}

impl Pairing<'_> {
    /// Whether either side began before the other ended.
    pub(super) fn in_turns(&self) -> bool {
        let a = start_span(self.pairs.iter().flat_map(|pair| &pair.a));
        let b = start_span(self.pairs.iter().flat_map(|pair| &pair.b));
        a.0 <= b.1 && b.0 <= a.1
    }
}

/// The start times of the first and the last row.
fn start_span<'p, 'r: 'p>(rows: impl Iterator<Item = &'p &'r Record>) -> (u64, u64) {
    rows.fold((u64::MAX, 0), |(first, last), row| (first.min(row.started_ns), last.max(row.started_ns)))
}

fn pair_rows<'r>(a: Vec<&'r Record>, b: Vec<&'r Record>) -> Option<Pair<'r>> {
    Some(Pair { name: CellName::from_record(a.first()?), a, b })
}

fn cell_names(side: Side<'_>) -> Vec<CellName> {
    let mut names: Vec<CellName> =
        side.into_values().filter_map(|rows| rows.first().map(|row| CellName::from_record(row))).collect();
    names.sort();
    names
}

/// Keys of cells with the same problem but different limits, if each side has only one such cell.
fn alike_keys(a: &Side<'_>, b: &Side<'_>) -> Vec<(Key, Key)> {
    let alone = |side: &Side<'_>| {
        let mut limits: BTreeMap<Problem, Vec<Limits>> = BTreeMap::new();
        for (problem, own) in side.keys() {
            limits.entry(problem.clone()).or_default().push(*own);
        }
        limits.retain(|_, limits| limits.len() == 1);
        limits
    };
    let other = alone(b);
    let both = alone(a).into_iter().filter_map(|(problem, of_a)| {
        let of_b = other.get(&problem)?;
        Some(((problem.clone(), of_a[0]), (problem, of_b[0])))
    });
    both.collect()
}
