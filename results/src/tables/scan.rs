//! The rows of a store as a lazy frame. Only the columns that a query needs are decoded.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::prelude::*;
use rustc_hash::FxHashMap;

use super::collect::refused;
use crate::StoreError;
use crate::files::{frame, journal, shards};
use crate::rows::{PlannerRun, RowKind as _};
use crate::store::require_store;

/// The columns that identify a row: among rows with equal values the latest counts.
const KEY: [&str; 2] = ["cell", "repetition"];

/// The rows of a store at the time they were opened.
struct Rows {
    /// The columns of the rows.
    schema: SchemaRef,
    shards: Vec<PathBuf>,
    /// Rows that are not in any shard yet.
    tail: DataFrame,
    /// For each row of the shards and the tail, its position among the rows that count, or null if it does not count.
    /// `None` if all rows count, in their existing order.
    numbers: Option<UInt32Chunked>,
}

/// The latest row of each cell and repetition, in the order of their first appearance. The result is a lazy frame with
/// the columns of [`frame::to_frame`].
///
/// # Errors
///
/// Like [`read_records`](crate::read_records).
pub(super) fn scan_rows(dir: &Path) -> Result<LazyFrame, StoreError> {
    require_store(dir)?;
    // The journal first: rows that a writer moves to a shard meanwhile then appear in at least one of the two.
    let tail = journal::read_journal::<PlannerRun>(&dir.join(PlannerRun::JOURNAL))?.rows;
    let tail = frame::to_frame(&tail).map_err(refused)?;
    let shards = shards::list_shards::<PlannerRun>(dir)?;
    let mut rows = Rows { schema: tail.schema().clone(), shards, tail, numbers: None };
    rows.numbers = rows.number()?;
    let scan = ScanArgsAnonymous { schema: Some(rows.schema.clone()), name: "ROWS", ..Default::default() };
    LazyFrame::anonymous_scan(Arc::new(rows), scan).map_err(refused)
}

impl Rows {
    fn number(&self) -> Result<Option<UInt32Chunked>, StoreError> {
        // A shard contains a row only once.
        if self.shards.len() + usize::from(self.tail.height() > 0) < 2 && self.tail.height() == 0 {
            return Ok(None);
        }
        let keys = self.read(&KEY, None)?;
        counting_positions(&keys).map_err(refused)
    }

    /// Some columns of the rows that count and that satisfy the predicate.
    fn read(&self, names: &[&str], predicate: Option<&Expr>) -> Result<DataFrame, StoreError> {
        let fields = names.iter().map(|name| self.schema.try_get_field(name));
        let schema: Schema = fields.collect::<PolarsResult<_>>().map_err(refused)?;
        let (mut all, mut start) = (None, 0);
        for path in &self.shards {
            // A shard that has disappeared meanwhile has no rows.
            let Some(bytes) = shards::checked_content(path)? else { continue };
            let rows = frame::decode_columns::<PlannerRun>(path, bytes, &schema)?;
            self.append(&mut all, rows, &mut start, predicate).map_err(refused)?;
        }
        let tail = self.tail.select(names.iter().copied()).map_err(refused)?;
        self.append(&mut all, tail, &mut start, predicate).map_err(refused)?;
        let all = all.unwrap_or_else(|| DataFrame::empty_with_schema(&schema));
        self.in_order(all).map_err(refused)
    }

    fn append(
        &self,
        all: &mut Option<DataFrame>,
        mut rows: DataFrame,
        start: &mut usize,
        predicate: Option<&Expr>,
    ) -> PolarsResult<()> {
        let height = rows.height();
        if let Some(numbers) = &self.numbers {
            let own = numbers.slice(i64::try_from(*start).unwrap_or(i64::MAX), height);
            let counts = own.is_not_null();
            rows.with_column(own.with_name(NUMBER.into()).into_column())?;
            rows = rows.filter(&counts)?;
        }
        *start += height;
        if let Some(predicate) = predicate {
            rows = rows.lazy().filter(predicate.clone()).collect()?;
        }
        match all {
            Some(all) => drop(all.vstack_mut(&rows)?),
            None => *all = Some(rows),
        }
        Ok(())
    }

    fn in_order(&self, rows: DataFrame) -> PolarsResult<DataFrame> {
        if self.numbers.is_none() || rows.column(NUMBER).is_err() {
            return Ok(rows);
        }
        rows.sort([NUMBER], SortMultipleOptions::default())?.drop(NUMBER)
    }
}

/// The column with a row's position while rows are read.
const NUMBER: &str = "planlab.number";

/// Cell and repetition.
type Key<'k> = (Option<&'k str>, Option<u32>);

/// The positions of the rows that count, in the order in which the cells first appeared; `None` if all count, in their
/// existing order.
fn counting_positions(keys: &DataFrame) -> PolarsResult<Option<UInt32Chunked>> {
    let (cells, repetitions) = (keys.column(KEY[0])?.str()?, keys.column(KEY[1])?.u32()?);
    // For each key: its position, and the index of its last row.
    let mut latest: FxHashMap<Key<'_>, (u32, usize)> = FxHashMap::default();
    let mut next = 0;
    for (at, key) in cells.iter().zip(repetitions.iter()).enumerate() {
        let (_, last) = latest.entry(key).or_insert_with(|| {
            next += 1;
            (next - 1, at)
        });
        *last = at;
    }
    if latest.len() == keys.height() {
        return Ok(None);
    }
    let mut numbers = vec![None; keys.height()];
    latest.into_values().for_each(|(number, at)| numbers[at] = Some(number));
    Ok(Some(UInt32Chunked::from_iter_options(NUMBER.into(), numbers.into_iter())))
}

impl AnonymousScan for Rows {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn scan(&self, wanted: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let names: Vec<&str> = match &wanted.with_columns {
            Some(names) if !names.is_empty() => names.iter().map(PlSmallStr::as_str).collect(),
            // A query that counts rows needs at least one column.
            Some(_) => vec![KEY[1]],
            None => self.schema.iter_names().map(PlSmallStr::as_str).collect(),
        };
        let rows = self.read(&names, wanted.predicate.as_ref());
        // Inside an I/O error the store's error keeps its type.
        let rows = rows.map_err(|error| PolarsError::from(io::Error::other(error)))?;
        Ok(wanted.n_rows.map_or(rows.clone(), |n| rows.head(Some(n))))
    }

    fn allows_predicate_pushdown(&self) -> bool {
        true
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }
}
