//! `scale`: tables of how time, memory and height grow with the number of buffers.

use std::collections::BTreeSet;
use std::fmt::Write;

use planlab_files::NewFolder;
use planlab_results::scale::{Curve, ScalePoint, curves};
use planlab_results::statistics::PowerFit;
use serde_json::json;

use crate::cli::ScaleArgs;
use crate::inputs::records;
use crate::markdown::{csv, table};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::Output;
use crate::shell::quantity;
use crate::shell::target::write_tables;

pub(crate) fn run(args: &ScaleArgs, output: Output) -> Verdict {
    let folder = NewFolder::create(&args.output, "scale", &[&args.results])?;
    let records::Rows { rows, missing } = records::read_suite(&args.results, args.suite.as_deref())?;
    let curves = curves(&rows);
    if curves.is_empty() {
        let results = args.results.display();
        return Err(Failure::usage(format!(
            "{results} has no planner on two sizes of one family (keys like synthetic/chain/n1000/s0)"
        )));
    }
    let files = [
        ("scale.md", page(&curves, &command(args))),
        ("scale.csv", points_csv(&curves)),
        ("scale-fits.csv", fits_csv(&curves)),
    ];
    let about =
        json!({ "version": JSON_VERSION, "rows": rows.len(), "curves": curves.len(), "missing": missing });
    let text = format!("{} curves of {} rows", curves.len(), rows.len());
    let exit = write_tables(folder, &args.output, &files, (about, &text), output)?;
    Ok(records::exit(exit, missing.is_empty()))
}

fn command(args: &ScaleArgs) -> String {
    let suite = args.suite.as_ref().map(|suite| format!(" --suite {suite}")).unwrap_or_default();
    format!("planlab scale {}{suite} -o {}", args.results.display(), args.output.display())
}

const WHAT: &str = "\
Times are medians of the samples of cells that ran alone; a cell without an answer says how it ended, a time-out
after which limit. The exponent is that of the least-squares line through the logarithms of sizes and times, in
brackets its 95 % interval and the number of points; cells without an answer are no points, so that the exponent of a
planner that ran out of time is of the smaller sizes alone. A run that its time limit cut and that has a plan by then is
shown, marked `cut`, and is no point of the time's exponent: its time is the limit. Memory is the most that the process
had resident, with the program and the instance in it. Its exponent is of 10,000 buffers and more, and of the bytes above
the least that a process of any planner had on the family's smallest size: about that much is the program's and does not
grow. Of workloads that differ in their seed alone the median is shown, and each is a point. Seeds of the run on one
workload are one point: the median of all their samples, the most memory, the median of their heights (`seeds` in
scale.csv says how many they are); where one of them has no answer, the point has neither time nor height. A dash stands
where the suite has no cell: beyond the size that a planner is practical for (`planlab list planners`), or left out by the
suite, which says so.
";

fn page(curves: &[Curve], command: &str) -> String {
    let mut text = format!("# Growth with the number of buffers\n\nMade by `{command}`.\n\n{WHAT}\n");
    for family in curves.chunk_by(|a, b| a.family == b.family) {
        let _ = writeln!(text, "## {}\n", family[0].family);
        for (title, shown, fit) in FIGURES {
            let _ = writeln!(text, "{title}\n\n{}", grid(family, shown, fit));
        }
    }
    text
}

type Shown = fn(&ScalePoint) -> Option<f64>;
type Fitted = fn(&Curve) -> Option<PowerFit>;
/// What a table shows: its title, the figure of a point, how figures are written and what was fitted.
type Figure = (&'static str, (Shown, fn(f64) -> String), Fitted);

const FIGURES: [Figure; 3] = [
    ("Planning time:", (|point| point.time_ns, time), |curve| curve.time),
    ("Peak memory:", (|point| point.peak_rss_bytes.map(real), memory), |curve| curve.memory),
    ("Height over load:", (|point| point.height_over_load, |ratio| format!("{ratio:.4}")), |_| None),
];

fn grid(family: &[Curve], (figure, written): (Shown, fn(f64) -> String), fit: Fitted) -> String {
    let sizes: BTreeSet<u64> =
        family.iter().flat_map(|curve| curve.points.iter().map(|point| point.buffers)).collect();
    let mut header: Vec<String> = vec!["planner".to_owned()];
    header.extend(sizes.iter().map(|size| format!("n = {size}")));
    header.push("exponent".to_owned());
    let rows: Vec<Vec<String>> = family
        .iter()
        .map(|curve| {
            let mut row = vec![curve.label.clone()];
            row.extend(sizes.iter().map(|&size| at_size(curve, size, figure, written)));
            row.push(fit(curve).map_or_else(String::new, |fit| exponent(&fit)));
            row
        })
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    table(&header, &rows)
}

/// The median over the workloads of a size, or how the first without a figure ended.
fn at_size(curve: &Curve, size: u64, figure: Shown, written: fn(f64) -> String) -> String {
    let points: Vec<&ScalePoint> = curve.points.iter().filter(|point| point.buffers == size).collect();
    let Some(first) = points.first() else { return "-".to_owned() };
    let values: Vec<f64> = points.iter().filter_map(|point| figure(point)).collect();
    let speaker = points.iter().find(|point| !point.status.is_answer());
    let cut = if points.iter().any(|point| point.is_cut) { " cut" } else { "" };
    match (speaker, planlab_results::statistics::median(&values)) {
        (None, Some(value)) => written(value) + cut,
        (Some(point), _) => ended(point),
        (None, None) => format!("({})", first.status.name()),
    }
}

fn ended(point: &ScalePoint) -> String {
    let limit = point.wall_limit_ns.filter(|_| point.status == planlab_results::Status::Timeout);
    let limit = limit.map(|ns| format!(" {}", quantity::seconds(ns))).unwrap_or_default();
    format!("{}{limit}", point.status.name())
}

fn exponent(fit: &PowerFit) -> String {
    let interval = fit.exponent_interval;
    let interval = interval.map(|i| format!("{:.2} to {:.2}, ", i.low, i.high)).unwrap_or_default();
    format!("{:.2} ({interval}{} points)", fit.exponent, fit.points)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nanoseconds of a cell")]
fn time(nanoseconds: f64) -> String {
    quantity::seconds(nanoseconds as u64)
}

fn memory(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

#[expect(clippy::cast_precision_loss, reason = "bytes to read")]
fn real(number: u64) -> f64 {
    number as f64
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.digits$}"))
}

fn points_csv(curves: &[Curve]) -> String {
    let header = [
        "family",
        "planner",
        "workload",
        "buffers",
        "status",
        "seeds",
        "time_limit_ns",
        "time_ns",
        "cut",
        "peak_rss_bytes",
        "height_over_load",
    ];
    let row = |curve: &Curve, point: &ScalePoint| {
        vec![
            curve.family.clone(),
            curve.label.clone(),
            point.workload.clone(),
            point.buffers.to_string(),
            point.status.name().to_owned(),
            point.seeds.to_string(),
            point.wall_limit_ns.map_or_else(String::new, |ns| ns.to_string()),
            number(point.time_ns, 0),
            point.is_cut.to_string(),
            point.peak_rss_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
            number(point.height_over_load, 9),
        ]
    };
    let rows: Vec<Vec<String>> =
        curves.iter().flat_map(|curve| curve.points.iter().map(move |point| row(curve, point))).collect();
    csv(&header, &rows)
}

fn fits_csv(curves: &[Curve]) -> String {
    let header = ["family", "planner", "figure", "exponent", "from", "to", "points", "r_squared"];
    let mut rows = Vec::new();
    for curve in curves {
        for (name, fit) in [("time", curve.time), ("memory", curve.memory)] {
            let Some(fit) = fit else { continue };
            rows.push(vec![
                curve.family.clone(),
                curve.label.clone(),
                name.to_owned(),
                number(Some(fit.exponent), 4),
                number(fit.exponent_interval.map(|interval| interval.low), 4),
                number(fit.exponent_interval.map(|interval| interval.high), 4),
                fit.points.to_string(),
                number(Some(fit.r_squared), 4),
            ]);
        }
    }
    csv(&header, &rows)
}
