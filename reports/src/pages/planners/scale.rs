//! The page on scale: the growth of time, memory and height with the number of buffers.

use std::collections::BTreeSet;

use planlab_results::scale::{Curve, ScalePoint};
use planlab_results::statistics::{PowerFit, median};
use planlab_results::table::{CellValue, Table, columns};

use super::ratios::{decimal_text, whole_text};
use crate::data::nets::parts::time_figures;
use crate::data::planners::compare;
use crate::data::planners::model::Model;
use crate::figures::coord::whole;
use crate::figures::plots::time;
use crate::figures::{Drawing, Series};
use crate::format::{as_real, format_nanoseconds, format_seconds};
use crate::site::Site;
use crate::site::output::markdown::page_files;
use crate::site::page::{Menu, Page, Piece, Text};

pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let (model, baseline) = (site.model, site.options.baseline.as_str());
    let question = "How does planning time grow?";
    let curves = &model.curves;
    let mut page = Page::new("scale.html", question).in_menu(Menu::Planners, question);
    let (fits, points) = (fit_table(curves), point_table(curves));
    page.pieces.extend(over_all(model).map(|(drawing, caption)| Piece::chapter(drawing, caption)));
    let caption = format!("Median planning time of {baseline}, of cells that ran alone.");
    let nets = time_figures(model, baseline).into_iter();
    let nets = nets.map(|drawing| Piece::chapter(drawing, caption.as_str()));
    if points.rows.is_empty() {
        let suite =
            "No planner ran on two sizes of one family. The suite for it is `scale`: `just bench-scale`.";
        let mut page = page.with([Piece::note(Text::from_marked(suite))]).with(nets);
        page.files = vec![fits, points];
        return Some(page);
    }
    let note = Text::from_marked(
        "The workloads of a family differ only in size and seed. An exponent of 1 means that twice the buffers take \
         twice the time; at 2 they take four times as long. The same as Markdown: `planlab scale RESULTS -o DIR`.",
    );
    let families = curves.chunk_by(|a, b| a.family == b.family);
    let figures = families.filter_map(|family| family_figure(model, family));
    let figures = figures.map(|(drawing, caption)| Piece::chapter(drawing, caption));
    let page = page.with([Piece::note(note)]).with(figures).with(nets);
    let mut page = page.with([
        Piece::heading("Exponents"),
        Piece::Table(without_noise(&fits)),
        Piece::note(files_of(&fits)),
        Piece::heading("All points"),
        Piece::Folded(format!("All {} points", points.rows.len()), points),
    ]);
    page.files = vec![fits];
    Some(page)
}

/// Links to the files of a table that a page shows in part.
fn files_of(table: &Table) -> Text {
    let file = |end: &str| format!("tables/{}.{end}", table.name);
    Text::from("With all digits: ").link("CSV", file("csv")).plain(" ").link("LaTeX", file("tex"))
}

/// The exponents for people: an interval from three points or fewer is noise, and is not shown.
fn without_noise(fits: &Table) -> Table {
    const FEW: u64 = 3;
    let mut shown = Table { name: String::new(), ..fits.clone() };
    let at = |key: &str| fits.columns.iter().position(|column| column.key == key);
    for figure in ["time", "memory"] {
        let ends = [at(&format!("{figure}_from")), at(&format!("{figure}_to"))];
        let Some(points) = at(&format!("{figure}_points")) else { continue };
        for row in &mut shown.rows {
            if matches!(row[points], CellValue::Count(points) if points <= FEW) {
                for end in ends.into_iter().flatten() {
                    row[end] = CellValue::text("noise");
                }
            }
        }
    }
    shown
}

/// The most series in a figure of times; more cannot be distinguished.
const SERIES: usize = 12;

/// Planning time against size over all workloads, of the planners that the summary compares: those on its front, then
/// the best of each family.
fn over_all(model: &Model) -> Option<(Drawing, String)> {
    let compared = model.compared.as_ref()?;
    let chosen = compared.best_variants(SERIES);
    let series = chosen.iter().enumerate().map(|(number, one)| Series { label: one.label.clone(), number });
    let mut all: Vec<time::Timings> = series.map(|series| (series, Vec::new())).collect();
    for cell in model.cells.iter().filter(|cell| cell.target_bytes.is_none()) {
        let Some(at) = chosen.iter().position(|one| one.planner == cell.planner_number) else { continue };
        let Some(time) = cell.time_ns else { continue };
        all[at].1.push(time::Timing {
            workload: cell.workload.to_string(),
            buffers: cell.buffers.max(1),
            nanoseconds: time.max(1.0),
            is_cut: cell.is_cut(),
        });
    }
    let drawing = time::plot_times("Planning time against size", &all)?;
    let caption = format!(
        "Median of the samples of cells that ran alone. The planners are those to which no other is both faster and \
         closer, and the best variant of further families, {SERIES} at most. The lines are least-squares fits over \
         workloads of 50 buffers and more; the legend gives their exponents."
    );
    Some((drawing, caption))
}

fn family_figure(model: &Model, family: &[Curve]) -> Option<(Drawing, String)> {
    let shown = shown_curves(model, family);
    let series = |(number, curve): (usize, &&Curve)| Series { label: curve.label.clone(), number };
    let timings: Vec<time::Timings> = shown
        .iter()
        .enumerate()
        .map(|numbered| (series(numbered), numbered.1.points.iter().filter_map(point_timing).collect()))
        .collect();
    let drawing = time::plot_times(&format!("Planning time against size: {}", family[0].family), &timings)?;
    let rest = family.len() - shown.len();
    let rest = if rest == 0 { String::new() } else { format!(" {rest} further planners are in the table.") };
    let caption = format!(
        "Median of the samples of cells that ran alone; a cell without an answer is no point. The lines are \
         least-squares fits, and the legend gives their exponents. A run that its time limit cut is drawn and not \
         fitted.{rest}"
    );
    Some((drawing, caption))
}

/// The curves of a family that its figure shows: those of the planners on the summary's front, then one for each family
/// of planners, the quickest on its largest size first.
fn shown_curves<'c>(model: &Model, family: &'c [Curve]) -> Vec<&'c Curve> {
    let front = model.compared.iter().flat_map(|compared| compared.pareto_front());
    let front: Vec<&str> = front.map(|one| one.label.as_str()).collect();
    let largest = |curve: &Curve| {
        let timed = curve.points.iter().filter_map(|point| Some((point.buffers, point.time_ns?)));
        timed.max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.total_cmp(&a.1)))
    };
    let mut order: Vec<&Curve> = family.iter().collect();
    order.sort_by(|a, b| {
        let rank = |curve: &Curve| (!front.contains(&curve.label.as_str()), largest(curve));
        let ((a_rest, a), (b_rest, b)) = (rank(a), rank(b));
        let ((a_size, a_time), (b_size, b_time)) = (a.unwrap_or_default(), b.unwrap_or_default());
        a_rest.cmp(&b_rest).then(b_size.cmp(&a_size)).then(a_time.total_cmp(&b_time))
    });
    let mut shown: Vec<&Curve> = Vec::new();
    for curve in order {
        let is_there = shown
            .iter()
            .any(|other| compare::planner_family(&other.label) == compare::planner_family(&curve.label));
        if shown.len() < SERIES && (!is_there || front.contains(&curve.label.as_str())) {
            shown.push(curve);
        }
    }
    shown
}

fn point_timing(point: &ScalePoint) -> Option<time::Timing> {
    Some(time::Timing {
        workload: point.workload.clone(),
        buffers: point.buffers.max(1),
        nanoseconds: point.time_ns?.max(1.0),
        is_cut: point.is_cut,
    })
}

fn fit_table(curves: &[Curve]) -> Table {
    Table::from_rows(
        "scale-fits",
        "Exponents: the slope of the least-squares line through the logarithms of size and figure, with its 95 % \
         interval; from three points or fewer the interval is noise. Time: over all sizes with an answer from runs that no \
         time limit cut. Memory: the peak resident memory of the process. From it the least is taken that a process of any planner had \
         on the family's smallest size (about the program's own, which does not grow), over sizes of 10 000 buffers and \
         more. Sizes without an answer, and sizes that the limit cut, are no points of the time: the exponent of a planner \
         that ran out of time covers the smaller sizes alone.",
        curves,
        columns!(|curve| {
            let without = curve.points.iter().filter(|point| !point.status.is_answer()).count();
            let cut = curve.points.iter().filter(|point| point.is_cut && point.status.is_answer()).count();
            let [time, time_from, time_to, time_points] = fit_values(curve.time.as_ref());
            let [memory, memory_from, memory_to, memory_points] = fit_values(curve.memory.as_ref());
            [
                ("family", "Family", CellValue::text(&curve.family)),
                ("planner", "Planner", CellValue::text(&curve.label)),
                ("time_exponent", "Time grows as n^", time),
                ("time_from", "from", time_from),
                ("time_to", "to", time_to),
                ("time_points", "Points", time_points),
                ("without_answer", "Without answer", CellValue::count(without)),
                ("cut", "Cut", CellValue::count(cut)),
                ("memory_exponent", "Memory grows as n^", memory),
                ("memory_from", "from", memory_from),
                ("memory_to", "to", memory_to),
                ("memory_points", "Points", memory_points),
            ]
        }),
    )
}

fn fit_values(fit: Option<&PowerFit>) -> [CellValue; 4] {
    let interval = fit.and_then(|fit| fit.exponent_interval);
    [
        CellValue::number(fit.map(|fit| fit.exponent)),
        CellValue::number(interval.map(|interval| interval.low)),
        CellValue::number(interval.map(|interval| interval.high)),
        CellValue::or_missing(fit.map(|fit| CellValue::count(fit.points))),
    ]
}

fn point_table(curves: &[Curve]) -> Table {
    Table::from_rows(
        "scale",
        "Every planner on every size. A cell without an answer has its status, a time-out its limit; a run that its time \
         limit cut says so. Seeds of the run are pooled: the median of all their samples, the most memory, the median of \
         their heights; if one has no answer, there is neither time nor height.",
        curves.iter().flat_map(|curve| curve.points.iter().map(move |p| (curve, p))),
        columns!(|(curve, point)| [
            ("family", "Family", CellValue::text(&curve.family)),
            ("planner", "Planner", CellValue::text(&curve.label)),
            ("buffers", "Buffers", CellValue::Count(point.buffers)),
            ("workload", "Workload", CellValue::text(&point.workload)),
            ("status", "Status", CellValue::text(end_word(point))),
            ("seeds", "Seeds", CellValue::count(point.seeds)),
            ("time_ns", "Time", CellValue::nanoseconds(point.time_ns)),
            ("peak_rss_bytes", "Memory", CellValue::bytes(point.peak_rss_bytes)),
            ("height_over_load", "Height / load", CellValue::number(point.height_over_load)),
        ]),
    )
}

fn end_word(point: &ScalePoint) -> String {
    let is_late = point.status == planlab_results::Status::Timeout;
    let limit = point.wall_limit_ns.filter(|_| is_late || point.is_cut);
    let limit = limit.map(|ns| format!(" after {}", format_nanoseconds(as_real(ns)))).unwrap_or_default();
    let cut = if point.is_cut && point.status.is_answer() { ", cut" } else { "" };
    format!("{}{cut}{limit}", point.status.name())
}

/// Growth with the number of buffers as text: name and content of each file. The page in Markdown has a table of
/// planners and sizes for each family and figure; the tables of all points and fits follow. `command` is the command
/// that makes them.
#[must_use]
pub fn scale_files(curves: &[Curve], command: &str) -> Vec<(String, String)> {
    let made = Text::from("Made by ").code(command).plain(".");
    let mut pieces = vec![Piece::text(made), Piece::text(Text::from_marked(WHAT))];
    for family in curves.chunk_by(|a, b| a.family == b.family) {
        pieces.push(Piece::heading(&family[0].family));
        for (title, shown, fit) in FIGURES {
            pieces.extend([Piece::text(title), Piece::Table(family_grid(family, shown, fit))]);
        }
    }
    let mut page = Page::new("scale.md", "Growth with the number of buffers").with(pieces);
    page.files = vec![all_points(curves), all_fits(curves)];
    page_files(&page)
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
suite, which says so.";

type Shown = fn(&ScalePoint) -> Option<f64>;
type Fitted = fn(&Curve) -> Option<PowerFit>;
/// The parts of a table: its title, the figure of a point, its format, and the fit.
type Measure = (&'static str, (Shown, fn(f64) -> String), Fitted);

const FIGURES: [Measure; 3] = [
    ("Planning time:", (|point| point.time_ns, |time| format_seconds(whole(time))), |curve| curve.time),
    ("Peak memory:", (|point| point.peak_rss_bytes.map(as_real), memory_text), |curve| curve.memory),
    ("Height over load:", (|point| point.height_over_load, |ratio| format!("{ratio:.4}")), |_| None),
];

fn family_grid(family: &[Curve], (figure, written): (Shown, fn(f64) -> String), fit: Fitted) -> Table {
    let sizes: BTreeSet<u64> =
        family.iter().flat_map(|curve| curve.points.iter().map(|point| point.buffers)).collect();
    let sized: Vec<String> = sizes.iter().map(|size| format!("n = {size}")).collect();
    let titles = std::iter::once("planner").chain(sized.iter().map(String::as_str)).chain(["exponent"]);
    let mut table = Table::new(&titles.collect::<Vec<_>>());
    for curve in family {
        let figures = sizes.iter().map(|&size| at_size(curve, size, figure, written));
        let fitted = fit(curve).map_or_else(String::new, |fit| exponent_text(&fit));
        table.push_texts(std::iter::once(curve.label.clone()).chain(figures).chain([fitted]));
    }
    table
}

/// The median over the workloads of a size, or the outcome of the first without a figure.
fn at_size(curve: &Curve, size: u64, figure: Shown, written: fn(f64) -> String) -> String {
    let points: Vec<&ScalePoint> = curve.points.iter().filter(|point| point.buffers == size).collect();
    let Some(first) = points.first() else { return "-".to_owned() };
    let values: Vec<f64> = points.iter().filter_map(|point| figure(point)).collect();
    let speaker = points.iter().find(|point| !point.status.is_answer());
    let cut = if points.iter().any(|point| point.is_cut) { " cut" } else { "" };
    match (speaker, median(&values)) {
        (None, Some(value)) => written(value) + cut,
        (Some(point), _) => ended_at(point),
        (None, None) => format!("({})", first.status.name()),
    }
}

fn ended_at(point: &ScalePoint) -> String {
    let limit = point.wall_limit_ns.filter(|_| point.status == planlab_results::Status::Timeout);
    let limit = limit.map(|ns| format!(" {}", format_seconds(ns))).unwrap_or_default();
    format!("{}{limit}", point.status.name())
}

fn exponent_text(fit: &PowerFit) -> String {
    let interval = fit.exponent_interval;
    let interval = interval.map(|i| format!("{:.2} to {:.2}, ", i.low, i.high)).unwrap_or_default();
    format!("{:.2} ({interval}{} points)", fit.exponent, fit.points)
}

fn memory_text(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

fn all_points(curves: &[Curve]) -> Table {
    let keys = "family planner workload buffers status seeds time_limit_ns time_ns cut peak_rss_bytes \
                height_over_load";
    let mut table = Table::for_file("scale", keys);
    for (curve, point) in curves.iter().flat_map(|curve| curve.points.iter().map(move |p| (curve, p))) {
        table.push_texts([
            curve.family.clone(),
            curve.label.clone(),
            point.workload.clone(),
            point.buffers.to_string(),
            point.status.name().to_owned(),
            point.seeds.to_string(),
            whole_text(point.wall_limit_ns),
            decimal_text(point.time_ns, 0),
            point.is_cut.to_string(),
            whole_text(point.peak_rss_bytes),
            decimal_text(point.height_over_load, 9),
        ]);
    }
    table
}

fn all_fits(curves: &[Curve]) -> Table {
    let keys = "family planner figure exponent from to points r_squared";
    let mut table = Table::for_file("scale-fits", keys);
    let fits = |curve: &Curve| [("time", curve.time), ("memory", curve.memory)];
    for (curve, (name, fit)) in curves.iter().flat_map(|curve| fits(curve).map(|fit| (curve, fit))) {
        let Some(fit) = fit else { continue };
        table.push_texts([
            curve.family.clone(),
            curve.label.clone(),
            name.to_owned(),
            decimal_text(Some(fit.exponent), 4),
            decimal_text(fit.exponent_interval.map(|interval| interval.low), 4),
            decimal_text(fit.exponent_interval.map(|interval| interval.high), 4),
            fit.points.to_string(),
            decimal_text(Some(fit.r_squared), 4),
        ]);
    }
    table
}
