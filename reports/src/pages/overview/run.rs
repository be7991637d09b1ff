//! The page on the run itself: what ran, under which limits, on which machines, and what failed.

use std::collections::BTreeSet;

use planlab_results::audit::{Fault, Finding};
use planlab_results::keeps_plans;
use planlab_results::table::{CellValue, Table};

use crate::data::nets::pools;
use crate::data::planners::model::Model;
use crate::data::planners::tables;
use crate::pages::offload;
use crate::pages::planners::boards::limits_of;
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece, Text};

pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let question = "What happened in this run?";
    let mut shown = failure_table(site);
    if !keeps_plans(site.store) {
        let kind = CellValue::text("missing file");
        shown.rows.retain(|row| row[1] != kind);
    }
    let mut page = Page::new("run.html", question)
        .in_menu(Menu::Run, question)
        .with([Piece::heading("Unexplained failures")])
        .with(damage_warning(site));
    if shown.rows.is_empty() {
        let fine = "None: no planner crashed, was killed, ran out of memory or gave a false answer, and no row \
                    contradicts another.";
        page.pieces.push(Piece::fine(fine));
        page.files.push(shown);
    } else {
        page.pieces.push(Piece::Table(shown));
    }
    let conditions = [
        Piece::heading("What ran"),
        Piece::text(format!("{}{}", suite_names(&site.model.suites), limit_text(site.model))),
    ];
    let tables = [
        Piece::Table(tables::status_table(site.model)),
        Piece::Table(tables::machine_table(&site.model.machines)),
    ];
    let replayed = pools::replay_sentence(site.replays).map(Piece::text);
    Some(page.with(conditions).with(replayed).with(schedule_piece(site)).with(tables))
}

/// The questions to schedulers, with a link to their page.
fn schedule_piece(site: &Site<'_>) -> Option<Piece> {
    site.schedules.cases.first()?;
    let text = Text::default().link("What if it does not fit?", "offload.html").plain(" ");
    Some(Piece::text(text.plain(offload::question_sentence(site.schedules))))
}

fn suite_names(suites: &BTreeSet<String>) -> String {
    let names: Vec<&str> = suites.iter().map(String::as_str).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("Suite: {one}. "),
        all => format!("Suites: {}. ", all.join(", ")),
    }
}

fn limit_text(model: &Model) -> String {
    let texts: Vec<String> = model.limits.iter().map(|&(wall, memory)| limits_of(wall, memory)).collect();
    format!("Limits of a cell: {}.", texts.join("; "))
}

fn damage_warning(site: &Site<'_>) -> Vec<Piece> {
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
pub(crate) fn failure_table(site: &Site<'_>) -> Table {
    let mut table = tables::failure_table(&site.model.failures, site.replays, site.findings);
    for row in &site.schedules.failures {
        table.push(vec![
            CellValue::text(format!("{} on {}", row.scheduler, row.machine)),
            CellValue::text(row.status.name()),
            CellValue::Count(1),
            CellValue::text(row.workload.as_str()),
            CellValue::text(row.reason.as_str()),
            CellValue::text(tables::describe_exit(row.signal, row.exit_code)),
            CellValue::text(tables::last_line(&row.stderr_tail)),
        ]);
    }
    table
}
