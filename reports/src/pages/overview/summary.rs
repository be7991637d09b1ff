//! The front page: what was run, what to use, what was found, in pictures first and tables after.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use planlab_results::audit::Fault;
use planlab_results::{Status, keeps_plans};

use super::run;
use crate::data::findings::{DEFAULT, Grounds, collect_findings, recommended_planners};
use crate::data::nets::net_memory::{self, Net};
use crate::data::planners::compare::{Comparison, planner_key};
use crate::data::planners::model::Model;
use crate::data::planners::tables;
use crate::figures::plots::savings::Bar;
use crate::figures::plots::{pareto, profile, savings};
use crate::format::{format_bytes, format_count, format_percent};
use crate::pages::memory::nets;
use crate::pages::planners::boards;
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece, Text};

pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let sums = nets::sums(site);
    let nets = nets::nets(site, &sums);
    let mut page = Page::new("index.html", &site.options.title).in_menu(Menu::Top, "Summary");
    page.pieces.push(status_piece(site));
    page.pieces.extend(site.model.compared.as_ref().and_then(|compared| lead_piece(site, compared)));
    let figures = [gap_and_time(site.model), profile_pieces(site.model), saving_pieces(&nets)];
    let figures = figures.into_iter().flatten().map(|figure| vec![figure]);
    page.pieces.push(Piece::Panels(finding_pieces(site, &nets).into_iter().chain(figures).collect()));
    if let Some(compared) = &site.model.compared {
        page.pieces.push(Piece::heading("Planners on the same workloads"));
        page.pieces.push(Piece::text(boards::scope_sentence(compared)));
        page.pieces.push(Piece::Table(boards::family_table(site, compared, "families")));
        let all =
            Text::from("Each suite has its own ranking: ").link("Which planner should I use?", "boards.html");
        page.pieces.push(Piece::note(all));
    }
    page.pieces.push(Piece::heading("Workloads"));
    page.pieces.push(Piece::Table(tables::workload_table(site.model, |number| site.page_of(number))));
    Some(page)
}

/// What was run, and whether anything failed.
fn status_piece(site: &Site<'_>) -> Piece {
    let missing = site.findings.iter().filter(|finding| finding.fault == Fault::MissingFile).count();
    let failures = run::failure_table(site).rows.len().saturating_sub(missing);
    // Published records consist of rows alone.
    let missing = if keeps_plans(site.store) { missing } else { 0 };
    let mut text = Text::from(run_counts(site.model)).plain(" ");
    if missing > 0 {
        let lost = count_noun(missing, "instance or plan", "instances or plans");
        text = text.strong(format!("{lost} cannot be read. "));
    }
    let unanswered = unanswered_counts(site.model);
    text = match failures {
        0 if unanswered.is_empty() => {
            text.plain("Nothing failed: no crash, no false answer, no contradiction. ")
        }
        0 => text.plain("No crash, no false answer, no contradiction. "),
        1 => text.strong("1 kind of failure needs an explanation. "),
        kinds => text.strong(format!("{kinds} kinds of failure need an explanation. ")),
    };
    if !unanswered.is_empty() {
        text = text.strong(without_answer(&unanswered)).plain(" ");
    }
    text = text.link("What happened in this run?", "run.html");
    if failures + missing + unanswered.len() == 0 { Piece::fine(text) } else { Piece::alert(text) }
}

/// The number of rows without an answer of each planner that has some, and did not fail; the most first.
fn unanswered_counts(model: &Model) -> Vec<(&str, u64)> {
    let mut rows: BTreeMap<usize, u64> = BTreeMap::new();
    for (&(planner, status), count) in &model.all.statuses {
        if status.lacks_answer() && !status.is_failure() {
            *rows.entry(planner).or_default() += count;
        }
    }
    let label = |(planner, rows): (usize, u64)| (planner_key(&model.all.planners[planner].label), rows);
    let mut rows: Vec<(&str, u64)> = rows.into_iter().map(label).collect();
    rows.sort_by_key(|&(label, rows)| (Reverse(rows), label));
    rows
}

/// Who has no answer, and how often.
fn without_answer(unanswered: &[(&str, u64)]) -> String {
    const NAMED: usize = 6;
    let all: u64 = unanswered.iter().map(|(_, rows)| rows).sum();
    let named = |(label, rows): &(&str, u64)| format!("{label} {}", format_count(*rows));
    let names: Vec<String> = unanswered.iter().take(NAMED).map(named).collect();
    let more = unanswered.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more planners") };
    let rows = count_noun(usize::try_from(all).unwrap_or(usize::MAX), "row ended", "rows ended");
    format!("{rows} without an answer: {}{more}.", names.join(", "))
}

fn count_noun(number: usize, one: &str, several: &str) -> String {
    format!("{} {}", format_count(number as u64), if number == 1 { one } else { several })
}

fn run_counts(model: &Model) -> String {
    let counted = |keep: fn(Status) -> bool| -> u64 {
        model.all.statuses.iter().filter(|((_, status), _)| keep(*status)).map(|(_, rows)| rows).sum()
    };
    let mut suites: Vec<&str> =
        model.cells.iter().map(|cell| &*cell.suite).filter(|suite| !suite.is_empty()).collect();
    suites.sort_unstable();
    suites.dedup();
    let suite = match suites[..] {
        [one] => format!(" of the suite {one}"),
        _ => String::new(),
    };
    format!(
        "{} on {}{suite} gave {}; {} of them have an answer, {} with a proof that no plan is lower. A plan without a proof \
         can be as low.",
        self::count_noun(model.all.planners.len(), "variant of planners", "variants of planners"),
        self::count_noun(model.workloads.len(), "workload", "workloads"),
        self::count_noun(usize::try_from(model.row_count()).unwrap_or(usize::MAX), "row", "rows"),
        format_count(counted(Status::is_answer)),
        format_count(counted(|status| status == Status::Optimal)),
    )
}

fn lead_piece(site: &Site<'_>, compared: &Comparison) -> Option<Piece> {
    let (closest, quick) = recommended_planners(compared)?;
    let linked = |text: Text, label: &str| match site.model.planner_of(label) {
        Some(planner) => text.link(planner_key(label), site.page_of_planner(planner)),
        None => text.code(planner_key(label)),
    };
    let mut text = linked(Text::from("Use "), &closest);
    if let Some(quick) = quick {
        text = linked(text.plain("; "), &quick).plain(" if a millisecond counts");
    }
    let basis = count_noun(compared.workloads.len(), "workload", "workloads");
    text = text.plain(format!(
        ": no planner comes closer to the proven bounds on the {basis} compared here; if several come equally close, this is \
         the default, or else the quickest."
    ));
    if planner_key(&closest) != DEFAULT {
        text = linked(text.plain(" For other nets use "), DEFAULT)
            .plain(": it searches until its plan is proved optimal or the time limit is over.");
    }
    Some(Piece::lead(text))
}

fn finding_pieces(site: &Site<'_>, nets: &[Net<'_>]) -> Option<Vec<Piece>> {
    let is_greedy = |planner: usize| site.known_planner(planner).is_some_and(|known| known.kind == "greedy");
    let (model, replays, baseline) = (site.model, site.replays, site.options.baseline.as_str());
    let said = collect_findings(&Grounds { model, replays, nets, baseline, is_greedy: &is_greedy });
    let items: Vec<Text> =
        said.into_iter().map(|said| Text::default().strong(said.core).plain(said.rest)).collect();
    (!items.is_empty()).then(|| vec![Piece::heading("Findings"), Piece::List(items)])
}

fn gap_and_time(model: &Model) -> Option<Piece> {
    let compared = model.compared.as_ref()?;
    let front: Vec<usize> = compared.pareto_front().iter().map(|one| one.planner).collect();
    let spots = compared.ranked.iter().filter_map(|one| {
        let (label, is_front) = (planner_key(&one.label).to_owned(), front.contains(&one.planner));
        Some(pareto::Spot { label, time_ns: one.time_ns?, gap: one.gap, is_front })
    });
    let spots: Vec<pareto::Spot> = spots.collect();
    let caption = format!(
        "A dot for each planner over the same {} {}. No planner is both faster and closer than one with a name.",
        compared.workloads.len(),
        compared.scope
    );
    Some(Piece::figure(pareto::plot_pareto(&spots)?, caption))
}

fn profile_pieces(model: &Model) -> Option<Piece> {
    let compared = model.compared.as_ref()?;
    let best = compared.ranked_families().into_iter().map(|family| family.best);
    let mut profiles = compared.height_profiles(best, |planner, workload| model.height_on(planner, workload));
    profiles.iter_mut().for_each(|(label, _)| *label = planner_key(label).to_owned());
    let caption = "The share of the workloads on which a planner is within a factor of the lowest height. In brackets: \
                   the share on which it has the lowest. One line for each family, by its best variant.";
    Some(Piece::figure(profile::plot_profiles(&profiles)?, caption))
}

/// The memory that plans save, by net.
fn saving_pieces(nets: &[Net<'_>]) -> Option<Piece> {
    const MOST: usize = 14;
    let savings = net_memory::largest_savings(nets);
    let bar = |net: &&Net<'_>| {
        let share = net.share_saved()?.max(0.0);
        let (from, to) = (format_bytes(net.pool_total()?), format_bytes(net.planned_total()?));
        let name = format!("{} b{} ({})", net.key.net, net.key.batch, net.key.route);
        Some(Bar { name, share, text: format!("{}: {from} \u{2192} {to}", format_percent(share)) })
    };
    let bars: Vec<Bar> = savings.iter().take(MOST).filter_map(bar).collect();
    let rest = savings.len().saturating_sub(MOST);
    let rest =
        if rest == 0 { String::new() } else { format!(" The {rest} nets that save least are not shown.") };
    let caption = format!(
        "What the framework's own pool holds, and what a plan needs, parameters included; each net at its largest \
         batch.{rest}"
    );
    Some(Piece::figure(savings::plot_savings("Memory saved by net", &bars)?, caption))
}
