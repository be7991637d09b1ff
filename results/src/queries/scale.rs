//! The growth of time, memory and height with the number of buffers, by planner and family of workloads.
//!
//! The keys of a family differ only in their segments `n<buffers>` and `s<seed>`: `synthetic/skip/kind=unet/n1000/s0`
//! belongs to `synthetic/skip/kind=unet`. Workloads that differ in `s<seed>` are separate points; seeds of the run on
//! one workload form one point, which states their number.

use std::collections::BTreeMap;

use planlab_dsa::Stop;
use polars::prelude::*;

use crate::StoreError;
use crate::columns::{Field as _, table};
use crate::rows::{Lane, Record, Status, planner_label};
use crate::statistics::{PowerFit, as_real, fit_power};
use crate::tables::{Tables, refused, rows, small};

/// Below this many buffers, the memory measured is mostly that of the process itself.
const MEMORY_FROM: u64 = 10_000;
/// The columns that identify a point.
const POINT: [&str; 3] = ["workload", "planner", "parameters"];

table! {
    /// The costs of a planner on one workload of a family, over all seeds of the run.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct ScalePoint as "" {
        /// The workload's key.
        pub workload: String,
        /// Its number of buffers.
        pub buffers: u64,
        /// The status of the first repetition without an answer; if all have one, that of the first.
        pub status: Status,
        /// The number of pooled seeds of the run.
        pub seeds: usize,
        /// The wall limit in nanoseconds.
        pub wall_limit_ns: Option<u64>,
        /// The median planning time of all samples that were taken alone, in nanoseconds; `None` if a seed has no
        /// answer.
        pub time_ns: Option<f64>,
        /// Whether the time limit ended one of the runs, so that the time reflects the limit more than the size.
        pub is_cut: bool,
        /// The most resident memory of the process in bytes, including the program and the instance.
        pub peak_rss_bytes: Option<u64>,
        /// The median over the seeds of the height over the load; `None` if a seed has no answer.
        pub height_over_load: Option<f64>,
    }
}

/// A planner over the sizes of a family.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Curve {
    /// The family: `synthetic/chain`.
    pub family: String,
    /// The planner with its parameters.
    pub label: String,
    /// By size.
    pub points: Vec<ScalePoint>,
    /// The growth of the time; `None` unless two sizes have a time that no limit cut short.
    pub time: Option<PowerFit>,
    /// The growth of the memory from 10,000 buffers on. It subtracts the least that any planner's process needed on the
    /// family's smallest size, which is the program's own share.
    pub memory: Option<PowerFit>,
}

/// The curves of rows in memory, as in [`Tables::growth_curves`].
///
/// # Errors
///
/// Like [`Tables::of_records`].
pub fn growth_curves(records: &[Record]) -> Result<Vec<Curve>, StoreError> {
    Tables::of_records(records)?.growth_curves()
}

impl Tables {
    /// The curves of all planners over all families with at least two sizes, by family and planner. Cells with a given
    /// capacity do not count. If a workload was run under several limits, the longest counts; with several builds, the
    /// latest.
    ///
    /// # Errors
    ///
    /// Errors of the store when its rows are read.
    pub fn growth_curves(&self) -> Result<Vec<Curve>, StoreError> {
        let points = small(self.growth_points().map_err(refused)?)?;
        let labels = points.text_column("planner")?.into_iter().zip(points.text_column("parameters")?);
        let labels = labels.map(|(planner, parameters)| planner_label(&planner, &parameters));
        Ok(assemble_curves(labels.zip(ScalePoint::read(&points, "")?)))
    }

    fn growth_points(&self) -> PolarsResult<LazyFrame> {
        let rows = self.sized_rows()?;
        let of_point = |frame: LazyFrame, value: Expr| frame.group_by(POINT.map(col)).agg([value]);
        let samples = rows.clone().filter(col("lane").eq(lit(Lane::Timing.name())));
        let options = ExplodeOptions { empty_as_null: false, keep_nulls: false };
        let samples = samples.explode(by_name(["samples_ns"], true, false), options);
        let times = of_point(samples, col("samples_ns").cast(DataType::Float64).median().alias("time_ns"));
        let mut by_seed = POINT.map(col).to_vec();
        by_seed.push(col("seed"));
        let heights = rows.clone().group_by(by_seed).agg([col("height").cast(DataType::Float64).median()]);
        let heights = of_point(heights, col("height").median().alias("middle_height"));
        let without = col("status").filter(rows::has_status(Status::is_answer).not()).first();
        let points =
            rows.sort(["seed", "repetition"], SortMultipleOptions::default()).group_by(POINT.map(col)).agg([
                col("buffers").first(),
                without.fill_null(col("status").first()).alias("status"),
                col("seed").n_unique().cast(DataType::UInt64).alias("seeds"),
                col("wall_limit_ns").first(),
                col("stop").eq(lit(Stop::Deadline.name())).fill_null(lit(false)).any(true).alias("is_cut"),
                col("peak_rss_bytes").max(),
                col("load").first(),
            ]);
        let join = |points: LazyFrame, other| {
            points.join(other, POINT.map(col), POINT.map(col), JoinArgs::new(JoinType::Left))
        };
        // Figures of some seeds say nothing about seeds without an answer.
        let answered =
            |value: Expr| when(rows::has_status(Status::is_answer)).then(value).otherwise(lit(NULL));
        let over_load = col("middle_height") / col("load").cast(DataType::Float64);
        let over_load = when(col("load").gt(lit(0_u64))).then(over_load).otherwise(lit(NULL));
        let derived =
            [answered(col("time_ns")).alias("time_ns"), answered(over_load).alias("height_over_load")];
        Ok(join(join(points, times), heights).with_columns(derived))
    }

    /// The rows that count, of workloads whose key states their size.
    fn sized_rows(&self) -> PolarsResult<LazyFrame> {
        let build = ["workload", "planner", "parameters", "limit", "seed"].map(col);
        let is_plain = col("parameters").eq(lit("")).or(col("parameters").eq(lit("null")));
        let sized = col("workload").str().contains(lit(r"(^|/)n\d+(/|$)"), true);
        let rows = self.rows.clone().filter(col("target_bytes").is_null().and(sized)).with_columns([
            when(is_plain).then(lit("{}")).otherwise(col("parameters")).alias("parameters"),
            col("wall_limit_ns").fill_null(lit(u64::MAX)).alias("limit"),
            col("started_ns").max().over([col("cell")])?.alias("ran"),
        ]);
        let of_builds =
            |column: &str| col(column).eq(col(column).max().over(build.clone()).expect("columns"));
        Ok(rows
            .filter(of_builds("ran"))
            .filter(of_builds("cell"))
            .filter(col("limit").eq(col("limit").max().over(POINT.map(col))?)))
    }
}

/// The points of one planner, by number of buffers and workload.
type PointsBySize = BTreeMap<(u64, String), ScalePoint>;

/// Builds curves from points, each with the label of its planner.
fn assemble_curves(points: impl Iterator<Item = (String, ScalePoint)>) -> Vec<Curve> {
    let mut curves: BTreeMap<(String, String), PointsBySize> = BTreeMap::new();
    for (label, point) in points {
        let Some(family) = size_family(&point.workload) else { continue };
        let size = (point.buffers, point.workload.clone());
        curves.entry((family, label)).or_default().insert(size, point);
    }
    let curves = curves.into_iter().map(|((family, label), points)| {
        let points: Vec<ScalePoint> = points.into_values().collect();
        Curve { family, label, time: fit_power(&times_by_size(&points)), memory: None, points }
    });
    let mut curves: Vec<Curve> = curves.collect();
    let smallest = smallest_sizes(&curves);
    for curve in &mut curves {
        let least = smallest.get(&curve.family).copied();
        curve.memory = least.and_then(|least| fit_power(&memory_by_size(&curve.points, least)));
    }
    curves.retain(|curve| curve.points.first().map(|p| p.buffers) != curve.points.last().map(|p| p.buffers));
    curves
}

/// The key without the segments for size and seed; `None` if it has no size.
fn size_family(key: &str) -> Option<String> {
    let is = |segment: &str, letter: char| {
        segment.strip_prefix(letter).is_some_and(|number| number.parse::<u64>().is_ok())
    };
    let segments: Vec<&str> = key.split('/').collect();
    segments.iter().any(|segment| is(segment, 'n')).then_some(())?;
    let rest: Vec<&str> =
        segments.into_iter().filter(|segment| !is(segment, 'n') && !is(segment, 's')).collect();
    Some(rest.join("/"))
}

/// The times to fit, by size.
fn times_by_size(points: &[ScalePoint]) -> Vec<(f64, f64)> {
    let whole = points.iter().filter(|point| !point.is_cut);
    whole.filter_map(|point| Some((as_real(point.buffers), point.time_ns?))).collect()
}

/// The smallest size of each family, and the least memory in bytes that any planner needed on it.
fn smallest_sizes(curves: &[Curve]) -> BTreeMap<String, (u64, u64)> {
    let mut smallest: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for curve in curves {
        for point in curve.points.iter().filter(|point| point.status.is_answer()) {
            let Some(bytes) = point.peak_rss_bytes else { continue };
            let own = (point.buffers, bytes);
            let least = smallest.entry(curve.family.clone()).or_insert(own);
            *least = own.min(*least);
        }
    }
    smallest
}

/// The memory to fit, by size: what larger instances need beyond the smallest one.
fn memory_by_size(points: &[ScalePoint], (buffers, bytes): (u64, u64)) -> Vec<(f64, f64)> {
    let from = MEMORY_FROM.max(buffers + 1);
    let large = points.iter().filter(|point| point.buffers >= from && point.status.is_answer());
    large
        .filter_map(|point| {
            Some((as_real(point.buffers), as_real(point.peak_rss_bytes?.saturating_sub(bytes))))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_the_key_without_size_and_seed() {
        let of = |key| size_family(key).unwrap_or_default();
        assert_eq!(of("synthetic/skip/kind=unet/n1000/s0"), "synthetic/skip/kind=unet");
        assert_eq!(of("synthetic/adversary/best-fit/n10/s12"), "synthetic/adversary/best-fit");
        for key in ["chainer/alexnet/train/b32", "minimalloc/a", "torch/n/s"] {
            assert_eq!(size_family(key), None, "{key}");
        }
    }
}
