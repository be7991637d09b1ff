//! The page that compares published figures with ours from the records at hand.

use crate::data::nets::parts::PoolTotals;
use crate::data::papers;
use crate::data::papers::claims::{Claim, Kind, claims};
use crate::data::planners::model::Model;
use crate::data::planners::tables;
use crate::figures::coord::whole;
use crate::format::{bytes, nanoseconds, percent};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece};
use planlab_results::queries::CellRow;
use planlab_results::table::{Table, Value, columns};

#[derive(Default)]
struct Ours<'m> {
    /// Cells with the figure, each with its figure.
    figures: Vec<(&'m CellRow, f64)>,
    /// The number of cells of the claim, with or without the figure.
    cells: usize,
}

pub(crate) fn page(site: &Site<'_>) -> Option<Page> {
    let table = table(site.model, claims(), &site.options.totals, |number| site.page_of(number));
    let note = "Figures of papers and of public programs beside ours. Ours are computed from the rows of this report. If \
                it has none, the command says how to measure it. If figures differ, docs/claims.md gives the reason, as \
                far as it is known. The link leads to the workload with the greatest of our figures.";
    let question = "Do the published figures hold?";
    let page = Page::new("claims.html", question).named(Menu::Planners, question);
    let shown = ["claim", "source", "published", "ours", "lies", "example"];
    let at = |key: &&str| table.columns.iter().position(|column| column.key == *key);
    let mut short = tables::with_columns(&table, &shown.iter().filter_map(at).collect::<Vec<_>>());
    short.caption =
        "Ours is: whether our figures are within, below or above what rounds to the published figure."
            .to_owned();
    let pieces = [Piece::note(note), Piece::text(verdicts(&table)), Piece::Table(short)];
    let whole = Piece::Folded("With basis, cells and commands".to_owned(), table);
    Some(page.with(pieces).with([whole]))
}

/// How many of the claims were measured, and how they came out.
fn verdicts(table: &Table) -> String {
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
fn table(model: &Model, claims: &[Claim], totals: &PoolTotals, page: impl Fn(usize) -> String) -> Table {
    Table::from_rows(
        "claims",
        "What others published, and our figure for the same, from the least to the greatest of its cells. Basis: whether \
         the source published the figure or it was measured with the source's program, and with which commit and \
         options. Cells: those with the figure, of those that ran. Ours is: whether our figures are within, below or above \
         what rounds to the published figure.",
        claims,
        columns!(|claim| {
            let ours = ours(model, claim, totals);
            let link = |cell: &CellRow| {
                let name = format!("{} on {}", model.planner(cell).label, cell.workload);
                Value::Link(name, page(cell.workload_number))
            };
            [
                ("id", "Claim", Value::text(&claim.id)),
                ("claim", "Claim", Value::text(&claim.claim)),
                ("source", "Source", Value::text(&claim.source)),
                ("basis", "Basis", Value::text(claim.basis_in_words())),
                ("published", "Published", Value::text(&claim.published)),
                ("ours", "Ours", shown(claim, &ours)),
                ("lies", "Ours is", Value::text(lies(claim, &ours))),
                ("with_figure", "Cells", Value::count(ours.figures.len())),
                ("cells", "of", Value::count(ours.cells)),
                ("example", "Cell", Value::or_missing(ours.figures.last().map(|(cell, _)| link(cell)))),
                ("command", "Command", Value::text(&claim.command)),
            ]
        }),
    )
}

fn ours<'m>(model: &'m Model, claim: &Claim, totals: &PoolTotals) -> Ours<'m> {
    let mut ours = Ours::default();
    for cell in model.cells.iter().filter(|cell| claim.is_about(cell)) {
        ours.cells += 1;
        ours.figures.extend(figure(cell, claim.figure, totals).map(|figure| (cell, figure)));
    }
    ours.figures.sort_by(|a, b| a.1.total_cmp(&b.1));
    ours
}

fn figure(row: &CellRow, kind: Kind, totals: &PoolTotals) -> Option<f64> {
    let height = || row.height.filter(|_| row.status.is_answer()).map(crate::format::real);
    match kind {
        Kind::Height => height(),
        Kind::HeightOverLoad => height().filter(|_| row.load > 0).map(|h| h / crate::format::real(row.load)),
        Kind::Seconds => row.time_ns.map(|ns| ns / 1e9),
        Kind::Proved => Some(if row.status == planlab_results::Status::Optimal { 1.0 } else { 0.0 }),
        Kind::TotalReduction => {
            let total = totals.get(&*row.workload)?;
            let kept = crate::format::real(total.parameters?);
            Some(1.0 - (kept + height()?) / (kept + crate::format::real(total.pool?)))
        }
    }
}

fn shown(claim: &Claim, ours: &Ours<'_>) -> Value {
    let (Some((_, least)), Some((_, most))) = (ours.figures.first(), ours.figures.last()) else {
        return Value::text(if ours.cells == 0 { "not measured here" } else { "no answer" });
    };
    if claim.figure == Kind::Proved {
        let proved = ours.figures.iter().filter(|(_, proved)| *proved > 0.0).count();
        return Value::text(format!("{proved} of {}", ours.figures.len()));
    }
    let (least, most) = (written(claim.figure, *least), written(claim.figure, *most));
    Value::text(if least == most { least } else { format!("{least} to {most}") })
}

fn written(kind: Kind, figure: f64) -> String {
    match kind {
        Kind::Height => format!("{} bytes ({})", whole(figure), bytes(whole(figure))),
        Kind::HeightOverLoad | Kind::Proved => format!("{figure:.4}"),
        Kind::Seconds => nanoseconds(figure * 1e9),
        Kind::TotalReduction => percent(figure),
    }
}

/// Where our figures lie relative to the published ones, which are rounded; nothing without a range.
fn lies(claim: &Claim, ours: &Ours<'_>) -> &'static str {
    let (Some((_, least)), Some((_, most))) = (ours.figures.first(), ours.figures.last()) else { return "" };
    let low = claim.low.map(|low| low * (1.0 - 1e-9));
    let high = claim.high.map(|high| high * (1.0 + 1e-9));
    if low.or(high).is_none() { "" } else { papers::lies((low, high), (*least, *most)) }
}
