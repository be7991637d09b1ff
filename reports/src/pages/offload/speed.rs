//! Throughput by batch or input size, for every scheduler and machine.

use std::collections::BTreeSet;

use planlab_results::schedule::ScheduleRow;
use planlab_results::table::{CellValue, Table, columns};

use super::tables::{self, fits, range, rate, subject_of, time_value};
use crate::data::papers::published::PAPER;
use crate::data::schedules::asked::{Sweep, limit_width};
use crate::data::schedules::{Case, Run, Schedules, gigabytes};
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{as_real, format_count, format_nanoseconds, format_percent};
use crate::site::page::Piece;

pub(super) fn speed_pieces(schedules: &Schedules) -> Vec<Piece> {
    let mut pieces = vec![Piece::heading("Speed by size")];
    for case in &schedules.cases {
        pieces.extend(speed_figure(case));
        let figures =
            PAPER.figures_of(case).map(|figure| format!("figure {} ({})", figure.number, figure.shows));
        let figures: Vec<String> = figures.collect();
        if !figures.is_empty() {
            let (name, figures) = (case.name(), figures.join("; "));
            pieces.push(Piece::note(format!("{name}: beside it stand, in the paper of PoocH, {figures}.")));
        }
    }
    pieces.extend(schedules.cases.iter().filter_map(narrower_note).map(Piece::note));
    pieces.extend(tables::shown_or_folded(speed_table(schedules)));
    pieces
}

/// The figure; `None` for a single size, which only the table shows.
fn speed_figure(case: &Case) -> Option<Piece> {
    let sizes = case.sizes();
    if sizes.len() < 2 {
        return None;
    }
    let point = |run: &Run| Point {
        x: as_real(run.size),
        y: run.images_per_second(),
        is_hollow: run.fits_memory() != Some(true),
        tip: run_tip(case, run),
    };
    let at_most =
        |&size: &u64| Some((as_real(size), case.runs_at(size).next()?.row.images_per_second_at_most()));
    let mut curves =
        vec![Curve::reference("if all of it fitted", sizes.iter().filter_map(at_most).collect())];
    curves.extend(
        case.schedulers()
            .into_iter()
            .map(|series| Curve::joined(series.clone(), case.runs_of(series.number).map(point).collect())),
    );
    let (_, (_, fastest)) = curves::ranges(&curves)?;
    let most = as_real(*sizes.last()?) * 1.03;
    let (noun, x) = match case.sweep {
        Sweep::Batch { .. } => ("batch", Axis::counts("batch", most)),
        Sweep::Input { .. } => {
            let x = Axis::counts("input: height and width of the images", most);
            ("input size", x.over_range(as_real(sizes[0]) * 0.9..most))
        }
    };
    let axes = (x, Axis::numbers("images per second", fastest * 1.06));
    let drawing = curves::plot(&format!("Speed by {noun}: {}", case.name()), HEIGHT, axes, curves)?;
    let caption = "A line ends at the last size with a schedule. A hollow mark: the bytes in use fit at every moment, the \
                   offsets of the buffers do not. Dashed: if all of it fitted and nothing waited.";
    Some(Piece::figure(drawing, caption))
}

/// The runs of a case that had narrower limits than others.
fn narrower_note(case: &Case) -> Option<String> {
    let widest = case.runs.iter().map(|run| limit_width(&run.row)).max()?;
    let narrow: Vec<&Run> = case.runs.iter().filter(|run| limit_width(&run.row) != widest).collect();
    let names: BTreeSet<&str> = narrow.iter().map(|run| run.series.label.as_str()).collect();
    let sizes = range(narrow.iter().map(|run| run.size))?;
    Some(format!(
        "{}: {} of {} runs had narrower limits than the others ({} {sizes}; {}). The table has the limits of each run.",
        case.name(),
        narrow.len(),
        case.runs.len(),
        case.size_noun(),
        names.into_iter().collect::<Vec<_>>().join(", ")
    ))
}

/// For example `60.0 s, 200 simulated; placed in 2.00 s`.
fn limit_words(row: &ScheduleRow) -> String {
    let time = |ns: u64| format_nanoseconds(as_real(ns));
    let own = [
        row.wall_limit_ns.map(time),
        row.memory_limit_bytes.map(gigabytes),
        row.work_limit.map(|work| format!("{} simulated", format_count(work))),
    ];
    let own: Vec<String> = own.into_iter().flatten().collect();
    let own = if own.is_empty() { "none".to_owned() } else { own.join(", ") };
    row.planner_wall_ns.map_or_else(|| own.clone(), |ns| format!("{own}; placed in {}", time(ns)))
}

fn run_tip(case: &Case, run: &Run) -> String {
    let (row, label) = (&run.row, format!("{}, {} {}", run.series.label, case.size_noun(), run.size));
    let (Some(speed), Some(loss)) = (run.images_per_second(), run.speed_loss()) else {
        return format!("{label}: {}", run.end_reason());
    };
    let height = row.height.map_or(String::new(), |height| format!(", offsets need {}", gigabytes(height)));
    let classes = run.class_counts().map_or(String::new(), |[keep, swap, again]| {
        format!(", {keep} kept, {swap} swapped, {again} recomputed")
    });
    format!("{label}: {} images/s, {} lost{classes}{height}", rate(speed), format_percent(loss))
}

fn speed_table(schedules: &Schedules) -> Table {
    let all: BTreeSet<String> = schedules.all_runs().map(|(_, run)| limit_words(&run.row)).collect();
    let limits = |row| if all.len() > 1 { CellValue::text(limit_words(row)) } else { CellValue::Missing };
    tables::table(
        "offload-speed",
        "Every scheduler at every size. At most: if all of it fitted and nothing waited; lost: how much slower \
         the schedule is. Fits: whether the best offsets do. Without a schedule, the reason.",
        schedules.all_runs().map(|(case, run)| (subject_of(case, run), run)),
        columns!(|run| {
            let row = &run.row;
            [
                ("batch", "Batch", CellValue::Count(row.batch)),
                ("scheduler", "Scheduler", CellValue::text(run.series.label.as_str())),
                ("status", "Status", CellValue::text(row.status.name())),
                ("images_per_second", "Images/s", CellValue::number(run.images_per_second())),
                ("at_most", "At most", CellValue::Number(row.images_per_second_at_most())),
                ("lost", "Lost", CellValue::share(run.speed_loss())),
                ("iteration_ns", "Iteration", time_value(run.iteration_ns())),
                ("fits", "Fits", fits(run)),
                ("limits", "Limits", limits(row)),
                ("reason", "Reason", CellValue::text(row.reason.as_str())),
            ]
        }),
    )
}
