//! The tables of a store as lazy frames.

use std::path::Path;

use polars::prelude::*;

use super::collect::refused;
use super::rows::{self, excess_expr, signed_columns};
use super::scan;
use crate::StoreError;
use crate::files::frame::{frame_of, to_frame};
use crate::rows::{Record, ReplayRow};
use crate::statistics::{as_real, median};
use crate::store::{read_rows, read_schedules};

/// The tables of a store. Opening reads only the keys of the rows; a query reads the rest when it needs it.
#[derive(Clone)]
pub struct Tables {
    pub(crate) rows: LazyFrame,
    pub(super) replays: LazyFrame,
    pub(super) schedules: LazyFrame,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

impl Tables {
    /// Opens the tables of the store in a folder; a writer may be active.
    ///
    /// # Errors
    ///
    /// Like [`read_records`](crate::read_records), [`read_rows`](crate::replay::read_rows) and
    /// [`read_schedules`](crate::schedule::read_schedules).
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        Ok(Self {
            rows: rows::against_any_plan(scan::scan_rows(dir)?),
            replays: replay_frame(dir)?,
            schedules: schedule_frame(dir)?,
        })
    }

    /// Tables of rows in memory.
    ///
    /// # Errors
    ///
    /// Errors of polars; none are known to occur.
    pub fn of_records(records: &[Record]) -> Result<Self, StoreError> {
        let rows = to_frame(records).map_err(refused)?.lazy();
        let rows = rows::against_any_plan(rows);
        Ok(Self { rows, replays: DataFrame::empty().lazy(), schedules: DataFrame::empty().lazy() })
    }
}

/// The table `replays` of SQL; empty if the store has no replays.
///
/// # Errors
///
/// Like [`read_rows`].
fn replay_frame(dir: &Path) -> Result<LazyFrame, StoreError> {
    let rows = read_rows(dir)?;
    let times: Float64Chunked = rows.iter().map(time_ns).collect();
    let propagations = rows.iter().map(|row| Some(row.performance.timed_propagations()));
    let mut frame = frame_of(&rows).map_err(refused)?;
    let times = times.with_name("time_ns".into()).into_column();
    let propagations = propagations.collect::<UInt64Chunked>().with_name("propagations".into()).into_column();
    frame.hstack_mut(&[times, propagations]).map_err(refused)?;
    let wasted = excess_expr(col("reserved_peak"), col("requested_peak")).alias("fragmentation");
    let rows = frame.lazy().with_columns([wasted, col("work").alias("play")]);
    Ok(rows.select(signed_columns("replays")))
}

/// The median time of a propagation; the propagations of a sample share its time evenly.
fn time_ns(row: &ReplayRow) -> Option<f64> {
    let times = row.performance.samples.iter().filter(|sample| sample.propagations > 0);
    let times: Vec<f64> =
        times.map(|sample| as_real(sample.wall_ns) / f64::from(sample.propagations)).collect();
    median(&times)
}

/// The table `schedules` of SQL; empty if the store has no schedules.
///
/// # Errors
///
/// Like [`read_schedules`].
fn schedule_frame(dir: &Path) -> Result<LazyFrame, StoreError> {
    let frame = frame_of(&read_schedules(dir)?).map_err(refused)?;
    let real = |name: &str| col(name).cast(DataType::Float64);
    let derived = [
        (real("batch") * lit(1e9) / real("iteration_ns")).alias("images_per_second"),
        (lit(1.0) - real("compute_ns") / real("iteration_ns")).alias("loss"),
        excess_expr(col("iteration_ns"), col("bound_ns")).alias("iteration_gap"),
        col("height").lt_eq(col("capacity")).alias("fits"),
    ];
    Ok(frame.lazy().with_columns(derived).select(signed_columns("schedules")))
}
