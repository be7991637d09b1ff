//! Schedules over time: three engines and the memory in use.

use planlab_results::schedule::load_timeline;

use super::counted;
use crate::data::schedules::{Case, Run, gigabytes};
use crate::format::{nanoseconds, percent, real};
use crate::site::Site;
use crate::site::page::Piece;
use crate::site::timeline::TimelinePart;

pub(super) fn pieces(site: &Site<'_>) -> Vec<Piece> {
    let wanted: Vec<(&Case, &Run)> =
        site.schedules.cases.iter().flat_map(|case| chosen(case).map(move |run| (case, run))).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut pieces = vec![
        Piece::heading("Timelines"),
        Piece::note(
            "Of each net and machine: at the largest batch the fastest schedule that fits and the fastest of another kind, and at \
         the smallest batch that does not fit in-core the fastest one. Lanes: compute, copies to the host, copies back; below, \
         the bytes in use with the capacity as a dashed line.",
        ),
    ];
    let drawn: Vec<Piece> = wanted.iter().filter_map(|(case, run)| part(site, case, run)).collect();
    let missing = wanted.len() - drawn.len();
    if missing > 0 {
        pieces.push(Piece::note(format!(
            "The store has no timeline of {}: records that are published consist of rows alone. A bench of the same suite \
             makes them again.",
            counted(missing, "schedule")
        )));
    }
    pieces.extend(drawn);
    pieces
}

/// The schedules that are drawn of a case; none twice.
fn chosen(case: &Case) -> impl Iterator<Item = &Run> {
    let kind = |run: &Run| run.series.label.split('/').next().unwrap_or_default().to_owned();
    let largest = case.largest().or_else(|| case.largest_scheduled());
    let scheduled = |run: &&Run| run.iteration().is_some();
    let best = largest.and_then(|batch| {
        case.fastest(batch).or_else(|| case.at(batch).filter(scheduled).min_by_key(|run| run.iteration()))
    });
    let other = best.zip(largest).and_then(|(best, batch)| {
        let others = case.at(batch).filter(scheduled).filter(|run| kind(run) != kind(best));
        others.min_by_key(|run| run.iteration())
    });
    let smallest = case.beyond().into_iter().min().filter(|batch| Some(*batch) != largest);
    [best, other, smallest.and_then(|batch| case.fastest(batch))].into_iter().flatten()
}

fn part(site: &Site<'_>, case: &Case, run: &Run) -> Option<Piece> {
    let timeline = load_timeline(site.store, run.row.schedule.as_deref()?).ok()?;
    let row = &run.row;
    let speed = run.speed().map_or(String::new(), |speed| format!(" ({speed:.0} images/s)"));
    let loss = run
        .loss()
        .map_or(String::new(), |loss| format!(", {} slower than if all of it fitted", percent(loss)));
    let peak = row.live_peak.map_or(String::new(), |peak| format!(" At most {} are in use", gigabytes(peak)));
    let height = row.height.map_or(String::new(), |height| {
        let fits = if height > row.capacity { ", more than there is" } else { "" };
        format!("; offsets need {}{fits}", gigabytes(height))
    });
    let end = if peak.is_empty() { "" } else { "." };
    let caption = format!(
        "{} events in {}{speed}{loss}.{peak}{height}{end}",
        timeline.spans.len(),
        nanoseconds(real(timeline.iteration_ns)),
    );
    let title = format!("{}, batch {}: {}", case.name(), row.batch, run.series.label);
    Some(Piece::Timeline(TimelinePart { title, timeline, caption }))
}
