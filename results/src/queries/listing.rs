//! All rows in the order of their cells, for a table of them.

use polars::prelude::*;
use rustc_hash::FxHashMap;

use super::{Tables, collect, refused, rows};
use crate::StoreError;
use crate::record::{Lane, Record, Status};

/// What differs between the rows of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ListedRow<'l> {
    /// The number of its cell among those that were given.
    pub cell: usize,
    /// From 0.
    pub repetition: u32,
    /// How it ended.
    pub status: Status,
    /// Whether its times may be ranked.
    pub lane: Lane,
    /// Height of the best verified plan, bytes.
    pub height: Option<u64>,
    /// Median of the samples (the lower of two middles), nanoseconds.
    pub median_ns: Option<u64>,
    /// Most resident memory of the child, bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Hand-overs that the plan uses.
    pub hand_overs: u64,
    /// Units of work done.
    pub work: u64,
    /// Exit code of the child.
    pub exit_code: Option<i32>,
    /// Signal that ended the child.
    pub signal: Option<i32>,
    /// How the row's bound was had.
    pub bound_evidence: &'l str,
    /// What went wrong, in one line; empty where nothing did.
    pub reason: &'l str,
    /// Digest of the plan.
    pub plan: Option<&'l str>,
}

/// All rows, by cell and repetition.
#[derive(Debug)]
pub struct Listing {
    frame: DataFrame,
    /// Of each row the number of its cell, and where the frame has it.
    order: Vec<(usize, usize)>,
}

const COLUMNS: [&str; 13] = [
    "cell",
    "repetition",
    "status",
    "lane",
    "height",
    "peak_rss_bytes",
    "hand_overs",
    "work",
    "exit_code",
    "signal",
    "bound_evidence",
    "reason",
    "plan",
];

impl Tables {
    /// All rows of these cells (their digests), in their order.
    ///
    /// # Errors
    ///
    /// Whatever the store refuses when its rows are read.
    pub fn listing<'c>(&self, cells: impl Iterator<Item = &'c str>) -> Result<Listing, StoreError> {
        let mut columns: Vec<Expr> = COLUMNS.iter().map(|name| col(*name)).collect();
        columns.push(rows::median_ns().alias("median_ns"));
        let mut frame = collect(self.rows.clone().select(columns))?;
        frame.rechunk_mut();
        let numbers: FxHashMap<&str, usize> = cells.zip(0..).collect();
        let order = order(&frame, &numbers).map_err(refused)?;
        Ok(Listing { frame, order })
    }

    /// The first repetition of these cells.
    ///
    /// # Errors
    ///
    /// As [`Tables::listing`].
    pub fn first_records(&self, cells: &[&str]) -> Result<Vec<Record>, StoreError> {
        let cells = Series::new("cell".into(), cells);
        let cells = DataFrame::new(cells.len(), vec![cells.into_column()]).map_err(refused)?;
        let mut records = self.records_of(&cells)?;
        records.sort_by(|a, b| (&a.cell, a.repetition).cmp(&(&b.cell, b.repetition)));
        records.dedup_by(|later, first| later.cell == first.cell);
        Ok(records)
    }
}

fn order(frame: &DataFrame, numbers: &FxHashMap<&str, usize>) -> PolarsResult<Vec<(usize, usize)>> {
    let (cells, repetitions) = (frame.column("cell")?.str()?, frame.column("repetition")?.u32()?);
    let numbered = cells.iter().zip(repetitions.iter()).enumerate();
    let numbered =
        numbered.filter_map(|(at, (cell, repetition))| Some((*numbers.get(cell?)?, repetition, at)));
    let mut order: Vec<_> = numbered.collect();
    order.sort_unstable();
    Ok(order.into_iter().map(|(cell, _, at)| (cell, at)).collect())
}

impl Listing {
    /// How many rows there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Some of the rows, by their numbers.
    ///
    /// # Errors
    ///
    /// [`StoreError::Query`] where a row has no known status or lane.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn rows(&self, numbers: std::ops::Range<usize>) -> Result<Vec<ListedRow<'_>>, StoreError> {
        self.read(&self.order[numbers]).map_err(refused)
    }

    fn read(&self, order: &[(usize, usize)]) -> PolarsResult<Vec<ListedRow<'_>>> {
        let text = |name: &str| self.frame.column(name).and_then(|column| column.str());
        let number = |name: &str| self.frame.column(name).and_then(|column| column.u64());
        let code = |name: &str| self.frame.column(name).and_then(|column| column.i32());
        let (status, lane, evidence) = (text("status")?, text("lane")?, text("bound_evidence")?);
        let (reason, plan, repetition) =
            (text("reason")?, text("plan")?, self.frame.column("repetition")?.u32()?);
        let (height, median, rss) = (number("height")?, number("median_ns")?, number("peak_rss_bytes")?);
        let (hand_overs, work) = (number("hand_overs")?, number("work")?);
        let (exit_code, signal) = (code("exit_code")?, code("signal")?);
        let row = |&(cell, at): &(usize, usize)| {
            Some(ListedRow {
                cell,
                repetition: repetition.get(at)?,
                status: Status::from_name(status.get(at)?)?,
                lane: Lane::from_name(lane.get(at)?)?,
                height: height.get(at),
                median_ns: median.get(at),
                peak_rss_bytes: rss.get(at),
                hand_overs: hand_overs.get(at)?,
                work: work.get(at)?,
                exit_code: exit_code.get(at),
                signal: signal.get(at),
                bound_evidence: evidence.get(at)?,
                reason: reason.get(at)?,
                plan: plan.get(at),
            })
        };
        let rows: Option<Vec<ListedRow<'_>>> = order.iter().map(row).collect();
        rows.ok_or_else(|| polars_err!(ComputeError: "a row lacks a value, or has an unknown status or lane"))
    }
}
