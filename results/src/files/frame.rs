//! Converts rows to and from polars tables and Parquet files.
//!
//! One column per field, raw integers. Columns of the provenance begin with `machine_`. The samples of a [`Record`] are
//! one list column; its trajectory is three list columns of equal lengths.

use std::path::Path;

use polars::prelude::*;

use crate::StoreError;
use crate::columns::{self, Field, Kind, Table};
use crate::rows::{Record, Row, ShardedKind};

/// Converts rows to a table: one column per field, in the order of [`Record`].
///
/// # Errors
///
/// Errors of polars; none are known to occur.
pub fn to_frame(records: &[Record]) -> PolarsResult<DataFrame> {
    frame_of(records)
}

/// The rows of a table made by [`to_frame`].
///
/// # Errors
///
/// [`StoreError::BadFile`] if a column is missing, has another type or holds an unknown name.
pub fn from_frame(frame: DataFrame) -> Result<Vec<Record>, StoreError> {
    Record::read(&Table::of_frame(Path::new("table"), frame), "")
}

pub(crate) fn column_names<R: Field>() -> Vec<PlSmallStr> {
    let mut columns = Vec::new();
    R::write("", &[], &mut columns);
    columns.iter().map(|column| column.name().clone()).collect()
}

pub(crate) fn frame_of<'r, R: Field + 'r>(rows: impl IntoIterator<Item = &'r R>) -> PolarsResult<DataFrame> {
    let (rows, mut columns) = (rows.into_iter().collect::<Vec<_>>(), Vec::new());
    R::write("", &rows, &mut columns);
    DataFrame::new(rows.len(), columns)
}

/// Columns that the first stores lack.
const LATER: [&str; 5] =
    ["reported_ns", "orders_run", "orders_failed", "order_bound", "bound_without_in_place"];

const fn file_kind<R: ShardedKind>() -> Kind {
    Kind { name: R::NAME, version: R::KNOWN }
}

pub(crate) fn encode_rows<R: ShardedKind>(rows: &[&Row<R>]) -> Result<Vec<u8>, StoreError> {
    let bytes = frame_of(rows.iter().copied())
        .and_then(|mut frame| columns::encode(file_kind::<R>(), Vec::new(), &mut frame));
    bytes.map_err(|error| StoreError::bad_file(Path::new("shard"), &error))
}

pub(crate) fn decode_rows<R: ShardedKind>(path: &Path, bytes: Vec<u8>) -> Result<Vec<Row<R>>, StoreError> {
    Field::read(&Table::decode_parquet(path, bytes, file_kind::<R>())?, "")
}

/// Some columns of a shard, in the order of `schema`.
pub(crate) fn decode_columns<R: ShardedKind>(
    path: &Path,
    bytes: Vec<u8>,
    schema: &Schema,
) -> Result<DataFrame, StoreError> {
    columns::decode_columns(path, bytes, file_kind::<R>(), schema, &LATER)
}
