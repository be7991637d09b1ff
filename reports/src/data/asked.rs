//! What rows of schedules were asked for: which net, at which sizes, and which rows answer the same question.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use planlab_results::schedule::ScheduleRow;

/// A training net by its key, without its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Net {
    /// `resnet50`.
    pub(crate) name: String,
    /// Tokens of a sequence, where the key has them.
    pub(crate) sequence: Option<u64>,
    /// Height and width of an image, where the key has them.
    pub(crate) input: Option<u64>,
    /// As the key has it: `8m`, `x20`.
    pub(crate) workspace: Option<String>,
}

impl Net {
    /// `model/resnet50/train/b512/i448` is `resnet50` with images of 448. Of what is no key of a model the rest is the name.
    pub(crate) fn of(workload: &str) -> Self {
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

/// What a page names a case by: net, sequence, workspace, machine, link to the host and back, capacity. Rates are positive, so
/// that their bits are in their order.
pub(crate) type Shown = (String, Option<u64>, Option<String>, String, u64, u64, u64);

pub(crate) fn shown(row: &ScheduleRow) -> Shown {
    let Net { name, sequence, workspace, .. } = Net::of(&row.workload);
    let (out, back) = (row.copy_out.to_bits(), row.copy_in.to_bits());
    (name, sequence, workspace, row.machine.clone(), out, back, row.capacity)
}

/// What else makes a question, and stands in few names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variant {
    /// Problems that later ones of the same size have replaced: 0 of the latest.
    pub(crate) age: usize,
    /// Digest of the machine but for its memory; older rows have none.
    pub(crate) rates: Option<String>,
    /// Where times are from; older rows do not say it.
    pub(crate) times: Option<String>,
    /// It decides on what fits.
    pub(crate) planner: String,
}

/// The rows of one name by their variants. At one size all rows of a variant are of one problem.
pub(crate) fn variants<'r>(rows: &[&'r ScheduleRow]) -> BTreeMap<Variant, Vec<&'r ScheduleRow>> {
    let origin = |row: &ScheduleRow| (row.rates_digest.clone(), row.times.clone());
    let known: BTreeSet<_> = rows.iter().map(|row| origin(row)).filter(|of| of.0.is_some()).collect();
    // Older rows beside those of a single machine are of that machine, as far as anyone can tell.
    let only = known.first().filter(|_| known.len() == 1);
    let mut groups: BTreeMap<Variant, Vec<&ScheduleRow>> = BTreeMap::new();
    for row in rows {
        let own = origin(row);
        let (rates, times) = only.filter(|_| own.0.is_none()).cloned().unwrap_or(own);
        let variant = Variant { age: 0, rates, times, planner: row.planner.clone() };
        groups.entry(variant).or_default().push(row);
    }
    let mut aged: BTreeMap<Variant, Vec<&ScheduleRow>> = BTreeMap::new();
    for (variant, rows) in groups {
        let ages = ages(&rows);
        for row in rows {
            let age = ages[&(size(row), row.problem.as_str())];
            aged.entry(Variant { age, ..variant.clone() }).or_default().push(row);
        }
    }
    aged
}

type Size = (u64, Option<u64>);

/// Batch and input.
fn size(row: &ScheduleRow) -> Size {
    (row.batch, Net::of(&row.workload).input)
}

/// Of each problem how many later ones there are of the same size.
fn ages<'r>(rows: &[&'r ScheduleRow]) -> BTreeMap<(Size, &'r str), usize> {
    let mut sizes: BTreeMap<Size, BTreeMap<&str, u64>> = BTreeMap::new();
    for row in rows {
        let last = sizes.entry(size(row)).or_default().entry(row.problem.as_str()).or_default();
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

/// Which of the sizes changes from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sweep {
    /// The batch, with inputs of this size; `None`: that of the net.
    Batch { input: Option<u64> },
    /// The size of the input, at this batch.
    Input { batch: u64 },
}

impl Sweep {
    /// The size of a row among the others.
    pub(crate) fn size(self, row: &ScheduleRow) -> u64 {
        match self {
            Self::Batch { .. } => row.batch,
            Self::Input { .. } => Net::of(&row.workload).input.unwrap_or_default(),
        }
    }
}

/// The rows of a variant by what changes in them: where batches and inputs both do, what takes fewer values is held.
pub(crate) fn sweeps<'r>(rows: &[&'r ScheduleRow]) -> BTreeMap<Sweep, Vec<&'r ScheduleRow>> {
    let sized = || rows.iter().map(|row| size(row)).filter(|(_, input)| input.is_some());
    let batches: BTreeSet<u64> = sized().map(|(batch, _)| batch).collect();
    let inputs: BTreeSet<Option<u64>> = sized().map(|(_, input)| input).collect();
    let is_by_input = batches.len() == 1 || inputs.len() > batches.len();
    let mut sweeps: BTreeMap<Sweep, Vec<&ScheduleRow>> = BTreeMap::new();
    for row in rows {
        let sweep = match size(row) {
            (batch, Some(_)) if is_by_input => Sweep::Input { batch },
            (_, input) => Sweep::Batch { input },
        };
        sweeps.entry(sweep).or_default().push(row);
    }
    sweeps
}

/// How wide the limits of a run are: no greater than those of another that has no narrower one.
pub(crate) fn width(row: &ScheduleRow) -> [u64; 4] {
    [row.work_limit, row.wall_limit_ns, row.memory_limit_bytes, row.planner_wall_ns]
        .map(|limit| limit.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_net_is_its_workload_without_the_sizes() {
        let names = ["model/resnet50/train/b512", "mine.jsonl/b3", "b/bx", "net/s3/train/b1/i9"];
        let nets = names.map(Net::of);
        let named = ["resnet50", "mine.jsonl", "b/bx", "net/s3/i9"];
        assert_eq!(nets.map(|net| (net.name, net.input)), named.map(|name| (name.to_owned(), None)));
        let net = Net::of("model/bert-base/train/b8/s128/i64/wsx0.05");
        assert_eq!((net.name.as_str(), net.sequence, net.input), ("bert-base", Some(128), Some(64)));
        assert_eq!(net.workspace.as_deref(), Some("x0.05"));
        assert_eq!(Net::of("model/s9/train/b1").name, "s9", "a net may be called so");
    }
}
