//! How planners grow with the number of buffers: time, memory and height, by planner and family of workloads.
//!
//! A family is what keys share that differ in their segments `n<buffers>` and `s<seed>` alone:
//! `synthetic/skip/kind=unet/n1000/s0` belongs to `synthetic/skip/kind=unet`. Workloads that differ in their `s<seed>`
//! are a point each; seeds of the run on one workload are one point, which says how many they are.

use std::collections::{BTreeMap, BTreeSet};

use crate::cells::latest_builds;
use crate::record::{Lane, Record, Status};
use crate::statistics::{PowerFit, fit_power, median, real};

/// The memory of smaller instances is that of the process.
const MEMORY_FROM: u64 = 10_000;

/// What a planner needed for one workload of a family, all seeds of the run together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScalePoint {
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
    /// The median planning time of all samples that were taken alone, nanoseconds; `None` without an answer.
    pub time_ns: Option<f64>,
    /// The most resident memory of the process, bytes; it holds the program and the instance too.
    pub peak_rss_bytes: Option<u64>,
    /// The lowest height over the load; `None` without an answer.
    pub height_over_load: Option<f64>,
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
    /// How the time grows; `None` unless two sizes have one.
    pub time: Option<PowerFit>,
    /// How the memory grows from 10,000 buffers on.
    pub memory: Option<PowerFit>,
}

/// The rows of a planner by number of buffers and workload.
type RowsBySize<'r> = BTreeMap<(u64, String), Vec<&'r Record>>;

/// The curves of all planners over all families that have two sizes or more, by family and planner. Cells that were
/// asked for a capacity are another question and do not count; of a workload that was run under several limits the
/// longest counts, of several builds the latest.
#[must_use]
pub fn curves(records: &[Record]) -> Vec<Curve> {
    let mut curves: BTreeMap<(String, String), RowsBySize<'_>> = BTreeMap::new();
    let rows = records.iter().filter(|row| row.target_bytes.is_none() && family(&row.workload).is_some());
    // Ascending limits: the longest comes last and stays.
    let cells = latest_builds(rows, |row| {
        (row.workload.clone(), row.planner_label(), row.wall_limit_ns.unwrap_or(u64::MAX), row.seed)
    });
    for ((workload, label, _, _), rows) in cells {
        let (Some(family), Some(first)) = (family(&workload), rows.first()) else { continue };
        let (buffers, limit) = (first.buffers, first.wall_limit_ns);
        let pooled = curves.entry((family, label)).or_default().entry((buffers, workload)).or_default();
        pooled.retain(|row| row.wall_limit_ns == limit);
        pooled.extend(rows);
    }
    let curves = curves.into_iter().map(|((family, label), points)| {
        let points: Vec<ScalePoint> = points.into_values().filter_map(|rows| point(&rows)).collect();
        curve(family, label, points)
    });
    curves
        .filter(|curve| curve.points.first().map(|p| p.buffers) != curve.points.last().map(|p| p.buffers))
        .collect()
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

fn point(rows: &[&Record]) -> Option<ScalePoint> {
    let first = rows.iter().find(|row| !row.status.is_answer()).or(rows.first())?;
    let seeds: BTreeSet<u64> = rows.iter().map(|row| row.seed).collect();
    let answers = || rows.iter().filter(|row| row.status.is_answer());
    let samples: Vec<f64> = answers()
        .filter(|row| row.lane == Lane::Timing)
        .flat_map(|row| &row.samples_ns)
        .map(|&ns| real(ns))
        .collect();
    let height = answers().filter_map(|row| row.height).min().filter(|_| first.load > 0);
    Some(ScalePoint {
        workload: first.workload.clone(),
        buffers: first.buffers,
        status: first.status,
        seeds: seeds.len(),
        wall_limit_ns: first.wall_limit_ns,
        time_ns: median(&samples),
        peak_rss_bytes: rows.iter().filter_map(|row| row.peak_rss_bytes).max(),
        height_over_load: height.map(|height| real(height) / real(first.load)),
    })
}

fn curve(family: String, label: String, points: Vec<ScalePoint>) -> Curve {
    let times: Vec<(f64, f64)> =
        points.iter().filter_map(|point| Some((real(point.buffers), point.time_ns?))).collect();
    let memory: Vec<(f64, f64)> = points
        .iter()
        .filter(|point| point.buffers >= MEMORY_FROM && point.status.is_answer())
        .filter_map(|point| Some((real(point.buffers), real(point.peak_rss_bytes?))))
        .collect();
    Curve { family, label, time: fit_power(&times), memory: fit_power(&memory), points }
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
