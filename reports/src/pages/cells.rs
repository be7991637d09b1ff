//! What does every single row say?

use std::collections::BTreeMap;

use crate::data::model::{Cell, Model};
use crate::data::tables::{exit, remark};
use crate::site::Site;
use crate::site::grid::Grid;
use crate::site::page::{Page, Piece, Text};
use planlab_results::Record;
use planlab_results::table::{Table, Value};

/// A column: its key, its title, and how its values are shown. A `word` is one of few texts, a
/// `link` the path of a page.
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

pub(super) fn page(site: &Site<'_>) -> Option<Page> {
    let model = site.model;
    let workloads = || 0..model.workloads.len();
    let maps = workloads().flat_map(|workload| site.mapped(workload).iter().map(move |map| (workload, map)));
    let mut pages: BTreeMap<(usize, &str), &str> = BTreeMap::new();
    for (workload, map) in maps {
        let plan = model.row(&model.cells[map.cell]).plan.as_deref();
        pages.extend(plan.map(|plan| ((workload, plan), map.page.as_str())));
    }
    let note = Text::from(
        "A row for each cell and repetition. Words in the field are sought in every text of a row; a word with a minus \
         in front must not be there. A click on a title sorts. The address keeps the choice. A map is that of the \
         row's plan, where the report has it, be it drawn for this planner or another. ",
    );
    let note = note.link("CSV", "tables/cells.csv").plain(" ").link("LaTeX", "tables/cells.tex");
    let grid = Grid {
        table: table(model, |workload, record| pages.get(&(workload, record.plan.as_deref()?)).copied()),
        kinds: COLUMNS.iter().map(|(_, _, kind)| *kind).collect(),
        choosers: vec![("planner", "all planners"), ("status", "all statuses")],
        // The workloads of the model stand in natural order, as the words do.
        pages: workloads().map(|number| site.page_of(number)).collect(),
    };
    Some(Page::new("cells.html", "All cells").named("All cells").with([Piece::note(note), Piece::Grid(grid)]))
}

/// All rows as a table, for its files; `map` gives the page with the map of the plan of a workload's row.
fn table<'p>(model: &Model, map: impl Fn(usize, &Record) -> Option<&'p str>) -> Table {
    let columns: Vec<(&str, &str)> = COLUMNS.iter().map(|(key, title, _)| (*key, *title)).collect();
    let mut table = Table::named("cells", "All rows.", &columns);
    for cell in &model.cells {
        for record in model.rows(cell) {
            table.push(values(model, cell, record, map(cell.workload, record)));
        }
    }
    table
}

fn values(model: &Model, cell: &Cell, record: &Record, map: Option<&str>) -> Vec<Value> {
    vec![
        Value::text(&record.workload),
        Value::text(&model.planner(cell).label),
        Value::or_missing(map.map(Value::text)),
        Value::Count(record.seed),
        Value::Count(u64::from(record.repetition)),
        Value::or_missing(record.target_bytes.map(Value::Bytes)),
        Value::or_missing(record.wall_limit_ns.map(|ns| Value::Number(crate::format::real(ns) / 1e9))),
        Value::Count(record.threads()),
        Value::text(record.status.name()),
        Value::Count(record.buffers),
        Value::or_missing(record.height.map(Value::Bytes)),
        Value::Bytes(record.load),
        Value::Bytes(cell.bound),
        Value::text(record.bound_evidence.name()),
        Value::or_missing(cell.gap.map(Value::Share)),
        Value::or_missing(record.fragmentation().map(Value::Share)),
        Value::or_missing(record.median_ns().map(|ns| Value::Nanoseconds(crate::format::real(ns)))),
        Value::text(record.lane.name()),
        Value::or_missing(record.peak_rss_bytes.map(Value::Bytes)),
        Value::Count(record.hand_overs),
        Value::Count(record.work),
        Value::text(exit(record)),
        Value::text(remark(record)),
    ]
}
