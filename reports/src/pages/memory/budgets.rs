//! The page on training within a budget: planlab and PyTorch's own ways to take less memory, by time and peak.

use planlab_results::framework::FrameworkRow;
use planlab_results::table::{CellValue, Table, columns};

use crate::data::budgets::{Answer, BudgetNet, BudgetSummary, Point};
use crate::data::rows::group_by;
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT};
use crate::format::{as_real, format_bytes, format_counted, format_nanoseconds, format_percent};
use crate::site::page::{Menu, Page, Piece, Text};
use crate::site::{Site, file_slug, make_unique};

/// The page; `None` without rows.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let nets = &site.frameworks.budgets;
    nets.first()?;
    let mut page = Page::new("budget.html", "Frameworks: under a budget")
        .in_menu(Menu::Memory, "What does a step of PyTorch cost in less memory?");
    page.pieces.extend(summary_sentence(&BudgetSummary::new(nets)).map(Piece::lead));
    page.pieces.push(Piece::note(Text::from_marked(
        "Training steps of PyTorch on the CPU, a process for each row. `planlab/compiled` and `planlab/eager` get a \
         capacity in bytes, a share of what the step takes with no limit. PyTorch's solvers `dp`, `greedy` and `ilp` get \
         a share of the bytes that are saved between the passes. *Counted*: the most bytes live at once, operation by operation. \
         *Measured*: resident memory above that before the step. Time is the least CPU time of some steps. Copies to \
         the host stay in buffers that exist before the step.",
    )));
    page.pieces.extend(unequal_piece(nets));
    page.pieces.extend(failure_piece(nets));
    let names = make_unique(nets.iter().map(|net| file_slug(&format!("budget-{}", net.sample.net))));
    for (net, name) in nets.iter().zip(&names) {
        page.pieces.push(Piece::heading(net.name()));
        page.pieces.push(Piece::Table(capacity_table(net, name)));
        page.pieces.extend(net_figure(net));
    }
    page.pieces.extend([Piece::heading("All steps"), Piece::Table(step_table(nets))]);
    Some(page)
}

/// How ours compares with PyTorch's best; `None` if no step of ours has a rival.
fn summary_sentence(summary: &BudgetSummary) -> Option<String> {
    let steps = |count: usize| format_counted(count as u64, "step");
    let time = summary.time.mean?;
    let unreached = match summary.time.failures {
        0 => String::new(),
        count => format!(" In {} ours has a peak that PyTorch's do not reach.", steps(count)),
    };
    let saved = summary.peak.mean.map_or(String::new(), |peak| {
        let count = steps(summary.peak.count);
        let (share, word) = (format_percent((1.0 - peak).abs()), if peak > 1.0 { "above" } else { "below" });
        format!(" In the same time the peak of ours is {share} {word} the least of PyTorch's ({count}).")
    });
    Some(format!(
        "At the same measured peak a step of ours takes {time:.3} times as long as PyTorch's fastest (geometric mean of {}).\
         {unreached}{saved}",
        steps(summary.time.count)
    ))
}

/// Contenders that computed something else.
fn unequal_piece(nets: &[BudgetNet]) -> Option<Piece> {
    let unequal = nets.iter().flat_map(|net| net.points.iter().filter(|point| !point.is_equal));
    let names: Vec<String> = unequal.map(|point| step_name(&point.row)).collect();
    let text =
        "Losses or gradients differ from those without a limit, so these steps are compared with no others";
    (!names.is_empty()).then(|| Piece::alert(format!("{text}: {}.", names.join("; "))))
}

fn failure_piece(nets: &[BudgetNet]) -> Option<Piece> {
    let failures = nets.iter().flat_map(|net| &net.failures);
    let reasons: Vec<String> = failures.map(|row| format!("{}: {}", step_name(row), row.reason)).collect();
    let count = format_counted(reasons.len() as u64, "row");
    (!reasons.is_empty()).then(|| Piece::alert(format!("Without figures: {count}. {}.", reasons.join("; "))))
}

/// For example `gpt, torch/dp budget=0.3`.
fn step_name(row: &FrameworkRow) -> String {
    format!("{}, {} {}", row.net, row.contender, row.settings).trim_end().to_owned()
}

fn capacity_table(net: &BudgetNet, name: &str) -> Table {
    let capacities = net.capacities().into_iter();
    let answers = capacities
        .flat_map(|capacity| net.answers_within(capacity).into_iter().map(move |answer| (capacity, answer)));
    Table::from_rows(
        name,
        "Each capacity, and what a contender has within it by its counted peak; of PyTorch's the fastest setting that fits. \
         Time: over the step with no limit. Peaks: over the capacity. Least: the least counted peak, if no step fits.",
        answers,
        columns!(|(capacity, Answer { contender, point, least_peak })| {
            let over = |peak: fn(&Point) -> u64| point.map(|point| as_real(peak(point)) / as_real(capacity));
            let time = point.and_then(|point| time_over_reference(net, point));
            [
                ("capacity_bytes", "Capacity", CellValue::Bytes(capacity)),
                ("contender", "Contender", CellValue::text(contender)),
                (
                    "settings",
                    "Settings",
                    CellValue::text(point.map_or("", |point| point.row.settings.as_str())),
                ),
                ("time", "Time", CellValue::number(time)),
                ("counted_share", "Counted peak", CellValue::share(over(|point| point.counted_peak))),
                ("measured_share", "Measured peak", CellValue::share(over(|point| point.measured_peak))),
                ("least_bytes", "Least", CellValue::bytes(least_peak)),
            ]
        }),
    )
}

fn time_over_reference(net: &BudgetNet, point: &Point) -> Option<f64> {
    Some(as_real(point.step_ns) / as_real(net.reference()?.step_ns))
}

/// Time against measured peak, a line for each contender.
fn net_figure(net: &BudgetNet) -> Option<Piece> {
    let contenders = group_by(&net.points, |point| point.series.number);
    let curves: Vec<Curve> = contenders.into_values().map(|points| contender_curve(net, points)).collect();
    let ((_, most), (fastest, slowest)) = curves::ranges(&curves)?;
    let x = Axis::bytes("measured peak of a step", most);
    let y =
        Axis::numbers("CPU time, relative to no limit", slowest).over_range(fastest * 0.95..slowest * 1.05);
    let drawing = curves::plot(&format!("Step time against peak: {}", net.name()), HEIGHT, (x, y), curves)?;
    let caption = "Each mark is a step at a capacity or a budget; the lower left is best.";
    Some(Piece::figure(drawing, caption))
}

fn contender_curve(net: &BudgetNet, mut points: Vec<&Point>) -> Curve {
    points.sort_by_key(|point| point.measured_peak);
    let mark = |point: &&Point| {
        let time = time_over_reference(net, point);
        let peak = format_bytes(point.measured_peak);
        let tip = format!("{} {peak}, {}", point.row.settings, format_nanoseconds(as_real(point.step_ns)));
        curves::Point::new(&point.series, as_real(point.measured_peak), time, tip.trim_start())
    };
    Curve::joined(points[0].series.clone(), points.iter().map(mark).collect())
}

fn step_table(nets: &[BudgetNet]) -> Table {
    let steps = nets.iter().flat_map(|net| net.points.iter().map(move |point| (net, point)));
    Table::from_rows(
        "budgets",
        "Every measured step. Recomputed: measured time of what runs again, as planned. Copied: to the host and back. \
         Equal: whether losses and all gradients are those with no limit, bit for bit.",
        steps,
        columns!(|(net, point)| {
            let row = &point.row;
            let budget = row.budget.as_ref();
            [
                ("framework", "Framework", CellValue::text(&row.framework)),
                ("net", "Net", CellValue::text(&row.net)),
                ("batch", "Batch", CellValue::Count(row.batch)),
                ("threads", "Threads", CellValue::Count(u64::from(row.threads))),
                ("contender", "Contender", CellValue::text(&point.series.label)),
                ("settings", "Settings", CellValue::text(&row.settings)),
                ("capacity_bytes", "Capacity", CellValue::bytes(point.capacity())),
                ("counted_bytes", "Counted peak", CellValue::Bytes(point.counted_peak)),
                ("measured_bytes", "Measured peak", CellValue::Bytes(point.measured_peak)),
                ("cpu_ns", "CPU time", CellValue::Nanoseconds(as_real(point.step_ns))),
                ("time", "over no limit", CellValue::number(time_over_reference(net, point))),
                (
                    "wall_ns",
                    "Wall time",
                    CellValue::nanoseconds(row.wall_ns.iter().min().map(|ns| as_real(*ns))),
                ),
                (
                    "recompute_ns",
                    "Recomputed",
                    CellValue::nanoseconds(budget.and_then(|budget| budget.recompute_ns).map(as_real)),
                ),
                ("copied_bytes", "Copied", CellValue::bytes(budget.and_then(|budget| budget.copied_bytes))),
                ("planning_ns", "Planning", CellValue::nanoseconds(row.planning_ns.map(as_real))),
                ("equal", "Equal", CellValue::text(if point.is_equal { "yes" } else { "no" })),
            ]
        }),
    )
}
