//! The page that lists every single row.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;

use crate::ReportError;
use crate::data::model::Model;
use crate::data::tables::{exit, remark};
use crate::format::{count, real};
use crate::site::Site;
use crate::site::grid::Grid;
use crate::site::page::{Menu, Page, Piece, Text};
use planlab_results::queries::{CellRow, ListedRow, Listing};
use planlab_results::table::{Table, Value};

/// A column: its key, its title, and the format of its values. A `word` is one of few texts, a `link` the path of a
/// page.
const COLUMNS: [(&str, &str, &str); 23] = [
    ("workload", "Workload", "word"),
    ("planner", "Planner", "word"),
    ("map", "Map", "link"),
    ("seed", "Seed", "count"),
    ("repetition", "Rep.", "count"),
    ("capacity_bytes", "Capacity", "bytes"),
    ("time_limit_s", "Limit, s", "count"),
    ("threads", "Threads", "count"),
    ("status", "Status", "word"),
    ("buffers", "Buffers", "count"),
    ("height_bytes", "Height", "bytes"),
    ("load_bytes", "Load", "bytes"),
    ("bound_bytes", "Bound", "bytes"),
    ("bound_evidence", "Evidence", "word"),
    ("gap", "Gap", "share"),
    ("fragmentation", "Fragmentation", "share"),
    ("time_ns", "Time", "time"),
    ("lane", "Lane", "word"),
    ("peak_rss_bytes", "Memory", "bytes"),
    ("hand_overs", "Hand-overs", "count"),
    ("work", "Work", "count"),
    ("exit", "Exit", "text"),
    ("remark", "Remark", "text"),
];

/// The most rows on the page and in LaTeX; a browser can show no more. The CSV file has all rows.
const SHOWN: usize = 100_000;
/// The number of rows converted to text at a time.
const CHUNK: usize = 10_000;

pub(super) fn page(site: &Site<'_>) -> Result<Page, ReportError> {
    let model = site.model;
    let workloads = || 0..model.workloads.len();
    let maps = workloads().flat_map(|workload| site.mapped(workload).iter().map(move |map| (workload, map)));
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
    let listing = model.tables.listing(&model.all)?;
    let map = |workload, plan: &str| pages.get(&(workload, plan)).copied();
    let shown = listing.len().min(SHOWN);
    let grid = Grid {
        table: table(model, &listing, (0, shown), &map)?,
        csv: csv(model, &listing, &map)?,
        kinds: COLUMNS.iter().map(|(_, _, kind)| *kind).collect(),
        order: order(),
        choosers: vec![("planner", "all planners"), ("status", "all statuses")],
        // The workloads of the model are in natural order, like the words.
        pages: workloads().map(|number| site.page_of(number)).collect(),
    };
    let page = Page::new("cells.html", "Every row")
        .named(Menu::Run, "Where is every single row?")
        .with([Piece::note(note)]);
    let rest = (shown < listing.len()).then(|| {
        let (shown, all) = (count(shown as u64), count(listing.len() as u64));
        Piece::note(format!("These are the first {shown} of {all} rows; the CSV file holds all."))
    });
    Ok(page.with(rest).with([Piece::Grid(grid)]))
}

/// The order of the columns on the page: the result first, so that it needs no scrolling.
fn order() -> Vec<usize> {
    const FIRST: [&str; 8] =
        ["workload", "planner", "map", "status", "gap", "time_ns", "height_bytes", "bound_bytes"];
    let place = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    let mut order: Vec<usize> = (0..COLUMNS.len()).collect();
    order.sort_by_key(|&at| place(COLUMNS[at].0));
    order
}

/// All rows as comma-separated values.
fn csv<'p>(
    model: &Model,
    listing: &Listing,
    map: &impl Fn(usize, &str) -> Option<&'p str>,
) -> Result<String, ReportError> {
    let mut text = table(model, listing, (0, 0), map)?.to_csv();
    for start in (0..listing.len()).step_by(CHUNK) {
        let chunk = table(model, listing, (start, CHUNK), map)?.to_csv();
        text.push_str(chunk.split_once('\n').map_or("", |(_, rows)| rows));
    }
    Ok(text)
}

/// `count` rows from an index on; `map` returns the page with the map of a workload's plan.
fn table<'p>(
    model: &Model,
    listing: &Listing,
    (from, count): (usize, usize),
    map: &impl Fn(usize, &str) -> Option<&'p str>,
) -> Result<Table, ReportError> {
    let columns: Vec<(&str, &str)> = COLUMNS.iter().map(|(key, title, _)| (*key, *title)).collect();
    let mut table = Table::named("cells", "All rows.", &columns);
    for row in listing.rows(from, count)? {
        let cell = &model.cells[row.number as usize];
        table.push(values(
            model,
            cell,
            &row,
            row.plan.as_deref().and_then(|plan| map(cell.workload_number, plan)),
        ));
    }
    Ok(table)
}

fn values(model: &Model, first: &CellRow, row: &ListedRow, map: Option<&str>) -> Vec<Value> {
    let fragmentation =
        row.height.map(|height| planlab_dsa::fragmentation(Bytes::new(height), Bytes::new(first.load)));
    vec![
        Value::text(&*first.workload),
        Value::text(&model.planner(first).label),
        Value::or_missing(map.map(Value::text)),
        Value::Count(first.seed),
        Value::Count(u64::from(row.repetition)),
        Value::or_missing(first.target_bytes.map(Value::Bytes)),
        Value::or_missing(first.wall_limit_ns.map(|ns| Value::Number(real(ns) / 1e9))),
        Value::Count(planlab_results::threads(&first.parameters)),
        Value::text(row.status.name()),
        Value::Count(first.buffers),
        Value::or_missing(row.height.map(Value::Bytes)),
        Value::Bytes(first.load),
        Value::Bytes(first.best_bound),
        Value::text(row.bound_evidence.name()),
        Value::or_missing(first.gap.map(Value::Share)),
        Value::or_missing(fragmentation.map(Value::Share)),
        Value::or_missing(row.median_ns.map(|ns| Value::Nanoseconds(real(ns)))),
        Value::text(row.lane.name()),
        Value::or_missing(row.peak_rss_bytes.map(Value::Bytes)),
        Value::Count(row.hand_overs),
        Value::Count(row.work),
        Value::text(exit(row.signal, row.exit_code)),
        Value::text(remark(first.target_bytes, &row.reason)),
    ]
}
