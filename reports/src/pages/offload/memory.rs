//! Whether schedules fit: by their bytes, with the offsets of an online best fit, and with the best offsets.

use planlab_results::table::{CellValue, Table, columns};

use super::tables::{self, gb_or_missing, of_all, subject_of};
use crate::data::rows::group_by;
use crate::data::schedules::{Case, Run, Schedules};
use crate::format::{as_real, format_percent};
use crate::site::page::{Piece, Text};

/// The relative excess over the capacity; `None` if the capacity suffices, or nothing is known.
fn relative_excess(run: &Run, height: Option<u64>) -> Option<f64> {
    let capacity = run.row.capacity;
    run.iteration_ns()?;
    height.filter(|&height| height > capacity).map(|height| as_real(height) / as_real(capacity) - 1.0)
}

/// A run with offsets, and their excess over the capacity, both for the online and for the best offsets.
struct PlacedRun<'s> {
    case: &'s Case,
    run: &'s Run,
    online: Option<f64>,
    best: Option<f64>,
}

impl PlacedRun<'_> {
    fn fits_in_bytes(&self) -> bool {
        self.run.row.live_peak.is_some_and(|peak| peak <= self.run.row.capacity)
    }

    /// Whether it is proved that no offsets fit.
    fn is_proved(&self) -> bool {
        self.run.row.height_bound.is_some_and(|bound| bound > self.run.row.capacity)
    }
}

fn placed_runs(schedules: &Schedules) -> Vec<PlacedRun<'_>> {
    let is_placed = |(_, run): &(&Case, &Run)| run.iteration_ns().is_some() && run.row.height.is_some();
    let placed = schedules.all_runs().filter(is_placed).map(|(case, run)| {
        let (online, best) = (run.row.best_fit_height, run.row.height);
        PlacedRun { case, run, online: relative_excess(run, online), best: relative_excess(run, best) }
    });
    placed.collect()
}

/// Sentences on how many schedules fit by bytes, and how many with offsets.
pub(super) fn finding_pieces(schedules: &Schedules) -> Vec<Piece> {
    let all = placed_runs(schedules);
    if all.is_empty() {
        return Vec::new();
    }
    let number = all.len();
    let in_bytes = all.iter().filter(|placed| placed.fits_in_bytes()).count();
    let online: Vec<f64> = all.iter().filter_map(|placed| placed.online).collect();
    let best: Vec<&PlacedRun<'_>> = all.iter().filter(|placed| placed.best.is_some()).collect();
    let worst = online.iter().copied().fold(0.0, f64::max);
    let by_online = if online.is_empty() {
        "with the offsets that an online best fit gives them as they come, all fit; ".to_owned()
    } else {
        let most = format_percent(worst);
        let part = of_all(online.len(), number);
        format!(
            "with the offsets that an online best fit gives them as they come, {part} do not, and need up to {most} more; "
        )
    };
    let proved = best.iter().filter(|placed| placed.is_proved()).count();
    let by_best = if best.is_empty() {
        "with the best offsets found, all fit.".to_owned()
    } else {
        let part = of_all(best.len(), number);
        format!(
            "with the best offsets found, {part} do not (as proved for {proved}; for the others no offsets that fit were found)."
        )
    };
    let text = Text::default()
        .strong("Bytes that fit are not a plan that fits. ")
        .plain(format!("By their bytes, {} schedules fit at every moment; ", of_all(in_bytes, number)))
        .plain(by_online)
        .plain(by_best);
    vec![Piece::heading("Do they really fit?"), Piece::text(text), Piece::Table(by_scheduler(&all))]
}

fn by_scheduler(all: &[PlacedRun<'_>]) -> Table {
    Table::from_rows(
        "offload-fits",
        "Schedules by scheduler, over all nets, machines and batches: how many fit by the bytes in use, with the offsets of \
         an online best fit, and with the best offsets found; and by how much the worst exceeds its capacity.",
        group_by(all, |placed| placed.run.series.number).into_values(),
        columns!(|group| {
            let fitting =
                |of: fn(&PlacedRun<'_>) -> bool| CellValue::count(group.iter().filter(|p| of(p)).count());
            let worst = |of: fn(&PlacedRun<'_>) -> Option<f64>| {
                CellValue::share(group.iter().filter_map(|placed| of(placed)).max_by(f64::total_cmp))
            };
            [
                ("scheduler", "Scheduler", CellValue::text(group[0].run.series.label.as_str())),
                ("schedules", "Schedules", CellValue::count(group.len())),
                ("fit_by_bytes", "Fit by bytes", fitting(|placed| placed.fits_in_bytes())),
                ("fit_by_best_fit", "with online best fit", fitting(|placed| placed.online.is_none())),
                ("fit_by_best_offsets", "with the best offsets", fitting(|placed| placed.best.is_none())),
                ("most_over_by_best_fit", "Worst, online best fit", worst(|placed| placed.online)),
                ("most_over_by_best_offsets", "Worst, best offsets", worst(|placed| placed.best)),
            ]
        }),
    )
}

/// All schedules with the memory that their offsets need; those that do not fit come first.
pub(super) fn detail_pieces(schedules: &Schedules) -> Vec<Piece> {
    let all = placed_runs(schedules);
    if all.is_empty() {
        return Vec::new();
    }
    let mut pieces = vec![Piece::heading("Memory: bytes in use, and what offsets need")];
    let misfits: Vec<&PlacedRun<'_>> = all.iter().filter(|placed| placed.best.is_some()).collect();
    if misfits.is_empty() {
        pieces.push(Piece::fine("The best offsets of every schedule fit its capacity."));
    } else {
        let caption = "Schedules that fit by bytes and for which no offsets that fit were found. Evidence: what \
        proves the bound on the height of their best offsets.";
        let table = height_table("offload-misfits", caption, misfits.into_iter());
        pieces.push(Piece::Table(tables::trimmed(table)));
    }
    let caption = "Memory of every schedule, parameters and workspace included. In use: the most bytes at one moment. Best fit: \
                   what offsets need that are given in the order of the requests, as an allocator does. Best: the lowest \
                   that the planner found, with its proven bound. Fits: yes; planned ahead: the best offsets fit, those of \
                   the best fit do not; bytes alone: no offsets that fit were found, or none are, as proved.";
    pieces.extend(tables::shown_or_folded(height_table("offload-memory", caption, all.iter())));
    pieces
}

fn height_table<'p, 's: 'p>(
    name: &str,
    caption: &str,
    all: impl Iterator<Item = &'p PlacedRun<'s>>,
) -> Table {
    tables::table(
        name,
        caption,
        all.map(|placed| (subject_of(placed.case, placed.run), placed)),
        columns!(|placed| {
            let row = &placed.run.row;
            [
                ("batch", "Batch", CellValue::Count(row.batch)),
                ("scheduler", "Scheduler", CellValue::text(placed.run.series.label.as_str())),
                ("live_peak_gb", "In use, GB", gb_or_missing(row.live_peak)),
                ("best_fit_gb", "Best fit, GB", gb_or_missing(row.best_fit_height)),
                ("height_gb", "Best, GB", gb_or_missing(row.height)),
                ("bound_gb", "Bound, GB", gb_or_missing(row.height_bound)),
                ("evidence", "Evidence", CellValue::text(row.height_evidence.name())),
                ("over", "Over", CellValue::share(placed.best)),
                ("verdict", "Fits", CellValue::text(placement_verdict(placed))),
            ]
        }),
    )
}

fn placement_verdict(placed: &PlacedRun<'_>) -> &'static str {
    match (placed.online.is_some(), placed.best.is_some()) {
        _ if !placed.fits_in_bytes() => "no",
        (_, true) if placed.is_proved() => "bytes alone (proved)",
        (_, true) => "bytes alone",
        (true, false) => "planned ahead",
        (false, false) => "yes",
    }
}
