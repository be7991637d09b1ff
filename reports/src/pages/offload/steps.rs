//! The gain of each step of `PoocH` over swapping everything immediately: figures 15 and 16 of its paper, with our
//! nets.

use std::collections::BTreeSet;

use planlab_results::table::{CellValue, Table, columns};

use super::tables::{self, fits, subject_of};
use crate::data::papers::published::PAPER;
use crate::data::rows::group_by;
use crate::data::schedules::{Case, Run, Schedules};
use crate::figures::chart::{Entry, Key};
use crate::figures::coord::Axis;
use crate::figures::palette;
use crate::figures::plots::bars::{Bars, Part, Slot};
use crate::site::page::Piece;

/// The reference of all ratios.
const BASE: &str = "swap-all/unscheduled";
/// Each step adds to the previous one; the last two differ in what they keep after recomputing.
const STEPS: [&str; 4] = ["swap-all", "swap-opt", "pooch/discard", "pooch/retain"];

/// A net at one size, and the speed of each step relative to the reference.
struct Compared<'s> {
    case: &'s Case,
    size: u64,
    steps: Vec<(&'s Run, f64)>,
}

pub(super) fn step_pieces(schedules: &Schedules) -> Vec<Piece> {
    let all: Vec<Compared<'_>> = schedules.cases.iter().filter_map(compare_case).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let mut pieces = vec![
        Piece::heading("What each step gains"),
        Piece::note(
            "From step to step: everything is swapped, and each copy back starts with the pass before the one that needs it \
             (swap-all/unscheduled); copies start when there is room (swap-all); what fits is kept (swap-opt); \
             what is cheaper to compute again is recomputed (pooch). Of each net the largest size at which \
             swap-all/unscheduled has a schedule.",
        ),
    ];
    for (place, nets) in &group_by(&all, |of| of.case.place()) {
        pieces.push(step_figure(place, nets));
        pieces.extend(paper_note(place, nets));
    }
    pieces.extend(tables::shown_or_folded(step_table(&all)));
    pieces
}

/// `None` if nothing can be compared.
fn compare_case(case: &Case) -> Option<Compared<'_>> {
    let gains = |size: u64| -> Option<Vec<(&Run, f64)>> {
        let base = case.run_of(BASE, size)?.images_per_second()?;
        let steps = STEPS.iter().filter_map(|step| case.run_of(step, size));
        let steps: Vec<(&Run, f64)> =
            steps.filter_map(|run| Some((run, run.images_per_second()? / base))).collect();
        (!steps.is_empty()).then_some(steps)
    };
    let (size, steps) = case.sizes().into_iter().rev().find_map(|size| Some((size, gains(size)?)))?;
    Some(Compared { case, size, steps })
}

fn step_figure(place: &str, nets: &[&Compared<'_>]) -> Piece {
    let runs = || nets.iter().flat_map(|of| &of.steps);
    let most = runs().map(|(_, gain)| *gain).fold(1.0, f64::max);
    // Bars have no shapes, so they use four very different colours, whatever the index of the scheduler.
    let is_shown = |(_, step): &(usize, &str)| runs().any(|(run, _)| run.series.label == *step);
    let shown: Vec<(usize, &str)> = STEPS.into_iter().enumerate().filter(is_shown).collect();
    let entry = |&(number, step): &(usize, &str)| Entry::new(Key::Box, palette::series_color(number), step);
    let entries: Vec<Entry> = shown.iter().map(entry).collect();
    let y = Axis::numbers(format!("times the speed of {BASE}"), most * 1.06);
    let slots = nets.iter().map(|of| step_slot(of, &shown)).collect();
    Piece::figure(
        Bars::new(format!("Speed over {BASE}: {place}"), y, slots, entries).plot_slots(),
        format!("How many times as fast as {BASE} a scheduler is; 1 is marked across the bars."),
    )
}

fn step_slot(of: &Compared<'_>, shown: &[(usize, &str)]) -> Slot {
    let (noun, size) = (of.case.size_noun(), of.size);
    let bar = |&(number, step): &(usize, &str)| {
        let found = of.steps.iter().find(|(run, _)| run.series.label == step);
        let part = |&(run, gain): &(&Run, f64)| {
            let misfit = if run.fits_memory() == Some(false) { "; its offsets do not fit" } else { "" };
            let tip = format!("{}, {noun} {size}, {step}: {gain:.2} times{misfit}", of.case.subject_name());
            Part { from: 0.0, to: gain, color: palette::series_color(number), tip, label: String::new() }
        };
        found.map(part).into_iter().collect()
    };
    Slot {
        group: of.case.subject_name(),
        name: format!("{noun} {size}"),
        bars: shown.iter().map(bar).collect(),
        mark: Some(1.0),
        ..Slot::default()
    }
}

/// A note on the figure of the paper that shows such bars for some of these nets.
fn paper_note(place: &str, nets: &[&Compared<'_>]) -> Option<Piece> {
    let known = |of: &&Compared<'_>| PAPER.step_figure(of.case).map(|figure| (figure.number, &figure.shows));
    let figures: BTreeSet<(u32, &String)> = nets.iter().filter_map(known).collect();
    let (number, shows) = figures.first()?;
    Some(Piece::note(format!("{place}: beside it stands, in the paper of PoocH, figure {number} ({shows}).")))
}

fn step_table<'c>(all: &'c [Compared<'_>]) -> Table {
    let steps =
        |of: &'c Compared<'_>| of.steps.iter().map(|(run, gain)| (subject_of(of.case, run), (run, *gain)));
    tables::table(
        "offload-steps",
        "How many times as fast as swap-all/unscheduled each step is, at the size of the figures.",
        all.iter().flat_map(steps),
        columns!(|(run, gain)| [
            ("batch", "Batch", CellValue::Count(run.row.batch)),
            ("scheduler", "Scheduler", CellValue::text(run.series.label.as_str())),
            ("times", "Times the speed", CellValue::Number(gain)),
            ("fits", "Fits", fits(run)),
        ]),
    )
}
