//! Curves over sizes: exponents, time-outs, builds and limits.

use crate::common::row;
use planlab_dsa::Stop;
use planlab_results::scale::{Curve, growth_curves};
use planlab_results::{Record, Status};

fn cell(planner: &str, buffers: u64, seconds: u64) -> Record {
    let mut record = row(&format!("{planner} {buffers} {seconds}"), 0);
    record.planner = planner.to_owned();
    record.workload = format!("synthetic/chain/n{buffers}/s0").into();
    (record.buffers, record.load, record.height) = (buffers, 100, Some(125));
    record.samples_ns = vec![seconds * 1_000_000_000];
    record.peak_rss_bytes = Some(1000 * buffers);
    record
}

fn by_label<'c>(curves: &'c [Curve], label: &str) -> &'c Curve {
    curves.iter().find(|curve| curve.label == label).expect("a curve")
}

#[test]
fn exponents_are_of_answers_alone_and_a_time_out_is_shown() {
    let mut rows: Vec<Record> =
        [(10, 1), (1000, 100), (100_000, 10_000)].map(|(n, time)| cell("linear", n, time)).to_vec();
    rows.extend([(10, 1), (100, 100), (1000, 10_000)].map(|(n, time)| cell("quadratic", n, time)));
    let late = cell("quadratic", 100_000, 60).with(|row| (row.status, row.height) = (Status::Timeout, None));
    rows.push(late);
    rows.push(cell("once", 10, 1));
    let curves = growth_curves(&rows).expect("curves");
    assert_eq!(curves.len(), 2, "one size is no curve");
    let exponent = |label: &str| by_label(&curves, label).time.expect("a fit").exponent;
    assert!((exponent("linear") - 1.0).abs() < 1e-9 && (exponent("quadratic") - 2.0).abs() < 1e-9);
    let quadratic = by_label(&curves, "quadratic");
    assert_eq!(quadratic.time.expect("a fit").points, 3);
    let last = quadratic.points.last().expect("four points");
    assert_eq!((last.status, last.time_ns, last.height_over_load), (Status::Timeout, None, None));
    assert_eq!(quadratic.points[0].height_over_load, Some(1.25));
    assert!(by_label(&curves, "linear").memory.is_none(), "one size from 10,000 on");
}

#[test]
fn the_latest_build_and_the_longest_limit_count() {
    let mut rows = vec![cell("p", 10, 1), cell("p", 100, 2), cell("p", 1000, 3)];
    let newer = cell("p", 100, 5).with(|row| (row.cell, row.started_ns) = ("new".to_owned(), 9));
    let longer = cell("p", 1000, 7).with(|row| row.wall_limit_ns = Some(60_000_000_000));
    let asked = cell("p", 1000, 1).with(|row| row.target_bytes = Some(100));
    rows.extend([newer, longer, asked]);
    let curves = growth_curves(&rows).expect("curves");
    let times: Vec<f64> = curves[0].points.iter().filter_map(|point| point.time_ns).collect();
    assert_eq!(times, [1e9, 5e9, 7e9]);
}

#[test]
fn seeds_of_the_run_are_pooled_and_counted_and_those_of_the_workload_are_points() {
    let seeded = |seed: u64, seconds: u64| {
        cell("p", 1000, seconds).with(|row| {
            row.seed = seed;
            row.height = Some(125 + seed);
            row.cell = format!("seed {seed}, {seconds} s");
        })
    };
    let shorter = seeded(3, 90).with(|row| row.wall_limit_ns = Some(1));
    let other = cell("p", 1000, 8).with(|row| row.workload = "synthetic/chain/n1000/s1".into());
    let rows = [cell("p", 10, 1), seeded(2, 6), seeded(0, 2), seeded(1, 4), shorter, other];
    let curves = growth_curves(&rows).expect("curves");
    let points = &curves[0].points;
    assert_eq!(points.iter().map(|point| point.seeds).collect::<Vec<_>>(), [1, 3, 1]);
    assert_eq!((points[1].time_ns, points[1].height_over_load), (Some(4e9), Some(1.26)));
    assert_eq!(points[2].time_ns, Some(8e9));
    let late = seeded(3, 60).with(|row| (row.status, row.height) = (Status::Timeout, None));
    let with_late = planlab_results::scale::growth_curves(&[&rows[..], &[late]].concat()).expect("curves");
    let point = &with_late[0].points[1];
    assert_eq!((point.status, point.seeds), (Status::Timeout, 4));
    assert_eq!((point.time_ns, point.height_over_load), (None, None), "one of four seeds has no answer");
}

#[test]
fn a_run_that_its_limit_cut_is_shown_and_not_fitted() {
    let mut rows = [(10, 1), (100, 10), (1000, 100)].map(|(n, time)| cell("p", n, time)).to_vec();
    rows.push(cell("p", 10_000, 120).with(|row| row.stop = Some(Stop::Deadline)));
    let curves = growth_curves(&rows).expect("curves");
    let (fit, last) = (curves[0].time.expect("a fit"), curves[0].points.last().expect("four points"));
    assert!(fit.points == 3 && (fit.exponent - 1.0).abs() < 1e-9, "{fit:?}");
    assert_eq!((last.time_ns, last.is_cut, last.status), (Some(120e9), true, Status::Feasible));
    assert!(curves[0].points[..3].iter().all(|point| !point.is_cut));
}

#[test]
fn memory_is_fitted_above_that_of_the_smallest_size() {
    const PROGRAM: u64 = 19 << 20;
    let rows = |planner: &'static str, sizes: &[u64]| -> Vec<Record> {
        let bytes = |n: u64| if n == 1000 { PROGRAM } else { PROGRAM + 40 * n };
        let row = |&n: &u64| cell(planner, n, 1).with(|row| row.peak_rss_bytes = Some(bytes(n)));
        sizes.iter().map(row).collect()
    };
    let mut all = rows("p", &[1000, 10_000, 100_000, 1_000_000]);
    all.extend(rows("late", &[10_000, 100_000]));
    let curves = growth_curves(&all).expect("curves");
    for label in ["p", "late"] {
        let fit = by_label(&curves, label).memory.expect("a fit");
        assert!((fit.exponent - 1.0).abs() < 1e-9, "{label}: {fit:?}");
    }
    assert_eq!(by_label(&curves, "p").memory.expect("a fit").points, 3, "the smallest size is no point");
}
