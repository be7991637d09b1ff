//! What the records say, grouped as pages and plots need it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use planlab_results::queries::{CellRow, Failure, Limits, Tables, Variant};
use planlab_results::scale::Curve;
use planlab_results::{Provenance, Status, StoreError};

use crate::figures::Series;
use crate::format::{nanoseconds, real};

/// A cell: a planner on a workload under one set of parameters, limits and seed.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    row: CellRow,
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
    /// What the cells are of.
    pub(crate) tables: Tables,
    pub(crate) cells: Vec<Cell>,
    pub(crate) planners: Vec<Planner>,
    pub(crate) workloads: Vec<Workload>,
    /// How many rows of a planner end with a status.
    pub(crate) statuses: BTreeMap<(usize, Status), u64>,
    /// Rows that failed.
    pub(crate) failures: Vec<Failure>,
    /// Machines and builds, what enforced limits there, and how many rows are of each.
    pub(crate) machines: Vec<(Provenance, String, u64)>,
    /// The suites that asked for rows.
    pub(crate) suites: BTreeSet<String>,
    /// The limits that rows had.
    pub(crate) limits: BTreeSet<Limits>,
    /// Growth with the number of buffers.
    pub(crate) curves: Vec<Curve>,
    /// Digest of the records.
    pub(crate) digest: String,
}

impl Model {
    pub(crate) fn new(tables: Tables) -> Result<Self, StoreError> {
        let (digest, cells, labels) = (tables.digest()?, tables.cells(natural)?, Labels::new(&tables)?);
        let statuses = tables.statuses()?;
        let numbers = labels.numbers(statuses.iter().map(|(variant, _, _)| variant));
        let mut planners: Vec<Planner> = numbers.keys().map(|label| Planner::new(label)).collect();
        for variant in tables.in_place()? {
            planners[numbers[&labels.of(&variant)]].in_place = true;
        }
        let mut counts = BTreeMap::new();
        for (variant, status, rows) in statuses {
            *counts.entry((numbers[&labels.of(&variant)], status)).or_default() += rows;
        }
        let mut model = Self {
            cells: Vec::with_capacity(cells.len()),
            planners,
            workloads: Vec::new(),
            statuses: counts,
            failures: tables.failures()?,
            machines: tables.machines()?,
            suites: tables.suites()?,
            limits: tables.limits()?,
            curves: tables.curves()?,
            digest,
            tables,
        };
        for row in cells {
            let planner = numbers[&labels.of_cell(&row)];
            model.put_cell(row, planner);
        }
        Ok(model)
    }

    fn put_cell(&mut self, row: CellRow, planner: usize) {
        if self.workloads.last().is_none_or(|workload| *workload.key != *row.workload) {
            self.workloads.push(Workload {
                key: row.workload.to_string(),
                instance: row.instance.to_string(),
                buffers: row.buffers,
                load: row.load,
                cells: Vec::new(),
            });
        }
        let (number, workload) = (self.cells.len(), self.workloads.len() - 1);
        self.planners[planner].cells.push(number);
        self.workloads[workload].cells.push(number);
        let (bound, gap, time_ns) = (row.best_bound, row.gap, row.time_ns);
        self.cells.push(Cell { row, planner, workload, bound, gap, time_ns });
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// The first row of a cell, which stands for it.
    #[expect(clippy::unused_self, reason = "a cell belongs to a model")]
    pub(crate) fn row<'c>(&self, cell: &'c Cell) -> &'c CellRow {
        &cell.row
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

impl Planner {
    fn new(label: &str) -> Self {
        Self { label: label.to_owned(), in_place: false, cells: Vec::new() }
    }
}

/// The planner's key, with its parameters where it has any, and its time limit where that made a difference.
struct Labels {
    limit_bound: BTreeSet<String>,
}

impl Labels {
    fn new(tables: &Tables) -> Result<Self, StoreError> {
        Ok(Self { limit_bound: tables.limit_bound()? })
    }

    fn of(&self, Variant { planner, parameters, wall_limit_ns }: &Variant) -> String {
        let label = planlab_results::planner_label(planner, parameters);
        if !self.limit_bound.contains(planner) {
            return label;
        }
        let limit = wall_limit_ns
            .map_or("no limit".to_owned(), |ns| nanoseconds(real(ns)).replace(".00", "").replace(".0 ", " "));
        format!("{label} @ {limit}")
    }

    fn of_cell(&self, row: &CellRow) -> String {
        let (planner, parameters) = (row.planner.to_string(), row.parameters.to_string());
        self.of(&Variant { planner, parameters, wall_limit_ns: row.wall_limit_ns })
    }

    /// The labels, each with its number.
    fn numbers<'v>(&self, variants: impl Iterator<Item = &'v Variant>) -> BTreeMap<String, usize> {
        let labels: BTreeSet<String> = variants.map(|variant| self.of(variant)).collect();
        labels.into_iter().zip(0..).collect()
    }
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
