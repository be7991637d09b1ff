//! How planners grow with the number of buffers: time, memory and height, by planner and family of workloads.
//!
//! A family is what keys share that differ in their segments `n<buffers>` and `s<seed>` alone:
//! `synthetic/skip/kind=unet/n1000/s0` belongs to `synthetic/skip/kind=unet`. Workloads that differ in their `s<seed>`
//! are a point each; seeds of the run on one workload are one point, which says how many they are.

use std::collections::BTreeMap;

use crate::StoreError;
use crate::fields::table;
use crate::queries::Tables;
use crate::record::{Record, Status};
use crate::statistics::{PowerFit, fit_power, real};

/// The memory of smaller instances is that of the process.
const MEMORY_FROM: u64 = 10_000;

table! {
    /// What a planner needed for one workload of a family, all seeds of the run together.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct ScalePoint as "" {
        /// The workload's key.
        pub workload: String,
        /// Its buffers.
        pub buffers: u64,
        /// How the first repetition without an answer ended; if there is none, the first of all.
        pub status: Status,
        /// How many seeds of the run are pooled.
        pub seeds: usize,
        /// The wall limit, nanoseconds.
        pub wall_limit_ns: Option<u64>,
        /// The median planning time of all samples that were taken alone, nanoseconds; `None` where a seed has no answer.
        pub time_ns: Option<f64>,
        /// Whether the time limit ended one of the runs: then the time says more of the limit than of the size.
        pub is_cut: bool,
        /// The most resident memory of the process, bytes; it holds the program and the instance too.
        pub peak_rss_bytes: Option<u64>,
        /// The median over the seeds of the height over the load; `None` where a seed has no answer.
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
    /// How the time grows; `None` unless two sizes have one that no limit cut.
    pub time: Option<PowerFit>,
    /// How the memory grows from 10,000 buffers on, above the least that a process of any planner needed on the
    /// family's smallest size: that much is the program's.
    pub memory: Option<PowerFit>,
}

/// The curves of rows that are in memory, as [`Tables::curves`] has them.
///
/// # Errors
///
/// As [`Tables::of_records`].
pub fn curves(records: &[Record]) -> Result<Vec<Curve>, StoreError> {
    Tables::of_records(records)?.curves()
}

/// The points of one planner by number of buffers and workload.
type PointsBySize = BTreeMap<(u64, String), ScalePoint>;

/// Curves of points, each with the label of its planner.
pub(crate) fn assemble(points: impl Iterator<Item = (String, ScalePoint)>) -> Vec<Curve> {
    let mut curves: BTreeMap<(String, String), PointsBySize> = BTreeMap::new();
    for (label, point) in points {
        let Some(family) = family(&point.workload) else { continue };
        let size = (point.buffers, point.workload.clone());
        curves.entry((family, label)).or_default().insert(size, point);
    }
    let curves = curves.into_iter().map(|((family, label), points)| {
        let points: Vec<ScalePoint> = points.into_values().collect();
        Curve { family, label, time: fit_power(&times(&points)), memory: None, points }
    });
    let mut curves: Vec<Curve> = curves.collect();
    let smallest = smallest(&curves);
    for curve in &mut curves {
        let least = smallest.get(&curve.family).copied();
        curve.memory = least.and_then(|least| fit_power(&memory(&curve.points, least)));
    }
    curves.retain(|curve| curve.points.first().map(|p| p.buffers) != curve.points.last().map(|p| p.buffers));
    curves
}

/// The key without the segments that say size and seed; `None` where none says the size.
fn family(key: &str) -> Option<String> {
    let is = |segment: &str, letter: char| {
        segment.strip_prefix(letter).is_some_and(|number| number.parse::<u64>().is_ok())
    };
    let segments: Vec<&str> = key.split('/').collect();
    segments.iter().any(|segment| is(segment, 'n')).then_some(())?;
    let rest: Vec<&str> =
        segments.into_iter().filter(|segment| !is(segment, 'n') && !is(segment, 's')).collect();
    Some(rest.join("/"))
}

/// The times that are fitted, by size.
fn times(points: &[ScalePoint]) -> Vec<(f64, f64)> {
    let whole = points.iter().filter(|point| !point.is_cut);
    whole.filter_map(|point| Some((real(point.buffers), point.time_ns?))).collect()
}

/// The smallest size of each family and the least memory that any planner needed on it, bytes.
fn smallest(curves: &[Curve]) -> BTreeMap<String, (u64, u64)> {
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

/// The memory that is fitted, by size: what larger instances need above the smallest one.
fn memory(points: &[ScalePoint], (buffers, bytes): (u64, u64)) -> Vec<(f64, f64)> {
    let from = MEMORY_FROM.max(buffers + 1);
    let large = points.iter().filter(|point| point.buffers >= from && point.status.is_answer());
    large
        .filter_map(|point| Some((real(point.buffers), real(point.peak_rss_bytes?.saturating_sub(bytes)))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_the_key_without_size_and_seed() {
        let of = |key| family(key).unwrap_or_default();
        assert_eq!(of("synthetic/skip/kind=unet/n1000/s0"), "synthetic/skip/kind=unet");
        assert_eq!(of("synthetic/adversary/best-fit/n10/s12"), "synthetic/adversary/best-fit");
        for key in ["chainer/alexnet/train/b32", "minimalloc/a", "torch/n/s"] {
            assert_eq!(family(key), None, "{key}");
        }
    }
}
