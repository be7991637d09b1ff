//! Rows as a polars table, and as a Parquet file.
//!
//! One column for each field, raw integers; the provenance's columns begin with `machine_`; the samples of a
//! [`Record`] are a list column, its trajectory three of equal lengths.

use std::path::Path;

use polars::prelude::*;

use crate::StoreError;
use crate::columns::{self, Kind, Table};
use crate::fields::Field;
use crate::journal::Row;
use crate::record::Record;
use crate::replay::ReplayRow;
use crate::schedule::ScheduleRow;

/// Rows as a table: one column for each field, in the order of [`Record`].
///
/// # Errors
///
/// Whatever polars refuses; nothing is known that it would.
pub fn to_frame(records: &[Record]) -> PolarsResult<DataFrame> {
    frame_of(&records.iter().collect::<Vec<_>>())
}

/// The rows of a table that [`to_frame`] made.
///
/// # Errors
///
/// [`StoreError::BadFile`] where a column is missing or is of another type, or has a name that is not known.
pub fn from_frame(frame: DataFrame) -> Result<Vec<Record>, StoreError> {
    Record::read(&Table::of_frame(Path::new("table"), frame), "")
}

/// Replays as a table: as [`to_frame`]; of the samples there is a list column for each figure.
///
/// # Errors
///
/// As [`to_frame`].
pub fn replays_to_frame(rows: &[ReplayRow]) -> PolarsResult<DataFrame> {
    frame_of(&rows.iter().collect::<Vec<_>>())
}

/// Schedules as a table: as [`to_frame`].
///
/// # Errors
///
/// As [`to_frame`].
pub fn schedules_to_frame(rows: &[ScheduleRow]) -> PolarsResult<DataFrame> {
    frame_of(&rows.iter().collect::<Vec<_>>())
}

/// What the columns of such rows are called.
pub(crate) fn names<R: Field>() -> Vec<PlSmallStr> {
    let mut columns = Vec::new();
    R::write("", &[], &mut columns);
    columns.iter().map(|column| column.name().clone()).collect()
}

pub(crate) fn frame_of<R: Field>(rows: &[&R]) -> PolarsResult<DataFrame> {
    let mut columns = Vec::new();
    R::write("", rows, &mut columns);
    DataFrame::new(rows.len(), columns)
}

/// Columns of rows that the first stores do not have.
const LATER: [&str; 4] = ["reported_ns", "orders_run", "orders_failed", "order_bound"];

const fn kind<R: Row>() -> Kind {
    Kind { name: R::KIND, version: R::KNOWN }
}

pub(crate) fn encode<R: Row>(rows: &[&R]) -> Result<Vec<u8>, StoreError> {
    let bytes = frame_of(rows).and_then(|mut frame| columns::encode(kind::<R>(), Vec::new(), &mut frame));
    bytes.map_err(|error| StoreError::bad_file(Path::new("shard"), &error))
}

pub(crate) fn decode<R: Row>(path: &Path, bytes: Vec<u8>) -> Result<Vec<R>, StoreError> {
    R::read(&Table::decode(path, bytes, kind::<R>())?, "")
}

/// Some columns of a shard, in the order of `schema`.
pub(crate) fn decode_columns<R: Row>(
    path: &Path,
    bytes: Vec<u8>,
    schema: &Schema,
) -> Result<DataFrame, StoreError> {
    columns::decode_columns(path, bytes, kind::<R>(), schema, &LATER)
}
