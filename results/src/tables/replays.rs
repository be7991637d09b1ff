//! Replays as a lazy frame.

use std::path::Path;

use polars::prelude::*;

use super::collect::refused;
use super::glossary;
use super::rows::{excess_expr, signed_column};
use crate::StoreError;
use crate::files::frame::frame_of;
use crate::rows::ReplayRow;
use crate::statistics::{as_real, median};
use crate::store::read_rows;

/// The table `replays` of SQL; empty if the store has no replays.
///
/// # Errors
///
/// Like [`read_rows`].
pub(super) fn replay_frame(dir: &Path) -> Result<LazyFrame, StoreError> {
    let rows = read_rows(dir)?;
    let times: Float64Chunked = rows.iter().map(time_ns).collect();
    let propagations = rows.iter().map(|row| Some(row.performance.timed_propagations()));
    let mut frame = frame_of(&rows).map_err(refused)?;
    let times = times.with_name("time_ns".into()).into_column();
    let propagations = propagations.collect::<UInt64Chunked>().with_name("propagations".into()).into_column();
    frame.hstack_mut(&[times, propagations]).map_err(refused)?;
    let wasted = excess_expr(col("reserved_peak"), col("requested_peak")).alias("fragmentation");
    let known = glossary::columns_of("replays").map(|column| signed_column(column.name));
    let rows = frame.lazy().with_columns([wasted, col("work").alias("play")]);
    Ok(rows.select(known.collect::<Vec<_>>()))
}

/// The median time of a propagation; the propagations of a sample share its time evenly.
fn time_ns(row: &ReplayRow) -> Option<f64> {
    let times = row.performance.samples.iter().filter(|sample| sample.propagations > 0);
    let times: Vec<f64> =
        times.map(|sample| as_real(sample.wall_ns) / f64::from(sample.propagations)).collect();
    median(&times)
}
