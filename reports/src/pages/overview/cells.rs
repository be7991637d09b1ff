//! The page that lists every single row.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;

use crate::ReportError;
use crate::data::planners::model::Model;
use crate::data::planners::tables::{describe_exit, row_remark};
use crate::format::{as_real, format_count};
use crate::site::Site;
use crate::site::page::{Menu, Page, Piece, Text};
use crate::site::parts::grid::Grid;
use planlab_results::queries::{CellRow, ListedRow, Listing};
use planlab_results::table::{CellValue, Table};

/// A row with what its cell says.
struct Listed<'r> {
    label: &'r str,
    cell: &'r CellRow,
    row: &'r ListedRow,
    /// The page with the map of its plan.
    map: Option<&'r str>,
}

/// A column: its key, its title, the format of its values, and its value of a row. A `word` is one of few texts, a `link`
/// the path of a page.
type Described = (&'static str, &'static str, &'static str, fn(&Listed<'_>) -> CellValue);

const COLUMNS: [Described; 23] = [
    ("workload", "Workload", "word", |of| CellValue::text(&*of.cell.workload)),
    ("planner", "Planner", "word", |of| CellValue::text(of.label)),
    ("map", "Map", "link", |of| CellValue::or_missing(of.map.map(CellValue::text))),
    ("seed", "Seed", "count", |of| CellValue::Count(of.cell.seed)),
    ("repetition", "Rep.", "count", |of| CellValue::Count(u64::from(of.row.repetition))),
    ("capacity_bytes", "Capacity", "bytes", |of| CellValue::bytes(of.cell.target_bytes)),
    ("time_limit_s", "Limit, s", "count", |of| {
        CellValue::or_missing(of.cell.wall_limit_ns.map(|ns| CellValue::Number(as_real(ns) / 1e9)))
    }),
    ("threads", "Threads", "count", |of| CellValue::Count(planlab_results::threads(&of.cell.parameters))),
    ("status", "Status", "word", |of| CellValue::text(of.row.status.name())),
    ("buffers", "Buffers", "count", |of| CellValue::Count(of.cell.buffers)),
    ("height_bytes", "Height", "bytes", |of| CellValue::bytes(of.row.height)),
    ("load_bytes", "Load", "bytes", |of| CellValue::Bytes(of.cell.load)),
    ("bound_bytes", "Bound", "bytes", |of| CellValue::Bytes(of.cell.best_bound)),
    ("bound_evidence", "Evidence", "word", |of| CellValue::text(of.row.bound_evidence.name())),
    ("gap", "Gap", "share", |of| CellValue::share(of.cell.gap)),
    ("fragmentation", "Fragmentation", "share", |of| {
        let load = Bytes::new(of.cell.load);
        CellValue::share(of.row.height.map(|height| planlab_dsa::fragmentation(Bytes::new(height), load)))
    }),
    ("time_ns", "Time", "time", |of| CellValue::nanoseconds(of.row.median_ns.map(as_real))),
    ("lane", "Lane", "word", |of| CellValue::text(of.row.lane.name())),
    ("peak_rss_bytes", "Memory", "bytes", |of| CellValue::bytes(of.row.peak_rss_bytes)),
    ("hand_overs", "Hand-overs", "count", |of| CellValue::Count(of.row.hand_overs)),
    ("work", "Work", "count", |of| CellValue::Count(of.row.work)),
    ("exit", "Exit", "text", |of| CellValue::text(describe_exit(of.row.signal, of.row.exit_code))),
    ("remark", "Remark", "text", |of| CellValue::text(row_remark(of.cell.target_bytes, &of.row.reason))),
];

/// The most rows on the page and in LaTeX; a browser can show no more. The CSV file has all rows.
const SHOWN: usize = 100_000;
/// The number of rows converted to text at a time.
const CHUNK: usize = 10_000;

pub(crate) fn page(site: &Site<'_>) -> Result<Page, ReportError> {
    let model = site.model;
    let workloads = || 0..model.workloads.len();
    let maps = workloads().flat_map(|workload| site.maps_of(workload).iter().map(move |map| (workload, map)));
    let mut pages: BTreeMap<(usize, &str), &str> = BTreeMap::new();
    for (workload, map) in maps {
        let plan = model.cells[map.cell].plan.as_deref();
        pages.extend(plan.map(|plan| ((workload, plan), map.page.as_str())));
    }
    let note = Text::from(
        "A row for each cell and repetition. The field finds rows that contain all its words; a minus before a word \
         excludes rows with that word. A click on a title sorts. The address of the page keeps the choice. Planners with \
         equal plans share a map. ",
    );
    let note = note.link("CSV", "tables/cells.csv").plain(" ").link("LaTeX", "tables/cells.tex");
    let listing = model.tables.list_rows(&model.all)?;
    let map = |workload, plan: &str| pages.get(&(workload, plan)).copied();
    let shown = listing.row_count().min(SHOWN);
    let grid = Grid {
        table: cell_table(model, &listing, (0, shown), &map)?,
        csv: csv_text(model, &listing, &map)?,
        kinds: COLUMNS.iter().map(|(_, _, kind, _)| *kind).collect(),
        order: column_order(),
        choosers: vec![("planner", "all planners"), ("status", "all statuses")],
        // The workloads of the model are in natural order, like the words.
        pages: workloads().map(|number| site.page_of(number)).collect(),
    };
    let page = Page::new("cells.html", "Every row")
        .in_menu(Menu::Run, "Where is every single row?")
        .with([Piece::note(note)]);
    let rest = (shown < listing.row_count()).then(|| {
        let (shown, all) = (format_count(shown as u64), format_count(listing.row_count() as u64));
        Piece::note(format!("These are the first {shown} of {all} rows; the CSV file holds all."))
    });
    Ok(page.with(rest).with([Piece::Grid(grid)]))
}

/// The order of the columns on the page: the result first, so that it needs no scrolling.
fn column_order() -> Vec<usize> {
    const FIRST: [&str; 8] =
        ["workload", "planner", "map", "status", "gap", "time_ns", "height_bytes", "bound_bytes"];
    let place = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    let mut order: Vec<usize> = (0..COLUMNS.len()).collect();
    order.sort_by_key(|&at| place(COLUMNS[at].0));
    order
}

fn csv_text<'p>(
    model: &Model,
    listing: &Listing,
    map: &impl Fn(usize, &str) -> Option<&'p str>,
) -> Result<String, ReportError> {
    let mut text = cell_table(model, listing, (0, 0), map)?.to_csv();
    for start in (0..listing.row_count()).step_by(CHUNK) {
        let chunk = cell_table(model, listing, (start, CHUNK), map)?.to_csv();
        text.push_str(chunk.split_once('\n').map_or("", |(_, rows)| rows));
    }
    Ok(text)
}

/// `count` rows from an index on; `map` returns the page with the map of a workload's plan.
fn cell_table<'p>(
    model: &Model,
    listing: &Listing,
    (from, count): (usize, usize),
    map: &impl Fn(usize, &str) -> Option<&'p str>,
) -> Result<Table, ReportError> {
    let columns: Vec<(&str, &str)> = COLUMNS.iter().map(|(key, title, ..)| (*key, *title)).collect();
    let mut table = Table::for_page("cells", "All rows.", &columns);
    for row in &listing.rows(from, count)? {
        let cell = &model.cells[row.number as usize];
        let map = row.plan.as_deref().and_then(|plan| map(cell.workload_number, plan));
        let listed = Listed { label: &model.planner_of_cell(cell).label, cell, row, map };
        table.push(COLUMNS.iter().map(|(.., value)| value(&listed)).collect());
    }
    Ok(table)
}
