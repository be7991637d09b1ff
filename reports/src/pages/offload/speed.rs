//! Throughput by batch or input size, for every scheduler and machine.

use std::collections::BTreeSet;

use planlab_results::schedule::ScheduleRow;
use planlab_results::table::{Table, Value, columns};

use super::tables::{self, fits, range, rate, subject_of, time};
use crate::data::papers::published::published;
use crate::data::schedules::asked::{Sweep, width};
use crate::data::schedules::{Case, Run, Schedules, gigabytes};
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{count, nanoseconds, percent, real};
use crate::site::page::Piece;

pub(super) fn pieces(schedules: &Schedules) -> Vec<Piece> {
    let mut pieces = vec![Piece::heading("Speed by size")];
    for case in &schedules.cases {
        pieces.extend(figure(case));
        let figures: Vec<String> = published()
            .figures(case)
            .map(|figure| format!("figure {} ({})", figure.number, figure.shows))
            .collect();
        if !figures.is_empty() {
            pieces.push(Piece::note(format!(
                "{}: beside it stand, in the paper of PoocH, {}.",
                case.name(),
                figures.join("; ")
            )));
        }
    }
    pieces.extend(schedules.cases.iter().filter_map(narrower).map(Piece::note));
    pieces.extend(tables::shown_or_folded(table(schedules)));
    pieces
}

/// The figure; `None` for a single size, which only the table shows.
fn figure(case: &Case) -> Option<Piece> {
    let sizes = case.sizes();
    if sizes.len() < 2 {
        return None;
    }
    let point = |run: &Run| Point {
        x: real(run.size),
        y: run.speed(),
        is_hollow: run.fits() != Some(true),
        tip: tip(case, run),
    };
    let at_most = |&size: &u64| Some((real(size), case.at(size).next()?.row.images_per_second_at_most()));
    let mut curves =
        vec![Curve::reference("if all of it fitted", sizes.iter().filter_map(at_most).collect())];
    curves.extend(
        case.schedulers()
            .into_iter()
            .map(|series| Curve::joined(series.clone(), case.of(series.number).map(point).collect())),
    );
    let (_, (_, fastest)) = curves::ranges(&curves)?;
    let most = real(*sizes.last()?) * 1.03;
    let (noun, x) = match case.sweep {
        Sweep::Batch { .. } => ("batch", Axis::counts("batch", most)),
        Sweep::Input { .. } => {
            let x = Axis::counts("input: height and width of the images", most);
            ("input size", x.over(real(sizes[0]) * 0.9..most))
        }
    };
    let axes = (x, Axis::numbers("images per second", fastest * 1.06));
    let drawing = curves::plot(&format!("Speed by {noun}: {}", case.name()), HEIGHT, axes, curves)?;
    let caption = "A line ends at the last size with a schedule. A hollow mark: the bytes in use fit at every moment, the \
                   offsets of the buffers do not. Dashed: if all of it fitted and nothing waited.";
    Some(Piece::figure(drawing, caption))
}

/// The runs of a case that had narrower limits than others.
fn narrower(case: &Case) -> Option<String> {
    let widest = case.runs.iter().map(|run| width(&run.row)).max()?;
    let narrow: Vec<&Run> = case.runs.iter().filter(|run| width(&run.row) != widest).collect();
    let names: BTreeSet<&str> = narrow.iter().map(|run| run.series.label.as_str()).collect();
    let sizes = range(narrow.iter().map(|run| run.size))?;
    Some(format!(
        "{}: {} of {} runs had narrower limits than the others ({} {sizes}; {}). The table has the limits of each run.",
        case.name(),
        narrow.len(),
        case.runs.len(),
        case.noun(),
        names.into_iter().collect::<Vec<_>>().join(", ")
    ))
}

/// For example `60.0 s, 200 simulated; placed in 2.00 s`.
fn limits(row: &ScheduleRow) -> String {
    let time = |ns: u64| nanoseconds(real(ns));
    let own = [
        row.wall_limit_ns.map(time),
        row.memory_limit_bytes.map(gigabytes),
        row.work_limit.map(|work| format!("{} simulated", count(work))),
    ];
    let own: Vec<String> = own.into_iter().flatten().collect();
    let own = if own.is_empty() { "none".to_owned() } else { own.join(", ") };
    row.planner_wall_ns.map_or_else(|| own.clone(), |ns| format!("{own}; placed in {}", time(ns)))
}

fn tip(case: &Case, run: &Run) -> String {
    let (row, label) = (&run.row, format!("{}, {} {}", run.series.label, case.noun(), run.size));
    let (Some(speed), Some(loss)) = (run.speed(), run.loss()) else {
        return format!("{label}: {}", run.end());
    };
    let height = row.height.map_or(String::new(), |height| format!(", offsets need {}", gigabytes(height)));
    let classes = run.classes().map_or(String::new(), |[keep, swap, again]| {
        format!(", {keep} kept, {swap} swapped, {again} recomputed")
    });
    format!("{label}: {} images/s, {} lost{classes}{height}", rate(speed), percent(loss))
}

fn table(schedules: &Schedules) -> Table {
    let all: BTreeSet<String> = schedules.runs().map(|(_, run)| limits(&run.row)).collect();
    let limits = |row| if all.len() > 1 { Value::text(limits(row)) } else { Value::Missing };
    tables::table(
        "offload-speed",
        "Every scheduler at every size. At most: if all of it fitted and nothing waited; lost: how much slower \
         the schedule is. Fits: whether the best offsets do. Without a schedule, the reason.",
        schedules.runs().map(|(case, run)| (subject_of(case, run), run)),
        columns!(|run| {
            let row = &run.row;
            [
                ("batch", "Batch", Value::Count(row.batch)),
                ("scheduler", "Scheduler", Value::text(run.series.label.as_str())),
                ("status", "Status", Value::text(row.status.name())),
                ("images_per_second", "Images/s", Value::number(run.speed())),
                ("at_most", "At most", Value::Number(row.images_per_second_at_most())),
                ("lost", "Lost", Value::share(run.loss())),
                ("iteration_ns", "Iteration", time(run.iteration())),
                ("fits", "Fits", fits(run)),
                ("limits", "Limits", limits(row)),
                ("reason", "Reason", Value::text(row.reason.as_str())),
            ]
        }),
    )
}
