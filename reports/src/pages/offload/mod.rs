//! What if a net in training does not fit? What do schedulers make of it, at which speed, and do their offsets fit?

mod bounds;
mod classes;
mod failures;
mod memory;
mod paper;
mod robust;
mod speed;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};

use planlab_results::statistics::median;
use planlab_results::table::{Table, Value};

use crate::data::schedules::{Case, Run, Schedules, gigabytes};
use crate::format::{count, count_real, percent, real};
use crate::site::Site;
use crate::site::page::{Page, Piece, Text};

/// `None` without a row of a schedule.
pub(super) fn page(site: &Site<'_>) -> Option<Page> {
    let schedules = site.schedules;
    schedules.cases.first()?;
    let mut page = Page::new("offload.html", "Offload").named("What if it does not fit?");
    page.heading = "Offload: what if it does not fit?".into();
    page.pieces.push(Piece::text(asked(schedules)));
    page.pieces.extend(failures::pieces(site));
    page.pieces.push(Piece::heading("The largest batch, its price, and the fastest scheduler"));
    page.pieces.extend(schedules.cases.iter().map(|case| Piece::text(answer(case))));
    page.pieces.push(Piece::note(Text::marked(
        "A schedule says of each feature map whether it is kept, swapped to the host, or recomputed. Times are *simulated*: \
         operations take the times of the problem, copies their bytes over the rate of the link. A schedule fits if its \
         buffers do *with their offsets*. An image is an input of the batch; of language models, a sequence. Where a \
         scheduler ran several times, the last run counts. GB: 10^9 bytes; in tables GB/s is the rate of the link, and *of GB* the capacity.",
    )));
    page.pieces.extend(memory::findings(schedules));
    page.pieces.extend(speed::pieces(schedules));
    page.pieces.extend(paper::pieces(schedules));
    page.pieces.extend(classes::pieces(schedules));
    page.pieces.extend(memory::details(schedules));
    page.pieces.extend(bounds::pieces(schedules));
    page.pieces.extend(robust::pieces(schedules));
    page.pieces.extend(timeline::pieces(site));
    Some(page)
}

/// What was asked, in a sentence.
pub(crate) fn asked(schedules: &Schedules) -> String {
    let distinct = |of: fn(&Case) -> &str| schedules.cases.iter().map(of).collect::<BTreeSet<&str>>();
    let listed = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    let (nets, machines) = (distinct(|case| &case.net), distinct(|case| &case.machine));
    let schedulers: BTreeSet<usize> = schedules.runs().map(|(_, run)| run.series.number).collect();
    let capacities: BTreeSet<u64> = schedules.cases.iter().map(|case| case.capacity).collect();
    let capacities: Vec<String> = capacities.into_iter().map(gigabytes).collect();
    let found = schedules.runs().filter(|(_, run)| run.iteration().is_some()).count();
    format!(
        "{} of training by {}: {} ({}) on {} ({}), in {}. {} of {} runs have a schedule.",
        counted(schedules.rows, "row"),
        counted(schedulers.len(), "scheduler"),
        counted(nets.len(), "net"),
        listed(nets),
        counted(machines.len(), "machine"),
        listed(machines),
        capacities.join(", "),
        count(found as u64),
        count(schedules.runs().count() as u64),
    )
}

fn counted(number: usize, what: &str) -> String {
    format!("{} {what}{}", count(number as u64), if number == 1 { "" } else { "s" })
}

/// The largest batch that fits, what it costs, and who is fastest.
fn answer(case: &Case) -> Text {
    let text = Text::default().strong(case.name()).plain(": ");
    let batches = case.batches();
    let Some(batch) = case.largest() else {
        return text
            .plain(format!("no schedule fits with its offsets ({} tried).", listed_batches(&batches)));
    };
    let in_core = case.runs.iter().filter(|run| run.series.label == crate::data::schedules::IN_CORE);
    let whole = in_core.filter(|run| run.fits() == Some(true)).map(|run| run.row.batch).max();
    let whole =
        whole.map_or(String::new(), |whole| format!("Everything stays on the device up to batch {whole}. "));
    let end = if batches.last() == Some(&batch) { ", the largest that was asked for" } else { "" };
    let text = text.plain(format!("{whole}The largest batch that fits is {batch}{end}: "));
    let text = match case.fastest(batch) {
        Some(run) => text.strong(run.series.label.as_str()).plain(price(run)),
        None => text,
    };
    let text = text.plain(faster_by_bytes(case, batch));
    let over = case.largest_scheduled().filter(|&most| most > batch);
    let over = over.map_or(String::new(), |most| {
        format!(" At batch {most} there are schedules, but the offsets of none of them fit.")
    });
    text.plain(over + &winners(case))
}

/// What would be faster at a batch if bytes alone had to fit.
fn faster_by_bytes(case: &Case, batch: u64) -> String {
    let fastest = case.at(batch).filter_map(|run| Some((run.iteration()?, run))).min_by_key(|(ns, _)| *ns);
    match fastest {
        Some((_, run)) if run.fits() == Some(false) => {
            let need = run.row.height.map_or(String::new(), gigabytes);
            let speed = run.speed().unwrap_or_default();
            format!(
                " By its bytes in use {} would fit, at {speed:.0} images/s, but its offsets need {need}.",
                run.series.label
            )
        }
        _ => String::new(),
    }
}

fn listed_batches(batches: &[u64]) -> String {
    let texts: Vec<String> = batches.iter().map(u64::to_string).collect();
    format!("batch {}", texts.join(", "))
}

/// Speed of a run, and what is lost.
fn price(run: &Run) -> String {
    let (Some(speed), Some(loss)) = (run.speed(), run.loss()) else { return String::new() };
    format!(" at {speed:.0} images/s, {}.", compared(loss))
}

/// A loss of speed in words.
fn compared(loss: f64) -> String {
    if loss < 1e-9 {
        "as fast as if all of it fitted".to_owned()
    } else {
        format!("{} slower than if all of it fitted", percent(loss))
    }
}

/// Who is fastest at how many of the batches that keeping everything cannot do. Equal times share a batch.
fn winners(case: &Case) -> String {
    let beyond: Vec<u64> = case.beyond().into_iter().filter(|&batch| case.fastest(batch).is_some()).collect();
    let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
    for &batch in &beyond {
        let best = case.fastest(batch).and_then(Run::iteration);
        for run in case.at(batch).filter(|run| run.fits() == Some(true) && run.iteration() == best) {
            *wins.entry(&run.series.label).or_default() += 1;
        }
    }
    let Some(&most) = wins.values().max() else { return String::new() };
    let names: Vec<&str> = wins.iter().filter(|(_, won)| **won == most).map(|(name, _)| *name).collect();
    let (verb, each) = if names.len() > 1 { ("are", " each") } else { ("is", "") };
    let names = names.join(" and ");
    match beyond.len() {
        1 => format!(" At the one batch that does not fit in-core, {names} {verb} fastest."),
        number => format!(
            " Of the {number} batches that fit, but not in-core, {names} {verb} fastest at {most}{each}."
        ),
    }
}

/// The columns that say what was asked.
const SUBJECT: [(&str, &str); 4] =
    [("net", "Net"), ("machine", "Machine"), ("copies_gb", "GB/s"), ("capacity_gb", "Of GB")];

fn table(name: &str, caption: &str, columns: &[(&str, &str)]) -> Table {
    Table::named(name, caption, &[&SUBJECT, columns].concat())
}

fn subject(case: &Case) -> Vec<Value> {
    vec![Value::text(case.net.as_str()), Value::text(case.machine.as_str()), copies(case), gb(case.capacity)]
}

/// The rate of copies, in units of 10^9 bytes.
fn copies(case: &Case) -> Value {
    let (out, back) = case.link;
    if out.to_bits() == back.to_bits() { Value::Number(out / 1e9) } else { Value::text(case.rate()) }
}

/// Bytes in units of 10^9: three digits are shown, all are in the CSV file.
fn gb(bytes: u64) -> Value {
    Value::Number(real(bytes) / 1e9)
}

fn gb_or_missing(bytes: Option<u64>) -> Value {
    Value::or_missing(bytes.map(gb))
}

fn share(part: Option<f64>) -> Value {
    Value::or_missing(part.map(Value::Share))
}

fn time(nanoseconds: Option<u64>) -> Value {
    Value::or_missing(nanoseconds.map(|ns| Value::Nanoseconds(real(ns))))
}

/// The median and the greatest.
fn middle_and_most(values: &[f64]) -> Option<(f64, f64)> {
    Some((median(values)?, values.iter().copied().max_by(f64::total_cmp)?))
}

/// A table as it is where it is short, else folded.
fn shown_or_folded(table: Table) -> Option<Piece> {
    const SHORT: usize = 40;
    match table.rows.len() {
        0 => None,
        rows if rows <= SHORT => Some(Piece::Table(table)),
        rows => Some(Piece::Folded(format!("All {rows} rows"), table)),
    }
}

fn of_all(part: usize, all: usize) -> String {
    format!("{part} of {all} ({})", percent(count_real(part) / count_real(all.max(1))))
}
