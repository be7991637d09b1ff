//! The rows of a store as a lazy frame. Only the columns that a query needs are decoded.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::prelude::*;
use rustc_hash::FxHashMap;

use crate::journal::Row as _;
use crate::record::Record;
use crate::{StoreError, frame, journal, shards, store};

/// What makes a row: of rows with equal values here the latest counts.
const KEY: [&str; 2] = ["cell", "repetition"];

/// The rows of a store as it was when they were opened.
struct Rows {
    /// The columns of all rows.
    schema: SchemaRef,
    shards: Vec<PathBuf>,
    /// What no shard has yet.
    tail: DataFrame,
    /// Of the rows of all shards and the tail the numbers of those that count; `None` where all do.
    latest: Option<IdxCa>,
}

/// The latest row of each cell and repetition, in the order of their first appearance, as a lazy frame with the columns
/// of [`frame::to_frame`].
///
/// # Errors
///
/// As [`read_records`](crate::read_records).
pub(super) fn rows(dir: &Path) -> Result<LazyFrame, StoreError> {
    store::require_store(dir)?;
    // The journal first: rows that a writer moves to a shard meanwhile are then seen in either.
    let tail = journal::read::<Record>(&dir.join(Record::JOURNAL))?.rows;
    let tail = frame::to_frame(&tail).map_err(super::refused)?;
    let shards = shards::list::<Record>(dir)?;
    let mut rows = Rows { schema: tail.schema().clone(), shards, tail, latest: None };
    rows.latest = rows.find_latest()?;
    let scan = ScanArgsAnonymous { schema: Some(rows.schema.clone()), name: "ROWS", ..Default::default() };
    LazyFrame::anonymous_scan(Arc::new(rows), scan).map_err(super::refused)
}

impl Rows {
    fn find_latest(&self) -> Result<Option<IdxCa>, StoreError> {
        if self.shards.len() + usize::from(self.tail.height() > 0) < 2 && self.tail.height() == 0 {
            return Ok(None);
        }
        let keys = self.read_all(&KEY)?;
        latest(&keys).map_err(super::refused)
    }

    /// Some columns of all rows, also of those that do not count.
    fn read_all(&self, names: &[&str]) -> Result<DataFrame, StoreError> {
        let fields = names.iter().map(|name| self.schema.try_get_field(name));
        let schema: Schema = fields.collect::<PolarsResult<_>>().map_err(super::refused)?;
        let mut all = DataFrame::empty_with_schema(&schema);
        for path in &self.shards {
            // One that is gone meanwhile has no rows.
            let Some(bytes) = shards::content(path)? else { continue };
            let rows = frame::decode_columns::<Record>(path, bytes, &schema)?;
            all.vstack_mut(&rows).map_err(super::refused)?;
        }
        let tail = self.tail.select(names.iter().copied()).map_err(super::refused)?;
        all.vstack_mut(&tail).map_err(super::refused)?;
        Ok(all)
    }

    fn read(&self, names: &[&str]) -> Result<DataFrame, StoreError> {
        let all = self.read_all(names)?;
        match &self.latest {
            Some(latest) => all.take(latest).map_err(super::refused),
            None => Ok(all),
        }
    }
}

/// The numbers of the rows that count, in the order in which the cells first came; `None` where all do.
fn latest(keys: &DataFrame) -> PolarsResult<Option<IdxCa>> {
    let (cells, repetitions) = (keys.column(KEY[0])?.str()?, keys.column(KEY[1])?.u32()?);
    let mut slots: FxHashMap<(Option<&str>, Option<u32>), usize> = FxHashMap::default();
    let mut last: Vec<IdxSize> = Vec::with_capacity(keys.height());
    for (key, number) in cells.iter().zip(repetitions.iter()).zip(0..) {
        match slots.entry(key) {
            std::collections::hash_map::Entry::Occupied(slot) => last[*slot.get()] = number,
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(last.len());
                last.push(number);
            }
        }
    }
    let is_whole = last.len() == keys.height();
    Ok((!is_whole).then(|| IdxCa::from_vec("latest".into(), last)))
}

impl AnonymousScan for Rows {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn scan(&self, wanted: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let names: Vec<&str> = match &wanted.with_columns {
            Some(names) if !names.is_empty() => names.iter().map(PlSmallStr::as_str).collect(),
            // A query that counts rows needs a column to count.
            Some(_) => vec![KEY[1]],
            None => self.schema.iter_names().map(PlSmallStr::as_str).collect(),
        };
        // The error keeps its type inside one of the system.
        let rows = self.read(&names).map_err(|error| PolarsError::from(io::Error::other(error)))?;
        Ok(wanted.n_rows.map_or(rows.clone(), |n| rows.head(Some(n))))
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }
}
