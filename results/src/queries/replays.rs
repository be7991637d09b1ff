//! Replays as a lazy frame.

use std::path::Path;

use polars::prelude::*;

use super::{columns, refused, rows::signed};
use crate::StoreError;
use crate::replay::{ReplayRow, read_rows};
use crate::statistics::{median, real};

/// The table `replays` of SQL; without rows where the store has none.
///
/// # Errors
///
/// As [`read_rows`].
pub(super) fn frame(dir: &Path) -> Result<LazyFrame, StoreError> {
    let rows = read_rows(dir)?;
    let known = columns::of("replays").map(|column| signed(column.name));
    let frame = DataFrame::new(rows.len(), columns(&rows)).map_err(refused)?;
    Ok(frame.lazy().select(known.collect::<Vec<_>>()))
}

fn columns(rows: &[ReplayRow]) -> Vec<Column> {
    vec![
        texts(rows, "workload", |r| Some(r.workload.as_str())),
        texts(rows, "contender", |r| Some(&r.contender)),
        texts(rows, "planner", |r| r.planner.as_deref()),
        texts(rows, "device", |r| Some(&r.device)),
        texts(rows, "device_name", |r| Some(&r.device_name)),
        texts(rows, "play", |r| Some(r.work.name())),
        numbers(rows, "threads", |r| Some(u64::from(r.threads))),
        numbers(rows, "repetition", |r| Some(u64::from(r.repetition))),
        texts(rows, "suite", |r| Some(&r.suite)),
        texts(rows, "status", |r| Some(r.status.name())),
        texts(rows, "reason", |r| Some(&r.reason)),
        numbers(rows, "requests", |r| Some(r.requests)),
        numbers(rows, "requested_peak", |r| Some(r.requested_peak)),
        numbers(rows, "reserved_peak", |r| Some(r.reserved_peak)),
        numbers(rows, "used_peak", |r| r.used_peak),
        numbers(rows, "physical_peak", |r| r.physical_peak),
        numbers(rows, "retained", |r| r.retained),
        shares(rows, "fragmentation", fragmentation),
        numbers(rows, "capacity", |r| r.capacity),
        numbers(rows, "propagations", |r| Some(r.propagations())),
        shares(rows, "time_ns", time_ns),
        numbers(rows, "alloc_median_ps", |r| r.alloc.map(|time| time.median_ps)),
        numbers(rows, "free_median_ps", |r| r.free.map(|time| time.median_ps)),
        numbers(rows, "device_allocations", |r| Some(r.device_allocations)),
        numbers(rows, "search_steps", |r| Some(r.search_steps)),
        numbers(rows, "lock_wait_ns", |r| r.lock_wait_ns),
        numbers(rows, "refusals", |r| r.refusals),
        numbers(rows, "warm_up", |r| Some(u64::from(r.warm_up))),
        column(rows, "is_steady", |r| r.is_steady),
        texts(rows, "cell", |r| Some(&r.cell)),
        texts(rows, "instance", |r| Some(&r.instance)),
        texts(rows, "plan", |r| r.plan.as_deref()),
        numbers(rows, "started_ns", |r| Some(r.started_ns)),
        texts(rows, "machine_host", |r| Some(&r.provenance.host)),
        texts(rows, "machine_cpu", |r| Some(&r.provenance.cpu)),
    ]
}

fn column<'r, T>(rows: &'r [ReplayRow], name: &str, value: impl Fn(&'r ReplayRow) -> T) -> Column
where
    Series: NamedFrom<Vec<T>, [T]>,
{
    let values: Vec<T> = rows.iter().map(value).collect();
    Series::new(name.into(), values).into_column()
}

fn texts(rows: &[ReplayRow], name: &str, value: impl Fn(&ReplayRow) -> Option<&str>) -> Column {
    let values: StringChunked = rows.iter().map(value).collect();
    values.with_name(name.into()).into_column()
}

fn numbers(rows: &[ReplayRow], name: &str, value: impl Fn(&ReplayRow) -> Option<u64>) -> Column {
    let values: UInt64Chunked = rows.iter().map(value).collect();
    values.with_name(name.into()).into_column()
}

fn shares(rows: &[ReplayRow], name: &str, value: impl Fn(&ReplayRow) -> Option<f64>) -> Column {
    let values: Float64Chunked = rows.iter().map(value).collect();
    values.with_name(name.into()).into_column()
}

fn fragmentation(row: &ReplayRow) -> Option<f64> {
    use planlab_dsa::Bytes;
    Some(planlab_dsa::fragmentation(Bytes::new(row.reserved_peak), Bytes::new(row.requested_peak)))
}

/// The median of the propagations; those of a sample share its time.
fn time_ns(row: &ReplayRow) -> Option<f64> {
    let times = row.samples.iter().filter(|sample| sample.propagations > 0);
    let times: Vec<f64> = times.map(|sample| real(sample.wall_ns) / f64::from(sample.propagations)).collect();
    median(&times)
}
