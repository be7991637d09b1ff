//! Rows as a polars table, and as a Parquet file.
//!
//! One column for each field of [`Record`], raw integers; the provenance's columns begin with `machine_`;
//! the samples are a list column, the trajectory three of equal lengths.

use std::path::Path;

use polars::prelude::*;

use crate::StoreError;
use crate::columns::{self, Kind, Table, lists_opt_u64, lists_u64};
use crate::record::{Lane, Point, Provenance, Record, SCHEMA, Status};

const KIND: Kind = Kind { name: "records", version: SCHEMA };

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
/// [`StoreError::BadFile`] where a column is missing or is of another type.
pub fn from_frame(frame: DataFrame) -> Result<Vec<Record>, StoreError> {
    rows_of(&Table::of_frame(Path::new("table"), frame))
}

pub(crate) fn encode(records: &[&Record]) -> Result<Vec<u8>, StoreError> {
    let bytes = frame_of(records).and_then(|mut frame| columns::encode(KIND, Vec::new(), &mut frame));
    bytes.map_err(|error| StoreError::bad_file(Path::new("shard"), &error))
}

pub(crate) fn decode(path: &Path, bytes: Vec<u8>) -> Result<Vec<Record>, StoreError> {
    rows_of(&Table::decode(path, bytes, KIND)?)
}

/// A column of one value for each row.
fn column<'r, T: Cell>(rows: &[&'r Record], name: &str, value: impl Fn(&'r Record) -> T) -> Column {
    T::column(name, rows.iter().map(|row| value(row)).collect())
}

/// A type that a column can be made of.
trait Cell: Sized {
    fn column(name: &str, values: Vec<Self>) -> Column;
}

macro_rules! cells {
    ($($kind:ty),*) => {
        $(impl Cell for $kind {
            fn column(name: &str, values: Vec<Self>) -> Column {
                Column::new(name.into(), values)
            }
        })*
    };
}

cells!(u64, u32, bool, Option<u64>, Option<i32>, &str, Option<&str>);

fn frame_of(rows: &[&Record]) -> PolarsResult<DataFrame> {
    let mut columns = cell_columns(rows);
    columns.extend(limit_columns(rows));
    columns.extend(outcome_columns(rows));
    columns.extend(time_columns(rows));
    columns.extend(machine_columns(rows));
    DataFrame::new(rows.len(), columns)
}

fn cell_columns(rows: &[&Record]) -> Vec<Column> {
    vec![
        column(rows, "schema", |r| r.schema),
        column(rows, "cell", |r| r.cell.as_str()),
        column(rows, "repetition", |r| r.repetition),
        column(rows, "lane", |r| r.lane.name()),
        column(rows, "suite", |r| r.suite.as_str()),
        column(rows, "workload", |r| r.workload.as_str()),
        column(rows, "instance", |r| r.instance.as_str()),
        column(rows, "buffers", |r| r.buffers),
        column(rows, "planner", |r| r.planner.as_str()),
        column(rows, "planner_version", |r| r.planner_version.as_str()),
        column(rows, "parameters", |r| r.parameters.as_str()),
        column(rows, "seed", |r| r.seed),
    ]
}

fn limit_columns(rows: &[&Record]) -> Vec<Column> {
    vec![
        column(rows, "wall_limit_ns", |r| r.wall_limit_ns),
        column(rows, "memory_limit_bytes", |r| r.memory_limit_bytes),
        column(rows, "work_limit", |r| r.work_limit),
        column(rows, "target_bytes", |r| r.target_bytes),
        column(rows, "mechanism", |r| r.mechanism.as_str()),
    ]
}

fn outcome_columns(rows: &[&Record]) -> Vec<Column> {
    vec![
        column(rows, "status", |r| r.status.name()),
        column(rows, "stop", |r| r.stop.as_deref()),
        column(rows, "reason", |r| r.reason.as_str()),
        column(rows, "exit_code", |r| r.exit_code),
        column(rows, "signal", |r| r.signal),
        column(rows, "stderr_tail", |r| r.stderr_tail.as_str()),
        column(rows, "height", |r| r.height),
        column(rows, "load", |r| r.load),
        column(rows, "relaxed_load", |r| r.relaxed_load),
        column(rows, "bound", |r| r.bound),
        column(rows, "bound_evidence", |r| r.bound_evidence.as_str()),
        column(rows, "bound_scope", |r| r.bound_scope.as_str()),
        column(rows, "hand_overs", |r| r.hand_overs),
        column(rows, "plan", |r| r.plan.as_deref()),
    ]
}

fn time_columns(rows: &[&Record]) -> Vec<Column> {
    let points = |part: fn(&Point) -> u64| {
        rows.iter().map(move |r| r.trajectory.iter().map(|p| Some(part(p))).collect::<Vec<_>>())
    };
    let heights = rows.iter().map(|r| r.trajectory.iter().map(|p| p.height).collect());
    vec![
        lists_u64("samples_ns", rows.iter().map(|r| r.samples_ns.as_slice())),
        column(rows, "reported_ns", |r| r.reported_ns),
        column(rows, "cpu_ns", |r| r.cpu_ns),
        column(rows, "work", |r| r.work),
        column(rows, "peak_rss_bytes", |r| r.peak_rss_bytes),
        lists_opt_u64("trajectory_elapsed_ns", points(|p| p.elapsed_ns)),
        lists_opt_u64("trajectory_height", heights),
        lists_opt_u64("trajectory_bound", points(|p| p.bound)),
        column(rows, "started_ns", |r| r.started_ns),
    ]
}

fn machine_columns(rows: &[&Record]) -> Vec<Column> {
    vec![
        column(rows, "machine_host", |r| r.provenance.host.as_str()),
        column(rows, "machine_cpu", |r| r.provenance.cpu.as_str()),
        column(rows, "machine_cores", |r| r.provenance.cores),
        column(rows, "machine_kernel", |r| r.provenance.kernel.as_str()),
        column(rows, "machine_governor", |r| r.provenance.governor.as_str()),
        column(rows, "machine_turbo", |r| r.provenance.turbo.as_str()),
        column(rows, "machine_load_average_milli", |r| r.provenance.load_average_milli),
        column(rows, "machine_concurrency", |r| r.provenance.concurrency),
        column(rows, "machine_git_commit", |r| r.provenance.git_commit.as_str()),
        column(rows, "machine_git_dirty", |r| r.provenance.git_dirty),
        column(rows, "machine_rustc", |r| r.provenance.rustc.as_str()),
        column(rows, "machine_flags", |r| r.provenance.flags.as_str()),
    ]
}

/// Takes the next value of a column; the columns of a table are equally long.
fn next<T>(column: &mut std::vec::IntoIter<T>) -> T {
    column.next().expect("every column has a value for each row")
}

/// Reads the named columns and builds one row after the other from them; in the expression, each name is
/// the row's value of that column.
macro_rules! read_rows {
    ($table:expr, { $($field:ident: $getter:ident),* $(,)? }, $build:expr) => {{
        $( let mut $field = $table.$getter(stringify!($field))?.into_iter(); )*
        let mut rows = Vec::with_capacity($table.height());
        for _ in 0..$table.height() {
            $( let $field = next(&mut $field); )*
            rows.push($build);
        }
        rows
    }};
}

fn rows_of(table: &Table) -> Result<Vec<Record>, StoreError> {
    let mut machines = machines_of(table)?.into_iter();
    let mut trajectories = trajectories_of(table)?.into_iter();
    // Rows of before there were external planners have no such column.
    let nothing = || Ok(vec![None; table.height()]);
    let reported = if table.has("reported_ns") { table.opt_u64("reported_ns") } else { nothing() };
    let mut reported = reported?.into_iter();
    Ok(read_rows!(table, {
        schema: u32, cell: text, repetition: u32, lane: text, suite: text, workload: text, instance: text,
        buffers: u64, planner: text, planner_version: text, parameters: text, seed: u64,
        wall_limit_ns: opt_u64, memory_limit_bytes: opt_u64, work_limit: opt_u64, target_bytes: opt_u64,
        mechanism: text, status: text, stop: opt_text, reason: text, exit_code: opt_i32, signal: opt_i32,
        stderr_tail: text, height: opt_u64, load: u64, relaxed_load: u64, bound: u64, bound_evidence: text,
        bound_scope: text, hand_overs: u64, plan: opt_text, samples_ns: lists_u64, cpu_ns: opt_u64,
        work: u64, peak_rss_bytes: opt_u64, started_ns: u64,
    }, Record {
        lane: Lane::from_name(&lane).ok_or_else(|| table.bad(&format!("`{lane}` is not a lane")))?,
        status: Status::from_name(&status).ok_or_else(|| table.bad(&format!("`{status}` is not a status")))?,
        provenance: next(&mut machines),
        trajectory: next(&mut trajectories),
        reported_ns: next(&mut reported),
        schema, cell, repetition, suite, workload, instance, buffers, planner, planner_version, parameters,
        seed, wall_limit_ns, memory_limit_bytes, work_limit, target_bytes, mechanism, stop, reason,
        exit_code, signal, stderr_tail, height, load, relaxed_load, bound, bound_evidence, bound_scope,
        hand_overs, plan, samples_ns, cpu_ns, work, peak_rss_bytes, started_ns,
    }))
}

fn machines_of(table: &Table) -> Result<Vec<Provenance>, StoreError> {
    Ok(read_rows!(table, {
        machine_host: text, machine_cpu: text, machine_cores: u32, machine_kernel: text,
        machine_governor: text, machine_turbo: text, machine_load_average_milli: u64,
        machine_concurrency: u32, machine_git_commit: text, machine_git_dirty: bool, machine_rustc: text,
        machine_flags: text,
    }, Provenance {
        host: machine_host,
        cpu: machine_cpu,
        cores: machine_cores,
        kernel: machine_kernel,
        governor: machine_governor,
        turbo: machine_turbo,
        load_average_milli: machine_load_average_milli,
        concurrency: machine_concurrency,
        git_commit: machine_git_commit,
        git_dirty: machine_git_dirty,
        rustc: machine_rustc,
        flags: machine_flags,
    }))
}

fn trajectories_of(table: &Table) -> Result<Vec<Vec<Point>>, StoreError> {
    Ok(read_rows!(table, {
        trajectory_elapsed_ns: lists_u64, trajectory_height: lists, trajectory_bound: lists_u64,
    }, {
        let lengths = [trajectory_elapsed_ns.len(), trajectory_height.len(), trajectory_bound.len()];
        if lengths.iter().any(|&length| length != lengths[0]) {
            return Err(table.bad(&"the columns of a trajectory have different lengths"));
        }
        let points = trajectory_elapsed_ns.into_iter().zip(trajectory_height).zip(trajectory_bound);
        points.map(|((elapsed_ns, height), bound)| Point { elapsed_ns, height, bound }).collect()
    }))
}
