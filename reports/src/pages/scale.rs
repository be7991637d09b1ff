//! The page of sizes: how time, memory and height grow with the number of buffers.

use maud::{Markup, html};
use planlab_results::scale::{Curve, ScalePoint};
use planlab_results::statistics::PowerFit;

use super::index::Figure;
use super::layout::plot;
use crate::ReportError;
use crate::format::{nanoseconds, real};
use crate::model::Model;
use crate::plots::{Series, time};
use crate::table::{Table, Value};

/// What a page of sizes is made of.
pub(crate) struct Scale {
    pub(crate) points: Table,
    pub(crate) fits: Table,
    pub(crate) figures: Vec<Figure>,
}

impl Scale {
    pub(crate) fn new(model: &Model, curves: &[Curve]) -> Self {
        let families = curves.chunk_by(|a, b| a.family == b.family);
        let figures = families.filter_map(|family| figure(model, family)).collect();
        Self { points: points(curves), fits: fits(curves), figures }
    }
}

/// The body of the page.
pub(crate) fn body(scale: &Scale) -> Result<Markup, ReportError> {
    Ok(html! {
        h1 { "Growth with the number of buffers" }
        @if scale.points.rows.is_empty() {
            p.note {
                "No planner ran on two sizes of one family. The suite for it is " code { "scale" } ": "
                code { "just bench-scale" } "."
            }
        } @else {
            p.note {
                "A family is what keys share that differ in size and seed alone. The same as Markdown: "
                code { "planlab scale RESULTS -o DIR" } "."
            }
            (scale.fits.to_html(""))
            @for (drawing, caption) in &scale.figures {
                h2 { (drawing.title()) }
                (plot(drawing, caption)?)
            }
            h2 { "All points" }
            (scale.points.to_html(""))
        }
    })
}

fn figure(model: &Model, family: &[Curve]) -> Option<Figure> {
    let series = |(at, curve): (usize, &Curve)| {
        let known = model.planners.iter().position(|planner| planner.label == curve.label);
        // A planner has one look in all of a report, where the report knows it by this name.
        Series { label: curve.label.clone(), number: known.unwrap_or(at) }
    };
    let timings: Vec<time::Timings> = family
        .iter()
        .enumerate()
        .map(|numbered| (series(numbered), numbered.1.points.iter().filter_map(timing).collect()))
        .collect();
    let drawing = time::plot(&format!("Planning time against size: {}", family[0].family), &timings)?;
    let caption = "Median of the samples of cells that ran alone; cells without an answer are no points. The lines \
                   are least-squares fits, the legend gives their exponents; runs that their time limit cut are \
                   drawn and not fitted.";
    Some((drawing, caption.to_owned()))
}

fn timing(point: &ScalePoint) -> Option<time::Timing> {
    Some(time::Timing {
        workload: point.workload.clone(),
        buffers: real(point.buffers.max(1)),
        nanoseconds: point.time_ns?.max(1.0),
        is_cut: point.is_cut,
    })
}

fn fits(curves: &[Curve]) -> Table {
    let mut table = Table::new(
        "scale-fits",
        "Exponents: the least-squares line through the logarithms of size and figure, with the 95 % interval of \
         its slope. Time: over all sizes with an answer from runs that no time limit cut. Memory: the most that the \
         process had resident above the least that a process of any planner had on the family's smallest size \
         (about the program's own, which does not grow), over sizes of 10 000 buffers and more. Without answer, cut: \
         sizes that are no points of the time, so that the exponent of a planner that ran out of time is of the \
         smaller sizes alone.",
        &[
            ("family", "Family"),
            ("planner", "Planner"),
            ("time_exponent", "Time"),
            ("time_from", "from"),
            ("time_to", "to"),
            ("time_points", "Points"),
            ("without_answer", "Without answer"),
            ("cut", "Cut"),
            ("memory_exponent", "Memory"),
            ("memory_from", "from"),
            ("memory_to", "to"),
            ("memory_points", "Points"),
        ],
    );
    for curve in curves {
        let without = curve.points.iter().filter(|point| !point.status.is_answer()).count();
        let cut = curve.points.iter().filter(|point| point.is_cut && point.status.is_answer()).count();
        let mut row = vec![Value::text(&curve.family), Value::text(&curve.label)];
        row.extend(fit(curve.time.as_ref()));
        row.extend([without, cut].map(Value::count));
        row.extend(fit(curve.memory.as_ref()));
        table.push(row);
    }
    table
}

fn fit(fit: Option<&PowerFit>) -> [Value; 4] {
    let interval = fit.and_then(|fit| fit.exponent_interval);
    let number = |value: Option<f64>| Value::or_missing(value.map(Value::Number));
    [
        number(fit.map(|fit| fit.exponent)),
        number(interval.map(|interval| interval.low)),
        number(interval.map(|interval| interval.high)),
        Value::or_missing(fit.map(|fit| Value::count(fit.points))),
    ]
}

fn points(curves: &[Curve]) -> Table {
    let mut table = Table::new(
        "scale",
        "Every planner on every size. A cell without an answer has its status, a time-out its limit; a plan of a run \
         that its time limit cut says so. Seeds of the run are pooled: the median of all their samples, the most \
         memory, the median of their heights; where one has no answer, there is neither time nor height.",
        &[
            ("family", "Family"),
            ("planner", "Planner"),
            ("buffers", "Buffers"),
            ("workload", "Workload"),
            ("status", "Status"),
            ("seeds", "Seeds"),
            ("time_ns", "Time"),
            ("peak_rss_bytes", "Memory"),
            ("height_over_load", "Height / load"),
        ],
    );
    for (curve, point) in curves.iter().flat_map(|curve| curve.points.iter().map(move |p| (curve, p))) {
        table.push(vec![
            Value::text(&curve.family),
            Value::text(&curve.label),
            Value::Count(point.buffers),
            Value::text(&point.workload),
            Value::text(ended(point)),
            Value::count(point.seeds),
            Value::or_missing(point.time_ns.map(Value::Nanoseconds)),
            Value::or_missing(point.peak_rss_bytes.map(Value::Bytes)),
            Value::or_missing(point.height_over_load.map(Value::Number)),
        ]);
    }
    table
}

fn ended(point: &ScalePoint) -> String {
    let is_late = point.status == planlab_results::Status::Timeout;
    let limit = point.wall_limit_ns.filter(|_| is_late || point.is_cut);
    let limit = limit.map(|ns| format!(" after {}", nanoseconds(real(ns)))).unwrap_or_default();
    let cut = if point.is_cut && point.status.is_answer() { ", cut" } else { "" };
    format!("{}{cut}{limit}", point.status.name())
}
