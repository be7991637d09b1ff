//! What the records say, grouped as pages and plots need it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use planlab_dsa::{Bytes, Digest, Scope, Stop};
use planlab_results::statistics::median;
use planlab_results::{Lane, Record, Status};

use crate::figures::Series;
use crate::format::real;

/// A cell: a planner on a workload under one set of parameters, limits and seed.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// Its rows, by repetition.
    rows: Range<usize>,
    pub(crate) planner: usize,
    pub(crate) workload: usize,
    /// The best bound that anybody proved for plans like this one, bytes.
    pub(crate) bound: u64,
    /// `(height - bound) / bound`; none for cells that were asked for a capacity.
    pub(crate) gap: Option<f64>,
    /// Median of the samples that were taken alone, nanoseconds.
    pub(crate) time_ns: Option<f64>,
}

/// A planner with its parameters, as the report names it.
#[derive(Clone, Debug)]
pub(crate) struct Planner {
    pub(crate) label: String,
    /// Whether some plan of it hands memory over in place, so that it may lie below the load.
    pub(crate) in_place: bool,
    pub(crate) cells: Vec<usize>,
}

/// A workload.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) key: String,
    pub(crate) instance: String,
    pub(crate) buffers: u64,
    pub(crate) load: u64,
    pub(crate) cells: Vec<usize>,
}

impl Workload {
    /// The first two parts of the key: `chainer/alexnet`, `synthetic/uniform`.
    pub(crate) fn group(&self) -> &str {
        group(&self.key)
    }
}

/// Everything that pages are made of; the same records in any order give the same.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    records: Vec<Record>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) planners: Vec<Planner>,
    pub(crate) workloads: Vec<Workload>,
    /// Digest of the records.
    pub(crate) digest: String,
}

impl Model {
    pub(crate) fn new(mut records: Vec<Record>) -> Self {
        records.sort_by(|a, b| {
            natural(&a.workload, &b.workload)
                .then_with(|| (&a.planner, &a.parameters, a.seed).cmp(&(&b.planner, &b.parameters, b.seed)))
                .then_with(|| (a.wall_limit_ns, &a.cell).cmp(&(b.wall_limit_ns, &b.cell)))
                .then_with(|| a.repetition.cmp(&b.repetition))
        });
        let digest = digest(&records);
        let mut model =
            Self { records, cells: Vec::new(), planners: Vec::new(), workloads: Vec::new(), digest };
        model.group();
        model
    }

    fn group(&mut self) {
        let labels = labels(&self.records);
        let mut planners: BTreeMap<String, Planner> = BTreeMap::new();
        for (record, label) in self.records.iter().zip(&labels) {
            let planner = planners.entry(label.clone()).or_insert_with(|| Planner {
                label: label.clone(),
                in_place: false,
                cells: Vec::new(),
            });
            planner.in_place |= record.hand_overs > 0;
        }
        let numbers: BTreeMap<String, usize> = planners.keys().cloned().zip(0..).collect();
        self.planners = planners.into_values().collect();
        let bounds = best_bounds(&self.records);
        let mut start = 0;
        while start < self.records.len() {
            let first = &self.records[start];
            let rows = self.records[start..].iter().take_while(|r| r.cell == first.cell);
            let end = start + rows.count();
            self.put_cell(start..end, numbers[&labels[start]], &bounds);
            start = end;
        }
    }

    fn put_cell(&mut self, rows: Range<usize>, planner: usize, bounds: &BTreeMap<String, Bounds>) {
        let record = &self.records[rows.start];
        if self.workloads.last().is_none_or(|workload| record.workload != workload.key.as_str()) {
            self.workloads.push(Workload {
                key: record.workload.to_string(),
                instance: record.instance.clone(),
                buffers: record.buffers,
                load: record.load,
                cells: Vec::new(),
            });
        }
        let (number, workload) = (self.cells.len(), self.workloads.len() - 1);
        let bound = bounds.get(&record.instance).copied().unwrap_or_default().of(record);
        let gap = if record.target_bytes.is_some() { None } else { record.height };
        let gap = gap.map(|height| planlab_dsa::gap(Bytes::new(height), Bytes::new(bound)));
        let samples: Vec<f64> = self.records[rows.clone()]
            .iter()
            .filter(|row| row.lane == Lane::Timing && row.status.is_answer())
            .flat_map(|row| &row.samples_ns)
            .map(|&sample| real(sample))
            .collect();
        self.planners[planner].cells.push(number);
        self.workloads[workload].cells.push(number);
        self.cells.push(Cell { rows, planner, workload, bound, gap, time_ns: median(&samples) });
    }

    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// The rows of a cell.
    pub(crate) fn rows(&self, cell: &Cell) -> &[Record] {
        &self.records[cell.rows.clone()]
    }

    /// The first row of a cell, which stands for it.
    pub(crate) fn row(&self, cell: &Cell) -> &Record {
        &self.records[cell.rows.start]
    }

    pub(crate) fn planner(&self, cell: &Cell) -> &Planner {
        &self.planners[cell.planner]
    }

    pub(crate) fn series(&self, planner: usize) -> Series {
        Series { label: self.planners[planner].label.clone(), number: planner }
    }

    /// The gap of a cell that has an answer; a plan that a run left behind before it failed is none.
    pub(crate) fn answer_gap(&self, cell: &Cell) -> Option<f64> {
        cell.gap.filter(|_| self.row(cell).status.is_answer())
    }

    /// Whether the height of a cell is the best that is proven possible.
    pub(crate) fn is_optimal(&self, cell: &Cell) -> bool {
        self.answer_gap(cell).is_some_and(|gap| gap <= 0.0)
    }

    /// The height of a planner on a workload: the lower median over its cells (seeds); `None` where it did
    /// not run or has no answer. Cells that were asked for a capacity do not count.
    pub(crate) fn height(&self, planner: usize, workload: usize) -> Option<u64> {
        let mut heights: Vec<u64> = self
            .free_cells(planner, workload)
            .map(|cell| self.row(cell))
            .filter(|row| row.status.is_answer())
            .filter_map(|row| row.height)
            .collect();
        heights.sort_unstable();
        heights.get(heights.len().checked_sub(1)? / 2).copied()
    }

    /// Whether a planner was asked for its best on a workload.
    pub(crate) fn ran(&self, planner: usize, workload: usize) -> bool {
        self.free_cells(planner, workload).next().is_some()
    }

    /// The cells of a planner on a workload that were not asked for a capacity.
    pub(crate) fn free_cells(&self, planner: usize, workload: usize) -> impl Iterator<Item = &Cell> {
        let cells = self.workloads[workload].cells.iter().map(|&cell| &self.cells[cell]);
        cells.filter(move |cell| cell.planner == planner && self.row(cell).target_bytes.is_none())
    }

    /// The cell with the lowest height of a workload; of equals the first, one without hand-overs before. Cells
    /// that were asked for a capacity do not count.
    pub(crate) fn best_cell(&self, workload: usize) -> Option<&Cell> {
        let cells = self.workloads[workload].cells.iter().map(|&cell| &self.cells[cell]);
        let cells = cells.filter(|cell| self.row(cell).target_bytes.is_none());
        let ranked = cells.filter_map(|cell| {
            let row = self.row(cell);
            Some(((row.height?, row.hand_overs > 0), cell))
        });
        ranked.min_by_key(|&(rank, _)| rank).map(|(_, cell)| cell)
    }
}

/// Proven bounds of one instance, bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    any: u64,
    no_hand_over: u64,
}

impl Bounds {
    fn of(self, record: &Record) -> u64 {
        if record.hand_overs > 0 { self.any } else { self.no_hand_over.max(self.any) }
    }
}

/// The best bounds by instance. A bound above a verified height in its scope is refuted and does not count.
fn best_bounds(records: &[Record]) -> BTreeMap<String, Bounds> {
    let mut lowest: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for record in records {
        let (any, plain) = lowest.entry(&record.instance).or_insert((u64::MAX, u64::MAX));
        if let Some(height) = record.height {
            *any = height.min(*any);
            if record.hand_overs == 0 {
                *plain = height.min(*plain);
            }
        }
    }
    let mut bounds: BTreeMap<String, Bounds> = BTreeMap::new();
    for record in records.iter().filter(|record| record.status != Status::BoundRefuted) {
        let (any, plain) = lowest[record.instance.as_str()];
        let best = bounds.entry(record.instance.clone()).or_default();
        if record.bound_scope == Scope::Any && record.bound <= any {
            best.any = best.any.max(record.bound);
        }
        if record.bound_scope == Scope::NoHandOver && record.bound <= plain {
            best.no_hand_over = best.no_hand_over.max(record.bound);
        }
    }
    bounds
}

/// The planner's key, with its parameters where it has any, and its time limit where that made a difference.
fn labels(records: &[Record]) -> Vec<String> {
    let split = limit_bound(records);
    let label = |record: &Record| {
        let mut label = record.planner_label();
        if split.contains(&record.planner.as_str()) {
            let limit = record.wall_limit_ns.map_or("no limit".to_owned(), |ns| {
                crate::format::nanoseconds(real(ns)).replace(".00", "").replace(".0 ", " ")
            });
            label = format!("{label} @ {limit}");
        }
        label
    };
    records.iter().map(label).collect()
}

/// Planners that ran into a limit somewhere, and had several limits on one workload: their cells under
/// different limits are different planners.
fn limit_bound(records: &[Record]) -> BTreeSet<&str> {
    let is_cut = |record: &&Record| {
        record.status == Status::Timeout || matches!(record.stop, Some(Stop::Deadline | Stop::WorkLimit))
    };
    let cut: BTreeSet<&str> = records.iter().filter(is_cut).map(|record| record.planner.as_str()).collect();
    let mut limits: BTreeMap<(&str, &str), BTreeSet<Option<u64>>> = BTreeMap::new();
    for record in records.iter().filter(|record| cut.contains(record.planner.as_str())) {
        limits.entry((&record.planner, &record.workload)).or_default().insert(record.wall_limit_ns);
    }
    limits.into_iter().filter(|(_, limits)| limits.len() > 1).map(|((planner, _), _)| planner).collect()
}

fn digest(records: &[Record]) -> String {
    let mut text = String::new();
    for record in records {
        text.push_str(&serde_json::to_string(record).unwrap_or_default());
        text.push('\n');
    }
    Digest::of_bytes(text.as_bytes()).short()
}

/// The first two parts of a key.
pub(crate) fn group(key: &str) -> &str {
    let second = key.match_indices('/').nth(1);
    second.map_or(key, |(at, _)| &key[..at])
}

/// A workload of a net: `<route>/<net>/<mode>/b<N>[/<variant>]`; the process that one was cut from is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetKey {
    pub(crate) route: String,
    pub(crate) net: String,
    pub(crate) mode: String,
    /// The batch, with the variant behind it.
    pub(crate) batch: String,
}

impl NetKey {
    pub(crate) fn parse(key: &str) -> Option<Self> {
        let mut parts = key.splitn(5, '/');
        let (route, net, mode, batch) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_batch = batch.strip_prefix('b').is_some_and(|n| n.parse::<u64>().is_ok());
        if !matches!(mode, "train" | "infer") || !is_batch || key.ends_with("/process") {
            return None;
        }
        let batch = match parts.next() {
            Some(variant) => format!("{batch} {}", variant.replace("iteration", "#")),
            None => batch.to_owned(),
        };
        Some(Self { route: route.to_owned(), net: net.to_owned(), mode: mode.to_owned(), batch })
    }
}

/// Compares keys with the numbers in them as numbers: `b8` before `b32`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (l, r) = (left.find(|c: char| c.is_ascii_digit()), right.find(|c: char| c.is_ascii_digit()));
        let ((l_text, l_rest), (r_text, r_rest)) =
            (left.split_at(l.unwrap_or(left.len())), right.split_at(r.unwrap_or(right.len())));
        let (l_number, l_rest) = number(l_rest);
        let (r_number, r_rest) = number(r_rest);
        let order =
            l_text.cmp(r_text).then_with(|| (l_number.len(), l_number).cmp(&(r_number.len(), r_number)));
        if order != Ordering::Equal || (l_rest.is_empty() && r_rest.is_empty()) {
            // Texts that differ in leading zeros alone still need an order.
            return order.then_with(|| left.cmp(right)).then_with(|| a.cmp(b));
        }
        (left, right) = (l_rest, r_rest);
    }
}

/// The digits at the start, without leading zeros, and what follows.
fn number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_keys_sort_as_numbers() {
        let mut keys = ["a/b32", "a/b8", "a/b128/x", "a/b128", "a/b08", "a", "b/n1000/s2", "b/n1000/s10"];
        keys.sort_by(|a, b| natural(a, b));
        assert_eq!(keys, ["a", "a/b08", "a/b8", "a/b32", "a/b128", "a/b128/x", "b/n1000/s2", "b/n1000/s10"]);
    }

    #[test]
    fn keys_of_nets() {
        let net = NetKey::parse("chainer/seq2seq/train/b32/iteration9").expect("a net");
        assert_eq!((net.net.as_str(), net.mode.as_str(), net.batch.as_str()), ("seq2seq", "train", "b32 #9"));
        for key in ["synthetic/uniform/n10/s1", "minimalloc/a", "torch/bert/train/big", "a/b"] {
            assert_eq!(NetKey::parse(key), None, "{key}");
        }
        assert_eq!((group("a/b/c/d"), group("a/b"), group("a")), ("a/b", "a/b", "a"));
    }
}
