//! The page with all rows, which sorts and filters.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};
use serde_json::{Value as Json, json};

use super::tables::{exit, remark};
use crate::model::{Cell, Model, natural};
use crate::table::{Table, Value};
use planlab_results::Record;

const SCRIPT: &str = include_str!("../assets/cells.js");

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

/// All rows as a table, for its files; `map` gives the page with the map of the plan of a workload's row.
pub(crate) fn table<'p>(model: &Model, map: impl Fn(usize, &Record) -> Option<&'p str>) -> Table {
    let columns: Vec<(&str, &str)> = COLUMNS.iter().map(|(key, title, _)| (*key, *title)).collect();
    let mut table = Table::new("cells", "All rows.", &columns);
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

/// The page's body; `page` gives the page of a workload.
pub(crate) fn body(model: &Model, table: &Table, page: impl Fn(usize) -> String) -> Markup {
    let words: Vec<Vec<String>> = (0..COLUMNS.len()).map(|column| words(table, column)).collect();
    let data = data(model, table, &words, page);
    let options = |key: &str| {
        let column = COLUMNS.iter().position(|(name, _, _)| *name == key).unwrap_or(0);
        words[column].clone()
    };
    html! {
        h1 { "All cells" }
        p.note {
            "A row for each cell and repetition. Words in the field are sought in every text of a row; a word \
             with a minus in front must not be there. A click on a title sorts. The address keeps the choice. A \
             map is that of the row's plan, where the report has it, be it drawn for this planner or another. "
            a href="tables/cells.csv" { "CSV" } " " a href="tables/cells.tex" { "LaTeX" }
        }
        noscript { p.alert { "This table needs JavaScript; the CSV file holds the same rows." } }
        div.filters {
            input type="search" placeholder="words, -words" aria-label="words" data-filter="q";
            (chooser("planner", "all planners", &options("planner")))
            (chooser("status", "all statuses", &options("status")))
            button #reset type="button" { "reset" }
            span #shown aria-live="polite" {}
        }
        div #grid tabindex="0" {
            table {
                thead { tr { @for (_, title, kind) in COLUMNS { th.number[!matches!(kind, "word" | "text" | "link")] scope="col" { (title) } } } }
                tbody {}
            }
        }
        script #data type="application/json" { (PreEscaped(data)) }
        script { (PreEscaped(SCRIPT)) }
    }
}

fn chooser(key: &str, all: &str, options: &[String]) -> Markup {
    html! {
        select data-filter=(key) aria-label=(key) {
            option value="" { (all) }
            @for option in options { option value=(option) { (option) } }
        }
    }
}

/// The different texts of a column, numbers in them sorted as numbers; none for other columns.
fn words(table: &Table, column: usize) -> Vec<String> {
    if COLUMNS[column].2 != "word" {
        return Vec::new();
    }
    let texts = table.rows.iter().filter_map(|row| match &row[column] {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    });
    let mut words: Vec<String> = texts.collect::<BTreeSet<_>>().into_iter().collect();
    words.sort_by(|a, b| natural(a, b));
    words
}

fn data(model: &Model, table: &Table, words: &[Vec<String>], page: impl Fn(usize) -> String) -> String {
    let columns: Vec<Json> = COLUMNS
        .iter()
        .map(|(key, title, kind)| json!({ "key": key, "title": title, "kind": kind }))
        .collect();
    let named: serde_json::Map<String, Json> =
        COLUMNS.iter().zip(words).map(|((key, _, _), words)| ((*key).to_owned(), json!(words))).collect();
    let rows: Vec<Vec<Json>> = table
        .rows
        .iter()
        .map(|row| row.iter().zip(words).map(|(value, words)| encoded(value, words)).collect())
        .collect();
    // The workloads of the model stand in natural order, as the words do.
    let pages: Vec<String> = (0..model.workloads.len()).map(page).collect();
    let data = json!({ "columns": columns, "words": named, "rows": rows, "pages": pages });
    // A text in the data must not end the script.
    data.to_string().replace('<', "\\u003c")
}

fn encoded(value: &Value, words: &[String]) -> Json {
    match value {
        Value::Missing => Json::Null,
        Value::Text(text) | Value::Link(text, _) => {
            words.iter().position(|word| word == text).map_or_else(|| json!(text), |number| json!(number))
        }
        Value::Count(number) | Value::Bytes(number) => json!(number),
        Value::Nanoseconds(number)
        | Value::Share(number)
        | Value::Heat(number, _)
        | Value::Number(number) => {
            json!(number)
        }
    }
}
