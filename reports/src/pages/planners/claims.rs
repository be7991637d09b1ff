//! The page that compares published figures with ours from the records at hand.

use crate::data::nets::parts::PoolTotals;
use crate::data::papers;
use crate::data::papers::claims::{Claim, Kind, claims};
use crate::data::planners::model::Model;
use crate::data::planners::tables;
use crate::figures::coord::whole;
use crate::format::{as_real, format_bytes, format_nanoseconds, format_percent};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece};
use planlab_results::queries::CellRow;
use planlab_results::table::{CellValue, Table, columns};

#[derive(Default)]
struct Ours<'m> {
    /// Cells with the figure, each with its figure.
    figures: Vec<(&'m CellRow, f64)>,
    /// The number of cells of the claim, with or without the figure.
    cells: usize,
}

pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let table = claim_table(site.model, claims(), &site.options.totals, |number| site.page_of(number));
    let note = "Figures of papers and of public programs beside ours. Ours are computed from the rows of this report. If \
                it has none, the command says how to measure it. If figures differ, docs/claims.md gives the reason, as \
                far as it is known. The link leads to the workload with the greatest of our figures.";
    let question = "Do the published figures hold?";
    let page = Page::new("claims.html", question).in_menu(Menu::Planners, question);
    let shown = ["claim", "source", "published", "ours", "lies", "example"];
    let at = |key: &&str| table.columns.iter().position(|column| column.key == *key);
    let mut short = tables::with_columns(&table, &shown.iter().filter_map(at).collect::<Vec<_>>());
    short.caption =
        "Ours is: whether our figures are within, below or above what rounds to the published figure."
            .to_owned();
    let pieces = [Piece::note(note), Piece::text(verdict_sentence(&table)), Piece::Table(short)];
    let whole = Piece::Folded("With basis, cells and commands".to_owned(), table);
    Some(page.with(pieces).with([whole]))
}

/// How many of the claims were measured, and how they came out.
fn verdict_sentence(table: &Table) -> String {
    let at = table.columns.iter().position(|column| column.key == "lies").unwrap_or(0);
    let lies = || table.rows.iter().map(|row| row[at].shown()).filter(|lies| !lies.is_empty());
    let within = lies().filter(|lies| lies == "within").count();
    format!(
        "{} of {} published figures were measured here with a range to compare; {within} lie within that range.",
        lies().count(),
        table.rows.len()
    )
}

/// One row per claim; `page` returns the page of a workload.
fn claim_table(
    model: &Model,
    claims: &[Claim],
    totals: &PoolTotals,
    page: impl Fn(usize) -> String,
) -> Table {
    Table::from_rows(
        "claims",
        "What others published, and our figure for the same, from the least to the greatest of its cells. Basis: whether \
         the source published the figure or it was measured with the source's program, and with which commit and \
         options. Cells: those with the figure, of those that ran. Ours is: whether our figures are within, below or above \
         what rounds to the published figure.",
        claims,
        columns!(|claim| {
            let ours = measured_claim(model, claim, totals);
            let link = |cell: &CellRow| {
                let name = format!("{} on {}", model.planner_of_cell(cell).label, cell.workload);
                CellValue::Link(name, page(cell.workload_number))
            };
            [
                ("id", "Claim", CellValue::text(&claim.id)),
                ("claim", "Claim", CellValue::text(&claim.claim)),
                ("source", "Source", CellValue::text(&claim.source)),
                ("basis", "Basis", CellValue::text(claim.basis_in_words())),
                ("published", "Published", CellValue::text(&claim.published)),
                ("ours", "Ours", claim_value(claim, &ours)),
                ("lies", "Ours is", CellValue::text(relative_position(claim, &ours))),
                ("with_figure", "Cells", CellValue::count(ours.figures.len())),
                ("cells", "of", CellValue::count(ours.cells)),
                ("example", "Cell", CellValue::or_missing(ours.figures.last().map(|(cell, _)| link(cell)))),
                ("command", "Command", CellValue::text(&claim.command)),
            ]
        }),
    )
}

fn measured_claim<'m>(model: &'m Model, claim: &Claim, totals: &PoolTotals) -> Ours<'m> {
    let mut ours = Ours::default();
    for cell in model.cells.iter().filter(|cell| claim.is_about(cell)) {
        ours.cells += 1;
        ours.figures.extend(figure_of_row(cell, claim.figure, totals).map(|figure| (cell, figure)));
    }
    ours.figures.sort_by(|a, b| a.1.total_cmp(&b.1));
    ours
}

fn figure_of_row(row: &CellRow, kind: Kind, totals: &PoolTotals) -> Option<f64> {
    let height = || row.height.filter(|_| row.status.is_answer()).map(as_real);
    match kind {
        Kind::Height => height(),
        Kind::HeightOverLoad => height().filter(|_| row.load > 0).map(|height| height / as_real(row.load)),
        Kind::Seconds => row.time_ns.map(|ns| ns / 1e9),
        Kind::Proved => Some(if row.status == planlab_results::Status::Optimal { 1.0 } else { 0.0 }),
        Kind::TotalReduction => {
            let total = totals.get(&*row.workload)?;
            let kept = as_real(total.parameters?);
            Some(1.0 - (kept + height()?) / (kept + as_real(total.pool?)))
        }
    }
}

fn claim_value(claim: &Claim, ours: &Ours<'_>) -> CellValue {
    let (Some((_, least)), Some((_, most))) = (ours.figures.first(), ours.figures.last()) else {
        return CellValue::text(if ours.cells == 0 { "not measured here" } else { "no answer" });
    };
    if claim.figure == Kind::Proved {
        let proved = ours.figures.iter().filter(|(_, proved)| *proved > 0.0).count();
        return CellValue::text(format!("{proved} of {}", ours.figures.len()));
    }
    let (least, most) = (format_figure(claim.figure, *least), format_figure(claim.figure, *most));
    CellValue::text(if least == most { least } else { format!("{least} to {most}") })
}

fn format_figure(kind: Kind, figure: f64) -> String {
    match kind {
        Kind::Height => format!("{} bytes ({})", whole(figure), format_bytes(whole(figure))),
        Kind::HeightOverLoad | Kind::Proved => format!("{figure:.4}"),
        Kind::Seconds => format_nanoseconds(figure * 1e9),
        Kind::TotalReduction => format_percent(figure),
    }
}

/// Where our figures lie relative to the published ones, which are rounded; nothing without a range.
fn relative_position(claim: &Claim, ours: &Ours<'_>) -> &'static str {
    let (Some((_, least)), Some((_, most))) = (ours.figures.first(), ours.figures.last()) else { return "" };
    let low = claim.low.map(|low| low * (1.0 - 1e-9));
    let high = claim.high.map(|high| high * (1.0 + 1e-9));
    if low.or(high).is_none() { "" } else { papers::lies((low, high), (*least, *most)) }
}
