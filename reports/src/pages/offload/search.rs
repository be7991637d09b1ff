//! What a second of search buys: the gap of the best schedule so far to the proven bound.

use std::collections::BTreeSet;

use planlab_results::schedule::time_gap;
use planlab_results::statistics::median;
use planlab_results::table::{CellValue, Table, columns};

use crate::data::rows::group_by;
use crate::data::schedules::fronts::tight_problems;
use crate::data::schedules::{Run, Schedules};
use crate::figures::Series;
use crate::figures::coord::Axis;
use crate::figures::plots::curves::{self, Curve, HEIGHT, Point};
use crate::format::{as_real, format_nanoseconds, format_percent};
use crate::site::page::Piece;

/// The schedulers that go on until their time is up.
const SEARCHES: [&str; 2] = ["joint", "local-search"];

/// A search at one time, over all problems.
struct SearchMoment<'s> {
    series: &'s Series,
    elapsed_ns: u64,
    problems: usize,
    scheduled: usize,
    /// `None` if half of the problems have no schedule yet.
    median_gap: Option<f64>,
}

pub(super) fn search_pieces(schedules: &Schedules) -> Vec<Piece> {
    let moments = search_moments(schedules);
    let Some(figure) = search_figure(&moments) else { return Vec::new() };
    let note = "The median gap of the best schedule so far to the proven bound, over the problems that do not fit in-core \
                and on which all of these searches ran. A problem without a schedule counts as a gap without limit; a line \
                begins when half of them have one. Whether offsets fit is not asked here.";
    vec![figure, Piece::note(note), Piece::Table(moment_table(&moments))]
}

fn search_moments(schedules: &Schedules) -> Vec<SearchMoment<'_>> {
    let groups = compared_runs(schedules);
    let longest = groups.iter().flatten().filter_map(|(run, _)| run.row.elapsed_ns).max();
    let times = search_times(longest.unwrap_or(0));
    let mut moments = Vec::new();
    for runs in &groups {
        moments.extend(times.iter().map(|&elapsed_ns| search_moment(runs, elapsed_ns)));
    }
    moments
}

fn search_moment<'s>(runs: &[(&'s Run, u64)], elapsed_ns: u64) -> SearchMoment<'s> {
    let gaps: Vec<f64> = runs.iter().map(|&(run, bound)| gap_after(run, bound, elapsed_ns)).collect();
    SearchMoment {
        series: &runs[0].0.series,
        elapsed_ns,
        problems: gaps.len(),
        scheduled: gaps.iter().filter(|gap| gap.is_finite()).count(),
        median_gap: median(&gaps).filter(|gap| gap.is_finite()),
    }
}

/// For each search its runs with the bound of their problem in nanoseconds, on the problems that all searches of the
/// store ran on.
fn compared_runs(schedules: &Schedules) -> Vec<Vec<(&Run, u64)>> {
    let is_search = |run: &&Run| SEARCHES.contains(&run.series.label.as_str());
    let searches: BTreeSet<usize> =
        schedules.all_runs().map(|(_, run)| run).filter(is_search).map(|run| run.series.number).collect();
    let runs = tight_problems(schedules).map(|problem| {
        let bound_ns = problem.bound_ns();
        let runs = problem.runs.into_iter().filter(is_search).map(|run| (run, bound_ns));
        runs.collect::<Vec<_>>()
    });
    let shared = runs.filter(|runs| runs.len() == searches.len()).flatten();
    group_by(shared, |(run, _)| run.series.number).into_values().collect()
}

/// Times in nanoseconds, two in each decade from a millisecond, up to the first that is not below the longest run.
fn search_times(longest_ns: u64) -> Vec<u64> {
    let mut times: Vec<u64> =
        (6..=15).flat_map(|power| [1, 3].map(|step| step * 10_u64.pow(power))).collect();
    let shown = times.iter().position(|&time| time >= longest_ns).map_or(times.len(), |last| last + 1);
    times.truncate(shown);
    times
}

/// The relative time of the best schedule so far above the bound; infinite without a schedule, below 0 if it refutes the
/// bound.
fn gap_after(run: &Run, bound_ns: u64, elapsed_ns: u64) -> f64 {
    let found = run.row.trajectory.iter().rfind(|point| point.elapsed_ns <= elapsed_ns);
    let found = found.filter(|_| run.iteration_ns().is_some());
    found.and_then(|point| time_gap(point.iteration_ns, bound_ns)).unwrap_or(f64::INFINITY)
}

fn search_figure(moments: &[SearchMoment<'_>]) -> Option<Piece> {
    let point = |moment: &&SearchMoment<'_>| {
        let tip = format!(
            "{}: {}, {} of {} with a schedule",
            format_nanoseconds(as_real(moment.elapsed_ns)),
            moment.median_gap.map_or("no median".to_owned(), format_percent),
            moment.scheduled,
            moment.problems
        );
        // The axis begins at 0; the tip and the table have the gap as it is.
        let shown = moment.median_gap.map(|gap| gap.max(0.0));
        Point::new(moment.series, as_real(moment.elapsed_ns), shown, &tip)
    };
    let groups = group_by(moments, |moment| moment.series.number);
    let curve = |moments: Vec<&SearchMoment<'_>>| {
        Curve::joined(moments[0].series.clone(), moments.iter().map(point).collect())
    };
    let curves: Vec<Curve> = groups.into_values().map(curve).collect();
    let (_, (_, most)) = curves::ranges(&curves)?;
    let x = Axis::times_of("time of the search", moments.iter().map(|moment| as_real(moment.elapsed_ns)));
    let y = Axis::gaps("median gap to the proven bound", most);
    let drawing = curves::plot("What a second of search buys", HEIGHT, (x, y), curves)?;
    let caption = "Both axes are logarithmic, the gaps linear near 0.";
    Some(Piece::chapter(drawing, caption))
}

fn moment_table(moments: &[SearchMoment<'_>]) -> Table {
    Table::from_rows(
        "offload-search",
        "The searches after a time: on how many problems they have a schedule, and the median gap.",
        moments,
        columns!(|moment| [
            ("scheduler", "Scheduler", CellValue::text(moment.series.label.as_str())),
            ("elapsed_ns", "After", CellValue::Nanoseconds(as_real(moment.elapsed_ns))),
            ("problems", "Problems", CellValue::count(moment.problems)),
            ("scheduled", "With a schedule", CellValue::count(moment.scheduled)),
            ("median_gap", "Gap, median", CellValue::share(moment.median_gap)),
        ]),
    )
}
