//! Cells: a planner on a workload under one set of parameters, limits and seed. Its first repetition stands for it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use planlab_dsa::Stop;
use polars::prelude::*;
use rustc_hash::FxHashSet;

use super::{Tables, collect, refused, rows};
use crate::StoreError;
use crate::record::{Lane, Status};

/// What a report knows of a cell: its first repetition, the best bound, the times of all repetitions. Texts that many
/// cells share are there once.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CellRow {
    /// Digest of what makes the cell.
    pub cell: Arc<str>,
    /// Workload key.
    pub workload: Arc<str>,
    /// Digest of the instance.
    pub instance: Arc<str>,
    /// Planner key.
    pub planner: Arc<str>,
    /// Parameters as a JSON object.
    pub parameters: Arc<str>,
    /// The suite that asked for it, or empty.
    pub suite: Arc<str>,
    /// The machine's fingerprint.
    pub host: Arc<str>,
    /// What went wrong, in one line; empty where nothing did.
    pub reason: Arc<str>,
    /// How the row's own bound was had.
    pub bound_evidence: Arc<str>,
    /// Digest of the plan.
    pub plan: Option<Arc<str>>,
    /// Why the run stopped.
    pub stop: Option<Arc<str>>,
    /// How it ended.
    pub status: Status,
    /// Whether its times may be ranked.
    pub lane: Lane,
    /// Seed of the run's random numbers.
    pub seed: u64,
    /// Wall limit, nanoseconds.
    pub wall_limit_ns: Option<u64>,
    /// Memory limit, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// Capacity that was asked for, bytes.
    pub target_bytes: Option<u64>,
    /// Number of buffers.
    pub buffers: u64,
    /// Height of the best verified plan, bytes.
    pub height: Option<u64>,
    /// Load, bytes.
    pub load: u64,
    /// The best bound that the run itself proved, bytes.
    pub bound: u64,
    /// The best bound that anybody proved for plans like this one, bytes.
    pub best_bound: u64,
    /// `(height - best_bound) / best_bound`; none for cells that were asked for a capacity.
    pub gap: Option<f64>,
    /// Hand-overs that the plan uses.
    pub hand_overs: u64,
    /// Median of the first repetition's samples (the lower of two middles), nanoseconds.
    pub median_ns: Option<u64>,
    /// Median of all samples that were taken alone, nanoseconds.
    pub time_ns: Option<f64>,
    /// Most resident memory of the child, bytes.
    pub peak_rss_bytes: Option<u64>,
}

impl CellRow {
    /// `(height - load) / load`, where there is a height.
    #[must_use]
    pub fn fragmentation(&self) -> Option<f64> {
        let (height, load) = (self.height?, self.load);
        Some(planlab_dsa::fragmentation(planlab_dsa::Bytes::new(height), planlab_dsa::Bytes::new(load)))
    }

    /// Whether the wall limit ended the run: its time is the limit's.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.stop.as_deref() == Some(Stop::Deadline.name())
    }
}

/// The columns of a cell that its first repetition has.
const FIRST: [&str; 25] = [
    "cell",
    "workload",
    "instance",
    "planner",
    "parameters",
    "suite",
    "machine_host",
    "reason",
    "bound_evidence",
    "plan",
    "stop",
    "status",
    "lane",
    "seed",
    "wall_limit_ns",
    "memory_limit_bytes",
    "target_bytes",
    "buffers",
    "height",
    "load",
    "bound",
    "best_bound",
    "gap",
    "hand_overs",
    "peak_rss_bytes",
];

impl Tables {
    /// A row for each cell, as its first repetition is, with what follows from all rows.
    fn cell_frame(&self) -> LazyFrame {
        let is_first = col("repetition").eq(col("repetition").min().over([col("cell")]).expect("a column"));
        let mut columns: Vec<Expr> = FIRST.iter().map(|name| col(*name)).collect();
        columns.push(rows::median_ns().alias("median_ns"));
        let first = rows::with_gap(rows::with_best_bound(self.rows.clone())).filter(is_first).select(columns);
        let times = self
            .rows
            .clone()
            .filter(col("lane").eq(lit(Lane::Timing.name())).and(rows::is(Status::is_answer)))
            .select([col("cell"), col("samples_ns").cast(DataType::List(Box::new(DataType::Float64)))])
            .explode(
                by_name(["samples_ns"], true, false),
                ExplodeOptions { empty_as_null: false, keep_nulls: false },
            )
            .group_by([col("cell")])
            .agg([col("samples_ns").median().alias("time_ns")]);
        first.join(times, [col("cell")], [col("cell")], JoinArgs::new(JoinType::Left))
    }

    /// All cells, by workload in the order of `by_key`, then by planner, parameters, seed and time limit.
    ///
    /// # Errors
    ///
    /// Whatever the store refuses when its rows are read.
    pub fn cells(&self, by_key: impl Fn(&str, &str) -> Ordering) -> Result<Vec<CellRow>, StoreError> {
        let mut cells = read(&collect(self.cell_frame())?).map_err(refused)?;
        let keys: BTreeSet<&Arc<str>> = cells.iter().map(|cell| &cell.workload).collect();
        let mut keys: Vec<Arc<str>> = keys.into_iter().cloned().collect();
        keys.sort_by(|a, b| by_key(a, b));
        let ranks: BTreeMap<Arc<str>, usize> = keys.into_iter().zip(0..).collect();
        cells.sort_by_cached_key(|cell| {
            let key = (ranks[&cell.workload], cell.planner.clone(), cell.parameters.clone());
            (key, cell.seed, cell.wall_limit_ns, cell.cell.clone())
        });
        Ok(cells)
    }
}

fn read(frame: &DataFrame) -> PolarsResult<Vec<CellRow>> {
    let mut texts = Texts::default();
    let mut text = |name: &str| texts.column(frame, name).map(Vec::into_iter);
    let (mut cell, mut workload, mut instance) = (text("cell")?, text("workload")?, text("instance")?);
    let (mut planner, mut parameters, mut suite) = (text("planner")?, text("parameters")?, text("suite")?);
    let (mut host, mut reason, mut evidence) =
        (text("machine_host")?, text("reason")?, text("bound_evidence")?);
    let (mut plan, mut stop) = (text("plan")?, text("stop")?);
    let (mut status, mut lane) = (frame.column("status")?.str()?.iter(), frame.column("lane")?.str()?.iter());
    let number = |name: &str| frame.column(name).and_then(|column| column.u64()).map(|column| column.iter());
    let (mut seed, mut wall, mut memory) =
        (number("seed")?, number("wall_limit_ns")?, number("memory_limit_bytes")?);
    let (mut target, mut buffers, mut height) =
        (number("target_bytes")?, number("buffers")?, number("height")?);
    let (mut load, mut bound, mut best) = (number("load")?, number("bound")?, number("best_bound")?);
    let (mut hand_overs, mut rss, mut median) =
        (number("hand_overs")?, number("peak_rss_bytes")?, number("median_ns")?);
    let (mut gap, mut time) = (frame.column("gap")?.f64()?.iter(), frame.column("time_ns")?.f64()?.iter());
    let row = |_| {
        Some(CellRow {
            cell: cell.next()??,
            workload: workload.next()??,
            instance: instance.next()??,
            planner: planner.next()??,
            parameters: parameters.next()??,
            suite: suite.next()??,
            host: host.next()??,
            reason: reason.next()??,
            bound_evidence: evidence.next()??,
            plan: plan.next()?,
            stop: stop.next()?,
            status: Status::from_name(status.next()??)?,
            lane: Lane::from_name(lane.next()??)?,
            seed: seed.next()??,
            wall_limit_ns: wall.next()?,
            memory_limit_bytes: memory.next()?,
            target_bytes: target.next()?,
            buffers: buffers.next()??,
            height: height.next()?,
            load: load.next()??,
            bound: bound.next()??,
            best_bound: best.next()??,
            gap: gap.next()?,
            hand_overs: hand_overs.next()??,
            median_ns: median.next()?,
            time_ns: time.next()?,
            peak_rss_bytes: rss.next()?,
        })
    };
    let rows: Option<Vec<CellRow>> = (0..frame.height()).map(row).collect();
    rows.ok_or_else(|| polars_err!(ComputeError: "a row lacks a value, or has an unknown status or lane"))
}

/// Texts, each of them once.
#[derive(Default)]
struct Texts(FxHashSet<Arc<str>>);

impl Texts {
    fn column(&mut self, frame: &DataFrame, name: &str) -> PolarsResult<Vec<Option<Arc<str>>>> {
        let texts = frame.column(name)?.str()?;
        Ok(texts.iter().map(|text| text.map(|text| self.once(text))).collect())
    }

    fn once(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.0.insert(new.clone());
        new
    }
}
