//! The page of one planner: what it is, where it wins, where it loses, and its worst plan.

use planlab_results::queries::{CellRow, Leader};
use planlab_results::table::{CellValue, Table, columns};

use crate::data::planners::chosen::{SMALL, worst_cell};
use crate::data::planners::compare::planner_family;
use crate::data::planners::model::Model;
use crate::format::{as_real, format_count, format_counted, format_nanoseconds, format_percent};
use crate::site::page::{Page, Picture, Piece, Text};
use crate::site::{Maps, Site};

/// The most rows of a list of workloads.
const ROWS: usize = 10;

pub(crate) fn page(site: &Site<'_>, planner: usize) -> Page {
    let label = &site.model.all.planners[planner].label;
    let mut page = Page::new(site.page_of_planner(planner), format!("Planner {label}"));
    page.heading = Text::default().link("Planners", "boards.html").plain(format!(": {label}"));
    page.pieces
        .extend(site.known_planner(planner).map(|known| Piece::lead(summary_sentence(&known.summary))));
    page.pieces.extend(planner_standing(site.model, planner).map(Piece::text));
    page.pieces.push(Piece::facts(planner_facts(site, planner)));
    page.pieces.extend(variant_links(site, planner).map(Piece::text));
    page.with(rival_pieces(site, planner)).with(worst_map(site, planner))
}

/// A line from the registry as a sentence.
fn summary_sentence(summary: &str) -> String {
    let mut letters = summary.chars();
    let first: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    let end = if summary.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// Its rank in the comparison of the summary, and how many planners share it.
fn planner_standing(model: &Model, planner: usize) -> Option<String> {
    let compared = model.compared.as_ref()?;
    let own = compared.ranked.iter().find(|one| one.planner == planner)?;
    let (rank, others) = compared.planner_rank(planner)?;
    let tied = match others {
        0 => String::new(),
        1 => ", tied with 1 other,".to_owned(),
        others => format!(", tied with {others} others,"),
    };
    let time =
        own.time_ns.map(|time| format!(", in {} on average", format_nanoseconds(time))).unwrap_or_default();
    let front = compared.pareto_front().iter().any(|one| one.planner == planner);
    let front = if front { " No planner is both faster and closer." } else { "" };
    Some(format!(
        "By mean gap it is number {rank} of {} planners{tied} on the same {} {}: {}{time}.{front}",
        compared.ranked.len(),
        compared.workloads.len(),
        compared.scope,
        format_percent(own.gap),
    ))
}

/// A term is written as an order of growth; words are said as they are.
fn running_time(complexity: &str) -> String {
    let is_term = complexity == "n"
        || ["n ", "n^", "("].iter().any(|start| complexity.starts_with(*start))
        || complexity.starts_with(|first: char| first.is_ascii_digit());
    match complexity {
        "anytime" => "until it is stopped; the best plan so far counts".to_owned(),
        term if is_term => format!("O({term})"),
        words => words.to_owned(),
    }
}

fn planner_facts(site: &Site<'_>, planner: usize) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(known) = site.known_planner(planner) {
        facts.push(("kind", known.kind.clone()));
        facts.push(("guarantee", known.guarantee.clone()));
        facts.push(("running time", running_time(&known.complexity)));
        facts.push(("published", known.reference.clone()));
    }
    facts.retain(|(_, value)| !value.is_empty());
    if let Some(own) = site.model.leaders.iter().find(|leader| leader.planner_number == planner) {
        facts.extend(planner_results(own));
    }
    if site.model.all.planners[planner].is_in_place {
        facts.push((
            "hand-overs",
            "it hands memory over in place, so that it may be lower than planners that do not".to_owned(),
        ));
    }
    facts
}

/// Its results over all that it ran on.
fn planner_results(own: &Leader) -> Vec<(&'static str, String)> {
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let (answers, cells) = (format_count(own.answers as u64), format_counted(own.cells as u64, "cell"));
    let (optimal, proved) = (format_counted(own.optimal as u64, "cell"), format_count(own.proved as u64));
    vec![
        ("workloads", format_count(own.workloads as u64)),
        ("answers", format!("{answers} of {cells}")),
        ("optimal", format!("{optimal}, {proved} proved in its own runs")),
        ("mean gap, over all of these workloads", or_none(own.mean_gap().mean.map(format_percent))),
        ("mean time", or_none(own.mean_time().mean.map(format_nanoseconds))),
        ("failures", format_count(own.failures as u64)),
    ]
}

fn variant_links(site: &Site<'_>, planner: usize) -> Option<Text> {
    let planners = &site.model.all.planners;
    let own = planner_family(&planners[planner].label);
    let others = (0..planners.len())
        .filter(|&other| other != planner && planner_family(&planners[other].label) == own);
    let mut text = Text::default();
    for other in others {
        let between = if text.0.is_empty() { "Other variants: " } else { ", " };
        text = text.plain(between).link(&planners[other].label, site.page_of_planner(other));
    }
    (!text.0.is_empty()).then(|| text.plain("."))
}

/// A workload, the height there, and that of the best planner of another family.
struct Duel {
    workload: usize,
    own: u64,
    other: u64,
    rival: usize,
}

impl Duel {
    fn duel_ratio(&self) -> f64 {
        as_real(self.own) / as_real(self.other.max(1))
    }
}

fn rival_pieces(site: &Site<'_>, planner: usize) -> Vec<Piece> {
    let model = site.model;
    let duel = |workload: usize| {
        let own = model.height_on(planner, workload)?;
        let (other, rival) = model.lowest_rival(planner, workload)?;
        Some(Duel { workload, own, other, rival })
    };
    let mut duels: Vec<Duel> = (0..model.workloads.len()).filter_map(duel).collect();
    duels.sort_by(|a, b| a.duel_ratio().total_cmp(&b.duel_ratio()));
    let wins = duels.iter().filter(|duel| duel.own < duel.other).count();
    let losses = duels.iter().filter(|duel| duel.own > duel.other).count();
    let mut pieces = vec![
        Piece::heading("Where it wins and where it loses"),
        Piece::text(format!(
            "Against the best planner of any other family, on {} workloads: lower on {wins}, level on {}, higher on \
             {losses}.",
            duels.len(),
            duels.len() - wins - losses
        )),
    ];
    let won: Vec<&Duel> = duels.iter().take(wins.min(ROWS)).collect();
    let lost: Vec<&Duel> = duels.iter().rev().take(losses.min(ROWS)).collect();
    for (heading, duels) in [("Where it wins most", won), ("Where it loses most", lost)] {
        if !duels.is_empty() {
            pieces.extend([Piece::Subheading(heading.to_owned()), Piece::Table(duels_table(site, &duels))]);
        }
    }
    pieces
}

fn duels_table(site: &Site<'_>, duels: &[&Duel]) -> Table {
    Table::from_rows(
        "",
        "The lower height uses less memory.",
        duels,
        columns!(|duel| {
            let workload = &site.model.workloads[duel.workload];
            [
                ("workload", "Workload", site.workload_link(&workload.key)),
                ("buffers", "Buffers", CellValue::Count(workload.buffers)),
                ("height_bytes", "Its height", CellValue::Bytes(duel.own)),
                ("best_bytes", "Best of others", CellValue::Bytes(duel.other)),
                ("by", "by", site.link_planner(duel.rival)),
                ("ratio", "Difference", CellValue::Share(duel.duel_ratio() - 1.0)),
            ]
        }),
    )
}

/// The map of its worst plan, if that plan has one. A planner without a gap has no worst plan: it gets the map of any.
fn worst_map(site: &Site<'_>, planner: usize) -> Vec<Piece> {
    let model = site.model;
    let Some(cell) = worst_cell(model, planner).map(|number| &model.cells[number]) else { return Vec::new() };
    let mut maps = site.maps_of(cell.workload_number).iter();
    let Some(map) = maps.find(|map| model.cells[map.cell].plan == cell.plan) else { return Vec::new() };
    let worst = cell.gap.filter(|&gap| gap > 0.0);
    let heading = if worst.is_some() { "Its worst map" } else { "One of its maps" };
    let text = worst.map_or_else(
        || format!("{} The map is of {}.", optimal_count(model, planner), cell.workload),
        |gap| format!("On {}, a gap of {}.", cell.workload, format_percent(gap)),
    );
    // Planners with equal plans share a page, which has one planner's name.
    let drawn_for = model.cells[map.cell].planner_number;
    let (same, under) = if drawn_for == planner {
        (String::new(), "")
    } else {
        let other = &model.all.planners[drawn_for].label;
        (format!(" {other} found the same plan."), " (under that name)")
    };
    let text = Text::from(format!("{text}{same} "))
        .link("The plan in full", &map.page)
        .plain(format!("{under}, "))
        .link("the workload", site.page_of(cell.workload_number))
        .plain(".");
    let label = &model.all.planners[planner].label;
    let drawn = match &map.maps {
        Maps::Viewer(viewer) => Piece::Viewer(viewer.clone().with_name(label)),
        Maps::Pictures { placement, size, .. } => {
            let caption = format!("Placement map of {label} on {}: time across, address up.", cell.workload);
            Piece::Picture(Picture::file(placement, *size, caption))
        }
    };
    vec![Piece::heading(heading), Piece::text(text), drawn]
}

/// How many of its cells on small workloads are optimal. Cells without an answer or a stored plan count, those with a given
/// capacity do not.
fn optimal_count(model: &Model, planner: usize) -> String {
    let is_own = |cell: &&CellRow| {
        cell.planner_number == planner && cell.target_bytes.is_none() && cell.buffers <= SMALL
    };
    let own: Vec<&CellRow> = model.cells.iter().filter(is_own).collect();
    let optimal = own.iter().filter(|cell| is_optimal(cell)).count();
    let small = format!("up to {} buffers", format_count(SMALL));
    if optimal == own.len() {
        return format!(
            "Without a given capacity it is optimal on every workload of {small} that it ran on."
        );
    }
    format!(
        "Of its {} without a given capacity, on workloads of {small}, {} {} optimal.",
        format_counted(own.len() as u64, "cell"),
        format_count(optimal as u64),
        if optimal == 1 { "is" } else { "are" }
    )
}

/// Whether its plan counts and reaches the best bound that any planner proved.
fn is_optimal(cell: &CellRow) -> bool {
    cell.status.is_answer() && cell.height.is_some() && cell.gap.is_some_and(|gap| gap <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_time_is_a_term_or_words() {
        assert_eq!(running_time("n g log n for g gaps to compare"), "O(n g log n for g gaps to compare)");
        assert_eq!(running_time("(n + r) log n"), "O((n + r) log n)");
        assert_eq!(running_time("exponential"), "exponential");
        assert_eq!(running_time("anytime"), "until it is stopped; the best plan so far counts");
        assert_eq!(running_time(""), "");
    }

    #[test]
    fn a_line_becomes_a_sentence() {
        assert_eq!(summary_sentence("first fit in order of size"), "First fit in order of size.");
        assert_eq!((summary_sentence("A."), summary_sentence("")), ("A.".to_owned(), ".".to_owned()));
    }
}
