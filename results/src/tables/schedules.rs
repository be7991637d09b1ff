//! Schedules as a lazy frame.

use std::path::Path;

use polars::prelude::*;

use super::collect::refused;
use super::glossary;
use super::rows::{excess_expr, signed_column};
use crate::StoreError;
use crate::files::frame::frame_of;
use crate::store::read_schedules;

/// The table `schedules` of SQL; empty if the store has no schedules.
///
/// # Errors
///
/// Like [`read_schedules`].
pub(super) fn frame(dir: &Path) -> Result<LazyFrame, StoreError> {
    let frame = frame_of(&read_schedules(dir)?).map_err(refused)?;
    let known = glossary::columns_of("schedules").map(|column| signed_column(column.name));
    let real = |name: &str| col(name).cast(DataType::Float64);
    let derived = [
        (real("batch") * lit(1e9) / real("iteration_ns")).alias("images_per_second"),
        (lit(1.0) - real("compute_ns") / real("iteration_ns")).alias("loss"),
        excess_expr(col("iteration_ns"), col("bound_ns")).alias("iteration_gap"),
        col("height").lt_eq(col("capacity")).alias("fits"),
    ];
    Ok(frame.lazy().with_columns(derived).select(known.collect::<Vec<_>>()))
}
