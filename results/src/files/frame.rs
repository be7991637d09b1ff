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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{PlannerRun, ReplayRun, SchedulerRun};

    #[track_caller]
    fn assert_columns<R: Field>(run: &str) {
        let machine = "machine_host machine_cpu machine_cores machine_kernel machine_governor machine_turbo \
            machine_load_average_milli machine_concurrency machine_git_commit machine_git_dirty machine_rustc \
            machine_flags";
        let names: Vec<String> = column_names::<Row<R>>().iter().map(ToString::to_string).collect();
        assert_eq!(names.join(" "), format!("{run} {machine}"));
    }

    #[test]
    fn shards_have_the_columns_that_they_always_had() {
        assert_columns::<PlannerRun>(
            "schema cell repetition lane suite workload instance buffers planner planner_version parameters seed \
            wall_limit_ns memory_limit_bytes work_limit target_bytes mechanism status stop reason exit_code signal \
            stderr_tail height load relaxed_load bound bound_evidence bound_scope hand_overs samples_ns reported_ns \
            orders_run orders_failed order_bound bound_without_in_place cpu_ns work peak_rss_bytes \
            trajectory_elapsed_ns trajectory_height trajectory_bound plan started_ns",
        );
        assert_columns::<ReplayRun>(
            "schema cell repetition suite workload sequence until instance requests requested_peak retained contender \
            planner plan device device_name l2_bytes work threads capacity status reason warm_up is_steady \
            samples_propagations samples_wall_ns samples_cpu_ns samples_enqueue_ns samples_device_ns \
            samples_reserved samples_reserved_peak samples_plans samples_planning_ns samples_planned samples_missed \
            alloc_median_ps alloc_p99_ps alloc_batches free_median_ps free_p99_ps free_batches reserved_peak \
            used_peak physical_peak device_allocations search_steps lock_wait_ns refusals missed_unknown \
            missed_larger missed_taken missed_outliving missed_no_memory touched_bytes started_ns",
        );
        assert_columns::<SchedulerRun>(
            "schema cell repetition suite workload problem batch functions maps machine rates_digest times copy_out \
            copy_in capacity base in_core_bytes least_memory least_memory_evidence compute_ns scheduler \
            scheduler_version seed wall_limit_ns memory_limit_bytes work_limit threads mechanism status stop reason \
            exit_code signal stderr_tail iteration_ns bound_ns bound_evidence bound_scope kept swapped recomputed \
            copied_out recompute_ns live_peak best_fit_height height height_bound height_evidence planner \
            planner_wall_ns planner_status planner_reason disturbed_percent disturbed_draws disturbed_median_ns \
            disturbed_worst_ns disturbed_compute_ns elapsed_ns cpu_ns peak_rss_bytes work trajectory_elapsed_ns \
            trajectory_work trajectory_iteration_ns instance plan schedule started_ns",
        );
    }
}
