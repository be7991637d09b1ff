//! Timelines of schedules: three engines and the memory in use.

use planlab_results::schedule::{Timeline, load_timeline};

use super::tables::{compared, rate};
use crate::data::schedules::{Case, Run, gigabytes};
use crate::format::{as_real, format_counted, format_nanoseconds};
use crate::site::Site;
use crate::site::page::Piece;
use crate::site::parts::timeline::TimelinePart;

/// The most events drawn on the page, for a few megabytes.
const EVENTS: usize = 24_000;

pub(super) fn timeline_pieces(site: &Site<'_>) -> Vec<Piece> {
    // The first schedule of each case comes before the second of any.
    let mut wanted: Vec<(usize, usize, &Case, &Run)> = Vec::new();
    for (number, case) in site.schedules.cases.iter().enumerate() {
        wanted.extend(chosen_runs(case).enumerate().map(|(rank, run)| (rank, number, case, run)));
    }
    wanted.sort_by_key(|&(rank, number, ..)| (rank, number));
    let (mut drawn, mut missing, mut left_out, mut events) = (Vec::new(), 0, 0, 0);
    for (rank, number, case, run) in wanted {
        let loaded = run.row.schedule.as_deref().map(|schedule| load_timeline(site.store, schedule));
        match loaded {
            Some(Ok(timeline)) if events + timeline.spans.len() <= EVENTS => {
                events += timeline.spans.len();
                drawn.push(((number, rank), timeline_part(case, run, timeline)));
            }
            Some(Ok(_)) => left_out += 1,
            _ => missing += 1,
        }
    }
    drawn.sort_by_key(|(place, _)| *place);
    if drawn.is_empty() && missing == 0 {
        return Vec::new();
    }
    let mut pieces = vec![Piece::heading("Timelines")];
    if !drawn.is_empty() {
        pieces.push(Piece::note(
            "Of each net and machine: at the largest batch (or input) the fastest schedule that fits and the fastest of another kind, \
             and at the smallest that does not fit in-core the fastest one. Lanes: compute, copies to the host, copies \
             back; below, the bytes in use with the capacity as a dashed line.",
        ));
    }
    if missing > 0 {
        pieces.push(Piece::note(format!(
            "The store has no timeline of {}: records that are published consist of rows alone. A bench of the same suite \
             makes them again.",
            format_counted(missing, "schedule")
        )));
    }
    if left_out > 0 {
        pieces.push(Piece::note(format!(
            "{} not drawn, to keep the page small; a report of a store with fewer nets has them.",
            format_counted(left_out, "more schedule")
        )));
    }
    pieces.extend(drawn.into_iter().map(|(_, piece)| piece));
    pieces
}

/// The schedules of a case to draw, without duplicates.
fn chosen_runs(case: &Case) -> impl Iterator<Item = &Run> {
    let kind = |run: &Run| run.series.label.split('/').next().unwrap_or_default().to_owned();
    let largest = case.largest_size().or_else(|| case.largest_scheduled());
    let scheduled = |run: &&Run| run.iteration_ns().is_some();
    let best = largest.and_then(|size| {
        case.fastest_other(size)
            .or_else(|| case.runs_at(size).filter(scheduled).min_by_key(|run| run.iteration_ns()))
    });
    let other = best.zip(largest).and_then(|(best, size)| {
        let others = case.runs_at(size).filter(scheduled).filter(|run| kind(run) != kind(best));
        others.min_by_key(|run| run.iteration_ns())
    });
    let smallest = case.sizes_beyond_memory().into_iter().min().filter(|size| Some(*size) != largest);
    [best, other, smallest.and_then(|size| case.fastest_other(size))].into_iter().flatten()
}

fn timeline_part(case: &Case, run: &Run, timeline: Timeline) -> Piece {
    let row = &run.row;
    let speed = run.images_per_second().map_or(String::new(), |speed| format!(" ({} images/s)", rate(speed)));
    let loss = run.speed_loss().map_or(String::new(), |loss| format!(", {}", compared(loss)));
    let peak = row.live_peak.map_or(String::new(), |peak| format!(" At most {} are in use", gigabytes(peak)));
    let height = row.height.map_or(String::new(), |height| {
        let fits = if height > row.capacity { ", more than there is" } else { "" };
        format!("; offsets need {}{fits}", gigabytes(height))
    });
    let end = if peak.is_empty() { "" } else { "." };
    let (events, time) = (timeline.spans.len(), format_nanoseconds(as_real(timeline.iteration_ns)));
    let caption = format!("{events} events in {time}{speed}{loss}.{peak}{height}{end}");
    let title = format!("{}, {} {}: {}", case.name(), case.size_noun(), run.size, run.series.label);
    Piece::Timeline(TimelinePart { title, timeline, caption })
}
