//! The page on the run itself: what ran, under which limits, on which machines, and what failed.

use std::collections::BTreeSet;

use planlab_results::audit::{Fault, Finding};
use planlab_results::keeps_plans;
use planlab_results::table::{Table, Value};

use crate::data::nets::pools;
use crate::data::planners::model::Model;
use crate::data::planners::tables;
use crate::pages::offload;
use crate::pages::planners::boards::limits_of;
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece, Text};

pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let question = "What happened in this run?";
    let mut shown = failures(site);
    if !keeps_plans(site.store) {
        let kind = Value::text("missing file");
        shown.rows.retain(|row| row[1] != kind);
    }
    let page = Page::new("run.html", question)
        .named(Menu::Run, question)
        .with([Piece::heading("Unexplained failures")])
        .with(damage(site))
        .table_or(shown, || {
            Piece::fine(
                "None: no planner crashed, was killed, ran out of memory or gave a false answer, and no row \
                 contradicts another.",
            )
        });
    let conditions = [
        Piece::heading("What ran"),
        Piece::text(format!("{}{}", suites(&site.model.suites), limits(site.model))),
    ];
    let tables =
        [Piece::Table(tables::statuses(site.model)), Piece::Table(tables::machines(&site.model.machines))];
    let replayed = pools::sentence(site.replays).map(Piece::text);
    Some(page.with(conditions).with(replayed).with(schedules(site)).with(tables))
}

/// The questions to schedulers, with a link to their page.
fn schedules(site: &Site<'_>) -> Option<Piece> {
    site.schedules.cases.first()?;
    let text = Text::default().link("What if it does not fit?", "offload.html").plain(" ");
    Some(Piece::text(text.plain(offload::asked(site.schedules))))
}

fn suites(suites: &BTreeSet<String>) -> String {
    let names: Vec<&str> = suites.iter().map(String::as_str).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("Suite: {one}. "),
        all => format!("Suites: {}. ", all.join(", ")),
    }
}

fn limits(model: &Model) -> String {
    let texts: Vec<String> = model.limits.iter().map(|&(wall, memory)| limits_of(wall, memory)).collect();
    format!("Limits of a cell: {}.", texts.join("; "))
}

/// A warning if parts of the store cannot be read.
fn damage(site: &Site<'_>) -> Vec<Piece> {
    let of = |kind: fn(&Finding) -> bool| site.findings.iter().filter(|finding| kind(finding)).count();
    let refuted = of(Finding::is_refutation);
    let missing = of(|finding| finding.fault == Fault::MissingFile);
    let mut pieces = Vec::new();
    if missing > 0 && !keeps_plans(site.store) {
        pieces.push(Piece::note(
            "The records consist of rows alone: plans and instances have no pictures here.",
        ));
    } else if missing > 0 {
        pieces.push(Piece::alert(format!(
            "The store is damaged: {missing} of the instances and plans that its rows name cannot be read. Their \
             pictures are not here."
        )));
    }
    if refuted > 0 {
        pieces.push(Piece::alert(format!("{refuted} plans or bounds are false.")));
    }
    pieces
}

/// Failures of planners, allocators and schedulers.
pub(crate) fn failures(site: &Site<'_>) -> Table {
    let mut table = tables::failures(&site.model.failures, site.replays, site.findings);
    for row in &site.schedules.failures {
        table.push(vec![
            Value::text(format!("{} on {}", row.scheduler, row.machine)),
            Value::text(row.status.name()),
            Value::Count(1),
            Value::text(row.workload.as_str()),
            Value::text(row.reason.as_str()),
            Value::text(tables::exit(row.signal, row.exit_code)),
            Value::text(tables::last_line(&row.stderr_tail)),
        ]);
    }
    table
}
