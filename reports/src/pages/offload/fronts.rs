//! Time against memory: a net in less and less memory, ours beside the fastest rivals and the proven bound.

use planlab_results::statistics::median;
use planlab_results::table::{CellValue, Table, columns};

use super::failures::refutation_alerts;
use super::tables::{self, gb_or_missing, of_all, subject_of_variant, time_value};
use crate::data::rows::group_by;
use crate::data::schedules::fronts::{Front, OURS, TightProblem, find_fronts};
use crate::data::schedules::{Run, gigabytes};
use crate::figures::Series;
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{as_real, format_nanoseconds, format_percent, format_rounded};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece, Text};

/// The most rivals in a chart.
const RIVALS: usize = 6;
/// The width of our line in pixels.
const OUR_STROKE: u32 = 4;
/// Slower schedules are drawn at the top of a chart.
const SLOWEST: f64 = 100.0;

/// The page; `None` if ours ran on no net in several capacities that do not hold everything.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let fronts = find_fronts(site.schedules);
    fronts.first()?;
    let problems: Vec<&TightProblem<'_>> = fronts.iter().flat_map(|front| &front.problems).collect();
    let mut page = Page::new("fronts.html", "Offloading: time against memory")
        .in_menu(Menu::Memory, "What does less memory cost?");
    page.pieces.push(Piece::lead(Summary::new(&problems).to_sentence()));
    page.pieces.extend(refutation_alerts(site));
    page.pieces.push(Piece::note(Text::from_marked(
        "Every capacity here is too small for in-core training, which keeps all feature maps. Its time, in which \
         nothing waits, is the unit of the charts. The share compares the capacity with the memory of in-core training, \
         both without parameters and workspace. Ours is `joint`. The other searches of planlab (`local-search`, `exact`) \
         are no rivals, and a schedule counts only if its buffers fit *with their offsets*. Times are simulated. A \
         link of 0.001 GB/s stands for none: copies never pay, and only recomputation is left.",
    )));
    page.pieces.push(Piece::Table(machine_table(&fronts)));
    page.pieces.extend(fronts.iter().filter_map(front_figure));
    page.pieces.push(Piece::heading("Every net in every capacity"));
    page.pieces.extend(tables::shown_or_folded(problem_table(&fronts)));
    Some(page)
}

/// How ours compares with the rivals over some problems.
struct Summary {
    problems: usize,
    /// Problems with a schedule of any scheduler.
    scheduled: usize,
    /// Problems on which no rival is faster than ours.
    fastest: usize,
    median_gain: Option<f64>,
    median_gap: Option<f64>,
}

impl Summary {
    fn new(problems: &[&TightProblem<'_>]) -> Self {
        let count = |is_counted: fn(&TightProblem<'_>) -> bool| {
            problems.iter().filter(|problem| is_counted(problem)).count()
        };
        let gains: Vec<f64> = problems.iter().filter_map(|problem| problem.gain()).collect();
        let gaps: Vec<f64> = problems.iter().filter_map(|problem| problem.gap()).collect();
        Self {
            problems: problems.len(),
            scheduled: count(|problem| problem.is_scheduled()),
            fastest: count(|problem| problem.is_ours_fastest()),
            median_gain: median(&gains),
            median_gap: median(&gaps),
        }
    }

    fn to_sentence(&self) -> String {
        let fastest = of_all(self.fastest, self.scheduled);
        let gain = self.median_gain.map_or(String::new(), |gain| {
            format!(" The median gain over the best rival is {}.", format_percent(gain))
        });
        let gap = self.median_gap.map_or(String::new(), |gap| {
            format!(" The median gap to the proven bound is {}.", format_percent(gap))
        });
        let unscheduled = match self.problems - self.scheduled {
            0 => String::new(),
            number => format!(" Cells without any schedule: {number}."),
        };
        format!("{OURS} is at least as fast as every rival in {fastest} cells.{gain}{gap}{unscheduled}")
    }
}

fn machine_table(fronts: &[Front<'_>]) -> Table {
    let groups = group_by(fronts, |front| front.setting());
    Table::from_rows(
        "offload-fronts-machines",
        "By machine and link. A cell is a net in one capacity. Fastest: cells in which ours is at least as fast as every \
         rival. Gain: what the best rival takes above ours. Gap: what ours takes above the proven bound.",
        groups.into_values().map(|fronts| {
            let problems: Vec<_> = fronts.iter().flat_map(|front| &front.problems).collect();
            (fronts[0].machine_and_link(), Summary::new(&problems))
        }),
        columns!(|(machine, summary)| [
            ("machine", "Machine", CellValue::text(machine)),
            ("cells", "Cells", CellValue::count(summary.problems)),
            ("scheduled", "With a schedule", CellValue::count(summary.scheduled)),
            ("fastest", "Ours fastest", CellValue::count(summary.fastest)),
            ("median_gain", "Gain, median", CellValue::share(summary.median_gain)),
            ("median_gap", "Gap, median", CellValue::share(summary.median_gap)),
        ]),
    )
}

fn problem_table(fronts: &[Front<'_>]) -> Table {
    let problems = fronts.iter().flat_map(|front| front.problems.iter().map(move |problem| (front, problem)));
    tables::table(
        "offload-fronts",
        "The time of our schedule and of the fastest rival's. Times: the rival's over ours. Share: the capacity over the \
         memory of in-core training, both without parameters and workspace.",
        problems.map(|(front, problem)| {
            (subject_of_variant(problem.case, problem.runs[0], &front.variant_words), problem)
        }),
        columns!(|problem| {
            let row = &problem.runs[0].row;
            let rival = problem.best_rival();
            let name = rival.map(|run| CellValue::text(run.series.label.as_str()));
            [
                ("batch", "Batch", CellValue::Count(row.batch)),
                ("in_core_share", "Share", CellValue::share(problem.memory_share())),
                ("in_core_gb", "In-core, GB", gb_or_missing(row.in_core_bytes)),
                ("ours_ns", "Ours", time_value(problem.our_run().and_then(Run::placed_ns))),
                ("rival_ns", "Best rival", time_value(rival.and_then(Run::placed_ns))),
                ("rival", "by", CellValue::or_missing(name)),
                ("times", "Times", CellValue::number(problem.gain().map(|gain| gain + 1.0))),
                ("bound_ns", "Bound", time_value(Some(problem.bound_ns()))),
                ("gap", "Gap", CellValue::share(problem.gap())),
            ]
        }),
    )
}

/// The chart of a front, with the fastest rivals.
fn front_figure(front: &Front<'_>) -> Option<Piece> {
    let rivals = front.ranked_rivals();
    let (drawn, left_out) = rivals.split_at(rivals.len().min(RIVALS));
    let mut curves = vec![bound_curve(front)];
    curves.extend(drawn.iter().map(|series| front_curve(front, series)));
    // Ours is last, on top of the others.
    curves.extend(front.our_series().map(|series| {
        let mut curve = front_curve(front, series);
        (curve.name, curve.stroke) = (format!("{OURS} (ours)"), OUR_STROKE);
        curve
    }));
    let (_, (_, slowest)) = curves::ranges(&curves)?;
    let y = Axis::factors("time of an iteration, relative to in-core", 1.0 + slowest.min(SLOWEST));
    let title = format!("Time against memory: {}", front_name(front));
    let drawing = curves::plot(&title, HEIGHT, (memory_axis(front), y), curves)?;
    Some(Piece::figure(drawing, front_caption(front, left_out)))
}

/// For example `resnet50, batch 512 on x86-pcie3 (12 GB/s)`.
fn front_name(front: &Front<'_>) -> String {
    let TightProblem { case, size, .. } = &front.problems[0];
    let name =
        format!("{}, {} {size} on {}", case.subject_name(), case.size_noun(), front.machine_and_link());
    if front.number == 0 { name } else { format!("{name}, problem {}", front.number + 1) }
}

fn memory_axis(front: &Front<'_>) -> Axis {
    let names: Vec<(f64, String)> =
        front.problems.iter().map(|problem| (capacity_gb(problem), memory_name(problem))).collect();
    let (least, most) = (names[0].0, names[names.len() - 1].0);
    let room = (most - least) * 0.06;
    Axis::named_values("memory: share of in-core, and all of it", least - room..most + room, names)
}

fn capacity_gb(problem: &TightProblem<'_>) -> f64 {
    as_real(problem.case.capacity) / 1e9
}

/// For example `50 % (20.3 GB)`; without the share if it is unknown.
fn memory_name(problem: &TightProblem<'_>) -> String {
    let all = format!("{} GB", format_rounded(capacity_gb(problem), 1));
    match problem.memory_share() {
        Some(share) => format!("{} % ({all})", format_rounded(share * 100.0, 1)),
        None => all,
    }
}

/// The proven bounds. The axis begins at in-core training: no bound and no schedule lies below it.
fn bound_curve(front: &Front<'_>) -> Curve {
    let place = |problem: &TightProblem<'_>| {
        (capacity_gb(problem), (problem.slowdown(problem.bound_ns()) - 1.0).max(0.0))
    };
    Curve::reference("proven lower bound", front.problems.iter().map(place).collect())
}

/// The times of a scheduler above in-core; a gap if it has no schedule.
fn front_curve(front: &Front<'_>, series: &Series) -> Curve {
    let point = |problem: &TightProblem<'_>| {
        let run = problem.run_of(series.number);
        let slowdown = run.and_then(Run::iteration_ns).map(|ns| problem.slowdown(ns));
        let tip = run.map_or(String::new(), |run| front_tip(problem, run));
        let above = slowdown.map(|slowdown| (slowdown - 1.0).max(0.0));
        let is_hollow = run.is_some_and(|run| run.fits_memory() != Some(true));
        Point { is_hollow, ..Point::new(series, capacity_gb(problem), above, &tip) }
    };
    Curve::joined(series.clone(), front.problems.iter().map(point).collect())
}

fn front_tip(problem: &TightProblem<'_>, run: &Run) -> String {
    let Some(ns) = run.iteration_ns() else { return String::new() };
    let slowdown = problem.slowdown(ns);
    let time = format_nanoseconds(as_real(ns));
    format!("{time} in {}, {slowdown:.3} times in-core", memory_name(problem))
}

/// The fastest rival in each capacity, and the rivals that the chart leaves out.
fn front_caption(front: &Front<'_>, left_out: &[&Series]) -> String {
    let best = |problem: &TightProblem<'_>| {
        let rival = problem.best_rival().map_or("none", |run| run.series.label.as_str());
        format!("{rival} in {}", gigabytes(problem.case.capacity))
    };
    let best: Vec<String> = front.problems.iter().map(best).collect();
    let names: Vec<&str> = left_out.iter().map(|series| series.label.as_str()).collect();
    let note = if names.is_empty() { String::new() } else { format!(" Not drawn: {}.", names.join(", ")) };
    format!("The fastest rival: {}.{note}", best.join(", "))
}
