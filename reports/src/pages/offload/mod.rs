//! What if a net in training does not fit? What do schedulers make of it, at which speed, and do their offsets fit?

mod bounds;
mod classes;
mod failures;
pub(crate) mod fronts;
mod memory;
mod paper;
mod robust;
mod search;
pub(crate) mod show;
mod speed;
mod steps;
mod tables;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};

use crate::data::schedules::{Case, IN_CORE, Run, Schedules, gigabytes};
use crate::format::{format_count, format_counted};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece, Text};
use tables::{compared, rate};

/// The page; `None` without schedule rows.
pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let schedules = site.schedules;
    schedules.cases.first()?;
    let mut page = Page::new("offload.html", "Offload").in_menu(Menu::Memory, "What if it does not fit?");
    page.heading = "Offload: what if it does not fit?".into();
    page.pieces.push(Piece::text(question_sentence(schedules)));
    page.pieces.extend(failures::failure_pieces(site));
    page.pieces.push(Piece::heading("The largest that fits, its price, and the fastest scheduler"));
    page.pieces.extend(schedules.cases.iter().map(|case| Piece::text(answer_text(case))));
    page.pieces.push(Piece::note(Text::from_marked(
        "A schedule decides for each feature map whether it is kept, swapped to the host, or recomputed. Times \
         are *simulated*: operations take the times of the problem, and a copy takes its bytes over the rate of \
         the link. A schedule fits if its buffers fit *with their offsets*. An image is an input of the batch; \
         for language models, a sequence. Input: height and width of the images, if they differ from those of \
         the net. If a scheduler ran several times on one problem, the run with the widest limits counts, and of \
         equals the last. GB: 10^9 bytes; in tables GB/s is the rate of the link, and \
         *of GB* the capacity.",
    )));
    page.pieces.extend(memory::finding_pieces(schedules));
    page.pieces.extend(speed::speed_pieces(schedules));
    page.pieces.extend(steps::step_pieces(schedules));
    page.pieces.extend(paper::paper_pieces(schedules));
    page.pieces.extend(classes::class_pieces(schedules));
    page.pieces.extend(memory::detail_pieces(schedules));
    page.pieces.extend(bounds::bound_pieces(schedules));
    page.pieces.extend(search::search_pieces(schedules));
    page.pieces.extend(robust::robust_pieces(schedules));
    page.pieces.extend(timeline::timeline_pieces(site));
    Some(page)
}

pub(crate) fn question_sentence(schedules: &Schedules) -> String {
    let distinct = |of: fn(&Case) -> &str| schedules.cases.iter().map(of).collect::<BTreeSet<&str>>();
    let named = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    let (nets, machines) = (distinct(|case| &case.net), distinct(|case| &case.machine));
    let schedulers: BTreeSet<usize> = schedules.all_runs().map(|(_, run)| run.series.number).collect();
    let capacities: BTreeSet<u64> = schedules.cases.iter().map(|case| case.capacity).collect();
    let capacities: Vec<String> = capacities.into_iter().map(gigabytes).collect();
    let found = schedules.all_runs().filter(|(_, run)| run.iteration_ns().is_some()).count();
    format!(
        "{} of training by {}: {} ({}) on {} ({}), in {}. {} of {} runs have a schedule.",
        format_counted(schedules.rows as u64, "row"),
        format_counted(schedulers.len() as u64, "scheduler"),
        format_counted(nets.len() as u64, "net"),
        named(nets),
        format_counted(machines.len() as u64, "machine"),
        named(machines),
        capacities.join(", "),
        format_count(found as u64),
        format_count(schedules.all_runs().count() as u64),
    )
}

/// The largest size that fits, its price, and the fastest scheduler.
fn answer_text(case: &Case) -> Text {
    let text = Text::default().strong(case.name()).plain(": ");
    let (sizes, noun) = (case.sizes(), case.size_noun());
    let Some(size) = case.largest_size() else {
        let tried: Vec<String> = sizes.iter().map(u64::to_string).collect();
        return text.plain(format!("no schedule fits with its offsets ({noun} {} tried).", tried.join(", ")));
    };
    let in_core = case.runs.iter().filter(|run| run.series.label == IN_CORE);
    let whole = in_core.filter(|run| run.fits_memory() == Some(true)).map(|run| run.size).max();
    let whole =
        whole.map_or(String::new(), |whole| format!("Everything stays on the device up to {noun} {whole}. "));
    let end = if sizes.last() == Some(&size) { ", the largest that was asked for" } else { "" };
    let text = text.plain(format!("{whole}The largest {noun} that fits is {size}{end}: "));
    let text = match case.fastest_other(size) {
        Some(run) => text.strong(run.series.label.as_str()).plain(price_words(run)),
        None => text,
    };
    let text = text.plain(faster_by_bytes(case, size));
    let over = case.largest_scheduled().filter(|&most| most > size);
    let over = over.map_or(String::new(), |most| {
        format!(" At {noun} {most} there are schedules, but the offsets of none of them fit.")
    });
    text.plain(over + &winner_words(case))
}

/// What would be faster at a size if only the bytes had to fit.
fn faster_by_bytes(case: &Case, size: u64) -> String {
    let fastest =
        case.runs_at(size).filter_map(|run| Some((run.iteration_ns()?, run))).min_by_key(|(ns, _)| *ns);
    match fastest {
        Some((_, run)) if run.fits_memory() == Some(false) => {
            let need = run.row.height.map_or(String::new(), gigabytes);
            let speed = rate(run.images_per_second().unwrap_or_default());
            format!(
                " By its bytes in use {} would fit, at {speed} images/s, but its offsets need {need}.",
                run.series.label
            )
        }
        _ => String::new(),
    }
}

/// Speed of a run, and its loss.
fn price_words(run: &Run) -> String {
    let (Some(speed), Some(loss)) = (run.images_per_second(), run.speed_loss()) else { return String::new() };
    format!(" at {} images/s, {}.", rate(speed), compared(loss))
}

/// For each scheduler, the number of sizes beyond in-core at which it is fastest. Schedulers with equal times share a
/// size.
fn winner_words(case: &Case) -> String {
    let beyond: Vec<u64> =
        case.sizes_beyond_memory().into_iter().filter(|&size| case.fastest_other(size).is_some()).collect();
    let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
    for &size in &beyond {
        let best = case.fastest_other(size).and_then(Run::iteration_ns);
        for run in
            case.runs_at(size).filter(|run| run.fits_memory() == Some(true) && run.iteration_ns() == best)
        {
            *wins.entry(&run.series.label).or_default() += 1;
        }
    }
    let Some(&most) = wins.values().max() else { return String::new() };
    let names: Vec<&str> = wins.iter().filter(|(_, won)| **won == most).map(|(name, _)| *name).collect();
    let (verb, each) = if names.len() > 1 { ("are", " each") } else { ("is", "") };
    let names = names.join(" and ");
    let (noun, plural) = (case.size_noun(), if case.size_noun() == "batch" { "es" } else { "s" });
    match beyond.len() {
        1 => format!(" At the one {noun} that does not fit in-core, {names} {verb} fastest."),
        number => format!(
            " Of the {number} {noun}{plural} that fit, but not in-core, {names} {verb} fastest at {most}{each}."
        ),
    }
}
