//! Groups schedule rows by the question they answer: which net, at which sizes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use planlab_results::schedule::ScheduleRow;

use crate::data::rows::group_by;

/// A training net: its key without the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Net {
    /// The name: `resnet50`.
    pub(crate) name: String,
    /// Tokens of a sequence, if the key contains them.
    pub(crate) sequence: Option<u64>,
    /// Height and width of an image, if the key contains them.
    pub(crate) input: Option<u64>,
    /// The workspace in the key: `8m`, `x20`.
    pub(crate) workspace: Option<String>,
}

impl Net {
    /// `model/resnet50/train/b512/i448` is `resnet50` with images of 448. If the key is not that of a model, its
    /// remainder is the name.
    pub(crate) fn from_workload(workload: &str) -> Self {
        let number = |part: &str, letter: char| -> Option<u64> {
            let digits = part.strip_prefix(letter)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let model = workload.strip_prefix("model/");
        let mut net = Self { name: String::new(), sequence: None, input: None, workspace: None };
        let mut name: Vec<&str> = Vec::new();
        for part in model.unwrap_or(workload).split('/') {
            if part == "train" || number(part, 'b').is_some() {
                continue;
            }
            let is_said = !name.is_empty() && model.is_some();
            match (number(part, 's'), number(part, 'i'), part.strip_prefix("ws")) {
                (Some(sequence), _, _) if is_said => net.sequence = Some(sequence),
                (_, Some(input), _) if is_said => net.input = Some(input),
                (_, _, Some(workspace)) if is_said => net.workspace = Some(workspace.to_owned()),
                _ => name.push(part),
            }
        }
        net.name = name.join("/");
        net
    }
}

/// The parts of a case's name on pages: net, sequence, workspace, machine, link to the host and back, capacity. Rates
/// are positive, so their bits sort in the same order as the rates.
pub(crate) type Shown = (String, Option<u64>, Option<String>, String, u64, u64, u64);

pub(crate) fn shown_problem(row: &ScheduleRow) -> Shown {
    let Net { name, sequence, workspace, .. } = Net::from_workload(&row.workload);
    let (out, back) = (row.copy_out.to_bits(), row.copy_in.to_bits());
    (name, sequence, workspace, row.machine.clone(), out, back, row.capacity)
}

/// Further parts of a question, which few names contain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variant {
    /// The number of later problems of the same size; 0 for the latest.
    pub(crate) age: usize,
    /// Digest of the machine without its memory; older rows lack it.
    pub(crate) rates: Option<String>,
    /// The source of the times; older rows lack it.
    pub(crate) times: Option<String>,
    /// The planner, which decides whether offsets fit.
    pub(crate) planner: String,
}

/// Where the times of a problem come from: the digest of the machine without its memory, and their source. Older rows lack
/// both.
pub(crate) type Origin = (Option<String>, Option<String>);

impl Variant {
    pub(crate) fn origin(&self) -> Origin {
        (self.rates.clone(), self.times.clone())
    }
}

/// Items by origin. If all items that have one agree, the others are assumed to be of it too.
pub(crate) fn group_by_origin<T>(
    items: impl IntoIterator<Item = T>,
    origin: impl Fn(&T) -> Origin,
) -> BTreeMap<Origin, Vec<T>> {
    let items: Vec<T> = items.into_iter().collect();
    let known: BTreeSet<Origin> = items.iter().map(&origin).filter(|of| of.0.is_some()).collect();
    let only = known.first().filter(|_| known.len() == 1);
    group_by(items, |item| {
        let own = origin(item);
        only.filter(|_| own.0.is_none()).cloned().unwrap_or(own)
    })
}

/// The rows of one name by variant. At one size, all rows of a variant have the same problem.
pub(crate) fn group_by_variant<'r>(rows: &[&'r ScheduleRow]) -> BTreeMap<Variant, Vec<&'r ScheduleRow>> {
    let origin = |row: &&ScheduleRow| (row.rates_digest.clone(), row.times.clone());
    let mut aged: BTreeMap<Variant, Vec<&ScheduleRow>> = BTreeMap::new();
    for ((rates, times), rows) in group_by_origin(rows.iter().copied(), origin) {
        for (planner, rows) in group_by(rows, |row| row.planner.clone()) {
            let variant = Variant { age: 0, rates: rates.clone(), times: times.clone(), planner };
            let ages = problem_ages(&rows);
            aged.extend(group_by(rows, |row| {
                let age = ages[&(problem_size(row), row.problem.as_str())];
                Variant { age, ..variant.clone() }
            }));
        }
    }
    aged
}

type Size = (u64, Option<u64>);

/// Batch and input.
fn problem_size(row: &ScheduleRow) -> Size {
    (row.batch, Net::from_workload(&row.workload).input)
}

/// For each problem, the number of later ones of the same size.
fn problem_ages<'r>(rows: &[&'r ScheduleRow]) -> BTreeMap<(Size, &'r str), usize> {
    let mut sizes: BTreeMap<Size, BTreeMap<&str, u64>> = BTreeMap::new();
    for row in rows {
        let last = sizes.entry(problem_size(row)).or_default().entry(row.problem.as_str()).or_default();
        *last = row.started_ns.max(*last);
    }
    let mut ages = BTreeMap::new();
    for (size, problems) in sizes {
        let mut problems: Vec<(&str, u64)> = problems.into_iter().collect();
        problems.sort_by_key(|&(problem, last)| (Reverse(last), problem));
        ages.extend(problems.into_iter().enumerate().map(|(age, (problem, _))| ((size, problem), age)));
    }
    ages
}

/// Which size varies between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sweep {
    /// The batch, with inputs of this size; `None` for the net's own input size.
    Batch { input: Option<u64> },
    /// The size of the input, at this batch.
    Input { batch: u64 },
}

impl Sweep {
    /// The size of a row that varies.
    pub(crate) fn varying_size(self, row: &ScheduleRow) -> u64 {
        match self {
            Self::Batch { .. } => row.batch,
            Self::Input { .. } => Net::from_workload(&row.workload).input.unwrap_or_default(),
        }
    }
}

/// The rows of a variant by the size that varies. If both batches and inputs vary, the one with fewer values is held
/// constant.
pub(crate) fn group_by_sweep<'r>(rows: &[&'r ScheduleRow]) -> BTreeMap<Sweep, Vec<&'r ScheduleRow>> {
    let sized = || rows.iter().map(|row| problem_size(row)).filter(|(_, input)| input.is_some());
    let batches: BTreeSet<u64> = sized().map(|(batch, _)| batch).collect();
    let inputs: BTreeSet<Option<u64>> = sized().map(|(_, input)| input).collect();
    let is_by_input = batches.len() == 1 || inputs.len() > batches.len();
    group_by(rows.iter().copied(), |row| match problem_size(row) {
        (batch, Some(_)) if is_by_input => Sweep::Input { batch },
        (_, input) => Sweep::Batch { input },
    })
}

/// The limits of a run, to compare how wide they are. A run whose limits are all at least as wide as another's never
/// compares as less.
pub(crate) fn limit_width(row: &ScheduleRow) -> [u64; 4] {
    [row.work_limit, row.wall_limit_ns, row.memory_limit_bytes, row.planner_wall_ns]
        .map(|limit| limit.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_net_is_its_workload_without_the_sizes() {
        let names = ["model/resnet50/train/b512", "mine.jsonl/b3", "b/bx", "net/s3/train/b1/i9"];
        let nets = names.map(Net::from_workload);
        let named = ["resnet50", "mine.jsonl", "b/bx", "net/s3/i9"];
        assert_eq!(nets.map(|net| (net.name, net.input)), named.map(|name| (name.to_owned(), None)));
        let net = Net::from_workload("model/bert-base/train/b8/s128/i64/wsx0.05");
        assert_eq!((net.name.as_str(), net.sequence, net.input), ("bert-base", Some(128), Some(64)));
        assert_eq!(net.workspace.as_deref(), Some("x0.05"));
        assert_eq!(Net::from_workload("model/s9/train/b1").name, "s9", "a net may be called so");
    }
}
